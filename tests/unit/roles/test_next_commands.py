# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next commands that a playbook ends with follow from what the run found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import template
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

# ansible-core 2.18 and older trust every text.
trusted: Callable[[str], Any] = getattr(template, "trust_as_template", str)

ROOT = Path(__file__).parents[3]
CONVERT = yaml.safe_load((ROOT / "roles" / "kubewin" / "vars" / "main" / "convert.yml").read_text("utf-8"))
REMOVE = yaml.safe_load((ROOT / "playbooks" / "tasks" / "remove_drivers.yml").read_text("utf-8"))[-1]
REMOVE_CSI_PROXY = yaml.safe_load((ROOT / "playbooks" / "plays" / "remove_csi_proxy.yml").read_text("utf-8"))[-1][
    "tasks"
][-1]
(SUMMARY,) = yaml.safe_load((ROOT / "playbooks" / "tasks" / "summary.yml").read_text("utf-8"))


def made(texts: dict[str, str], name: str, **variables: Any) -> Any:
    given = {key: trusted(text) for key, text in texts.items()}
    return Templar(loader=DataLoader(), variables={**given, **variables}).template(given[name])


def test_a_conversion_that_can_be_rolled_back_ends_with_both_ways_to_end_it() -> None:
    results = [
        {"claim": "shop/data-a", "status": "reversible"},
        {"claim": "shop/data-b", "status": "native"},
        {"claim": "shop/data-c", "status": "reversible"},
    ]
    run = {"kubewin_convert_result": {"results": results}}
    assert made(CONVERT, "_kubewin_convert_states", **run) == {one["claim"]: one["status"] for one in results}
    command = "convert_volumes -e kubewin_convert_claims=shop/data-a,shop/data-c -e"
    assert made(CONVERT, "_kubewin_convert_next", **run) == [
        f"{command} kubewin_convert_final=true",
        f"{command} kubewin_convert_roll_back=true",
    ]
    (line,) = made(CONVERT, "_kubewin_convert_summary", **run)
    assert line.startswith("Check the workloads of shop/data-a, shop/data-c.")


@pytest.mark.parametrize(
    "run", [{}, {"kubewin_convert_result": {"results": [{"claim": "a/b", "status": "converted"}]}}]
)
def test_a_conversion_that_has_ended_needs_no_command(run: dict[str, Any]) -> None:
    assert made(CONVERT, "_kubewin_convert_next", **run) == []
    assert made(CONVERT, "_kubewin_convert_summary", **run) == []


UNPROVEN = {"_kubewin_rollouts": {"vsphere": {"verdict": "unproven"}}}
GREEN = {"_kubewin_rollouts": {"vsphere": {"verdict": "green"}}, "kubewin_rows": [{"name": "win-1", "changed": []}]}


@pytest.mark.parametrize(
    ("check", "changes", "expected"),
    [
        (False, {}, "verify"),
        (True, {}, "verify"),
        (True, {"kubewin_rows": [{"name": "win-1", "changed": ["start the service"]}]}, "enable_csi"),
        (True, {"kubewin_applied": {"results": [{"changed": True}]}}, "enable_csi"),
        (True, {"_kubewin_rollouts": {"vsphere": {"verdict": "waiting"}}}, "enable_csi"),
        (True, UNPROVEN, "enable_csi"),
        (True, {**UNPROVEN, "kubewin_accept_unproven": "yes"}, "verify"),
        (False, {"kubewin_applied": {"results": [{"changed": True}]}}, "verify"),
        (False, {"kubewin_rescue": True}, "enable_csi"),
        (True, {"kubewin_rescue": True}, "enable_csi"),
    ],
)
def test_enable_csi_is_followed_by_itself_only_while_it_has_something_to_do(
    check: bool, changes: dict[str, Any], expected: str
) -> None:
    texts = {"next": SUMMARY["kubewin.csi.summary"]["next"], **SUMMARY["vars"]}
    texts.pop("kubewin_rows")
    assert made(texts, "next", **{**GREEN, "ansible_check_mode": check, **changes}) == [expected]


DAEMON_SET = "DaemonSet csi-smb-node-win"


@pytest.mark.parametrize(
    ("check", "objects", "with_csi_proxy", "hosts", "expected"),
    [
        (True, [DAEMON_SET], False, ["win-1"], ["remove"]),
        (True, [], False, ["win-1"], []),
        (False, [DAEMON_SET], False, ["win-1"], []),
        # The play that removes csi-proxy comes after this one, and prints the command.
        (True, [DAEMON_SET], True, ["win-1"], []),
        (True, [DAEMON_SET], True, [], ["remove"]),
    ],
)
def test_a_dry_removal_is_followed_by_the_removal(
    check: bool, objects: list[str], with_csi_proxy: bool, hosts: list[str], expected: list[str]
) -> None:
    texts = {"next": REMOVE["kubewin.csi.summary"]["next"]}
    given = {
        "ansible_check_mode": check, "kubewin_objects": objects, "_kubewin_remove_csi_proxy": with_csi_proxy,
        "_kubewin_inventory_hosts": hosts,
    }  # fmt: skip
    assert made(texts, "next", **given) == expected


@pytest.mark.parametrize(
    ("check", "hosts", "given", "expected"),
    [
        (True, ["win-1"], {}, ["remove"]),
        (True, [], {"kubewin_removed": {"objects": [{"kind": "DaemonSet"}]}}, ["remove"]),
        (True, [], {"kubewin_removed": {"objects": []}}, []),
        (True, [], {}, []),
        (False, ["win-1"], {}, []),
    ],
)
def test_a_dry_removal_of_csi_proxy_is_followed_by_the_removal(
    check: bool, hosts: list[str], given: dict[str, Any], expected: list[str]
) -> None:
    texts = {"next": REMOVE_CSI_PROXY["kubewin.csi.summary"]["next"], **REMOVE_CSI_PROXY["vars"]}
    texts.pop("kubewin_gone")
    assert made(texts, "next", **{"ansible_check_mode": check, "kubewin_gone": hosts, **given}) == expected
