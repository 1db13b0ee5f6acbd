# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real ansible-rulebook with the shipped rulebook: a node that joins is enabled, and a plugin pod that crash-loops is repaired."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from integration.kube import VSPHERE
from integration.playbooks import PATIENCE, ROOT
from integration.test_inventory import PLAIN, credential, source
from lab import control, handle
from lab.handle import Lab, eventually

PLUGIN = f"app={VSPHERE.app_label}"
PORT = "{{{{ (lookup('ansible.builtin.file', '{}') | from_json).hosts | selectattr('node', 'eq', inventory_hostname) | map(attribute='http') | first }}}}"


@pytest.fixture
def small() -> Iterator[Lab]:
    """One Windows node, without csi-proxy and without the node plugin."""
    made = handle.start(f"rulebook-{os.getpid()}", nodes=1)
    yield made
    made.stop()


@pytest.fixture
def screen(small: Lab, tmp_path: Path) -> Iterator[Path]:
    """What ansible-rulebook prints; it runs as long as the test."""
    index = json.loads((ROOT / ".work" / "lanes.json").read_text(encoding="utf-8"))
    if "rulebook" not in index["lanes"]:
        pytest.fail(f"ansible-rulebook is not there: {index['missing'].get('rulebook', 'run make torture')}")
    inventory = tmp_path / "inventory"
    (inventory / "group_vars").mkdir(parents=True)
    source(inventory, PLAIN)
    known = yaml.safe_load(Path(small.state.inventories["ntlm-http"]).read_text(encoding="utf-8"))["all"]
    own = {**known["vars"], **known["children"]["windows"]["vars"]}
    own["ansible_port"] = PORT.format(Path(small.state.directory, "lab.json"))
    # The access comes from the environment alone.
    del own["kubewin_kubeconfig"]
    (inventory / "group_vars" / "windows.yml").write_text(yaml.safe_dump(own), encoding="utf-8")
    (tmp_path / "vars.yml").write_text("kubewin_interval: 1\n", encoding="utf-8")
    folder = index["lanes"]["rulebook"]["bin"]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "KUBECONFIG")},
        **credential(small),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
        "ANSIBLE_NOCOLOR": "1",
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path),
    }
    shown = tmp_path / "screen"
    words = [
        f"{folder}/ansible-rulebook",
        "--rulebook",
        "kubewin.csi.windows_nodes",
        "-i",
        "inventory",
        "--vars",
        "vars.yml",
    ]
    with (
        shown.open("w", encoding="utf-8") as out,
        subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL
        ) as process,
    ):
        yield shown
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise


def ran(screen: Path, lab: Lab, count: int) -> list[str]:
    """The hosts of each run that ended, once there are so many; every run succeeded."""

    def recaps() -> list[str]:
        text = screen.read_text(encoding="utf-8")
        assert "Traceback" not in text, text[-6000:]
        found = [" ".join(re.findall(r"^(\S+) +: ok=", one, re.MULTILINE)) for one in text.split("PLAY RECAP")[1:]]
        assert re.findall(r"(?:unreachable|failed)=[1-9]", text) == [], text[-6000:]
        return found

    try:
        eventually(lambda: len(recaps()) >= count, f"{count} runs", PATIENCE)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{screen.read_text(encoding='utf-8')[-6000:]}") from error
    return recaps()


@pytest.mark.torture
def test_nodes_that_join_are_enabled_and_one_whose_plugin_pod_crash_loops_is_repaired(small: Lab, screen: Path) -> None:
    assert ran(screen, small, 1) == ["win-1"]
    assert small.registered("win-1")

    joined = control.call(small.name, "node-add")
    # The account lists what it needs; nothing names the host.
    assert ran(screen, small, 2) == ["win-1", "win-2"], joined
    assert small.registered("win-2")

    small.set_service("win-1", running=False)
    (pod,) = [pod for pod in small.pods(PLUGIN) if pod["spec"].get("nodeName") == "win-1"]
    small.delete_pod(pod)
    assert ran(screen, small, 3) == ["win-1", "win-2", "win-1"]
    eventually(partial(ready, small), "the plugin pod on win-1 is ready")


def ready(lab: Lab) -> bool:
    return any(handle.ready(pod) for pod in lab.pods(PLUGIN) if pod["spec"].get("nodeName") == "win-1")
