# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pass over a cluster, against a server that speaks HTTP: whole and of one moment, or a clear refusal. Situations need no HTTP."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from datetime import datetime, timezone
from typing import Any

import msgspec
import pytest
from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import client, kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import create_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError, GoneError, UnreachableError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import wire
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.scheduling import PodTable
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import ObservedClaim
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.storage import ObservedVolume
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.workloads import (
    NO_LIMIT,
    ObservedJob,
    ObservedTemplate,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import Reading, take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.terminal import render_brief, render_terminal
from benchmark.apipeer import ApiPeer, Asked, Shelf, Trouble
from benchmark.fleet import OBJECTS, PLUGINS, Fleet
from situations.named import SITUATIONS, Situation, report_of, snapshot_of
from situations.served import Served
from situations.world import observed_pod

FLEET = Fleet(nodes=20, windows=4, pods=450, volumes=150)
SHELVES = FLEET.shelves()
UNDECODED = "name each field that facts/ reads in facts/fields.py, or in wire.py if no table there has its object"
PODS, NODES, VOLUMES = "/api/v1/pods", "/api/v1/nodes", "/api/v1/persistentvolumes"


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of 16, so that few objects make many pages."""
    monkeypatch.setattr(client, "PAGE", 16)


def on(peer: ApiPeer, retry_for: float = 20) -> Snapshot:
    """What the pass makes of a server."""
    return take(create_client(lambda: get_api_client(host=peer.url, api_key="peer"), retry_for))


def whole(path: str) -> list[dict[str, Any]]:
    """Every object of a collection, as in its JSON."""
    shelf = SHELVES[path]
    return [json.loads(shelf.item(number)) for number in range(shelf.count)]


def once(path: str, trouble: Trouble, page: int = 1) -> Callable[[Asked], Trouble | None]:
    """Trouble with one page of a list, one time."""
    return lambda asked: trouble if (asked.path, asked.number) == (path, page) else None


@pytest.fixture(scope="module")
def undisturbed() -> Snapshot:
    with ApiPeer(SHELVES, objects=OBJECTS) as peer:
        return on(peer)


@pytest.fixture
def served() -> Iterator[ApiPeer]:
    with ApiPeer(SHELVES, objects=OBJECTS) as made:
        yield made


def same(found: Snapshot, expected: Snapshot) -> bool:
    """Whether two snapshots differ in nothing but when they were taken."""
    return replace(found, taken_at=expected.taken_at) == expected


def test_a_snapshot_has_the_evaluated_objects_and_none_that_only_linux_uses(undisturbed: Snapshot) -> None:
    nodes = tuple(ObservedNode.from_object(node) for node in whole(NODES))
    windows = {node.name for node in nodes if node.windows}
    pods = [observed_pod(pod) for pod in whole(PODS)]
    on_windows = [pod for pod in pods if pod.node in windows and (pod.volumes.claims or pod.plugin)]
    assert undisturbed.nodes == nodes
    assert undisturbed.volumes == tuple(ObservedVolume.from_object(volume) for volume in whole(VOLUMES))
    assert [replace(pod, shape=-1) for pod in undisturbed.pods] == on_windows
    assert all(undisturbed.shapes[pod.shape].owner == pod.owner for pod in undisturbed.pods)
    assert sum(map(len, undisturbed.pods_on.values())) == len(pods)
    assert len(on_windows) == 30 + FLEET.windows
    used = {f"{pod.namespace}/{name}" for pod in on_windows for name in pod.volumes.claims}
    assert {claim.key for claim in undisturbed.claims} == used
    assert {one.name for one in undisturbed.csi_nodes} == windows
    assert {one.node for one in undisturbed.attachments} == windows
    assert {one.key for one in undisturbed.templates if one.plugin is None} == {
        f"StatefulSet {pod.namespace}/{pod.owner.partition('/')[2]}" for pod in on_windows if pod.plugin is None
    }
    assert [one.observed.name for one in undisturbed.controllers] == ["vsphere-csi-controller"]
    assert [*undisturbed.feature_states] == [f"{PLUGINS}/internal-feature-states.csi.vsphere.vmware.com"]
    assert undisturbed.unread == ()
    assert undisturbed.cluster.kubernetes == "v1.36.3"


def test_what_a_pending_pod_waits_for_is_read() -> None:
    on_windows = (pod for pod in whole(PODS) if pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "windows"})
    pod = next(pod for pod in on_windows if "persistentVolumeClaim" in pod["spec"]["volumes"][0])
    waiting = {"name": "app", "state": {"waiting": {"reason": "ContainerCreating"}}}
    pod["status"] = {"phase": "Pending", "containerStatuses": [waiting]}
    with ApiPeer({**SHELVES, PODS: Shelf.of([pod])}, objects=OBJECTS) as peer:
        (read,) = on(peer).pods
    assert replace(read, shape=-1) == observed_pod(pod)
    assert read.waits == "container app waits: ContainerCreating"


def test_of_pods_that_have_ended_no_shape_is_kept() -> None:
    pod, ended = whole(PODS)[:2]
    ended["status"] = {"phase": "Succeeded"}
    ended["metadata"]["ownerReferences"][0].update(kind="Job", name="backup-29385600")
    with ApiPeer({**SHELVES, PODS: Shelf.of([pod, ended])}, objects=OBJECTS) as peer:
        assert len(on(peer).shapes) == 1


def test_a_replica_set_without_a_controller_is_read_whole() -> None:
    path = "/apis/apps/v1/replicasets"
    owned, alone = whole(path)[:2]
    alone["metadata"] = {"namespace": "team-000", "name": "alone"}
    alone["spec"]["template"]["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    with ApiPeer({**SHELVES, path: Shelf.of([owned, alone])}, objects=OBJECTS) as peer:
        templates = on(peer).templates
    assert ObservedTemplate.from_object("ReplicaSet", alone) in templates


def test_how_many_pods_of_a_job_may_fail_is_read_of_jobs_of_others_without_volumes_too() -> None:
    metadata = {
        "namespace": "team-000",
        "ownerReferences": [{"kind": "CronJob", "name": "nightly", "controller": True}],
    }
    specs: dict[str, dict[str, Any]] = {
        "limited": {"backoffLimit": 3},
        "indexed": {"backoffLimit": 5, "backoffLimitPerIndex": 1},
        "ignoring": {"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}},
        "counting": {"podFailurePolicy": {"rules": []}, "backoffLimit": 6},
        "here": {"managedBy": "kubernetes.io/job-controller"},
        "elsewhere": {"managedBy": "kueue.x-k8s.io/multikueue"},
    }  # fmt: skip
    jobs = [
        {"metadata": {**metadata, "name": name}, "spec": {**spec, "template": {"spec": {}}}}
        for name, spec in specs.items()
    ]
    for job, status in zip(jobs, ({"failed": 2}, {"failed": 1}), strict=False):
        job["status"] = status
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    jobs.append({"metadata": {**metadata, "name": "done"}, "spec": {"backoffLimit": 0}, "status": done})
    with ApiPeer({**SHELVES, "/apis/batch/v1/jobs": Shelf.of(jobs)}, objects=OBJECTS) as peer:
        snapshot = on(peer)
    assert snapshot.jobs == {f"team-000/{job['metadata']['name']}": ObservedJob.from_object(job) for job in jobs}
    assert [job.retries for job in snapshot.jobs.values()] == [1, 4, NO_LIMIT, 0, 6, 0, NO_LIMIT]
    assert not [template for template in snapshot.templates if template.kind == "Job"]


def test_a_large_healthy_cluster_is_ready(undisturbed: Snapshot) -> None:
    hosts = tuple(ObservedHost.from_option(host) for host in FLEET.hosts())
    report = evaluate(replace(undisturbed, hosts=hosts, hosts_at=datetime.now(timezone.utc)))
    assert report.findings == ()
    assert report.verdict == "ready"
    assert (len(report.nodes), len(report.volumes), len(report.workloads)) == (FLEET.windows, 30, 3)


def test_every_list_is_paged_and_shows_one_moment(served: ApiPeer) -> None:
    on(served)
    lists = [asked for asked in served.asked if asked.path in SHELVES]
    assert all(int(asked.query["limit"]) == 16 for asked in lists)
    assert {asked.query.get("resourceVersion") for asked in lists if "continue" not in asked.query} == {None, "1000"}
    assert lists[0].query == {"limit": "16"}
    assert all(asked.query["resourceVersionMatch"] == "Exact" for asked in lists[2:] if "continue" not in asked.query)


def test_progress_can_be_reported_at_any_time() -> None:
    reading = Reading()
    at_volumes: list[str] = []

    def ask(asked: Asked) -> None:
        if (asked.path, asked.number) == (VOLUMES, 2):
            at_volumes.append(str(reading))

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=ask) as peer:
        take(create_client(lambda: get_api_client(host=peer.url, api_key="peer"), 20), reading=reading)
    (reported,) = at_volumes
    # A page is asked for before the one before it is decoded.
    assert reported.endswith(
        ("objects so far, now persistentvolumes (16)", "objects so far, now persistentvolumes (32)")
    )
    before = sum(shelf.count for path, shelf in SHELVES.items() if path in (NODES, PODS))
    assert int(reported.removeprefix("reading the cluster: ").split()[0].replace(",", "")) > before + 16


def test_a_change_during_the_pass_belongs_to_a_later_snapshot(undisturbed: Snapshot) -> None:
    """A node joins, and a pod with a claim is put on it, after the nodes were read and before the pods are."""

    def meanwhile(asked: Asked) -> None:
        if (asked.path, asked.number) == (PODS, 0):
            late = {**whole(NODES)[4], "metadata": {"name": "win-late"}}
            moved = whole(PODS)[0]  # of a StatefulSet
            moved["spec"]["nodeName"] = "win-late"
            peer.change(NODES, Shelf.of([*whole(NODES), late]))
            peer.change(PODS, Shelf.of([moved]))

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=meanwhile) as peer:
        assert same(on(peer), undisturbed)


@pytest.mark.parametrize("path", [NODES, PODS, VOLUMES])
def test_a_moment_that_the_server_forgot_starts_the_pass_again(path: str) -> None:
    """Compaction between two pages: 410. What is read then is of the moment after it."""

    def compact(asked: Asked) -> None:
        if (asked.path, asked.number) == (path, 1):
            peer.change(VOLUMES, Shelf.of(whole(VOLUMES)[:3]))
            peer.compact()

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=compact) as peer:
        found = on(peer)
    assert len(found.volumes) == 3
    assert len(found.nodes) == FLEET.nodes


def test_a_server_that_forgets_again_and_again_is_refused() -> None:
    def compact(asked: Asked) -> None:
        if asked.path == PODS and "continue" in asked.query:
            peer.compact()

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=compact) as peer:
        with pytest.raises(GoneError, match="expired the list 3 times") as raised:
            on(peer)
        assert sum(asked.path == NODES and "continue" not in asked.query for asked in peer.asked) == 3
    assert raised.value.reason == "gone"


def test_pages_of_two_moments_are_not_put_together(undisturbed: Snapshot) -> None:
    """A proxy in front of two servers may mix them up, here once; the resourceVersion shows it."""

    class Mixed(ApiPeer):
        done = False

        def _list(self, handler: Any, path: str, query: Any, cut: bool) -> None:
            if path == PODS and "continue" in query and not self.done:
                self.done = True
                query = {"limit": query["limit"]}
                self.change(PODS, SHELVES[PODS])
            super()._list(handler, path, query, cut)

    with Mixed(SHELVES, objects=OBJECTS) as peer:
        assert same(on(peer), undisturbed)
        assert sum(asked.path == NODES and "continue" not in asked.query for asked in peer.asked) == 2


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(429, retry_after=0),
        Trouble(500),
        Trouble(503),
        Trouble(cut=True),
    ],
    ids=["429", "500", "503", "the connection breaks in the middle of a page"],
)
@pytest.mark.parametrize("path", [NODES, PODS])
def test_a_failing_page_is_retried(path: str, trouble: Trouble, undisturbed: Snapshot) -> None:
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=once(path, trouble)) as peer:
        assert same(on(peer), undisturbed)


def test_a_page_whose_answer_is_lost_is_retried(monkeypatch: pytest.MonkeyPatch, undisturbed: Snapshot) -> None:
    monkeypatch.setattr(client, "SILENCE", 0.5)
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=once(PODS, Trouble(delay=5))) as peer:
        assert same(on(peer, retry_for=1), undisturbed)


def test_a_slow_page_is_waited_for_until_the_timeout(monkeypatch: pytest.MonkeyPatch, undisturbed: Snapshot) -> None:
    monkeypatch.setattr(client, "SILENCE", 0.2)
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=once(PODS, Trouble(delay=0.6))) as peer:
        assert same(on(peer, retry_for=2), undisturbed)
        assert sum(asked.path == PODS for asked in peer.asked) == -(-SHELVES[PODS].count // 16)


def test_a_storm_of_429_is_waited_out(undisturbed: Snapshot) -> None:
    def storm(asked: Asked) -> Trouble | None:
        return Trouble(429, retry_after=0) if asked.number % 3 and asked.path == PODS else None

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=storm) as peer:
        assert same(on(peer), undisturbed)
        assert sum(asked.path == PODS for asked in peer.asked) > 20


def test_a_storm_that_does_not_end_is_refused() -> None:
    def storm(asked: Asked) -> Trouble | None:
        return Trouble(429, retry_after=1) if asked.path == PODS and asked.number else None

    refused = pytest.raises(ClusterError, match=r"list all pods: 429.*api_timeout")
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=storm) as peer, refused as raised:
        on(peer, retry_for=2)
    assert raised.value.reason == "too_many_requests"


def test_a_page_that_never_arrives_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "SILENCE", 0.3)

    def slow(asked: Asked) -> Trouble | None:
        return Trouble(delay=3) if asked.path == PODS and asked.number else None

    refused = pytest.raises(UnreachableError, match=r"list all pods.*only slow, raise api_timeout")
    with refused, ApiPeer(SHELVES, objects=OBJECTS, trouble=slow) as peer:
        on(peer, retry_for=0.5)


def test_an_answer_of_another_server_is_refused() -> None:
    class Portal(ApiPeer):
        def _list(self, handler: Any, path: str, query: Any, cut: bool) -> None:
            body = b"<html>please log in</html>"
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

    with Portal(SHELVES, objects=OBJECTS) as peer, pytest.raises(ClusterError, match="Check host and proxy"):
        on(peer)


def test_a_forbidden_list_is_reported_with_the_rule_to_add() -> None:
    def forbid(asked: Asked) -> Trouble | None:
        return Trouble(403, "volumeattachments is forbidden") if asked.path.endswith("/volumeattachments") else None

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=forbid) as peer:
        found = on(peer)
    assert [(one.resource, one.rule) for one in found.unread] == [
        ("volumeattachments", '{apiGroups: ["storage.k8s.io"], resources: ["volumeattachments"], verbs: ["list"]}')
    ]
    assert found.attachments == ()
    assert len(found.volumes) == FLEET.volumes


@pytest.mark.parametrize("path", [PODS, "/apis/apps/v1/statefulsets"])
def test_with_a_list_unread_nothing_is_omitted_as_linux(path: str) -> None:
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=lambda asked: Trouble(403) if asked.path == path else None) as peer:
        found = on(peer)
    assert len(found.claims) == FLEET.volumes
    assert len(found.attachments) == FLEET.volumes


def test_without_nodes_nothing_is_omitted_as_linux() -> None:
    def forbid(asked: Asked) -> Trouble | None:
        return Trouble(403) if asked.path == NODES else None

    with ApiPeer(SHELVES, objects=OBJECTS, trouble=forbid) as peer:
        found = on(peer)
    assert len(found.csi_nodes) == FLEET.nodes
    assert len(found.attachments) == FLEET.volumes
    assert [one.resource for one in found.unread] == ["nodes"]


LISTS = {
    NODES: wire.NodeList,
    PODS: wire.PodList,
    VOLUMES: wire.VolumeList,
    "/apis/apps/v1/daemonsets": wire.TemplateList,
    "/apis/apps/v1/statefulsets": wire.TemplateList,
}
FACTS: dict[Any, Callable[[Any], Any]] = {
    wire.NodeList: ObservedNode.from_object,
    wire.PodList: observed_pod,
    wire.VolumeList: ObservedVolume.from_object,
    wire.TemplateList: lambda item: ObservedTemplate.from_object("DaemonSet", item),
}


CLAIM = {
    "storageClassName": "disks",
    "accessModes": ["ReadWriteOnce"],
    "volumeMode": "Block",
    "resources": {"requests": {"storage": "10Gi"}, "limits": {"storage": "20Gi"}},
    "selector": {"matchLabels": {"tier": "gold"}},
    "dataSource": {"kind": "VolumeSnapshot", "name": "monday"},
    "volumeAttributesClassName": "fast",
}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
POD = {
    "schedulerName": "own",
    "schedulingGates": [{"name": "example.com/quota"}],
    "nodeName": "win-1",
    "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
    "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}],
    "topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 1}],
    "containers": [{"ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}],
}
# Objects with everything that placing a pod depends on, and what each list decodes them into.
PLACED: dict[str, tuple[Any, Callable[[Any], Any], dict[str, Any]]] = {
    "a volume": (
        wire.VolumeList,
        ObservedVolume.from_object,
        {
            "metadata": {
                "name": "pv",
                "labels": {
                    "topology.kubernetes.io/zone": "a",
                    "failure-domain.beta.kubernetes.io/region": "r",
                    "x": "y",
                },
                "annotations": {"volume.beta.kubernetes.io/storage-class": "old"},
            },
            "spec": {
                "claimRef": {"namespace": "shop", "name": "data", "uid": "1-2"},
                "capacity": {"storage": "10Gi"},
                "volumeAttributesClassName": "fast",
                "nodeAffinity": {"required": {"nodeSelectorTerms": [TERM]}},
            },
        },
    ),
    "a claim": (
        wire.ClaimList,
        ObservedClaim.from_object,
        {
            "metadata": {
                "namespace": "shop",
                "name": "data",
                "annotations": {"volume.beta.kubernetes.io/storage-class": "old"},
            },
            "spec": {**CLAIM, "volumeName": "pv"},
        },
    ),
    "a StatefulSet": (
        wire.TemplateList,
        lambda item: ObservedTemplate.from_object("StatefulSet", item),
        {
            "metadata": {"namespace": "shop", "name": "db"},
            "spec": {
                "template": {"spec": POD},
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": CLAIM}],
            },
        },
    ),
    "a shape": (
        wire.make_brief_pod_list(),
        lambda pod: PodTable().add(pod)[0],
        {"metadata": {"namespace": "shop", "name": "db-0"}, "spec": POD},
    ),
    "a pod": (wire.PodList, observed_pod, {"metadata": {"namespace": "shop", "name": "db-0"}, "spec": POD}),
}


@pytest.mark.parametrize("case", PLACED)
def test_decoding_loses_nothing_that_placing_a_pod_depends_on(case: str) -> None:
    shape, facts, whole_object = PLACED[case]
    projected: Any = msgspec.json.decode(json.dumps({"metadata": {}, "items": [whole_object]}), type=shape)["items"]
    read = facts(whole_object)
    assert facts(projected[0]) == read
    empty = facts({"metadata": whole_object["metadata"]})
    same_field = {one.name for one in fields(read) if getattr(read, one.name) == getattr(empty, one.name)}
    # What is in the object is in the fact, too.
    given = {
        "a volume": {"claim_uid", "size", "attributes_class", "terms"},
        "a claim": {"access_modes", "block", "size", "narrowed"},
        "a StatefulSet": {"node", "placement", "volumes", "claim_templates"},
        "a shape": {"placement", "spread", "ports", "requests"},
        "a pod": {"node", "placement", "volumes"},
    }
    assert not given[case] & same_field


def test_decoding_keeps_variables_with_the_socket_of_a_node_plugin() -> None:
    registrar = {
        "name": "registrar",
        "args": ["--kubelet-registration-path=$(ROOT)\\plugins\\csi.example.com\\csi.sock"],
        "env": [{"name": "ROOT", "value": "C:\\var\\lib\\kubelet"}, {"name": "NODE", "valueFrom": {"fieldRef": {}}}],
    }
    plugin = {
        "metadata": {"namespace": "csi", "name": "node"},
        "spec": {"template": {"spec": {"containers": [registrar]}}},
    }
    text = json.dumps({"metadata": {}, "items": [plugin]})
    decoded: Any = msgspec.json.decode(text, type=wire.TemplateList)
    (projected,) = decoded["items"]
    found = FACTS[wire.TemplateList](projected)
    assert found == FACTS[wire.TemplateList](plugin)
    assert found.plugin.registered_folders == ("csi.example.com",)


@pytest.mark.parametrize("path", LISTS)
def test_decoding_only_what_is_read_loses_nothing(path: str) -> None:
    objects = whole(path)
    shape = LISTS[path]
    projected: Any = msgspec.json.decode(json.dumps({"metadata": {}, "items": objects}), type=shape)["items"]
    facts = FACTS[shape]
    assert [facts(one) for one in projected] == [facts(one) for one in objects], UNDECODED


def test_the_number_of_requests_follows_the_pages(served: ApiPeer) -> None:
    on(served)
    # What a client asks when it connects is left out: it keeps the answers for each address, and ports come back.
    lists = [asked for asked in served.asked if asked.path in SHELVES]
    assert len(lists) == sum(max(1, -(-shelf.count // 16)) for shelf in SHELVES.values())
    others = [asked.path for asked in served.asked if asked.path not in SHELVES]
    assert others.count(STATES) == 1
    assert {*others} <= {"/version", "/api", "/apis", STATES}


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_a_situation_read_from_a_server_is_evaluated_as_it_is_on_paper(planted: Situation) -> None:
    """Decoding only what is read, and leaving out what is on Linux, change nothing in any report."""
    world = planted.world()
    expected = snapshot_of(planted.name)
    found = replace(take(client.Client(Served(world))), name="lab", taken_at=world.now, hosts_at=world.now)
    # Of what may not be read, a world has only the resources.
    assert [one.resource for one in found.unread] == [one.resource for one in world.unread]
    hosts = tuple(ObservedHost.from_option(one) for one in world.hosts)
    report = evaluate(replace(found, hosts=hosts, unread=expected.unread), planted.target)
    assert report.as_dict() == report_of(planted.name).as_dict(), UNDECODED


STATES = kinds.CONFIG_MAP.path(PLUGINS, "internal-feature-states.csi.vsphere.vmware.com")


@pytest.mark.parametrize("path", [*SHELVES, STATES])
def test_a_forbidden_object_is_never_called_absent(path: str) -> None:
    """Nothing is wrong with this cluster: whatever is found besides what could not be read is made up."""
    with ApiPeer(SHELVES, objects=OBJECTS, trouble=lambda asked: Trouble(403) if asked.path == path else None) as peer:
        found = on(peer)
    if not found.unread:
        # A list that is asked for only where a pod's template is in doubt.
        assert path.endswith("/controllerrevisions")
        return
    hosts = tuple(ObservedHost.from_option(host) for host in FLEET.hosts())
    report = evaluate(replace(found, hosts=hosts, hosts_at=datetime.now(timezone.utc)))
    assert report.verdict == "unknown"
    assert [one for one in report.findings if not one.doubt] == []
    reported = render_terminal(report) + "\n".join(render_brief(report))
    assert not re.search(r"\b0 of [1-9]|does not exist|not there|no volume|no workload", reported, re.IGNORECASE)


def test_a_configmap_outside_the_listed_namespaces_is_read_too() -> None:
    with ApiPeer(
        SHELVES, objects=OBJECTS, trouble=lambda asked: Trouble(403) if asked.path.endswith("/namespaces") else None
    ) as peer:
        found = on(peer)
    assert found.feature_states[f"{PLUGINS}/internal-feature-states.csi.vsphere.vmware.com"] is not None
