# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables that are set are judged as their templates come out."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar
from ansible_collections.kubewin.csi.plugins.lookup.wrong_inputs import LookupModule


def lookup() -> LookupModule:
    loader = DataLoader()
    return LookupModule(loader=loader, templar=Templar(loader=loader))


def test_only_what_is_set_is_judged() -> None:
    given = {"kubewin_quiesce": "drain", "kubewin_prepull": "yes", "kubewin_batches": "", "inventory_hostname": "win-1"}
    assert lookup().run(["enable_csi"], given) == ["kubewin_quiesce is drain; cordon or none is expected."]
    assert lookup().run(["enable_csi"], {}) == []


def test_names_are_judged_with_the_variables_of_the_real_roles() -> None:
    given = {
        "csi_proxy_vesion": "1.3.0",
        "azure_disk_csi_mode": "auto",
        "csi_proxy_version": "1.3.0",
        "kubewin_site": "x",
    }
    said = lookup().run(["enable_csi"], {**given, "kubewin_own_variables": "kubewin_site"})
    assert len(said) == 1
    assert "csi_proxy_vesion is no variable of this collection. Did you mean csi_proxy_version?" in said[0]


def test_a_file_that_holds_no_tasks_is_named_before_a_node_is_emptied_for_it(tmp_path: Path) -> None:
    path = tmp_path / "one-node.yml"
    given = {"kubewin_upgrade_hook": "tasks", "kubewin_upgrade_tasks": str(path)}
    for text, why in (
        ("- ansible.builtin.debug: {msg: 'x\n", "which cannot be read: "),
        ("", "in which there is no list of tasks"),
        ("- hosts: localhost\n  tasks: []\n", "in which there is no list of tasks"),
        ("key: value\n", "in which there is no list of tasks"),
    ):
        path.write_text(text, encoding="utf-8")
        (said,) = lookup().run(["upgrade"], given)
        assert said.startswith(f"kubewin_upgrade_tasks is {path}, {why}")
        assert lookup().run(["upgrade"], {**given, "kubewin_upgrade_hook": "none"}) == []
    path.write_text("- ansible.builtin.debug: {msg: !unsafe '{{ x'}\n", encoding="utf-8")
    assert lookup().run(["upgrade"], given) == []


@pytest.mark.parametrize("terms", [[], ["kubewin_quiesce"], ["verify", "remove"]])
def test_one_playbook_is_named(terms: list[str]) -> None:
    with pytest.raises(AnsibleError, match="takes the name of one playbook"):
        lookup().run(terms, {})
