# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every input of the playbooks that cannot work is refused by name, with what it is and what is expected."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, list_wrong_inputs
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

PAGES = [
    Path(__file__).parents[5] / "docs" / "docsite" / "rst" / f"{name}.rst" for name in ("variables", "guide_build")
]


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kubewin_drivers", " ", "is empty, expected one or more of"),
        ("kubewin_drivers", [], "is empty"),
        ("kubewin_drivers", 5, "is 5"),
        ("kubewin_drivers", True, "is True"),
        ("kubewin_drivers", ["vsphere", "floppy"], "is vsphere, floppy, expected one or more of aws_ebs, azure_disk,"),
        ("kubewin_drivers", "VSphere", "is VSphere, expected one or more of aws_ebs, azure_disk,"),
        ("kubewin_drivers", "vsphere smb", "is vsphere smb, expected one or more of aws_ebs, azure_disk,"),
        ("kubewin_fail_on", "warnings", "expected blocked, unknown, warning or never."),
        ("kubewin_upgrade_nodes", "win-1 win-2", "is win-1 win-2, expected names of Nodes"),
        ("kubewin_batches", "1 25%", "is 1 25%, expected numbers of hosts"),
        ("kubewin_drivers", {"vsphere": "3.4.0"}, "expected one or more of"),
        ("kubewin_batches", "abc", "is abc, expected numbers of hosts or percentages"),
        ("kubewin_batches", "1,,abc", "is 1,,abc,"),
        ("kubewin_batches", ",", "is ,,"),
        ("kubewin_upgrade_nodes", ",", "is ,, expected names of Nodes"),
        ("kubewin_batches", [1, 0], "is 1, 0,"),
        ("kubewin_batches", -1, "is -1"),
        ("kubewin_fail_on", False, "is False"),
        ("kubewin_gate_timeout", True, "is True"),
        ("kubewin_gate_timeout", "soon", "is soon, expected a number of seconds above 0"),
        ("kubewin_gate_timeout", 0, "is 0"),
        ("kubewin_gate_timeout", 1.5, "is 1.5"),
        ("kubewin_gate_timeout", "10 m", "is 10 m"),
        ("kubewin_skip_unreachable", "maybe", "is maybe, expected true or false"),
        ("kubewin_remove_csi_proxy", "please", "is please"),
        ("kubewin_handover", "to_aks", "is to_aks, expected to_platform or to_kubewin"),
        ("kubewin_replace", "csi-node", "is csi-node, expected namespace/name"),
        ("kubewin_replace", "Kube-System/csi", "namespace/name"),
        ("kubewin_upgrade_nodes", "win-1,WIN 2", "is win-1,WIN 2, expected names of Nodes"),
        ("kubewin_upgrade_nodes", ["w" * 254], "names of Nodes"),
        ("kubewin_verify_storage_classes", "smb", "is smb, expected StorageClasses by driver"),
        ("kubewin_verify_storage_classes", {"floppy": "fast"}, "known drivers are"),
        ("kubewin_verify_storage_classes", {"smb": 5}, "StorageClasses by driver"),
        ("kubewin_pod_image", "nano server", "without spaces"),
        ("kubewin_verify_namespace", "My Space", "the name of a namespace"),
        ("kubewin_verify_namespace", "n" * 64, "the name of a namespace"),
        ("kubewin_pod_tolerations", "Exists", "expected tolerations"),
        ("kubewin_pod_tolerations", {"key": "team"}, "expected tolerations"),
        ("kubewin_pod_tolerations", [{"foo": "bar"}], "expected tolerations"),
        ("kubewin_upgrade_hook", "wcmo", "is wcmo, expected none, tasks or wmco"),
        ("kubewin_upgrade_target", "1.27", "is 1.27, expected releases of kubelet, openshift and wmco"),
        ("kubewin_upgrade_target", "mode=host_process", "releases of kubelet"),
        ("kubewin_target", "kubelets=1.27", "releases of kubelet, openshift and wmco"),
        ("kubewin_upgrade_target", "kubelet=", "releases of kubelet"),
        ("kubewin_upgrade_target", {"windows": "2022"}, "releases of kubelet"),
        ("kubewin_upgrade_target", "kubelet=latest", "releases of kubelet"),
        ("kubewin_upgrade_target", {"kubelet": 1.30}, "because the number 1.30 is 1.3"),
        ("kubewin_upgrade_tasks", ["one.yml"], "expected a path"),
        ("kubewin_output_dir", ["./report"], "expected a path"),
        ("kubewin_suppressions", {"id": "CSI-V11"}, "expected a list of entries, each with id, object, reason and expires"),
        ("kubewin_suppressions", ["CSI-V11"], "is CSI-V11, expected a list of entries"),
        ("kubewin_suppressions", "CSI-V11", "is CSI-V11, expected a list of entries"),
        ("kubewin_upgrade_nodes", {"win-1": 1}, "names of Nodes"),
        ("kubewin_upgrade_canary", "win-1,win-2", "is win-1,win-2, expected the name of a Node"),
        ("kubewin_upgrade_pause", "before win-2", "canary, batches or names of Nodes"),
        ("kubewin_upgrade_confirmed", "Canary!", "expected pauses"),
        ("kubewin_upgrade_append_only", {"*.log": 1}, "expected patterns"),
        ("kubewin_namespace", "No Such", "the name of a namespace"),
        ("kubewin_upgrade_wait_timeout", -1, "a number of seconds"),
        ("kubewin_proven", {"vsphere": "win-1"}, "names of Nodes by driver"),
    ],
)  # fmt: skip
def test_an_invalid_value_is_refused_and_shown(name: str, value: object, expected: str) -> None:
    (sentence,) = list_wrong_inputs({name: value})
    assert sentence.startswith(f"{name} is ")
    assert expected in sentence


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kubewin_drivers", ["vsphere", "vsphere, smb", ["smb"], sorted(DRIVERS)]),
        ("kubewin_batches", ["1,25%", 1, "100%", [1, "25%"], "1,", "1\n25%\n", "[1, '25%']"]),
        ("kubewin_upgrade_nodes", ["win-1\nwin-2\n", "['win-1', 'win-2']", "win-1,win-2.example.com,", "[]", [], ""]),
        ("kubewin_gate_timeout", [1, "600"]),
        ("kubewin_allow_downgrade", [True, "no", "True", 1]),
        ("kubewin_replace", ["", "vmware-system-csi/vsphere-csi-node-windows"]),
        ("kubewin_verify_storage_classes", [{}, {"smb": "team-share"}]),
        ("kubewin_pod_image", ["", "registry.example.com:5000/nano@sha256:00"]),
        ("kubewin_verify_namespace", ["", "a", "team-1"]),
        ("kubewin_pod_tolerations", [[], [{"key": "team", "operator": "Exists"}]]),
        (
            "kubewin_upgrade_target",
            ["", {}, "kubelet=1.27", "kubernetes=1.27", "openshift=4.14, wmco=9.0.0", {"kubelet": "v1.30.1"}],
        ),
        ("kubewin_target", ["", "openshift=4.14", {"kubelet": "1.27", "wmco": "9.0.0"}]),
        ("kubewin_proven", [{}, {"vsphere": ["win-1"]}]),
    ],
)
def test_every_form_of_an_input_is_accepted(name: str, values: list[object]) -> None:
    assert [list_wrong_inputs({name: value}) for value in values] == [[] for _value in values]


def test_every_wrong_variable_is_reported_at_once_and_foreign_ones_are_ignored() -> None:
    errors = list_wrong_inputs(
        {"kubewin_fail_on": "drain", "kubewin_gate_timeout": "x", "kubewin_mine": "?", "kubewin_allow_downgrade": "yes"}
    )
    assert sorted(sentence.split()[0] for sentence in errors) == ["kubewin_fail_on", "kubewin_gate_timeout"]


@pytest.mark.parametrize("name", sorted(INPUTS))
def test_a_blank_answer_means_not_given(name: str) -> None:
    assert list_wrong_inputs({name: ""}) == list_wrong_inputs({name: None}) == []


def test_every_input_is_documented_and_every_documented_one_is_known() -> None:
    rows = [
        row
        for page in PAGES
        for row in re.split(r"^   \* - ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    ]
    named = {name for row in rows for name in re.findall(r"``(kubewin_\w+)``", row.split("\n")[0])}
    assert named == set(INPUTS)
