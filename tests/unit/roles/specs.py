# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""meta/argument_specs.yml of the drivers' roles, written from the options' declaration and the catalog.

Ansible reads the file as it is. `PYTHONPATH=.collections:tests python -m unit.roles.specs` writes it for every driver.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Driver
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.declared import OPTIONS, Option

ROLES = Path(__file__).parents[3] / "roles"
HEADER = "---\n# Written by unit.roles.specs from plugins/module_utils/drivers/declared.py and the catalog; change it there.\n"
ENTRIES = {
    "main": ("Deploy {0} and wait until it works on every node", ["Plans, applies and gates."]),
    "plan": ("Show the plan of {0}", ["Changes nothing. Fails when something is in the way, and names the remedy."]),
    "apply": ("Apply {0}", ["Plans, then applies what differs."]),
    "gate": ("Wait until {0} works on every node", ["Changes nothing."]),
}


class _Dumper(yaml.SafeDumper):
    """Lists are indented, as yamllint wants them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        return super().increase_indent(flow, False)


def _own(driver: Driver) -> Iterator[tuple[str, str]]:
    """What an option means for this driver alone."""
    made = driver.storage_class
    yield "version", f"The catalog's default is {driver.default_version}."
    yield "namespace", f"Upstream's is C({driver.namespace})."
    yield "service_account", f"The catalog's is C({driver.service_account})."
    needed = f" Requires the parameter {' and '.join(f'C({name})' for name in made.required)}." if made.required else ""
    yield "storage_class", f"Its name defaults to C({made.name}).{needed}"


def _option(driver: Driver, name: str, option: Option) -> dict[str, Any]:
    found = option.documented("options")
    found["description"] = " ".join([option.text, *(text for one, text in _own(driver) if one == name)])
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


def text(driver: Driver) -> str:
    """The file of one driver's role."""
    plugin = f"the {driver.title} CSI driver's Windows node plugin"
    options = {f"{driver.key}_csi_{name}": _option(driver, name, option) for name, option in OPTIONS.items()}
    # One object in four places becomes an anchor and its aliases.
    entries = {
        entry: {
            "short_description": short.format(plugin),
            "description": [*description, "Runs where the cluster can be reached, usually on localhost."],
            "author": "kubewin.csi contributors (@kubewin)",
            "version_added": "1.0.0",
            "options": options,
        }
        for entry, (short, description) in ENTRIES.items()
    }
    dumped = yaml.dump({"argument_specs": entries}, Dumper=_Dumper, sort_keys=False, width=140, allow_unicode=True)
    return HEADER + dumped.replace("id001", "options")


def main() -> None:
    """Write every file."""
    for driver in DRIVERS.values():
        path = ROLES / f"{driver.key}_csi" / "meta" / "argument_specs.yml"
        path.write_text(text(driver), encoding="utf-8")


if __name__ == "__main__":
    main()
