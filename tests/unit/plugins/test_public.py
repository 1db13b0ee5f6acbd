# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is public: ansible-doc lists every plugin and role for users, so none is documented as internal."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
DOCUMENTED = sorted(
    f"{kind}/{path.stem}"
    for kind in ("filter", "inventory", "lookup", "modules")
    for path in (PLUGINS / kind).glob("*.py")
    if path.name != "__init__.py"
)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_no_plugin_is_documented_as_internal(name: str) -> None:
    assert re.search(r"\bInternal\b", (PLUGINS / f"{name}.py").read_text(encoding="utf-8")) is None


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
