# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gather.yml on a lab with one host down and a secret in every log and object: an archive with the rest, and no secret in it.

diagnose.yml on the same lab: what is wrong, the next thing to fix first.
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from integration.kube import also_holds, install_csi_proxy, writes
from integration.playbooks import play
from lab.cluster.access import RBAC
from lab.cluster.api import kubeconfig
from lab.handle import Lab, eventually
from unit.plugins.plugin_utils.base.redaction.reader import part_survives

NAMESPACE = "support"
# One that the run holds, as in variables of the inventory, and one that it does not know.
HELD, FOREIGN = "Zx9-Held-Secret-7#q", "Kq4ForeignSecret8w"
WHOLE = f"it failed with {HELD} and --password {FOREIGN}"
DAEMON_SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets"
LABELS = {"app": "planted"}
PLUGIN: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "planted", "annotations": {"example.com/note": WHOLE}},
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {
            "metadata": {"labels": LABELS, "annotations": {"lab/log": WHOLE, "example.com/token": FOREIGN}},
            "spec": {
                "os": {"name": "windows"},
                "nodeSelector": {"kubernetes.io/os": "windows"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "driver",
                        "image": "registry.example.com/driver:1",
                        "args": ["--password", FOREIGN, f"--auth-token={FOREIGN}"],
                        "env": [{"name": "SMB_PASSWORD", "value": FOREIGN}, {"name": "NOTE", "value": HELD}],
                    },
                    {
                        "name": "registrar",
                        "image": "registry.example.com/csi-node-driver-registrar:v2.12.0",
                        "args": ["--kubelet-registration-path=C:\\var\\lib\\kubelet\\plugins\\planted.example.com\\csi.sock"],
                    },
                ],
                "volumes": [{"name": "registry", "hostPath": {"path": "C:\\var\\lib\\kubelet\\plugins_registry"}}],
            },
        },
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def planted(lab: Lab) -> Iterator[Lab]:
    """A secret in the logs, the registry and the events of a host, and in every object that gather reads."""
    api, agent = lab.api, lab.agent("win-1")
    install_csi_proxy(lab, "win-1")
    encoded = base64.b64encode(f"$password = '{FOREIGN}'".encode("utf-16-le")).decode()
    log = r"C:\csi-proxy.log"
    for words in (
        f"{HELD} password={FOREIGN}",
        f"powershell -EncodedCommand {encoded}",
        f"https://joe:{FOREIGN}@nas/x",
    ):
        agent.run(f"echo {words}>>{log}")
    parameters = r"HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy\Parameters"
    agent.run(f"reg add {parameters} /v SmbPassword /t REG_SZ /d {FOREIGN} /f")
    event = f"<Event><Data Name='param1'>net use \\\\nas\\share {FOREIGN} /user:joe {HELD}</Data></Event>"
    agent.run(f'reg add HKLM\\SOFTWARE\\WinLab /v "Events System" /t REG_SZ /d "{event}" /f')
    api.ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.ensure(DAEMON_SETS, PLUGIN)
    api.patch("/api/v1/nodes/win-1", {"metadata": {"annotations": {"example.com/note": WHOLE}}})
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    parameters_of_class = {"password": FOREIGN, "note": WHOLE}
    thing = {
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "planted"},
        "provisioner": "planted.example.com", "parameters": parameters_of_class,
    }  # fmt: skip
    api.ensure(classes, thing)
    events = f"/api/v1/namespaces/{NAMESPACE}/events"
    api.post(events, {
        "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "planted-"}, "reason": "FailedMount",
        "message": WHOLE, "type": "Warning",
        "involvedObject": {"kind": "PersistentVolumeClaim", "name": "data", "namespace": NAMESPACE},
    })  # fmt: skip
    eventually(lambda: api.get(f"{DAEMON_SETS}/planted")["status"].get("numberReady") == 3, "its pods run")
    yield lab
    api.gone(f"/api/v1/namespaces/{NAMESPACE}")
    api.gone(f"{classes}/planted")
    api.patch("/api/v1/nodes/win-1", {"metadata": {"annotations": {"example.com/note": None}}})
    lab.set_service("win-1", running=False)
    agent.run("sc.exe delete csi-proxy")


@pytest.fixture
def inventory(lab: Lab, tmp_path: Path) -> Path:
    """win-2 is down; a variable of the user's holds a secret."""
    known = yaml.safe_load(Path(lab.state.inventories["basic-http"]).read_text(encoding="utf-8"))
    windows = known["all"]["children"]["windows"]
    windows["hosts"]["win-2"]["ansible_port"] = 9
    windows["vars"]["share_password"] = HELD
    path = tmp_path / "inventory.yml"
    path.write_text(yaml.safe_dump(known), encoding="utf-8")
    return path


def unpacked(folder: Path) -> dict[str, str]:
    """The files of the one archive, by their path in it."""
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as found:
        files = {one.name.partition("/")[2]: found.extractfile(one) for one in found.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file is not None}


def test_one_host_down_and_a_secret_everywhere(planted: Lab, inventory: Path, tmp_path: Path) -> None:
    size, out = planted.audit_size(), tmp_path / "out"
    with also_holds(planted, "kubewin-csi-gather"):
        # As a shell in that directory starts it; the directory is printed, and is no secret because of the variable's name.
        out.mkdir()
        run = play("playbooks/gather.yml", inventory, "-vv", env={"PWD": str(out)})
    assert run.code == 0, run.screen
    assert run.changed == []
    assert writes(planted, size) == []
    assert f"Archive: {out}/kubewin-gather-" in run.screen
    files = unpacked(out)
    # What was planted was read, and nothing of it is left anywhere.
    machine = Path(planted.state.password_file).read_text(encoding="utf-8").strip()
    for name, text in files.items():
        for secret in (HELD, FOREIGN, machine):
            assert not part_survives(secret, text), name
    for secret in (HELD, FOREIGN, machine):
        assert secret not in run.screen
        assert secret not in json.dumps(run.events)
    hidden = {name for name, text in files.items() if re.search(r"\(redacted\)|<str, \d+>|&lt;str, \d+&gt;", text)}
    assert {
        "hosts/win-1/log-C-csi-proxy.log", "hosts/win-1/registry.txt", "hosts/win-1/events-services.txt", "cluster/nodes.json",
        "cluster/daemonsets.json", "cluster/pods.json", "cluster/storageclasses.json", "cluster/events.json",
    } <= hidden  # fmt: skip
    logs = {name for name in hidden if name.startswith("logs/support/planted-")}
    assert {name.rpartition("/")[2] for name in logs} == {"driver.log", "registrar.log"}
    assert len(logs) == 6
    # The rest of the lines is there.
    assert "powershell -EncodedCommand" in files["hosts/win-1/log-C-csi-proxy.log"]
    assert "Version: v2.12.0" in files[min(name for name in logs if name.endswith("registrar.log"))]
    # The host that is down is named, and the others are there.
    summary = json.loads(files["summary.json"])
    assert [one["what"] for one in summary["missing"]] == ["host win-2"]
    assert "Nothing listens on" in summary["missing"][0]["why"]
    assert "host win-2: Nothing listens on" in run.screen
    assert {"hosts/win-1/service.txt", "hosts/win-3/service.txt", "readiness/snapshot.json"} <= set(files)
    assert not [name for name in files if name.startswith("hosts/win-2/")]
    assert (json.loads(files["hosts/win-1/csi-proxy.json"])["serving"], out.stat().st_mode & 0o777) == (True, 0o755)


def test_without_a_rule_and_without_a_cluster_the_rest_is_gathered(
    planted: Lab, inventory: Path, tmp_path: Path
) -> None:
    nobody = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    planted.api.ensure(nobody, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "nobody"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubewin-csi-gather"},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": NAMESPACE}],
    }  # fmt: skip
    planted.api.ensure(f"{RBAC}/clusterrolebindings", binding)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 7200}}
    token = str(planted.api.post(f"{nobody}/nobody/token", request)["status"]["token"])
    config = kubeconfig(planted.state.server, Path(planted.state.ca), "nobody", {"token": token})
    role = f"{RBAC}/clusterroles/kubewin-csi-gather"
    rules = planted.api.get(role)["rules"]
    less = [rule for rule in rules if rule["resources"] != ["pods/log"]]
    planted.api.patch(role, {"rules": less})
    try:
        variables = {"kubewin_output_dir": str(tmp_path / "out"), "kubewin_kubeconfig": config}
        run = play("playbooks/gather.yml", inventory, "--limit", "win-1", variables=variables)
    finally:
        planted.api.patch(role, {"rules": rules})
        planted.api.gone(f"{RBAC}/clusterrolebindings/nobody")
    assert run.code == 0, run.screen
    files = unpacked(tmp_path / "out")
    assert not [name for name, text in files.items() if token in text]
    missing = json.loads(files["summary.json"])["missing"]
    lacks = [one for one in missing if one["what"].startswith("log of ")]
    assert lacks
    assert all('resources: ["pods/log"], verbs: ["get"]' in one["why"] for one in lacks)
    assert "cluster/pods.json" in files
    assert "hosts/win-1/log-C-csi-proxy.log" in files


def test_in_check_mode_nothing_is_written(planted: Lab, inventory: Path, tmp_path: Path) -> None:
    variables = {"kubewin_output_dir": str(tmp_path / "out"), "kubewin_kubeconfig": "/nowhere/kubeconfig"}
    run = play("playbooks/gather.yml", inventory, "--check", "--limit", "win-1", variables=variables)
    assert run.code == 0, run.screen
    assert not (tmp_path / "out").exists()
    assert "Would gather" in run.screen
    assert "cluster: no access to Kubernetes is configured" in run.screen


def test_what_is_wrong_is_named_the_next_thing_to_fix_first(planted: Lab, inventory: Path) -> None:
    known = yaml.safe_load(inventory.read_text(encoding="utf-8"))
    known["all"]["children"]["windows"]["hosts"]["win-3"]["ansible_password"] = "wrong"
    inventory.write_text(yaml.safe_dump(known), encoding="utf-8")
    agent = planted.agent("win-1")
    mapping = r"reg add HKLM\SOFTWARE\WinLab /v SmbGlobalMappings /t REG_SZ /f /d"
    agent.run(rf'{mapping} "|\\nas\share|2;|\\nas\other|0"')
    # As on Windows Server 2025, where PowerShell lists the mappings.
    wmic, plugin = r"C:\Windows\System32\wbem\WMIC.exe", r"C:\var\lib\kubelet\plugins\smb.csi.k8s.io"
    agent.control("plant", files={wmic: None, plugin: {"dir": True}})
    for error in ("New-SmbGlobalMapping: HRESULT 0x800704c3", "The requested access path is already in use."):
        planted.api.post(f"/api/v1/namespaces/{NAMESPACE}/events", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"generateName": "mount-"}, "reason": "FailedMount",
            "message": f"MountVolume.MountDevice failed: {error}", "type": "Warning",
            "involvedObject": {"kind": "Pod", "name": "shop-0", "namespace": NAMESPACE},
        })  # fmt: skip
    planted.set_service("win-1", running=False)
    size = planted.audit_size()
    try:
        run = play("playbooks/diagnose.yml", inventory)
    finally:
        planted.set_service("win-1", running=True)
        agent.run(r"reg delete HKLM\SOFTWARE\WinLab /v SmbGlobalMappings /f")
        agent.control("plant", files={wmic: {"text": "MZ"}, plugin: None})
    assert run.code != 0
    assert run.changed == []
    assert writes(planted, size) == []
    found = run.results("Compare what was found with what is expected")["win-1"]["diagnosis"]
    kinds = [(one["id"], one["object"]) for one in found if one["severity"] == "blocker"]
    # The account of the lab does not hold the role of preflight.
    assert kinds[:4] == [
        ("CSI-X06", "ClusterRole kubewin-preflight"),
        ("CSI-X13", "host win-2"),
        ("CSI-X13", "host win-3"),
        ("CSI-X15", "host win-1"),
    ]
    assert kinds[-2:] == [("CSI-X23", f"Pod {NAMESPACE}/shop-0"), ("CSI-X19", f"Pod {NAMESPACE}/shop-0")]
    assert "refused" in next(one["found"] for one in found if one["object"] == "host win-2")
    (mapping,) = [one for one in found if one["id"] == "CSI-X17"]
    assert mapping["object"] == r"host win-1, mapping of \\nas\share"
    assert r"Remove-SmbGlobalMapping -RemotePath '\\nas\share' -Force" in mapping["remedy"]
    assert run.ends[-1]["failure"].startswith("ClusterRole kubewin-preflight: this account lacks")
    assert "4. blocker CSI-X15 host win-1" in run.screen
