# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user's own tasks do to an upgrade by upgrade.yml, and an upgrade in a play that the user wrote.

The journal, the nodes, the Lease, the exit code and the summary tell what happened. Four nodes: a canary, and a batch of three.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.plan_inputs import DriverRequest
from ci import venvs
from integration.kube import applied, connect, install_csi_proxy
from integration.playbooks import ROOT, Run, lines, play
from integration.storage import make_namespace, storage_class
from integration.upgrading import JOURNALS, LEASE, an_account, closed, journal
from lab import handle
from lab.handle import Lab, eventually, longer

PLAYBOOK = "playbooks/upgrade.yml"
MAIN = venvs.MAIN.removeprefix("core-")
GUIDE = ROOT / "docs" / "docsite" / "rst" / "guide_upgrade.rst"
NODES = ("win-1", "win-2", "win-3", "win-4")
DRIVER = "csi.vsphere.vmware.com"
SECRET = "hunter2"


@pytest.fixture(scope="module")
def four() -> Iterator[Lab]:
    """Four nodes with csi-proxy and the vSphere driver."""
    lab = handle.start(f"plays-{os.getpid()}", nodes=len(NODES))
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
    make_namespace(lab)
    with an_account(lab):
        storage_class(lab, "fast", DRIVER)
        applied(connect(lab.state.kubeconfigs["admin"]), DriverRequest(csi_proxy_managed=False))
        eventually(lambda: all(lab.registered(node) for node in NODES), "the driver on every node")
        yield lab
    lab.stop()


def here(task: dict[str, Any]) -> dict[str, Any]:
    return {**task, "delegate_to": "localhost", "vars": {"ansible_remote_tmp": "/tmp/.ansible"}}


# A user's tasks. `deeds` has what goes wrong on a node.
TASKS = [
    here({"name": "Begin", "ansible.builtin.shell": "echo {{ kubewin_upgrade_node }} >> {{ began }}"}),
    {
        "name": "Lose the host",
        "ansible.builtin.raw": "hostname",
        "vars": {"ansible_port": 1},
        "when": "deeds[kubewin_upgrade_node] | default('') == 'unreachable'",
    },
    {
        "name": "Break",
        "ansible.builtin.fail": {"msg": "it broke"},
        "when": "deeds[kubewin_upgrade_node] | default('') == 'fail'",
    },
    {
        "name": "Log in",
        "ansible.builtin.fail": {"msg": f"{SECRET} is wrong"},
        "no_log": True,
        "when": "deeds[kubewin_upgrade_node] | default('') == 'secret'",
    },
    *(
        {"ansible.builtin.meta": how, "when": f"deeds[kubewin_upgrade_node] | default('') == '{how}'"}
        for how in ("end_host", "end_batch", "end_play")
    ),
    here(
        {
            "name": "Wait for ever",
            "ansible.builtin.command": {"argv": ["sleep", "3600"]},
            "when": "deeds[kubewin_upgrade_node] | default('') == 'hang'",
        }
    ),
]


class Story:
    """Runs of one upgrade, one after the other."""

    def __init__(self, lab: Lab, folder: Path, core: str | None) -> None:
        self.lab, self.core, self.began = lab, core, folder / "began"
        self.name = f"story-{core}"
        self.tasks = folder / "tasks.yml"
        self.tasks.write_text(json.dumps(TASKS), encoding="utf-8")

    def run(self, *arguments: str, deeds: dict[str, str] | None = None, **more: Any) -> Run:
        """A run whose tasks do these deeds."""
        self.began.unlink(missing_ok=True)
        variables = {
            "kubewin_drivers": ["vsphere"],
            "kubewin_upgrade_name": self.name,
            "kubewin_upgrade_hook": "tasks",
            "kubewin_upgrade_tasks": str(self.tasks),
            "kubewin_upgrade_nodes": list(NODES),
            "kubewin_batches": "1,3",
            "kubewin_verify_namespace": "kubewin",
            "kubewin_verify_storage_classes": {"vsphere": "fast"},
            # What is proven before the first node is told elsewhere.
            "kubewin_upgrade_unproven_canary": True,
            "kubewin_upgrade_data": False,
            "began": str(self.began),
            "deeds": deeds or {},
        }
        inventory = self.lab.state.inventories["ntlm-http"]
        return play(PLAYBOOK, inventory, *arguments, core=self.core, variables={**variables, **more})

    @property
    def changed(self) -> list[str]:
        """The nodes whose tasks began in the last run."""
        return sorted(self.began.read_text(encoding="utf-8").split()) if self.began.exists() else []

    @property
    def steps(self) -> dict[str, str]:
        """Where each node stands, with the finding if it failed."""
        entries = journal(self.lab, self.name)["nodes"]
        return {entry["node"]: " ".join(filter(None, (entry["step"], entry["failed"]))) for entry in entries}

    def why(self, node: str) -> str:
        found: str = next(entry["why"] for entry in journal(self.lab, self.name)["nodes"] if entry["node"] == node)
        return found

    def ends_in_order(self, run: Run, code: int, outcome: str, *cordoned: str) -> None:
        """One summary, no Lease, and only these nodes are cordoned."""
        assert run.code == code, run.screen
        assert [end["outcome"] for end in run.ends] == [outcome], run.screen
        assert not self.lab.api.ok(LEASE)
        assert closed(self.lab) == {node: [f"upgrade {self.name}"] for node in cordoned}


@pytest.mark.parametrize(
    "core",
    [pytest.param(core, marks=pytest.mark.turn(0, 4) if core == MAIN else pytest.mark.torture) for core in lines()],
)
def test_what_tasks_do_to_an_upgrade(four: Lab, tmp_path: Path, core: str) -> None:
    story = Story(four, tmp_path, core)
    # --check writes nothing.
    checked = story.run("--check", kubewin_fail_on="never")
    assert checked.code == 0, checked.screen
    assert not four.api.ok(f"{JOURNALS}/kubewin-upgrade-{story.name}")

    # The canary has to be inside of --limit.
    refused = story.run("--limit", "win-2,localhost")
    story.ends_in_order(refused, 2, "refused")
    assert "Node win-1: the canary of upgrade" in refused.summary["failure"]
    assert "Run with --limit win-1,localhost" in story.run("--limit", "win-1").summary["failure"]
    assert story.changed == []

    # No task of a later play can run when every host of the batch is lost; the Lease is given back beside the run.
    lost = story.run(deeds={"win-1": "unreachable"})
    assert lost.code == 4, lost.screen
    assert story.changed == ["win-1"]
    eventually(lambda: not four.api.ok(LEASE), "the Lease is given back")
    assert closed(four) == {"win-1": [f"upgrade {story.name}"]}

    ended = story.run(deeds={"win-1": "end_play"})
    story.ends_in_order(ended, 2, "failed", "win-1")
    assert "its tasks did not end" in ended.summary["failure"]
    assert story.steps == {"win-1": "hook CSI-U07", **dict.fromkeys(NODES[1:], "waiting")}

    # Only the canary has a host in this run.
    limited = story.run("--limit", "win-1,localhost")
    story.ends_in_order(limited, 0, "paused")
    assert story.steps == {"win-1": "done", **dict.fromkeys(NODES[1:], "waiting")}
    assert "win-2, win-3, win-4: no host that this run could read" in journal(four, story.name)["why"]
    assert "--limit" not in limited.summary["next"][0]

    paused = story.run(kubewin_upgrade_pause="canary")
    story.ends_in_order(paused, 0, "paused")
    assert paused.summary["next"][0].endswith(" -e kubewin_upgrade_confirmed=canary")
    assert story.changed == []
    closed_window = story.run(kubewin_upgrade_windows="Mon 00:00-00:01", kubewin_upgrade_confirmed="canary")
    story.ends_in_order(closed_window, 0, "paused")
    assert "no maintenance window is open" in journal(four, story.name)["why"]

    # One of three is lost and one fails: the third is finished.
    batch = story.run(deeds={"win-2": "secret", "win-3": "unreachable"})
    story.ends_in_order(batch, batch.code, "failed", "win-2", "win-3")
    assert batch.code != 0
    assert story.steps == {"win-1": "done", "win-2": "hook CSI-U07", "win-3": "hook CSI-U07", "win-4": "done"}
    assert story.why("win-2") == "task Log in: it failed; no_log hides why"
    # Ansible's own line about the task may have it.
    assert SECRET not in json.dumps([journal(four, story.name), batch.ends])
    assert story.why("win-3").startswith("its tasks did not end: the host became unreachable")

    one = story.run(deeds={"win-2": "end_host", "win-3": "fail"})
    story.ends_in_order(one, 2, "failed", "win-2", "win-3")
    assert story.changed == ["win-2", "win-3"]
    assert story.why("win-3") == "task Break: it broke"
    assert story.why("win-2").startswith("its tasks did not end")

    both = story.run(deeds={"win-2": "end_batch"})
    story.ends_in_order(both, 2, "failed", "win-2", "win-3")

    for seconds in longer(6):
        hung = story.run(deeds={"win-2": "hang"}, kubewin_upgrade_node_timeout=int(seconds))
        # Otherwise the time was over before the task began.
        if "task Wait for ever: " in story.why("win-2"):
            break
    story.ends_in_order(hung, 2, "failed", "win-2")
    assert story.steps["win-3"] == "done"
    # Each release of Ansible words it in its own way.
    assert re.search(r"(?i)timed out after \d+ second|in the expected time frame", story.why("win-2"))

    done = story.run()
    story.ends_in_order(done, 0, "done")
    assert story.changed == ["win-2"]
    assert set(story.steps.values()) == {"done"}
    assert "data: not compared, because kubewin_upgrade_data is false" in done.screen
    again = story.run(kubewin_upgrade_data=True)
    assert "data: not compared, because an earlier run ended the upgrade" in again.screen


def test_the_play_of_the_guide_upgrades_nodes(four: Lab, tmp_path: Path) -> None:
    """The role that replaces the kubelet is the user's."""
    (shown,) = re.findall(r"( +)# upgrade-kubelets.yml\n((?:(?:\1.*)?\n)+)", GUIDE.read_text(encoding="utf-8"))
    playbook = tmp_path / "upgrade-kubelets.yml"
    plays = yaml.safe_load(textwrap.dedent(shown[1]))
    defaults = {
        "kubeconfig": four.state.kubeconfigs["kubewin"],
        "verify": {"namespace": "kubewin", "storage_classes": {"vsphere": "fast"}},
    }
    for entry in plays:
        entry["module_defaults"] = {"kubewin.csi.upgrade": defaults}
    playbook.write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    tasks = tmp_path / "roles" / "our_kubelet" / "tasks"
    tasks.mkdir(parents=True)
    began = tmp_path / "began"
    change = here({"name": "Change", "ansible.builtin.shell": f"echo {{{{ inventory_hostname }}}} >> {began}"})
    broken = {"name": "Break", "ansible.builtin.fail": {"msg": "it broke"}, "when": "inventory_hostname == broken"}
    (tasks / "main.yml").write_text(json.dumps([change, broken]), encoding="utf-8")
    inventory = four.state.inventories["ntlm-http"]
    stopped = play(str(playbook), inventory, variables={"broken": "win-2"})
    assert stopped.code == 2, stopped.screen
    assert began.read_text(encoding="utf-8").split() == ["win-1", "win-2"]
    assert closed(four) == {"win-2": ["upgrade kubelets"]}
    done = play(str(playbook), inventory, variables={"broken": ""})
    assert done.code == 0, done.screen
    assert began.read_text(encoding="utf-8").split() == ["win-1", "win-2", "win-2", "win-3", "win-4"]
    assert closed(four) == {}
    assert not four.api.ok(LEASE)
    assert journal(four, "kubelets")["state"] == "finished"
