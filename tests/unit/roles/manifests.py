# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the templates render for every driver and mode, kept as files so that a change is seen in review.

After a wanted change, write them anew with

    PYTHONPATH=.collections:tests python -m unit.roles.manifests

and read the difference. They are not called .yaml because sanity tests want one document a file. `differences.yaml`
beside the files lists where they differ from upstream on purpose, and `python -m unit.roles.upstream` compares them
with upstream's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import manifests
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.base import Driver, ModeRule
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.template_settings import make_settings

FOLDER = Path(__file__).parents[1] / "manifests"
KUBERNETES = "1.33.0"
# As many releases back as a cluster is likely to be.
RELEASES = 3


@dataclass(frozen=True, slots=True)
class Case:
    """One rendered manifest: a driver's release in a mode."""

    driver: Driver
    rule: ModeRule
    version: str

    @property
    def name(self) -> str:
        """Its file's name without the ending: smb-csi_proxy-1.20.3."""
        return f"{self.driver.key}-{self.rule.mode}-{self.version}"

    def settings(
        self, kubernetes: str = KUBERNETES, wanted: DriverRequest | None = None, *, namespace: bool = False
    ) -> dict[str, Any]:
        """What the templates read; objects made only when asked for are asked for, the Namespace on its own request."""
        return make_settings(
            self.driver, wanted or DriverRequest(), self.rule, parse(self.version), self.driver.namespace, parse(kubernetes),
            create_namespace=namespace, create_csi_driver=True, create_feature_states=True,
        )  # fmt: skip

    def render(
        self, kubernetes: str = KUBERNETES, wanted: DriverRequest | None = None, *, namespace: bool = False
    ) -> str:
        """All objects, as text."""
        return manifests.render(self.rule, self.settings(kubernetes, wanted, namespace=namespace))

    def objects(
        self, kubernetes: str = KUBERNETES, wanted: DriverRequest | None = None, *, namespace: bool = False
    ) -> list[dict[str, Any]]:
        """The same, read."""
        rendered = self.render(kubernetes, wanted, namespace=namespace)
        return [item for item in yaml.load_all(rendered, Loader=yaml.CSafeLoader) if item]

    def pod(self, wanted: DriverRequest | None = None) -> dict[str, Any]:
        """The pod spec of its DaemonSet."""
        spec: dict[str, Any] = self.daemon_set(wanted)["spec"]["template"]["spec"]
        return spec

    def daemon_set(self, wanted: DriverRequest | None = None) -> dict[str, Any]:
        """Its DaemonSet."""
        return next(item for item in self.objects(wanted=wanted) if item["kind"] == "DaemonSet")


def cases(releases: int = RELEASES) -> Iterator[Case]:
    """The newest releases of every mode of every driver."""
    for driver in DRIVERS.values():
        for rule in driver.modes:
            known = sorted(parse(one.version) for one in driver.releases if rule.supports(parse(one.version)))
            for version in known[-releases:]:
                yield Case(driver, rule, str(version))


def main() -> None:
    """Write every file, and remove those of releases that are no longer among the newest."""
    wanted = {f"{case.name}.manifest": case.render() for case in cases()}
    for stale in FOLDER.glob("*-*-*.manifest"):
        if stale.name not in wanted:
            stale.unlink()
    for name, content in wanted.items():
        (FOLDER / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
