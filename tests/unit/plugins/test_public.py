# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is public: ansible-doc lists every plugin and role, and those that users are not to call begin with "Internal"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
PUBLIC = {
    "inventory/windows_nodes",
    "modules/csi_proxy",
    "modules/csi_proxy_info",
    "modules/driver_apply",
    "modules/handover",
    "modules/driver_info",
    "modules/driver_remove",
    "modules/node_info",
    "modules/gate",
    "modules/upgrade",
    "modules/operator_override",
    "modules/preflight_info",
    "modules/verify",
    "modules/convert_volumes",
    "modules/volume_data",
}
DOCUMENTED = sorted(
    f"{kind}/{path.stem}"
    for kind in ("filter", "inventory", "lookup", "modules")
    for path in (PLUGINS / kind).glob("*.py")
    if path.name != "__init__.py"
)


def test_the_list_names_what_exists() -> None:
    assert set(DOCUMENTED) >= PUBLIC


@pytest.mark.parametrize("name", DOCUMENTED)
def test_internal_plugins_are_documented_as_internal(name: str) -> None:
    described = re.search(
        r'^short_description: "?(.+?)"?$', (PLUGINS / f"{name}.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert described is not None
    assert described[1].startswith("Internal: ") == (name not in PUBLIC)


def test_the_readme_names_every_playbook_and_role() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    public = {path.stem for path in (ROOT / "playbooks").glob("*.yml") if "-" not in path.stem}
    public |= {path.name for path in (ROOT / "roles").iterdir()}
    assert sorted(name for name in public if f"`{name}`" not in readme) == []


@pytest.mark.parametrize("role", sorted(path.name for path in (ROOT / "roles").iterdir()))
def test_no_role_is_documented_as_internal(role: str) -> None:
    specs = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8"))
    for entry in specs["argument_specs"].values():
        assert "Internal" not in entry["short_description"]
