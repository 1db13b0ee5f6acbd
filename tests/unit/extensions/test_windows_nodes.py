# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source names the Windows nodes that need enable_csi, and no others; the rulebook asks for what it sends."""

from __future__ import annotations

import asyncio
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
EDA = ROOT / "extensions" / "eda"
# As ansible-rulebook loads it.
SOURCE = runpy.run_path(str(EDA / "plugins" / "event_source" / "windows_nodes.py"))
NAMES = {"vsphere": "csi.vsphere.vmware.com"}


def test_what_the_source_loads_when_it_starts_exists(tmp_path: Path) -> None:
    """ansible-rulebook runs the file without Ansible's loader of collections, so it loads the client late."""
    source = f"""
import runpy
cluster = runpy.run_path({str(EDA / "plugins" / "event_source" / "windows_nodes.py")!r})["Cluster"]
cluster({{"kubeconfig": {str(tmp_path / "missing")!r}, "drivers": "vsphere"}})
"""
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections")}
    run = subprocess.run(
        [sys.executable, "-c", source], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "no access to Kubernetes is configured" in run.stderr or "cannot create a Kubernetes client" in run.stderr, (
        run.stderr
    )


def node(name: str, ready: str = "True", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "status": {"conditions": [{"type": "Ready", "status": ready}]}}


def csi_node(name: str, *drivers: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"drivers": [{"name": driver} for driver in drivers]}}


def pod(on: str, reason: str | None, **metadata: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": on},
        "status": {"containerStatuses": [{"state": {"running": {}}}, {"state": state}]},
    }


def needs(nodes: list[Any], csi_nodes: list[Any], pods: list[Any]) -> list[tuple[str, str]]:
    found = SOURCE["needs"](nodes, csi_nodes, {"vsphere": pods}, NAMES)
    return [(one["name"], one["reason"]) for one in found]


def test_a_node_that_is_ready_without_the_driver_is_named() -> None:
    nodes = [node("a"), node("b"), node("c"), node("going", deletionTimestamp="now"), node("booting", ready="False")]
    registered = [csi_node("a", NAMES["vsphere"]), csi_node("b", "smb.csi.k8s.io"), csi_node("booting")]
    assert needs(nodes, registered, []) == [("b", "driver_missing"), ("c", "driver_missing")]


@pytest.mark.parametrize(
    ("found", "named"),
    [
        (pod("a", "CrashLoopBackOff"), [("a", "plugin_crash_loops")]),
        (pod("a", "ImagePullBackOff"), []),
        (pod("a", None), []),
        (pod("a", "CrashLoopBackOff", deletionTimestamp="now"), []),
        (pod("gone", "CrashLoopBackOff"), []),
    ],
)
def test_a_node_whose_plugin_pod_crash_loops_is_named(found: dict[str, Any], named: list[tuple[str, str]]) -> None:
    assert needs([node("a")], [csi_node("a", NAMES["vsphere"])], [found]) == named


def test_a_read_that_fails_is_repeated_and_the_first_one_ends_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cluster:
        reads = iter([["first"], OSError("connection refused"), ["again"], KeyboardInterrupt()])

        def __init__(self, args: dict[str, Any]) -> None:
            if args["drivers"] == "floppy":
                raise ValueError("floppy")

        def needs(self) -> Any:
            found = next(self.reads)
            if isinstance(found, BaseException):
                raise found
            return found

    async def at_once(seconds: float) -> None:
        assert seconds == 5

    variables = SOURCE["main"].__globals__
    monkeypatch.setitem(variables, "Cluster", Cluster)
    monkeypatch.setattr(variables["asyncio"], "sleep", at_once)
    queue: asyncio.Queue[Any] = asyncio.Queue()
    with pytest.raises(ValueError, match="floppy"):
        asyncio.run(SOURCE["main"](queue, {"drivers": "floppy"}))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(SOURCE["main"](queue, {"drivers": "smb", "interval": "5"}))
    assert [queue.get_nowait() for _one in range(queue.qsize())] == [
        {"windows_node": "first"},
        {"windows_node": "again"},
    ]


def test_the_rulebook_matches_the_events_of_the_source() -> None:
    (ruleset,) = yaml.safe_load((EDA / "rulebooks" / "windows_nodes.yml").read_text(encoding="utf-8"))
    documented = set(yaml.safe_load(SOURCE["DOCUMENTATION"])["options"])
    (source,) = ruleset["sources"]
    assert set(source["kubewin.csi.windows_nodes"]) <= documented
    conditions = [rule["condition"] for rule in ruleset["rules"]]
    assert [re.findall(r'"(\w+)"', condition) for condition in conditions] == [
        [SOURCE["DRIVER_MISSING"]],
        [SOURCE["CRASH_LOOPS"]],
    ]
    for rule in ruleset["rules"]:
        playbook = rule["action"]["run_playbook"]["name"].removeprefix("kubewin.csi.")
        assert (ROOT / "playbooks" / f"{playbook}.yml").is_file()
        assert rule["throttle"]["group_by_attributes"] == ["event.windows_node.name"]


def test_galaxy_lists_every_kind_of_plugin_for_ansible_rulebook() -> None:
    listed = yaml.safe_load((ROOT / "meta" / "extensions.yml").read_text(encoding="utf-8"))["extensions"]
    there = sorted(f"eda/plugins/{folder.name}" for folder in (EDA / "plugins").iterdir() if folder.is_dir())
    assert [one["args"]["ext_dir"] for one in listed] == there
