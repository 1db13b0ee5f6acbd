# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each misconfiguration is the first in its list, with its remedy; what it hides comes after it."""

from __future__ import annotations

import importlib.metadata
import itertools
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import yaml
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.findings import Finding
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import (
    NO_TARGET,
    Cause,
    Report,
    ReportFinding,
    WorkloadVerdict,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.diagnose import (
    _OF_TRANSPORT,
    LAYERS,
    LEAST,
    ClusterFacts,
    ControllerPackages,
    Diagnosis,
    HostFacts,
    diagnose,
    is_passed,
    render,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.observe import read_workload
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.workload import (
    WorkloadFacts,
    WorkloadPod,
    describe_workload,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.model import CsiProxyState
from unit.plugins.hostvars import STATE

ROOT = Path(__file__).parents[5]
SERVING: dict[str, Any] = {
    **STATE,
    "service": {"name": "csi-proxy", "state": "running", "start_mode": "auto"},
    "smb_mappings": [{"local": "", "remote": r"\\nas\share", "status": 0}],
}
CONTROLLER = ControllerPackages({**LEAST, "requests-ntlm": "1.2.0"})
CLUSTER = ClusterFacts(events=[("Pod shop/a", "MountVolume.SetUp failed: timed out", "win-1")])
HOST = HostFacts("win-1", transport="ntlm", node="win-1", state=CsiProxyState.from_result(SERVING))
REFUSED = (
    "Nothing listens on https://10.0.0.5:5986 (connection refused). Correct ansible_port, or start the WinRM service."
)
UNTRUSTED = "The certificate of https://a:5986 is not trusted by the controller. Set ansible_winrm_ca_trust_path to a file with the CA."
NAME = "The name of https://a:5986 cannot be resolved. Correct ansible_host or the controller's DNS."
LOGON = (
    "WinRM refused the logon: the specified credentials were rejected. Check ansible_user and ansible_password first."
)
QUOTA = "WinRM refuses another operation of this account: 2150859174. Close other remote shells of this account."
RULE = '{apiGroups: [""], resources: ["pods"], verbs: ["list"]}'


def lost(problem: str, **more: Any) -> HostFacts:
    return HostFacts("win-1", transport="ntlm", problem=problem, **more)


def state(**more: Any) -> HostFacts:
    return replace(HOST, state=CsiProxyState.from_result({**SERVING, **more}))


def service(**more: Any) -> HostFacts:
    return state(serving=False, service={**SERVING["service"], **more})


FOUND = {
    "id": "CSI-N03",
    "severity": "warning",
    "object": "service x",
    "message": "a second csi-proxy",
    "remedy": "sc.exe delete x",
}
BLOCKER = Finding("CSI-N30", "blocker", "Node win-1", "the driver is not registered", "enable_csi")
# What was planted: (controller, cluster, host), where it is, and a part of the remedy.
PLANTED: dict[str, tuple[ControllerPackages, ClusterFacts, HostFacts, str, str]] = {
    "pywinrm is missing": (
        replace(CONTROLLER, missing=frozenset({"pywinrm"})), CLUSTER, lost("No module named winrm. X."),
        "controller", "pip install --upgrade 'pywinrm>="),
    "kerberos is missing": (
        replace(CONTROLLER, missing=frozenset({"pykerberos"})), CLUSTER, replace(HOST, transport="kerberos"),
        "controller", "pykerberos"),
    "an old kubernetes.core": (
        replace(CONTROLLER, installed={**LEAST, "kubernetes.core": "3.2.0"}), CLUSTER, HOST,
        "controller", "ansible-galaxy collection install --upgrade kubernetes.core"),
    "an old pywinrm": (
        replace(CONTROLLER, installed={**LEAST, "pywinrm": "0.4.3"}), CLUSTER, HOST, "controller", "pywinrm>=0.5.0"),
    "a wrong kubeconfig": (
        CONTROLLER, replace(CLUSTER, problem="no access to Kubernetes is configured. Set kubeconfig."), HOST,
        "cluster", "Set kubeconfig"),
    "an expired token": (
        CONTROLLER, replace(CLUSTER, problem="the API server does not accept these credentials. Check token."),
        HOST, "cluster", "Check token"),
    "an API server that is down": (
        CONTROLLER, replace(CLUSTER, problem="no answer from the API server. Check that it runs."), HOST,
        "cluster", "Check that it runs"),
    "no Windows Node": (CONTROLLER, replace(CLUSTER, is_without_nodes=True), HOST, "cluster", "kubectl get nodes"),
    "a missing rule": (
        CONTROLLER, replace(CLUSTER, lacking={"kubewin-preflight": [RULE]}), HOST, "permissions", "bind kubewin-preflight"),
    "a missing rule of a driver": (
        CONTROLLER, replace(CLUSTER, lacking={"kubewin-csi-smb": [RULE]}), HOST, "permissions", "bind kubewin-csi-smb"),
    "no password": (
        CONTROLLER, CLUSTER, lost("x. y.", password=False), "connection", "Set ansible_password"),
    "a name that does not resolve": (CONTROLLER, CLUSTER, lost(NAME), "connection", "Correct ansible_host"),
    "a closed port": (CONTROLLER, CLUSTER, lost(REFUSED), "connection", "Correct ansible_port"),
    "a certificate that is not trusted": (
        CONTROLLER, CLUSTER, lost(UNTRUSTED), "connection", "ansible_winrm_ca_trust_path"),
    "a wrong password": (CONTROLLER, CLUSTER, lost(LOGON), "connection", "Check ansible_user"),
    "a quota": (CONTROLLER, CLUSTER, lost(QUOTA), "connection", "Close other remote shells"),
    "a host that is no Windows": (
        CONTROLLER, CLUSTER, lost("It is a Unix shell. Run this on Windows nodes only."), "connection", "Windows nodes only"),
    "a host that is no Node": (
        CONTROLLER, CLUSTER, replace(HOST, node="", unmatched="win-1 is no Node. Set kubewin_node_name."), "node", "kubewin_node_name"),
    "a host that may be another machine than its name says": (
        CONTROLLER, CLUSTER, replace(HOST, unmatched="win-1, win-2 are all Node win-2. Remove the duplicate."), "node", "Remove the duplicate"),
    "a service that is stopped": (CONTROLLER, CLUSTER, service(state="stopped"), "csi-proxy", "sc.exe start csi-proxy"),
    "no csi-proxy": (
        CONTROLLER, CLUSTER, state(serving=False, service=None, managed_by="none"), "csi-proxy", "kubewin.csi.enable_csi"),
    "missing pipes": (
        CONTROLLER, CLUSTER, state(serving=False, missing_pipes=["csi-proxy-smb-v1"]), "csi-proxy", "kubewin.csi.enable_csi"),
    "a second csi-proxy": (CONTROLLER, CLUSTER, state(findings=[FOUND]), "csi-proxy", "sc.exe delete x"),
    "a driver that is not registered": (CONTROLLER, replace(CLUSTER, findings=[BLOCKER]), HOST, "driver", "enable_csi"),
    "a stale SMB mapping": (
        CONTROLLER, CLUSTER, state(smb_mappings=[{"local": "", "remote": r"\\nas\x", "status": 2}]), "SMB", "Remove-SmbGlobalMapping"),
    "mappings that cannot be read": (
        CONTROLLER, CLUSTER, state(smb_mappings=None, smb_used=True), "SMB", "Get-SmbGlobalMapping"),
    "two accounts on a server": (
        CONTROLLER, replace(CLUSTER, events=[("Pod shop/a", "New-SmbGlobalMapping failed: HRESULT 0x800704C3", "win-1")]), HOST,
        "SMB", "Use the same Secret"),
    "a first format of two minutes": (
        CONTROLLER, replace(CLUSTER, events=[("Pod shop/a", "error mount volume to path. The requested access path is already in use.", "win-1")]),
        HOST, "driver", "kubectl -n shop delete pod a"),
    "a pipe that the plugin may not open": (
        CONTROLLER, replace(CLUSTER, events=[("Pod shop/a", r"open \\\\.\\pipe\\csi-proxy-filesystem-v1: Access is denied.", "win-1")]),
        HOST, "csi-proxy", "runAsUserName"),
    "a full disk": (
        CONTROLLER, replace(CLUSTER, events=[("Pod shop/a", "mkdir: There is not enough space on the disk.", "win-1")]),
        HOST, "node", "crictl rmi --prune"),
}  # fmt: skip


def test_a_host_whose_mounts_fail_is_named_once_for_all_its_pods() -> None:
    full = "mkdir: There is not enough space on the disk."
    denied = r"open \\\\.\\pipe\\csi-proxy-filesystem-v1: Access is denied."
    events = [(f"Pod shop/{pod}", message, "win-1") for pod in ("a", "b") for message in (full, denied)]
    found = diagnose(CONTROLLER, replace(CLUSTER, events=[*events, ("Pod shop/c", full, "")]), [HOST])
    assert [(row.id, row.object) for row in found] == [
        ("CSI-X25", "host unknown"),
        ("CSI-X25", "host win-1"),
        ("CSI-X24", "host win-1"),
    ]
    assert "kubectl describe nodes. " in found[0].remedy
    assert "kubectl describe node win-1. " in found[1].remedy


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert diagnose(CONTROLLER, CLUSTER, [HOST]) == ()
    assert render(()) == ["Nothing to fix was found, from the controller to the drivers."]


@pytest.mark.parametrize("planted", PLANTED)
def test_the_planted_fault_comes_first_with_its_remedy(planted: str) -> None:
    controller, cluster, host, layer, remedy = PLANTED[planted]
    # Another host works, before and after it.
    first = diagnose(controller, cluster, [replace(HOST, name="a"), host, replace(HOST, name="z")])[0]
    assert first.layer == layer, first
    assert remedy in first.remedy
    assert first.object
    assert first.found
    assert first.expected
    assert first.id in " ".join(render([first]))


def test_of_two_findings_the_one_that_hides_the_other_comes_first() -> None:
    for (_one, left), (_other, right) in itertools.combinations(PLANTED.items(), 2):
        if left[3] == right[3]:
            continue
        controller = left[0] if left[0] != CONTROLLER else right[0]
        cluster = left[1] if left[1] != CLUSTER else right[1]
        if left[1] != CLUSTER and right[1] != CLUSTER:
            continue
        found = diagnose(controller, cluster, [replace(left[2], name="x"), replace(right[2], name="y")])
        blockers = [LAYERS.index(one.layer) for one in found if one.severity == "blocker"]
        warnings = [LAYERS.index(one.layer) for one in found if one.severity == "warning"]
        assert blockers == sorted(blockers)
        assert warnings == sorted(warnings)
        assert [one.severity for one in found] == ["blocker"] * len(blockers) + ["warning"] * len(warnings)


def test_an_unread_part_is_a_blocker_and_decides_the_exit_code() -> None:
    unread = diagnose(CONTROLLER, replace(CLUSTER, unread="forbidden. Add a rule."), [HostFacts("win-1")])
    assert {one.id for one in unread} == {"CSI-X13", "CSI-X18"}
    assert {one.severity for one in unread} == {"blocker"}
    warning = Diagnosis("SMB", "CSI-X17", "warning", "a", "b", "c", "d")
    blocker = replace(warning, severity="blocker")
    expected = {"never": (True, True), "blocked": (True, False), "unknown": (True, False), "warning": (False, False)}
    for fail_on, passed in expected.items():
        assert (is_passed([warning], fail_on), is_passed([blocker], fail_on)) == passed
        assert is_passed([], fail_on)


def test_a_host_that_is_down_hides_no_other_host() -> None:
    found = diagnose(CONTROLLER, CLUSTER, [lost(REFUSED), replace(service(state="stopped"), name="win-2")])
    assert [(one.layer, one.object) for one in found] == [("connection", "host win-1"), ("csi-proxy", "host win-2")]


WAITS = WorkloadPod("shop/orders-0", "win-2", runs=False, event="FailedMount: the share is away")
UNREGISTERED = replace(BLOCKER, severity="warning")


def verdict(name: str, because: str = "", causes: tuple[Cause, ...] = (), *findings: str) -> WorkloadVerdict:
    return WorkloadVerdict(f"StatefulSet shop/{name}", "windows", "", "no", because, (), findings, causes)


def report(workloads: list[WorkloadVerdict], findings: list[Finding]) -> Report:
    found = tuple(ReportFinding(**asdict(finding), evidence=(), why="", link="") for finding in findings)
    return Report("", "", "", "", NO_TARGET, found, (), (), tuple(workloads))


ORDERS = WorkloadFacts("shop/orders-0", verdict("orders"), pods=[WAITS])


def test_of_a_workload_only_what_stops_its_pods_is_listed() -> None:
    elsewhere = replace(CLUSTER, findings=[replace(BLOCKER, id="CSI-N31")], lacking={"kubewin-csi-smb": [RULE]})
    hosts = [service(state="stopped"), replace(HOST, name="win-2", node="win-2")]
    cluster = replace(elsewhere, workload=replace(ORDERS, causes=[UNREGISTERED]))
    found = diagnose(CONTROLLER, cluster, hosts)
    # Nothing certain explains the pod, so its own event is the blocker.
    assert [(one.id, one.severity) for one in found] == [("CSI-X21", "blocker"), ("CSI-N30", "warning")]
    assert found[0].found == "FailedMount: the share is away"
    here = [replace(host, node="win-2") for host in hosts[:1]]
    assert [one.id for one in diagnose(CONTROLLER, cluster, here)] == ["CSI-X15", "CSI-N30"]
    assert describe_workload(ORDERS) == [
        "Pod shop/orders-0 does not run on win-2",
        "  FailedMount: the share is away",
    ]


def test_a_workload_that_runs_has_nothing_to_fix_and_an_unknown_one_is_named() -> None:
    running = replace(ORDERS, pods=[replace(WAITS, runs=True)])
    assert diagnose(CONTROLLER, replace(CLUSTER, findings=[BLOCKER], workload=running), [HOST]) == ()
    (unknown,) = diagnose(CONTROLLER, replace(CLUSTER, workload=WorkloadFacts("shop/order", None)), [HOST])
    assert (unknown.id, unknown.object) == ("CSI-X22", "workload shop/order")
    assert diagnose(CONTROLLER, replace(CLUSTER, unread="forbidden.", workload=ORDERS), [HOST])[0].id == "CSI-X18"


def test_a_node_that_is_not_ready_is_listed_although_no_workload_needs_it() -> None:
    warning = replace(BLOCKER, id="CSI-G05", severity="warning", message="the Node is not Ready")
    found = diagnose(CONTROLLER, replace(CLUSTER, findings=[warning]), [HOST])
    assert [(diagnosis.id, diagnosis.severity) for diagnosis in found] == [("CSI-G05", "warning")]


def test_what_follows_from_another_finding_about_the_node_is_left_out() -> None:
    old_pod, pipes = replace(BLOCKER, id="CSI-G12"), replace(BLOCKER, id="CSI-G42")
    found = diagnose(CONTROLLER, replace(CLUSTER, findings=[old_pod, pipes]), [HOST])
    assert [diagnosis.id for diagnosis in found] == ["CSI-G42"]
    elsewhere = replace(pipes, object="Node win-2")
    assert len(diagnose(CONTROLLER, replace(CLUSTER, findings=[old_pod, elsewhere]), [HOST])) == 2


def test_hosts_of_an_unread_cluster_are_not_called_unmatched() -> None:
    unread = replace(CLUSTER, problem="no response from the API server. Check that it runs.")
    assert [diagnosis.id for diagnosis in diagnose(CONTROLLER, unread, [replace(HOST, node="")])] == ["CSI-X05"]


def test_a_workload_without_pods_says_so() -> None:
    assert describe_workload(replace(ORDERS, pods=[])) == ["StatefulSet shop/orders has no such pod now"]


def test_a_disabled_service_is_not_started_by_hand() -> None:
    (stopped,) = diagnose(CONTROLLER, CLUSTER, [service(state="stopped")])
    (disabled,) = diagnose(CONTROLLER, CLUSTER, [service(state="stopped", start_mode="disabled")])
    assert "sc.exe start csi-proxy" in stopped.remedy
    assert disabled.remedy == "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"


def test_a_stopped_service_stands_for_its_pipes() -> None:
    blockers = [replace(BLOCKER, id="CSI-G42"), replace(BLOCKER, id="CSI-G43")]
    found = diagnose(CONTROLLER, replace(CLUSTER, findings=blockers), [service(state="stopped")])
    assert [one.id for one in found] == ["CSI-X15"]
    assert len(diagnose(CONTROLLER, replace(CLUSTER, findings=blockers), [HOST])) == 2


def test_a_pod_that_no_controller_recreates_is_a_warning_of_the_next_drain() -> None:
    cluster = replace(CLUSTER, findings=[replace(BLOCKER, id="CSI-W07")])
    found = diagnose(CONTROLLER, cluster, [HOST])
    assert [(diagnosis.id, diagnosis.severity) for diagnosis in found] == [("CSI-W07", "warning")]
    assert is_passed(found, "blocked")


@pytest.mark.parametrize(("node", "name"), [("win-1", "win-1"), ("", "NODE")])
def test_a_mapping_is_removed_only_after_its_pods_are_gone(node: str, name: str) -> None:
    host = replace(state(smb_mappings=[{"local": "", "remote": r"\\NAS\it's $hared", "status": 2}]), node=node)
    event = ("Pod shop/b", "New-SmbGlobalMapping: System Error 1219", node)
    conflict, mapping = (
        found for found in diagnose(CONTROLLER, replace(CLUSTER, events=[event]), [host]) if found.layer == "SMB"
    )
    assert mapping.found == "it is disconnected"
    assert mapping.remedy == (
        f"kubectl cordon {name}; delete its pods that mount this share, and check that none is left: kubectl get pods -A "
        f"--field-selector spec.nodeName={name}; on the host, in PowerShell: Remove-SmbGlobalMapping -RemotePath "
        rf"'\\NAS\it''s $hared' -Force; kubectl uncordon {name} (not if it was cordoned before). The driver maps the share anew."
    )
    assert conflict.object == "Pod shop/b"
    beginning = (
        f"then: kubectl cordon {name}; delete its pods that mount shares of that server, and check that none is left"
    )
    assert beginning in conflict.remedy
    assert "Remove-SmbGlobalMapping" in conflict.remedy.split("none is left")[1]


def test_a_pod_belongs_to_the_workload_with_the_longest_name() -> None:
    names = ["orders-0", "orders-db-0", "orders"]
    pods = [{"metadata": {"name": name}, "spec": {"nodeName": "win-1"}} for name in names]
    client = Mock(list=lambda kind, *_where, **_selector: Mock(items=pods if kind.kind == "Pod" else []))
    workloads = [verdict("orders"), verdict("orders-db")]
    for name, expected in (
        ("orders", ["orders-0", "orders"]),
        ("orders-db", ["orders-db-0"]),
        ("orders-db-0", ["orders-db-0"]),
    ):
        facts = read_workload(client, f"shop/{name}", report(workloads, []))
        assert [pod.name for pod in facts.pods] == [f"shop/{pod}" for pod in expected]
        assert facts.verdict == workloads[name.startswith("orders-db")]


@pytest.mark.parametrize(
    ("node", "expected"),
    [("win-1", ["it is not Ready"]), ("win-2", ["other selector"]), ("", ["other selector"])],
)
def test_a_node_that_is_not_ready_explains_its_pod_and_no_other_one(node: str, expected: list[str]) -> None:
    """As the report of a real evaluation has it: a cause about the selector, and a finding about the node."""
    pod = {"metadata": {"name": "orders-0"}, "spec": {"nodeName": node}}
    client = Mock(list=lambda kind, *_where, **_selector: Mock(items=[pod] if kind.kind == "Pod" else []))
    because = "orders-0 is blocked at step schedule on win-2, win-3: other selector"
    orders = verdict("orders", because, (Cause("CSI-W20", "StatefulSet shop/orders"),), "CSI-W20", "CSI-G05")
    findings = [
        replace(BLOCKER, id="CSI-G05", message="it is not Ready"),
        replace(BLOCKER, id="CSI-W20", object="StatefulSet shop/orders", message="other selector"),
    ]
    facts = read_workload(client, "shop/orders-0", report([orders], findings))
    assert [cause.message for cause in facts.causes] == expected


def test_of_two_findings_about_a_node_the_one_of_the_workload_is_its_cause() -> None:
    client = Mock(list=lambda *_where, **_selector: Mock(items=[]))
    because = "orders-0 is blocked at step attach on win-1: volume a is not detached"
    orders = verdict("orders", because, (Cause("CSI-N34", "Node win-1, driver x"),))
    findings = [
        replace(BLOCKER, id="CSI-N34", object="Node win-1, driver x", message=f"volume {volume} is not detached")
        for volume in "ab"
    ]
    facts = read_workload(client, "shop/orders", report([orders], findings))
    assert [cause.message for cause in facts.causes] == ["volume a is not detached"]


@pytest.mark.parametrize(("event", "expected"), [('secret "db-password" not found', "CSI-X21"), ("", "CSI-W22")])
def test_the_event_of_a_pod_that_waits_says_why(event: str, expected: str) -> None:
    waits = replace(
        BLOCKER, id="CSI-W22", object="StatefulSet shop/orders", message="container db waits: ContainerCreating"
    )
    workload = replace(ORDERS, causes=[waits], pods=[replace(WAITS, event=event)])
    (only,) = diagnose(CONTROLLER, replace(CLUSTER, workload=workload), [HOST])
    assert (only.id, only.found) == (expected, event or waits.message)


def test_a_missing_executable_stands_for_the_stopped_service() -> None:
    finding = {**FOUND, "id": "CSI-N06", "severity": "blocker"}
    gone = state(serving=False, service={**SERVING["service"], "state": "stopped"}, findings=[finding])
    blockers = [replace(BLOCKER, id="CSI-G42")]
    assert [one.id for one in diagnose(CONTROLLER, replace(CLUSTER, findings=blockers), [gone])] == ["CSI-N06"]


def test_a_host_that_was_not_read_stands_for_its_unproven_drivers() -> None:
    unproven = [
        replace(BLOCKER, id=id_, object=f"Node {node}, driver x")
        for id_ in ("CSI-G40", "CSI-G41")
        for node in ("win-1", "win-2")
    ]
    found = diagnose(CONTROLLER, replace(CLUSTER, findings=unproven), [lost(LOGON, node="win-1")])
    assert [(one.id, one.object) for one in found] == [
        ("CSI-X13", "host win-1"), ("CSI-G40", "Node win-2, driver x"), ("CSI-G41", "Node win-2, driver x"),
    ]  # fmt: skip


def test_a_line_ends_with_a_single_stop() -> None:
    ended = replace(
        diagnose(CONTROLLER, CLUSTER, [service(state="stopped")])[0], expected="none of it", found="It is down."
    )
    assert render([ended])[1].endswith("It is down.")
    assert not render([ended])[1].endswith("..")


def test_the_least_releases_are_those_that_are_required() -> None:
    required = dict(
        line.split(">=")
        for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
        if ">=" in line
    )
    galaxy = yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    assert {name: LEAST[name] for name in LEAST if name in required} == {
        name: release for name, release in required.items() if name in LEAST
    }
    assert json.dumps(galaxy["dependencies"]).count(f">={LEAST['kubernetes.core']}") == 1
    assert runtime["requires_ansible"] == f">={LEAST['ansible-core']}"


@pytest.mark.parametrize(("connection", "transport"), _OF_TRANSPORT)
def test_a_logon_needs_what_pip_installs_for_it(connection: str, transport: str) -> None:
    """The package is one that pywinrm and pypsrp, or pyspnego below it, require in general or for the extra of this name."""
    found = set()
    for package in {"winrm": ["pywinrm"], "psrp": ["pypsrp", "pyspnego"]}[connection]:
        for line in importlib.metadata.requires(package) or ():
            name, _semicolon, marker = line.partition(";")
            if "extra" not in marker or re.search(rf"""extra == ['"]{transport}['"]""", marker):
                found.add(re.split(r"[ <>=\[(]", name)[0])
    assert _OF_TRANSPORT[connection, transport] in found
