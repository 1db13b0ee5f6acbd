# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The gate's evaluation: what makes a node green, and the verdict of each problem."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.evaluate import (
    GateRules,
    NodeEvaluation,
    evaluate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import (
    EventFacts,
    Registration,
    RolloutPicture,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import Taint
from unit.operations import FEW, MANY, is_linear
from unit.plugins.plugin_utils.drivers.rollout.pictures import (
    ago,
    container,
    daemon_set,
    host,
    node,
    picture,
    pod,
    registration,
    win2,
)

RULES = GateRules()


def of(view: RolloutPicture, name: str = "win-2", rules: GateRules = RULES) -> NodeEvaluation:
    return next(one for one in evaluate(view, rules).nodes if one.node == name)


def text(verdict: NodeEvaluation) -> str:
    return "\n".join(f"{problem.message} -> {problem.remedy}" for problem in verdict.problems)


def test_everything_as_it_should_be_is_green() -> None:
    evaluation = evaluate(picture(), RULES)
    assert evaluation.verdict == "green"
    assert evaluation.settled
    assert [(one.node, one.verdict, one.problems) for one in evaluation.nodes] == [
        ("win-1", "green", ()),
        ("win-2", "green", ()),
    ]
    assert evaluation.skipped_nodes == ()


@pytest.mark.parametrize(
    ("view", "verdict", "ids", "expected"),
    [
        pytest.param(win2(registrations=None), "waiting", ["CSI-G20"], "not in the CSINode", id="not registered"),
        pytest.param(
            win2(registrations=registration("win-2", node_id="other")),
            "waiting",
            ["CSI-G21"],
            "vm-win-2",
            id="other node id",
        ),
        pytest.param(
            win2(nodes=node("win-2", node_ids={})),
            "waiting",
            ["CSI-G21"],
            "does not name the driver",
            id="no annotation",
        ),
        pytest.param(
            win2(registrations=registration("win-2", topology_keys=("zone",))),
            "waiting",
            ["CSI-G22"],
            "zone",
            id="topology",
        ),
        pytest.param(win2(pods=None), "waiting", ["CSI-G10"], "2 of 2 pods exist", id="no pod"),
        pytest.param(
            win2(pods=pod("win-2", deleting=True)),
            "waiting",
            ["CSI-G15"],
            "being deleted",
            id="pod on its way out",
        ),
        pytest.param(
            win2(pods=pod("win-2", revision="0")),
            "waiting",
            ["CSI-G14"],
            "older template",
            id="older template",
        ),
        pytest.param(
            win2(nodes=node("win-2", ready=False, not_ready_because="KubeletNotReady")),
            "waiting",
            ["CSI-G05"],
            "KubeletNotReady",
            id="node not Ready",
        ),
        pytest.param(win2(hosts=None), "unproven", ["CSI-G40"], "registered, unproven", id="the host was not read"),
        pytest.param(
            win2(hosts=host("win-2", serving=None, reason="connection_lost", pipes=None, observed_at=None)),
            "unproven",
            ["CSI-G40"],
            "connection_lost",
            id="the host could not be read",
        ),
        pytest.param(
            win2(hosts=host("win-2", observed_at=ago(7200))),
            "unproven",
            ["CSI-G41"],
            "7200 s ago",
            id="read long ago",
        ),
        pytest.param(
            win2(hosts=host("win-2", observed_at=None)),
            "unproven",
            ["CSI-G41"],
            "unknown time",
            id="read at an unknown time",
        ),
        pytest.param(
            win2(hosts=host("win-2", serving=False, state="STOPPED", pipes=())),
            "red",
            ["CSI-G42"],
            "host win-2 does not serve pipe csi-proxy-disk-v1, csi-proxy-volume-v1 (service STOPPED)",
            id="service stopped below a Ready pod",
        ),
        pytest.param(
            win2(hosts=host("win-2", pipes=("csi-proxy-disk-v1",))),
            "red",
            ["CSI-G42"],
            "csi-proxy-volume-v1",
            id="serves, but not a pipe that the pod mounts",
        ),
        pytest.param(
            win2(hosts=host("win-2", serving=False, state="START_PENDING", reason="hangs")),
            "red",
            ["CSI-G43"],
            "START_PENDING: hangs",
            id="not serving although its pipes are listed",
        ),
        pytest.param(
            win2(
                pods=pod("win-2", containers=(container(started_at=ago(300)),)), hosts=host("win-2", boot_time=ago(200))
            ),
            "waiting",
            ["CSI-G12"],
            "since before the node booted",
            id="Ready from before a reboot",
        ),
    ],
)
def test_a_node_gets_a_verdict_and_its_findings(
    view: RolloutPicture, verdict: str, ids: list[str], expected: str
) -> None:
    found = of(view)
    assert found.verdict == verdict
    assert [problem.id for problem in found.problems] == ids
    assert expected in text(found)
    assert all(problem.remedy for problem in found.problems)
    if ids in (["CSI-G21"], ["CSI-G22"]):
        assert found.problems[0].remedy.endswith(f"kubectl -n {daemon_set().namespace} delete pod plugin-win-2")
    assert of(view, "win-1").verdict == "green"
    assert evaluate(view, RULES).verdict == verdict


def test_a_pipe_of_another_service_is_unproven_whatever_csi_proxy_serves() -> None:
    mounted = daemon_set().pipes
    view = replace(picture(), daemon_set=daemon_set(other_pipes=("vendor-agent",)))
    found = of(view)
    assert (found.verdict, [problem.id for problem in found.problems]) == ("unproven", ["CSI-G40"])
    assert "pipe vendor-agent, which is not of csi-proxy, was not read on host win-2" in text(found)
    assert of(view, rules=GateRules(proven=frozenset({"win-2"}))).verdict == "green"
    stopped = win2(hosts=host("win-2", serving=False, state="STOPPED", pipes=()))
    both = of(replace(stopped, daemon_set=view.daemon_set))
    assert [problem.id for problem in both.problems] == ["CSI-G42", "CSI-G40"]
    assert f"does not serve pipe {', '.join(mounted)} (service" in text(both)


@pytest.mark.parametrize(
    ("pod_ready_for", "written", "restarted", "green"),
    [
        pytest.param(2, 1, None, True, id="registered by this very pod"),
        pytest.param(2, 400, None, False, id="entry of a pod before it"),
        pytest.param(11, 400, None, True, id="entry of a pod before it, and lasted"),
        pytest.param(2, None, None, False, id="no telling when it was registered"),
        pytest.param(30, 25, 5, False, id="restarted a moment ago"),
        pytest.param(30, 25, 60, True, id="restarted long ago"),
    ],
)
def test_a_ready_pod_counts_once_it_registered_itself_or_stayed_ready(
    pod_ready_for: float, written: float | None, restarted: float | None, green: bool
) -> None:
    view = win2(
        pods=pod(
            "win-2",
            ready_since=ago(pod_ready_for),
            containers=(
                container(started_at=ago(pod_ready_for), ended_at=None if restarted is None else ago(restarted)),
            ),
        ),
        registrations=registration("win-2", written_at=None if written is None else ago(written)),
    )
    assert of(view).verdict == ("green" if green else "waiting")
    message = "pod plugin-win-2 has been Ready without a restart for less than 10 s"
    assert [(problem.id, problem.message) for problem in of(view).problems] == ([] if green else [("CSI-G13", message)])


@pytest.mark.parametrize(
    ("beside", "pod_ready_for", "green"),
    [
        pytest.param([], 2, True, id="alone: the time is of its own registration"),
        pytest.param(["smb.csi.k8s.io"], 2, False, id="the other driver may have registered just now"),
        pytest.param(["smb.csi.k8s.io"], 11, True, id="beside another driver, and lasted"),
    ],
)
def test_another_drivers_registration_vouches_for_no_pod(beside: list[str], pod_ready_for: float, green: bool) -> None:
    entries = [{"name": name, "nodeID": "vm-win-2"} for name in (*beside, picture().driver)]
    csi_node = {
        "metadata": {"name": "win-2", "managedFields": [{"manager": "kubelet", "time": ago(1).isoformat()}]},
        "spec": {"drivers": entries},
    }
    registered = Registration.from_object(csi_node, picture().driver)
    started = ago(pod_ready_for)
    view = win2(
        pods=pod("win-2", ready_since=started, containers=(container(started_at=started),)), registrations=registered
    )
    assert [problem.id for problem in of(view).problems] == ([] if green else ["CSI-G13"])


def crashing(**changes: object) -> RolloutPicture:
    waiting = container(
        ready=False, restarts=4, waiting="CrashLoopBackOff", exit_code=1, ended_at=ago(20), ended_because="Error"
    )
    return win2(pods=pod("win-2", ready=False, ready_since=None, containers=(waiting,)), **changes)


def test_a_crash_loop_names_node_pipe_and_remedy() -> None:
    view = crashing(hosts=host("win-2", serving=False, state="STOPPED", pipes=()))
    found = of(view)
    assert found.verdict == "red"
    assert [problem.id for problem in found.problems] == ["CSI-G42", "CSI-G11"]
    assert "container vsphere-csi-node waits (CrashLoopBackOff), ended with 1 (Error), 4 restarts" in text(found)
    assert "pipe csi-proxy-disk-v1, csi-proxy-volume-v1 is missing on win-2" in text(found)
    assert "kubewin.csi.enable_csi" in found.problems[1].remedy


def test_a_plugin_whose_csinode_was_deleted_has_to_register_again() -> None:
    log = "Received NotifyRegistrationStatus call: &RegistrationStatus{PluginRegistered:true,Error:,}\n"
    view = win2(registrations=None)
    assert "logs plugin-win-2" in text(
        of(replace(view, logs={"plugin-win-2": "Still connecting to unix:///csi.sock\n"}))
    )
    assert "delete pod plugin-win-2" in text(of(replace(view, logs={"plugin-win-2": log})))


@pytest.mark.parametrize(
    ("registrar", "arguments"), [("csi-driver-registrar", "-c csi-driver-registrar"), ("sidecar", "--all-containers")]
)
def test_a_plugin_that_is_not_registered_gets_the_command_for_its_registrars_log(
    registrar: str, arguments: str
) -> None:
    (problem,) = of(
        win2(registrations=None, pods=pod("win-2", containers=(container(), container(registrar))))
    ).problems
    assert problem.id == "CSI-G20"
    assert problem.remedy == f"kubectl -n {daemon_set().namespace} logs plugin-win-2 {arguments}"


def test_a_crash_loop_of_an_unseen_host_takes_the_pipe_from_the_log() -> None:
    view = replace(
        crashing(hosts=None),
        logs={"plugin-win-2": "start\nopen \\\\.\\pipe\\csi-proxy-disk-v1: file not found\ngiving up\n"},
    )
    assert "log: open \\\\.\\pipe\\csi-proxy-disk-v1: file not found; pipe csi-proxy-disk-v1 is missing" in text(
        of(view)
    )


def test_a_crash_loop_of_a_denied_pipe_is_no_missing_pipe() -> None:
    log = "open \\\\.\\pipe\\csi-proxy-disk-v1: Access is denied.\ngiving up\n"
    found = of(replace(crashing(hosts=None), logs={"plugin-win-2": log}))
    assert "host win-2 denies the plugin access to pipe csi-proxy-disk-v1" in text(found)
    assert "missing" not in text(found)
    assert any("runAsUserName" in problem.remedy for problem in found.problems)


def test_a_crash_loop_for_another_reason_points_to_the_log() -> None:
    assert "logs plugin-win-2 -c vsphere-csi-node --previous" in text(of(crashing()))


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    pulling = container(ready=False, started_at=None, waiting="ImagePullBackOff", waiting_message='Back-off "x/y:1"')
    found = of(win2(pods=pod("win-2", ready=False, ready_since=None, containers=(pulling,))))
    assert found.verdict == "waiting"
    assert 'vsphere-csi-node has no image (ImagePullBackOff): Back-off "x/y:1"' in text(found)


def test_a_pod_without_a_node_has_the_reason() -> None:
    unscheduled = pod("win-2", ready=False, ready_since=None, containers=(), not_scheduled="Insufficient cpu")
    assert "not scheduled: Insufficient cpu" in text(of(win2(pods=unscheduled)))


def test_pods_that_were_refused_show_the_servers_words() -> None:
    refused = EventFacts(
        "DaemonSet",
        "vsphere-csi-node-windows",
        "FailedCreate",
        'pods "x" is forbidden: violates PodSecurity',
        ago(5).timestamp(),
    )
    view = picture(daemon_set=daemon_set(current=0, ready=0), pods=(), registrations={}, events=(refused,))
    found = of(view)
    assert "no plugin pod (0 of 2 pods exist); FailedCreate:" in text(found)
    assert "kubectl label namespace vmware-system-csi pod-security.kubernetes.io/enforce=privileged" in text(found)


def test_a_second_provider_is_red() -> None:
    found = of(picture(other_providers={"win-2": ["kube-system/other"]}))
    assert found.verdict == "red"
    assert "kube-system/other" in text(found)


def test_while_a_pod_is_replaced_the_new_one_counts() -> None:
    old, new = pod("win-2", name="old", deleting=True), pod("win-2", name="new")
    view = picture(pods=(pod("win-1"), old, new))
    assert of(view).verdict == "green"
    assert of(view).pod == "new"


def test_a_cordoned_node_is_evaluated_and_reported() -> None:
    cordoned = node("win-2", cordoned=True, taints=(Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),))
    found = of(win2(nodes=cordoned))
    assert found.verdict == "green"
    assert "cordoned" in found.notes[0]


def test_without_pipes_in_the_pod_no_host_is_needed() -> None:
    assert evaluate(picture(daemon_set=daemon_set(pipes=()), hosts={}), RULES).verdict == "green"


def test_a_node_that_is_not_proven_is_listed_with_the_reason() -> None:
    outside = node("win-3", labels={"kubernetes.io/os": "windows"})
    evaluation = evaluate(picture(nodes=(*picture().nodes, outside)), RULES)
    assert evaluation.verdict == "green"
    assert evaluation.skipped_nodes == (
        ("win-3", "no plugin pod: label kubewin.io/csi-proxy is missing, expected serving"),
    )


def test_only_this_runs_nodes_are_evaluated_and_the_others_reported() -> None:
    view = win2(hosts=host("win-2", serving=False, pipes=()))
    evaluation = evaluate(view, GateRules(only=frozenset({"win-1", "win-9"})))
    assert evaluation.verdict == "green"
    assert [one.node for one in evaluation.nodes] == ["win-1"]
    assert evaluation.skipped_nodes[0] == ("win-9", "the Node does not exist")
    assert evaluation.skipped_nodes[1][0] == "win-2"
    assert evaluation.skipped_nodes[1][1].startswith("not in this run; red: host win-2 does not serve pipe")


def test_a_node_of_this_run_that_gets_no_pod_is_red() -> None:
    outside = node("win-2", labels={"kubernetes.io/os": "windows"})
    evaluation = evaluate(win2(nodes=outside), GateRules(only=frozenset({"win-1", "win-2"})))
    assert evaluation.verdict == "red"
    (problem,) = [problem for problem in evaluation.nodes[1].problems if problem.id == "CSI-G03"]
    assert problem.remedy == "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
    elsewhere = node("win-2", labels={"kubewin.io/csi-proxy": "serving"})
    evaluation = evaluate(win2(nodes=elsewhere), GateRules(only=frozenset({"win-2"})))
    remedies = [problem.remedy for found in evaluation.nodes for problem in found.problems if problem.id == "CSI-G03"]
    assert [remedy.partition("; kubectl -n ")[0] for remedy in remedies] == ["kubectl describe node win-2"]


@pytest.mark.parametrize(("allowed", "verdict"), [(False, "red"), (True, "green")])
def test_no_node_at_all_fails_unless_allowed(allowed: bool, verdict: str) -> None:
    evaluation = evaluate(picture(nodes=()), GateRules(allow_zero_nodes=allowed))
    assert evaluation.verdict == verdict
    assert [problem.id for problem in evaluation.problems] == ([] if allowed else ["CSI-G01"])


def test_no_daemon_set_is_red() -> None:
    evaluation = evaluate(picture(daemon_set=None), RULES)
    assert evaluation.verdict == "red"
    assert evaluation.problems[0].id == "CSI-G02"


def test_a_daemon_set_that_its_controller_has_not_observed_is_waited_for() -> None:
    evaluation = evaluate(picture(daemon_set=daemon_set(processed=False)), RULES)
    assert evaluation.verdict == "waiting"
    assert not evaluation.settled


def test_the_fingerprint_changes_with_the_verdict_and_not_with_numbers() -> None:
    first = of(crashing())
    later = of(replace(crashing(), logs={"plugin-win-2": "more"}))
    assert first.fingerprint == later.fingerprint
    assert first.fingerprint != of(picture()).fingerprint


def test_a_volume_proven_on_a_node_replaces_reading_its_host() -> None:
    proven = GateRules(proven=frozenset({"win-2"}))
    unseen = of(win2(hosts=None), rules=proven)
    assert (unseen.verdict, unseen.notes) == (
        "green",
        ("not everything was read on the host; a volume was proven there",),
    )
    assert of(win2(hosts=None), rules=GateRules(proven=frozenset({"win-1"}))).verdict == "unproven"


def test_facts_of_a_host_outrank_an_earlier_proof() -> None:
    proven = GateRules(proven=frozenset({"win-2"}))
    assert of(win2(hosts=host("win-2", serving=False, state="STOPPED", pipes=[])), rules=proven).verdict == "red"
    assert of(win2(registrations=None, hosts=None), rules=proven).verdict == "waiting"
    assert of(win2(), rules=proven).notes == ()


def test_the_work_for_each_node_does_not_grow_with_their_number() -> None:
    names = {count: [f"win-{number}" for number in range(count)] for count in (FEW, MANY)}
    pictures = {
        count: picture(
            nodes=[node(name) for name in chosen],
            pods=[pod(name) for name in chosen],
            registrations={name: registration(name) for name in chosen},
            hosts={name: host(name) for name in chosen},
        )
        for count, chosen in names.items()
    }
    assert is_linear(lambda count: evaluate(pictures[count], GateRules()))
