# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that cannot work are refused by name before anybody is contacted: the host of these runs does not exist."""

from __future__ import annotations

from typing import Any

import pytest
from integration.playbooks import play


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kubewin_drivers": ""}, "kubewin_drivers is empty; known drivers are"),
        ({"kubewin_drivers": 5}, "kubewin_drivers is 5"),
        ({"kubewin_drivers": ["vsphere", "floppy"]}, "kubewin_drivers is vsphere, floppy"),
        ({"kubewin_batches": "abc"}, "kubewin_batches is abc; numbers of hosts or percentages"),
        ({"kubewin_batches": ""}, "kubewin_batches is empty"),
        ({"kubewin_quiesce": "drain"}, "kubewin_quiesce is drain; cordon or none"),
        ({"kubewin_gate_timeout": "soon"}, "kubewin_gate_timeout is soon"),
        ({"kubewin_quiesce_timeout": -1}, "kubewin_quiesce_timeout is -1"),
        ({"kubewin_skip_unreachable": "maybe"}, "kubewin_skip_unreachable=maybe"),
    ],
)
def test_it_is_refused_by_name(given: dict[str, Any], said: str) -> None:
    run = play("playbooks/enable-csi.yml", "192.0.2.1,", variables={"kubewin_hosts": "all", **given})
    assert run.code != 0
    assert any(said in item["msg"] for item in run.failures[0]["result"]["results"])
    assert run.changed == []
    assert run.plays() == ["Check inputs and access, change nothing"]
