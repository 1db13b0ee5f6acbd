# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is public: ansible-doc lists every plugin, and those that users are not to call begin with "Internal"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[3] / "plugins"
PUBLIC = {
    "inventory/windows_nodes",
    "modules/csi_proxy",
    "modules/csi_proxy_info",
    "modules/driver_apply",
    "modules/driver_handover",
    "modules/driver_info",
    "modules/driver_remove",
    "modules/node_info",
    "modules/node_rollout",
    "modules/node_upgrade",
    "modules/operator_override",
    "modules/readiness_info",
    "modules/storage_proof",
    "modules/volume_conversion",
    "modules/workload_data",
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
def test_what_users_are_not_to_call_says_so_first(name: str) -> None:
    described = re.search(
        r'^short_description: "?(.+?)"?$', (PLUGINS / f"{name}.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert described is not None
    assert described[1].startswith("Internal: ") == (name not in PUBLIC)
