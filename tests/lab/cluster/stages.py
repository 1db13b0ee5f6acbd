# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What KWOK does with nodes and pods: the Stage objects of the lab.

Nothing here beats by itself, so an idle cluster writes nothing. Pods that the kubelet stand-in answers for (node
plugins, pods with claims, and pods whose image cannot be pulled) are left to it. Switches, as annotations on the object:

- `lab/ready-delay`: a duration ("1.5s") before a pod becomes Ready
- `lab/state`: `crash` or `notready` keeps a pod there
- `lab/hold-delete`: a deleted pod stays terminating
- `lab/log`: a line that the containers of a node plugin log besides
- `lab/notready` on a Node makes it NotReady
"""

from __future__ import annotations

from typing import Any

import yaml

BAD_IMAGE = ":nosuchtag$"
_NOW = "{{ $now := Now }}"
_CONDITIONS = """
conditions:
- {{type: Initialized, status: "True", lastTransitionTime: {{{{ $now | Quote }}}}}}
- {{type: PodReadyToStartContainers, status: "True", lastTransitionTime: {{{{ $now | Quote }}}}}}
- {{type: Ready, status: "{ready}", reason: {reason}, lastTransitionTime: {{{{ $now | Quote }}}}}}
- {{type: ContainersReady, status: "{ready}", reason: {reason}, lastTransitionTime: {{{{ $now | Quote }}}}}}
"""
_CONTAINERS = """
containerStatuses:
{{ $old := .status.containerStatuses }}
{{ range $i, $c := .spec.containers }}
{{ $restarts := 0 }}
{{ if $old }}{{ $restarts = (index $old $i).restartCount | int }}{{ end }}
- name: {{ $c.name | Quote }}
  image: {{ $c.image | Quote }}
  imageID: {{ printf "lab://%s" $c.image | Quote }}
  containerID: {{ printf "containerd://%s" $c.name | Quote }}
  ready: READY
  started: READY
  restartCount: {{ add $restarts BUMP }}
STATE
{{ end }}
"""
_ADDRESSES = """
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
hostIPs: [{ip: {{ NodeIPWith .spec.nodeName | Quote }}}]
{{ $meta := .metadata }}
podIP: {{ PodIPWith .spec.nodeName (or .spec.hostNetwork false) $meta.uid $meta.name $meta.namespace | Quote }}
phase: Running
startTime: {{ or .status.startTime $now | Quote }}
"""
_RUNNING = "  state: {running: {startedAt: {{ $now | Quote }}}}"
_CRASHED = """  state: {waiting: {reason: CrashLoopBackOff, message: "back-off 5m0s restarting failed container"}}
  lastState:
    terminated: {exitCode: 1, reason: Error, startedAt: {{ $now | Quote }}, finishedAt: {{ $now | Quote }}}"""
_NODE_CONDITIONS = """
conditions:
- type: Ready
  status: "%s"
  reason: %s
  message: %s
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
"""

Match = tuple[str, str, list[str]]


def _containers(ready: str, state: str, bump: int) -> str:
    return _CONTAINERS.replace("READY", ready).replace("BUMP", str(bump)).replace("STATE", state)


def _annotation(name: str) -> str:
    return f'.metadata.annotations["lab/{name}"]'


def _stage(
    name: str,
    kind: str,
    matches: list[Match],
    template: str = "",
    *,
    delay: int = 0,
    delay_from: str = "",
    **following: Any,
) -> dict[str, Any]:
    expressions: list[dict[str, Any]] = []
    for expression, operator, values in matches:
        expressions.append({"jq": {"key": expression, "operator": operator, **({"values": values} if values else {})}})
    spec: dict[str, Any] = {
        "resourceRef": {"apiGroup": "v1", "kind": kind},
        "selector": {"matchExpressions": expressions},
        "next": dict(following),
    }
    if template:
        spec["next"]["patches"] = [
            {"subresource": "status", "root": "status", "type": "strategic", "template": template}
        ]
    spec["delay"] = {"durationMilliseconds": delay}
    if delay_from:
        spec["delay"]["durationFrom"] = {"jq": {"expression": delay_from}}
    return {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage", "metadata": {"name": name}, "spec": spec}


_ALIVE: Match = (".metadata.deletionTimestamp", "DoesNotExist", [])
_NOT_PLUGIN: Match = ('.spec.containers[]?.image | select(test("csi-node-driver-registrar"))', "DoesNotExist", [])
_NO_PIPES: Match = (
    r'.spec.volumes[]?.hostPath.path | select(. != null) | select(test("csi-proxy-"))',
    "DoesNotExist",
    [],
)
# What kubelets cannot run before it is mounted is the stand-in's, from its start to its deletion.
_NO_CLAIMS: Match = (".spec.volumes[]?.persistentVolumeClaim | select(. != null) | .claimName", "DoesNotExist", [])
_PULLABLE: Match = (f'.spec.containers[]?.image | select(test("{BAD_IMAGE}"))', "DoesNotExist", [])
_OURS = [_ALIVE, _NOT_PLUGIN, _NO_PIPES, _PULLABLE, _NO_CLAIMS]
_NODE_READY = '.status.conditions[]? | select(.type=="Ready") | .status'
_POD_READY = '.status.conditions[]? | select(.type=="Ready" and .status=="{}") | .status'
_WAITING = ".status.containerStatuses[]?.state.waiting.reason"


def stages() -> list[dict[str, Any]]:
    not_ready = _CONDITIONS.format(ready="False", reason="ContainersNotReady")
    backoff = {"type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container"}
    return [
        _stage(
            "pod-ready",
            "Pod",
            [*_OURS, (_POD_READY.format("True"), "DoesNotExist", []), (_annotation("state"), "DoesNotExist", [])],
            _NOW + _CONDITIONS.format(ready="True", reason='""') + _containers("true", _RUNNING, 0) + _ADDRESSES,
            delay_from=_annotation("ready-delay"),
        ),
        _stage(
            "pod-crash-first",
            "Pod",
            [*_OURS, (_annotation("state"), "In", ["crash"]), (_WAITING, "NotIn", ["CrashLoopBackOff"])],
            _NOW + not_ready + _containers("false", _CRASHED, 1) + _ADDRESSES,
            event=backoff,
        ),
        _stage(
            "pod-crash-again",
            "Pod",
            [*_OURS, (_annotation("state"), "In", ["crash"]), (_WAITING, "In", ["CrashLoopBackOff"])],
            _NOW + _containers("false", _CRASHED, 1),
            delay=2000,
        ),
        _stage(
            "pod-notready",
            "Pod",
            [*_OURS, (_annotation("state"), "In", ["notready"]), (_POD_READY.format("False"), "DoesNotExist", [])],
            _NOW + not_ready + _containers("false", _RUNNING, 0) + _ADDRESSES,
        ),
        _stage(
            "pod-delete",
            "Pod",
            [
                (".metadata.deletionTimestamp", "Exists", []),
                (_annotation("hold-delete"), "DoesNotExist", []),
                _NO_CLAIMS,
            ],
            finalizers={"empty": True},
            delete=True,
        ),
        _stage(
            "node-ready",
            "Node",
            [(_NODE_READY, "NotIn", ["True"]), (_annotation("notready"), "DoesNotExist", [])],
            _NOW + _NODE_CONDITIONS % ("True", "KubeletReady", "kubelet is posting ready status"),
        ),
        _stage(
            "node-notready",
            "Node",
            [(_NODE_READY, "In", ["True"]), (_annotation("notready"), "Exists", [])],
            _NOW + _NODE_CONDITIONS % ("False", "KubeletNotReady", "made not ready by the lab"),
        ),
    ]


def render() -> str:
    """The stages as KWOK's configuration file."""
    return yaml.safe_dump_all(stages(), sort_keys=False, width=1000)
