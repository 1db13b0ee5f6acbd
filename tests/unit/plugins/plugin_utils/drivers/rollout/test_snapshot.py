# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading the API's JSON, with everything absent that may be absent."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import (
    EventFacts,
    ObservedHost,
    Registration,
    find_revision_hash,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.daemon_set import ObservedDaemonSet
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.times import parse_time
from unit.plugins.plugin_utils.drivers.rollout.pictures import daemon_set, pod

AT = datetime(2026, 11, 20, 23, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T23:00:00Z", AT),
        ("2026-11-20T23:00:00", AT),
        ("2026-11-20T23:00:00.000000Z", AT),
        ("", None),
        ("x", None),
        (None, None),
    ],
)
def test_times(text: Any, expected: datetime | None) -> None:
    assert parse_time(text) == expected


def test_a_bare_node() -> None:
    facts = ObservedNode.from_object({"metadata": {"name": "n"}})
    assert (facts.ready, facts.not_ready_because, facts.taints, facts.node_ids) == (False, "no Ready condition", (), {})


@pytest.mark.parametrize("annotation", ["no json", "[]", "{}"])
def test_an_annotation_that_is_no_map_names_no_driver(annotation: str) -> None:
    node = {"metadata": {"name": "n", "annotations": {"csi.volume.kubernetes.io/nodeid": annotation}}}
    assert ObservedNode.from_object(node).node_ids == {}


def test_a_full_node() -> None:
    facts = ObservedNode.from_object(
        {
            "metadata": {"name": "n", "annotations": {"csi.volume.kubernetes.io/nodeid": '{"d": "id"}'}},
            "spec": {"unschedulable": True, "taints": [{"key": "os", "value": "Windows", "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "M"}]},
        }
    )
    assert facts.node_ids == {"d": "id"}
    assert facts.cordoned
    assert not facts.ready
    assert facts.not_ready_because == "R M"
    assert facts.taints[0].value == "Windows"


def test_registrations() -> None:
    csi_node = {
        "metadata": {"managedFields": [{"time": "2026-11-20T22:00:00Z"}, {"time": "2026-11-20T23:00:00Z"}, {}]},
        "spec": {"drivers": [{"name": "d", "nodeID": "id", "topologyKeys": None}]},
    }
    assert Registration.from_object(csi_node, "d") == Registration("id", (), AT)
    assert Registration.from_object(csi_node, "absent") is None
    assert Registration.from_object({"metadata": {}, "spec": {"drivers": None}}, "d") is None


def test_a_pod_that_waits_for_the_scheduler_belongs_to_the_node_of_its_affinity() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["win-1"]}]}
    pod = {
        "metadata": {"name": "p"},
        "spec": {
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            }
        },
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "why"}]},
    }
    facts = PodFacts.from_object(pod)
    assert (facts.node, facts.not_scheduled, facts.ready) == ("win-1", "why", False)


def test_a_crashed_container_has_its_last_exit() -> None:
    status = {
        "name": "c",
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 255, "reason": "Error", "finishedAt": "2026-11-20T23:00:00Z"}},
    }
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}, "status": {"containerStatuses": [status]}}
    facts = PodFacts.from_object(pod)
    assert facts.containers[0].exit_code == 255
    assert facts.containers[0].waiting == "CrashLoopBackOff"
    assert facts.last_restart == AT
    assert facts.started_at is None


@pytest.mark.parametrize(
    "path", [r"\\.\pipe\csi-proxy-disk-v1", r"\\.\PIPE\CSI-Proxy-disk-v1", r"\\.\\pipe\\csi-proxy-disk-v1"]
)
def test_pipes_of_a_daemon_set_are_bare_names_however_they_are_written(path: str) -> None:
    volumes = [{"name": "a", "hostPath": {"path": path}}, {"name": "b", "emptyDir": {}}]
    daemon_set = {
        "metadata": {"namespace": "x", "name": "d", "generation": 2},
        "spec": {"template": {"spec": {"volumes": volumes}}},
        "status": {"observedGeneration": 1},
    }
    facts = ObservedDaemonSet.from_object(daemon_set)
    assert facts.pipes == ("csi-proxy-disk-v1",)
    assert not facts.processed


def test_an_event_takes_the_newest_time_it_has() -> None:
    event = {"involvedObject": {"kind": "Pod", "name": "p"}, "series": {"lastObservedTime": "2026-11-20T23:00:00Z"}}
    assert EventFacts.from_object(event).last_seen == AT.timestamp()
    assert EventFacts.from_object({"eventTime": "2026-11-20T23:00:00Z"}).last_seen == AT.timestamp()
    assert EventFacts.from_object({}).last_seen == 0


def test_host_facts_distinguish_no_pipes_from_unknown_pipes() -> None:
    assert ObservedHost.from_option({"node": "n", "pipes": []}).pipes == ()
    assert ObservedHost.from_option({"node": "n", "pipes": None}).pipes is None
    assert ObservedHost.from_option({"node": "n"}).serving is None


TEMPLATE: dict[str, Any] = {"spec": {"containers": [{"name": "driver", "image": "driver:2"}]}}


def keeping(name: str, template: dict[str, Any], number: int, owner: str = "u1") -> dict[str, Any]:
    """A ControllerRevision as the DaemonSet controller writes it, with nulls where the API has nothing."""
    labels = {"controller-revision-hash": name}
    kept = {"$patch": "replace", **template, "metadata": {"creationTimestamp": None}}
    metadata = {"name": f"plugin-{name}", "labels": labels, "ownerReferences": [{"uid": owner}]}
    return {"metadata": metadata, "revision": number, "data": {"spec": {"template": kept}}}


def of_template(template: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "d", "name": "plugin", "uid": "u1"}
    return {"metadata": metadata, "spec": {"template": {"metadata": {}, **template}}}


def test_a_template_is_found_by_what_it_holds_and_not_by_its_number() -> None:
    other = {"spec": {"containers": [{"name": "driver", "image": "driver:1"}]}}
    revisions = [keeping("old", other, 1), keeping("new", TEMPLATE, 2), keeping("theirs", TEMPLATE, 3, owner="u2")]
    assert find_revision_hash(of_template(TEMPLATE), revisions) == "new"
    assert find_revision_hash(of_template(other), revisions) == "old"
    assert find_revision_hash(of_template({"spec": {"containers": []}}), revisions) == ""


def test_a_pod_of_a_restored_template_is_not_replaced() -> None:
    back = daemon_set(template_generation="3", revision="old")
    assert not back.is_current(pod("win-1", template_generation="3", revision="new"))
    assert back.is_current(pod("win-1", template_generation="1", revision="old"))
    assert not back.is_current(pod("win-1", template_generation="2", revision="new"))
    # Without a known revision, the generation counts.
    assert not daemon_set(template_generation="3", revision="").is_current(
        pod("win-1", template_generation="1", revision="old")
    )
