# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that repeat declared options: argument_specs.yml of roles and the tables of variables.

The options of a driver are declared in plugins/plugin_utils/drivers/declared.py, the inputs of the playbooks in
plugins/plugin_utils/actions/inputs.py. `PYTHONPATH=.collections:tests python -m unit.roles.specs` writes the files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, Input
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.declared import OPTIONS, DriverOption

ROLES = Path(__file__).parents[3] / "roles"
HEADER = "---\n# Written by unit.roles.specs from plugins/plugin_utils/drivers/declared.py and the catalog; change it there.\n"
PAGE = ROLES.parent / "docs" / "docsite" / "rst" / "variables.rst"
WIDTH = 130
PLAYBOOKS = sorted({playbook for rule in INPUTS.values() for playbook in rule.playbooks})


class _Dumper(yaml.SafeDumper):
    """Lists are indented, as yamllint wants them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _own(driver: Driver) -> Iterator[tuple[str, str]]:
    """What an option means for this driver alone."""
    made = driver.storage_class
    yield "version", f"The catalog's default is {driver.default_version}."
    yield "namespace", f"Upstream's is C({driver.namespace})."
    needed = f" Requires the parameter {' and '.join(f'C({name})' for name in made.required)}." if made.required else ""
    yield "storage_class", f"Its name defaults to C({made.name}).{needed}"


def _option(driver: Driver, name: str, option: DriverOption) -> dict[str, Any]:
    found = option.describe()
    texts = [option.text, *(text for one, text in _own(driver) if one == name)]
    if below := found.pop("suboptions", None):
        # Documented once, and checked by the module's action.
        keys = ", ".join(f"C({key})" for key in below)
        texts.append(f"Its keys are {keys}; see M(kubewin.csi.driver_info).")
    found["description"] = " ".join(texts)
    if name == "mode":
        modes = {rule.mode for rule in driver.modes}
        found["choices"] = [one for one in option.choices if one == "auto" or one in modes]
    if "choices" in found:
        # A blank answer of a survey.
        found["choices"] = ["", *found["choices"]]
    return found


def _short(dumper: yaml.SafeDumper, found: list[Any]) -> yaml.Node:
    """A list in one line, unless it holds sentences."""
    short = all(len(str(one)) < 20 for one in found)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", found, flow_style=short)


_Dumper.add_representer(list, _short)


def tables() -> str:
    """The part of the page of variables that is written: inputs of several playbooks, then each playbook with its own inputs."""
    shared = {name: rule for name, rule in INPUTS.items() if len(rule.playbooks) > 1}
    parts = [_title("Several playbooks"), table(shared, with_playbooks=True)]
    for playbook in PLAYBOOKS:
        own = {name: rule for name, rule in INPUTS.items() if rule.playbooks == {playbook}}
        others = ", ".join(f"``{name}``" for name, rule in shared.items() if playbook in rule.playbooks)
        parts += [_title(playbook), table(own) if own else "", f"Also: {others}.\n"]
    return "\n".join(filter(None, parts))


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}\n"


def table(inputs: Mapping[str, Input], *, with_playbooks: bool = False) -> str:
    """A table of inputs."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: 25 12 {'18 45' if with_playbooks else '63'}", ""]
    rows = [("Variable", "Default", "Playbooks", "Meaning")]
    for name, rule in inputs.items():
        default = (
            "" if rule.default is None else f"``{str(rule.default).lower() if rule.type == 'bool' else rule.default}``"
        )
        playbooks = ", ".join(f"``{playbook}``" for playbook in sorted(rule.playbooks))
        meaning = re.sub(r"\b[CV]\(([^)]*)\)", r"``\1``", re.sub(r"\bO\(([^)]*)\)", r":ansopt:`\1`", rule.text))
        choices = f" One of {', '.join(f'``{choice}``' for choice in rule.choices)}." if rule.choices else ""
        rows.append((f"``{name}``", default, playbooks, meaning + choices))
    for name, default, playbooks, meaning in rows:
        lines.append(f"   * - {name}")
        cells = (default, playbooks, meaning) if with_playbooks else (default, meaning)
        lines += [f"     - {cell}".rstrip() for cell in cells]
    return "\n".join(lines) + "\n"


def page() -> str:
    """The page of variables with its tables as declared."""
    introduction = PAGE.read_text(encoding="utf-8").partition(_title("Several playbooks"))[0]
    return introduction + tables()


def text(driver: Driver) -> str:
    """The file of one driver's role."""
    plugin = f"the {driver.title} CSI driver's Windows node plugin"
    options = {f"{driver.key}_csi_{name}": _option(driver, name, option) for name, option in OPTIONS.items()}
    main = {
        "short_description": f"Deploy {plugin} and wait until it works on every node",
        "description": "Plans and applies the node plugin, and waits until it works on every node. Runs where the cluster can be "
        "reached, usually on localhost.",
        "author": "kubewin.csi contributors (@kubewin)",
        "version_added": "1.0.0",
        "options": options,
    }
    dumped = yaml.dump(
        {"argument_specs": {"main": main}}, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True
    )
    return HEADER + dumped


def main() -> None:
    """Write every file."""
    for driver in DRIVERS.values():
        path = ROLES / f"{driver.key}_csi" / "meta" / "argument_specs.yml"
        path.write_text(text(driver), encoding="utf-8")
    if PAGE.exists():
        PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
