# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that would do nothing, or less than it was asked for, is refused."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.selection import (
    ON_HOSTS,
    Selection,
    explain_missing_choice,
    explain_nothing_to_do,
)

ALL = {playbook for rule in INPUTS.values() for playbook in rule.playbooks}
WINDOWS = ("win-1", "win-2")
EVERY = (*WINDOWS, "linux-1", "localhost")


def errors(playbook: str, **chosen: object) -> list[str]:
    return list(explain_nothing_to_do(playbook, Selection(**chosen)))  # type: ignore[arg-type]  # a parameter of tests


@pytest.mark.parametrize("playbook", sorted(ON_HOSTS))
def test_hosts_of_the_inventory_are_worked_on_limited_or_not(playbook: str) -> None:
    assert errors(playbook, hosts=EVERY, windows=WINDOWS) == []
    assert errors(playbook, hosts=("win-1",), windows=WINDOWS, limit="win-1") == []


@pytest.mark.parametrize("playbook", sorted(ON_HOSTS))
def test_no_windows_host_is_allowed_only_with_cluster_only(playbook: str) -> None:
    (sentence,) = errors(playbook, hosts=("localhost",))
    assert "an unreadable inventory counts as empty" in sentence
    assert "kubewin_cluster_only=true" in sentence
    (sentence,) = errors(playbook, hosts=("linux-1", "localhost"), pattern="winnodes")
    assert "winnodes matches none" in sentence
    assert errors(playbook, hosts=("localhost",), cluster_only=True) == []


@pytest.mark.parametrize("playbook", sorted(ON_HOSTS))
def test_an_inventory_that_was_read_in_part_is_refused(playbook: str) -> None:
    """Such as one with a host [x], before which Ansible has read others."""
    (sentence,) = errors(playbook, hosts=("localhost",), windows=WINDOWS)
    assert sentence.startswith("Ansible could not read the whole inventory: windows has 2 hosts")
    assert errors("upgrade", hosts=("localhost",), windows=WINDOWS, tasks=True) == [sentence]
    assert errors("upgrade", hosts=("localhost",), windows=WINDOWS) == []


def test_a_saved_snapshot_needs_no_cluster() -> None:
    assert errors("preflight", hosts=("localhost",), on_file=True) == []


@pytest.mark.parametrize("playbook", sorted(ON_HOSTS))
def test_the_cluster_alone_is_no_word_beside_windows_hosts(playbook: str) -> None:
    (sentence,) = errors(playbook, hosts=EVERY, windows=WINDOWS, cluster_only=True)
    assert "the inventory has 2 Windows hosts" in sentence


@pytest.mark.parametrize("playbook", sorted(ON_HOSTS))
def test_a_limit_that_leaves_nothing_is_refused(playbook: str) -> None:
    (sentence,) = errors(playbook, hosts=("linux-1",), windows=WINDOWS, limit="linux-1")
    assert sentence.startswith("--limit is linux-1, which leaves no Windows host")
    (sentence,) = errors(playbook, hosts=("linux-1",), limit="linux-1", cluster_only=True)
    assert "runs on localhost. Run without --limit" in sentence
    assert errors(playbook, hosts=("localhost",), limit="localhost", cluster_only=True) == []


@pytest.mark.parametrize("playbook", sorted(ALL - ON_HOSTS))
def test_a_playbook_without_hosts_cannot_be_limited(playbook: str) -> None:
    (sentence,) = errors(playbook, hosts=("win-1",), windows=WINDOWS, limit="win-1")
    assert sentence.startswith(f"--limit is win-1, but {playbook} ")
    assert "Run without --limit" in sentence
    assert errors(playbook, hosts=EVERY, windows=WINDOWS) == []
    assert errors(playbook, hosts=("localhost",)) == []
    assert errors(playbook, hosts=("localhost",), limit="localhost") == []


@pytest.mark.parametrize(
    ("playbook", "given", "expected"),
    [
        ("remove", {}, ""),
        ("remove", {"kubewin_drivers": ["smb"]}, ""),
        ("remove", {"kubewin_remove_csi_proxy": "yes"}, ""),
        (
            "handover",
            {"kubewin_handover": "to_kubewin"},
            "",
        ),
        (
            "handover",
            {"kubewin_drivers": "smb"},
            "kubewin_drivers is smb and kubewin_handover not given, expected one driver",
        ),
        (
            "handover",
            {"kubewin_drivers": "smb,vsphere", "kubewin_handover": "to_platform"},
            "kubewin_drivers is smb, vsphere",
        ),
        ("handover", {"kubewin_drivers": "smb", "kubewin_handover": "to_platform"}, ""),
        (
            "convert_volumes",
            {"kubewin_convert_claims": ""},
            "kubewin_convert_claims is not given, expected claims",
        ),
        ("convert_volumes", {"kubewin_convert_claims": "shop/db"}, ""),
        ("verify", {}, ""),
    ],
)
def test_an_input_that_a_playbook_cannot_guess_is_required(
    playbook: str, given: dict[str, object], expected: str
) -> None:
    sentences = list(explain_missing_choice(playbook, given, Selection(hosts=EVERY, windows=WINDOWS)))
    assert len(sentences) == bool(expected)
    assert "".join(sentences).startswith(expected)


def test_a_removal_from_all_nodes_cannot_be_limited_and_one_from_hosts_can() -> None:
    limited = Selection(limit="win-1", hosts=("win-1",), windows=WINDOWS)
    (sentence,) = explain_missing_choice("remove", {"kubewin_drivers": "smb"}, limited)
    assert sentence.startswith("--limit leaves out win-2, but the node plugin of smb is removed from all nodes")
    (sentence,) = explain_missing_choice("remove", {}, limited)
    assert sentence.startswith("--limit leaves out win-2, but the node plugin of the driver is removed from all nodes")
    assert list(explain_missing_choice("remove", {"kubewin_remove_csi_proxy": True}, limited)) == []
    (sentence,) = explain_missing_choice(
        "remove", {"kubewin_remove_csi_proxy": True}, Selection(hosts=("localhost",), pattern="win")
    )
    assert "no host of the inventory matches kubewin_hosts (win)" in sentence
