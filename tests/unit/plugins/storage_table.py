# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The table of recommended storage by OpenShift line and driver, drawn from the catalog.

After a change of the catalog, write it anew: PYTHONPATH=.collections:tests python -m unit.plugins.storage_table
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import openshift, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from unit.plugins.plugin_utils.drivers.test_openshift_lines import planned

PAGE = Path(__file__).parents[3] / "docs" / "docsite" / "rst" / "platforms.rst"
BEGIN, END = ".. The table is drawn from the catalog.\n", ".. The end of the table.\n"
MODES = {"csi_proxy": "csi-proxy", "host_process": "HostProcess"}


def cell(line: wmco.Line, key: str) -> str:
    """What Windows nodes of a line are to use of a driver."""
    driver = DRIVERS[key]
    if line.csi_proxy_since is None:
        return "in-tree" if driver.in_tree in line.not_migrated else "none"
    kept = line.list_in_tree_plugins(parse(line.csi_proxy_since))
    if driver.in_tree in (*kept, *line.not_migrated):
        return "in-tree"
    made = planned(line.openshift, key)
    if not made.deployable or made.rule is None:
        first = next(finding.id for finding in made.findings if finding.severity == "blocker")
        return f"refused, {first}"
    shipped = openshift.list_shipped_releases(f"{line.openshift}.9", key)
    mark = " [2]_" if not shipped else "" if made.version in shipped else " [1]_"
    return f"{made.version}, {MODES[made.rule.mode]}{mark}"


def table() -> Iterator[str]:
    """The table, line by line, as reStructuredText."""
    yield ".. list-table::"
    yield "   :header-rows: 1"
    yield ""
    titles = [DRIVERS[key].title for key in openshift.DRIVERS]
    for row in (["OpenShift", "WMCO with csi-proxy", *titles], *rows()):
        for number, text in enumerate(row):
            yield (
                f"   {'-' if number else '*'} {'' if number else '- '}{text}".rstrip()
                if not number
                else f"     - {text}"
            )
    yield ""


def rows() -> Iterator[list[str]]:
    """One row a line of OpenShift that this collection knows in both halves."""
    for line in wmco.LINES:
        if line.csi_proxy_since is None or line.openshift in openshift.list_lines():
            yield [line.openshift, line.csi_proxy_since or "none", *(cell(line, key) for key in openshift.DRIVERS)]


def drawn(page: str) -> str:
    """The page with the table as the catalog has it now."""
    before, begin, rest = page.partition(BEGIN)
    _old, end, after = rest.partition(END)
    assert begin
    assert end
    return f"{before}{begin}\n{chr(10).join(table())}\n{end}{after}"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
