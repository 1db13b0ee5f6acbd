# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people copy from a table can be copied: names and commands stay whole."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.table import render_table, wrap

NAME = "gke-production-europe-west4-windows-pool-2022-4f6c8b1e-x7kq.c.shop-production.internal"
COMMANDS = [
    "kubectl label node win-1 windowsmachineconfig.openshift.io/allow-upgrade=true --overwrite",
    "kubectl -n vmware-system-csi logs vsphere-csi-node-windows-x7kqp -c vsphere-csi-node --previous",
    "ansible-playbook kubewin.csi.handover -e kubewin_drivers=azure_disk -e kubewin_handover=to_platform",
    'kubectl -n shop patch statefulset data --type=merge -p \'{"spec": {"replicas": 0, "paused": true}}\'',
    "sc.exe config defragsvc start= demand",
    "az aks update --resource-group GROUP --name CLUSTER --enable-file-driver",
]


@pytest.mark.parametrize("most", [None, 34])
@pytest.mark.parametrize("width", [60, 100, 120])
def test_a_name_is_never_broken(width: int, most: int | None) -> None:
    text = render_table(("WORKLOAD", "STATE", "BECAUSE"), [[NAME, "blocked", "the claim is lost " * 6]], width, most)
    assert NAME in text
    assert any(NAME in line and "blocked" in line for line in text.splitlines())


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_stays_on_one_line_and_prose_is_wrapped(command: str, width: int) -> None:
    reported = f"the node was left without its volumes by an earlier run -> empty it first, then: {command}; it says when it is done"
    text = render_table(("NODE", "WHY"), [["win-1", reported]], width)
    assert command in text
    prose = [line for line in text.splitlines() if command not in line]
    assert max(map(len, prose)) <= width


def test_a_command_that_does_not_fit_has_a_line_of_its_own() -> None:
    (command, *_others) = COMMANDS
    lines = wrap(f"verify its drivers, then: {command}", 60)
    assert lines == ["verify its drivers, then:", command]
    lines = wrap(f"verify its drivers, then: {command} (this upgrade removes the label)", 60)
    assert lines == ["verify its drivers, then:", command, "(this upgrade removes the label)"]


def test_a_line_does_not_begin_with_what_divides_it_from_a_command() -> None:
    lines = wrap("the service is stopped: sc.exe start csi-proxy; or ansible-playbook kubewin.csi.enable_csi", 40)
    commands = ["sc.exe start csi-proxy", "or", "ansible-playbook kubewin.csi.enable_csi"]
    assert lines == ["the service is stopped:", *commands]
    lines = wrap("kubectl describe volumeattachment csi-a0e3f97202ebce13; check the log", 40)
    assert lines == ["kubectl describe volumeattachment csi-a0e3f97202ebce13", "check the log"]


def test_a_command_ends_with_its_sentence() -> None:
    bind = "kubectl -n kubewin create rolebinding x --clusterrole=x --serviceaccount=kubewin:kubewin"
    lines = wrap(f"bind its roles: {bind}. Missing rules: verbs create, patch", 60)
    assert lines == ["bind its roles:", bind, "Missing rules: verbs create, patch"]


def test_the_mark_of_a_remedy_stands_before_its_command() -> None:
    lines = wrap("it is cordoned, and nothing else keeps pods from it -> kubectl uncordon win-1", 40)
    assert lines == ["it is cordoned, and nothing else keeps", "pods from it", "-> kubectl uncordon win-1"]


def test_text_that_fits_stays_on_its_line() -> None:
    assert render_table(("NODE", "WHY"), [["win-1", "it is cordoned -> kubectl uncordon win-1"]]).splitlines() == [
        "NODE    WHY",
        "win-1   it is cordoned -> kubectl uncordon win-1",
    ]


def test_long_names_put_the_last_column_below_its_row() -> None:
    text = render_table(("NODE", "HOST", "WHY"), [[NAME, NAME, "csi-proxy is stopped"]], 100)
    assert text.splitlines()[-1] == "    csi-proxy is stopped"


def test_an_exit_code_in_brackets_is_no_command() -> None:
    text = f"{'x ' * 20}could not connect (curl 7), expected the file. {'y ' * 20}"
    assert " ".join(wrap(text, 60)) == text.strip()
