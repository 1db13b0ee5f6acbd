# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inputs that cannot work are refused before anybody is contacted: neither the host of these runs nor a cluster exists.

What each may be is tried in the unit tests; here, that every playbook asks before anything else.
"""

from __future__ import annotations

from typing import Any

import pytest
from integration.playbooks import Run, play

NOBODY = "192.0.2.1,"
HOSTS = {"kubewin_hosts": "all"}
WRONG = {"kubewin_drivers": "floppy", "kubewin_batches": "abc", "kubewin_skip_unreachable": "{{ 'may' ~ 'be' }}"}


def refused(playbook: str, inventory: str, *arguments: str, **given: Any) -> tuple[str, Run]:
    """What the only failure says."""
    run = play(f"playbooks/{playbook}.yml", inventory, *arguments, variables=given)
    assert run.code != 0
    assert run.changed == []
    assert len({str(item["result"]["msg"]) for item in run.failures}) == 1, run.screen
    return str(run.failures[0]["result"]["msg"]), run


@pytest.mark.parametrize("playbook", ["enable-csi", "verify", "remove"])
def test_with_hosts_all_that_is_wrong_is_said_at_once(playbook: str) -> None:
    said, run = refused(playbook, NOBODY, **HOSTS, **WRONG)
    assert "kubewin_drivers is floppy; known drivers are" in said
    assert "kubewin_batches is abc; numbers of hosts or percentages" in said
    assert "kubewin_skip_unreachable is maybe; true or false" in said
    assert len(run.plays()) == 1


@pytest.mark.parametrize("playbook", ["handover", "remove", "upgrade", "rebind_volumes"])
def test_without_hosts_it_is_said_as_well(playbook: str) -> None:
    said, _run = refused(playbook, "localhost,", **WRONG)
    assert "kubewin_drivers is floppy" in said


def test_what_goes_from_the_whole_cluster_at_once_cannot_be_limited() -> None:
    inventory = "192.0.2.1,192.0.2.2,"
    said, _run = refused("remove", inventory, "--limit", "192.0.2.1", **HOSTS, kubewin_drivers="smb")
    assert "--limit leaves out 192.0.2.2, and the node plugin of smb goes from all nodes" in said
    said, _run = refused(
        "handover", inventory, "--limit", "192.0.2.1", kubewin_drivers="smb", kubewin_handover="to_platform"
    )
    assert "--limit is 192.0.2.1, but a hand-over is of all nodes" in said


def test_a_driver_and_a_direction_have_to_be_named() -> None:
    said, _run = refused("remove", "localhost,")
    assert "kubewin_drivers is not given; nothing is removed that was not named" in said
    said, _run = refused("handover", "localhost,", kubewin_drivers="smb,vsphere", kubewin_handover="to_platform")
    assert "kubewin_drivers is smb, vsphere" in said


def test_a_configuration_that_hides_the_playbooks_variables_is_named() -> None:
    hidden = {"ANSIBLE_PRIVATE_ROLE_VARS": "true"}
    run = play("playbooks/enable-csi.yml", NOBODY, variables=HOSTS, env=hidden)
    assert "private_role_vars true, which hides the variables of these playbooks" in run.failures[0]["result"]["msg"]
