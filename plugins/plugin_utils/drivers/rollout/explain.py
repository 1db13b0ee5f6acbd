# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a plugin pod is not there or not Ready, from its status, events and log. Pure; only wording is decided here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...kube.daemon_set import ObservedDaemonSet
from ...kube.pod import ContainerFacts, PodFacts
from .snapshot import EventFacts, RolloutPicture

_PIPE = re.compile(r"csi-proxy-[a-z]+-v\d+(?:(?:alpha|beta)\d+)?")
# go-winio's words, which Go asks Windows for in English.
_DENIED_PIPE = re.compile(r"(csi-proxy-[a-z]+-v\w+): Access is denied")
_IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
_MAX = 300

# csi-proxy listens with the default access list of its account: https://github.com/kubernetes-csi/csi-proxy, pkg/server/server.go
ALLOW_PIPES = (
    "Its containers must run as ContainerAdministrator, and csi-proxy as LocalSystem: ansible-playbook -i inventory.yml "
    "kubewin.csi.enable_csi sets both. Compare: kubectl get daemonsets -A -o yaml | grep runAsUserName, and on the host: sc.exe qc csi-proxy"
)


def explain_missing_pod(daemon_set: ObservedDaemonSet, picture: RolloutPicture) -> tuple[str, str]:
    """Message and remedy for a node that has no plugin pod at all."""
    refused = _find_latest(
        event for event in picture.events if event.kind == "DaemonSet" and event.reason == "FailedCreate"
    )
    numbers = f"{daemon_set.current} of {daemon_set.desired} pods exist"
    if refused is not None and daemon_set.current < daemon_set.desired:
        remedy = f"kubectl -n {daemon_set.namespace} describe daemonset {daemon_set.name}"
        if "violates PodSecurity" in refused.message:
            remedy = (
                f"kubectl label namespace {daemon_set.namespace} "
                f"pod-security.kubernetes.io/enforce=privileged --overwrite"
            )
        return f"no plugin pod ({numbers}); FailedCreate: {_shorten(refused.message)}", remedy
    return f"no plugin pod yet ({numbers})", "check that kube-controller-manager runs"


def explain_pod(daemon_set: ObservedDaemonSet, picture: RolloutPicture, pod: PodFacts) -> tuple[str, str]:
    """Message and remedy for a pod that is not Ready."""
    namespace = daemon_set.namespace
    describe = f"kubectl -n {namespace} describe pod {pod.name}"
    if pod.not_scheduled:
        return f"pod {pod.name} is not scheduled: {_shorten(pod.not_scheduled)}", describe
    event = _find_latest(
        candidate for candidate in picture.events if candidate.kind == "Pod" and candidate.name == pod.name
    )
    log = picture.logs.get(pod.name, "")
    pipes = _find_missing_pipes(daemon_set.pipes, picture, pod, event, log)
    pulling = next((container for container in pod.containers if container.waiting in _IMAGE_REASONS), None)
    if pulling is not None:
        text = _shorten(pulling.waiting_message or (event.message if event else ""))
        return (
            f"pod {pod.name}: container {pulling.name} has no image ({pulling.waiting}): {text}",
            "check registry, tag and pull secret; the image options and image_mirror set them",
        )
    bad = next(
        (
            container
            for container in pod.containers
            if container.waiting or (not container.ready and container.exit_code is not None)
        ),
        None,
    )
    if bad is not None:
        message = f"pod {pod.name}: container {bad.name} {_describe_container(bad)}"
        if event is not None and event.reason in ("Failed", "FailedMount", "FailedCreatePodSandBox"):
            message += f"; {event.reason}: {_shorten(event.message)}"
        last = _find_pipe_line(log)
        if last:
            message += f"; log: {last}"
        denied = find_denied_pipe(f"{message} {log}")
        if denied:
            return f"{message}; host {pod.node} denies the plugin access to pipe {denied}", ALLOW_PIPES
        if pipes:
            message += f"; pipe {', '.join(pipes)} is missing on {pod.node}"
            return message, "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
        return message, f"kubectl -n {namespace} logs {pod.name} -c {bad.name} --previous"
    if event is not None:
        return f"pod {pod.name} is {pod.phase or 'new'}: {event.reason}: {_shorten(event.message)}", describe
    return f"pod {pod.name} is {pod.phase or 'new'}, not Ready yet", describe


def find_denied_pipe(text: str) -> str:
    """The pipe of csi-proxy that a node plugin may not open, empty if the text names none."""
    match = _DENIED_PIPE.search(text)
    return match[1] if match else ""


def explain_registration(picture: RolloutPicture, pod: PodFacts | None) -> str:
    """What the registrar's log says of a Ready pod that is not registered; empty when nothing."""
    if pod is None or not pod.ready:
        return ""
    last = _find_pipe_line(picture.logs.get(pod.name, ""))
    return f"registrar log: {last}" if last else ""


def _find_missing_pipes(
    mounted: Sequence[str], picture: RolloutPicture, pod: PodFacts, event: EventFacts | None, log: str
) -> list[str]:
    texts = [container.waiting_message for container in pod.containers] + [
        container.ended_because for container in pod.containers
    ]
    texts += [event.message if event else "", log]
    missing_pipes = [pipe for text in texts for pipe in _PIPE.findall(text)]
    host = picture.hosts.get(pod.node)
    if host is not None and host.pipes is not None:
        missing_pipes += [pipe for pipe in mounted if pipe not in host.pipes]
    return list(dict.fromkeys(missing_pipes))


def _describe_container(container: ContainerFacts) -> str:
    parts = []
    if container.waiting:
        parts.append(f"waits ({container.waiting})")
    if container.exit_code is not None:
        because = f" ({_shorten(container.ended_because)})" if container.ended_because else ""
        parts.append(f"ended with {container.exit_code}{because}")
    if container.restarts:
        parts.append(f"{container.restarts} restarts")
    return ", ".join(parts) or "is not ready"


def _find_latest(events: Iterable[EventFacts]) -> EventFacts | None:
    return max(events, key=lambda event: event.last_seen, default=None)


def _find_pipe_line(log: str) -> str:
    """The last line that names a pipe, since a driver then logs that it gives up; else the last one."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    naming = [line for line in lines if _PIPE.search(line)] or lines
    return _shorten(naming[-1]) if naming else ""


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX else flat[: _MAX - 3] + "..."
