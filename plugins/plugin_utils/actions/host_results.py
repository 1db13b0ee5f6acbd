# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts of a play returned, for its cluster-wide tasks. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.start import INPUTS
from ..base.stored import serialize
from ..kube.labels import SERVING_LABEL, SERVING_VALUE
from ..windows.model import CsiProxyState, HostIdentity
from .results import CsiProxyResult, NodeMatch, PlannedDriver, RunWork

# What tasks registered on a host.
_REGISTERED = ("csi_proxy_plan", "csi_proxy_result", "kubewin_nodes", INPUTS)
_NOTHING = CsiProxyResult()
# What a run changes where csi-proxy is as desired.
_RESTORED = f"restore the label {SERVING_LABEL} of its Node, and uncordon the Node if an interrupted run cordoned it"


@dataclass(frozen=True, slots=True)
class HostResult:
    """One host. latest: its latest result of csi_proxy or csi_proxy_info. change: the same if that changed csi-proxy, else None.

    node: its Node; the Node of the same name if the host was not read or not matched; or empty. unmatched: why its Node is unknown
    though it was read. cordoned_for, has_label: of its Node, why a run cordoned it, and whether it has the label of a csi-proxy that serves.
    """

    name: str
    latest: CsiProxyResult
    change: CsiProxyResult | None = None
    node: str = ""
    claimed_node: str = ""
    is_matched: bool = False
    unmatched: str = ""
    cordoned_for: str = ""
    has_label: bool = False
    skip_unreachable: bool = False

    @property
    def state(self) -> CsiProxyState | None:
        """What was read on the host, None if it could not be read."""
        return self.latest.state

    @property
    def has_result(self) -> bool:
        """Whether a task ran on the host."""
        return self.latest is not _NOTHING

    @property
    def is_skipped(self) -> bool:
        """Whether the run continues without the host: it was lost before the run changed it, so its result has no plan."""
        is_changed = self.change is not None and self.change.plan is not None
        return self.skip_unreachable and self.latest.reason == "connection_lost" and not is_changed

    @property
    def error(self) -> str:
        """Why its read or change failed, empty if it did not."""
        return "" if self.state and not self.latest.reason else self.latest.message

    @property
    def unread(self) -> str:
        """Why it was not read, empty when it was."""
        return "" if self.state else self.latest.message

    @property
    def left_out(self) -> str:
        """Why the run continues without the host or its facts, empty if it was read."""
        return "unreachable; skipped because kubewin_skip_unreachable is set" if self.is_skipped else self.unread

    @property
    def changes(self) -> Sequence[str]:
        """What the run changed, or in check mode would change."""
        return (self.change.plan or [_RESTORED]) if self.change and self.change.changed else ()

    @property
    def is_settled(self) -> bool:
        """Whether csi-proxy is in its desired state and its Node is not cordoned, and has the label if a driver needs csi-proxy."""
        labelled = self.has_label or not self.latest.needed
        return bool(self.state and not self.latest.plan and labelled and not self.cordoned_for)

    @property
    def is_finished(self) -> bool:
        """Whether the run changed csi-proxy as it planned, or read that there is nothing to change."""
        return not self.change.failed if self.change else bool(self.state and not self.latest.plan)

    def describe_identity(self) -> dict[str, Any]:
        """For O(hosts) of node_info: names and addresses of the host, or why it cannot be used."""
        host = self.state.host if self.state else HostIdentity()
        return {
            "name": self.name,
            "names": [name for name in (host.name, host.dns_name) if name],
            "addresses": list(host.addresses),
            "node_name": self.claimed_node,
            "problem": "" if self.is_skipped else self.error,
        }

    def describe_csi_proxy(self) -> dict[str, Any]:
        """For O(hosts) of gate and preflight_info; only why, if it was not read or not matched: it may be another machine than its name says."""
        state = self.state
        if self.is_skipped or state is None or not self.is_matched:
            return {
                "node": self.node,
                "reason": self.unmatched or self.latest.message or "it was not matched to a Node",
            }
        return {
            "node": self.node,
            "observed_at": state.observed_at,
            "serving": state.serving,
            "pipes": state.pipes,
            "release": state.release,
            "state": state.service.state if state.service else "absent",
            "reason": "" if state.serving else self.latest.message,
            "boot_time": state.host.boot_time,
            "findings": [serialize(finding) for finding in state.findings],
        }


def _choose_latest(variables: Mapping[str, Any]) -> tuple[CsiProxyResult, CsiProxyResult | None]:
    """The latest result of a host, and the change if that was the latest. Results of an earlier playbook of the run remain."""
    plan, change = (
        CsiProxyResult.from_result(registered) if registered and not registered.get("skipped") else None
        for registered in (variables.get("csi_proxy_plan"), variables.get("csi_proxy_result"))
    )
    if change is None or plan is None:
        return change or plan or _NOTHING, change
    # A change that read nothing failed, which ends the run: it came last. Where the plan read nothing, nothing was changed after it.
    if change.state and not (plan.state and change.state.observed_at >= plan.state.observed_at):
        return plan, None
    return change, change


def build_result(name: str, variables: Mapping[str, Any], match: NodeMatch) -> HostResult:
    """The latest result of a host. variables: the host's, as Ansible's hostvars."""
    latest, change = _choose_latest(variables)
    claimed_node = str(variables.get("kubewin_node_name") or "")
    named = claimed_node or name
    node = match.matched.get(name, named if named in match.nodes else "")
    facts = match.nodes.get(node, {"labels": {}, "cordoned_for": ""})
    has_label = facts["labels"].get(SERVING_LABEL) == SERVING_VALUE
    return HostResult(
        name=name,
        latest=latest,
        change=change,
        node=node,
        claimed_node=claimed_node,
        is_matched=name in match.matched,
        unmatched=match.errors.get(name, ""),
        cordoned_for=facts["cordoned_for"],
        has_label=has_label if change is None or change.labelled is None else change.labelled,
        skip_unreachable=bool((variables.get(INPUTS) or {}).get("skip_unreachable")),
    )


def describe_left_cordons(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each Node that a run cordoned and did not restore yet. nodes: by name, of describe_node."""
    return [
        f"Node {name} is cordoned ({node['cordoned_for']})"
        + ("" if SERVING_LABEL in node["labels"] else f" and lacks the label {SERVING_LABEL}")
        + ", by a run that was interrupted or still works there. The next run that succeeds restores it."
        for name, node in nodes.items()
        # The annotation outlives kubectl uncordon.
        if node["cordoned_for"] and node["unschedulable"]
    ]


def read_hosts(task_vars: Mapping[str, Any], **registered: Any) -> list[HostResult]:
    """The results of the Windows hosts of a play. A host without a result is one that could not be read.

    task_vars: variables of a task. registered: results that the task itself is about to register.
    """
    windows = frozenset((task_vars.get(INPUTS) or {}).get("windows") or ())
    hosts = [host for host in task_vars.get("ansible_play_hosts_all") or () if host in windows]
    return build_results(hosts, {host: _read_variables(task_vars["hostvars"], host) for host in hosts}, **registered)


def read_inventory(task_vars: Mapping[str, Any]) -> list[HostResult]:
    """What an earlier play read of the Windows hosts of the inventory. Those outside of --limit have no result."""
    windows, hostvars = task_vars[INPUTS]["windows"], task_vars["hostvars"]
    return build_results(windows, {host: _read_variables(hostvars, host) for host in windows})


def describe_unusable(hosts: Sequence[HostResult]) -> list[str]:
    """Why hosts of read_inventory cannot be used, a line a host: unread, or without exactly one Node."""
    return [f"{host.name}: {why}" for host in hosts if host.has_result and (why := host.unread or host.unmatched)]


def _read_variables(hostvars: Any, host: str) -> dict[str, Any]:
    """What is read of a host's variables. Results hold no templates; templating each host's copy of all Nodes takes N*N steps."""
    raw: Mapping[str, Any] = hostvars.raw_get(host)
    read = {name: raw.get(name) for name in _REGISTERED}
    return read | {"kubewin_node_name": hostvars[host]["kubewin_node_name"] if raw.get("kubewin_node_name") else None}


def build_results(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], **registered: Any
) -> list[HostResult]:
    host_variables = {host: {**variables.get(host, {}), **registered} for host in hosts}
    # Registered by a task that ran once for all hosts, or for those of a batch, which it alone matched: few, so each is searched once.
    results = {host: variables.get("kubewin_nodes") for host, variables in host_variables.items()}
    matches = {id(result): NodeMatch.from_result(result) for result in results.values()}
    return [
        build_result(host, host_variables[host], _choose_match(host, [matches[id(results[host])], *matches.values()]))
        for host in hosts
    ]


def list_csi_proxies(task_vars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """O(hosts) of gate and preflight_info: csi-proxy on each Windows host of a play that is a Node."""
    return [host.describe_csi_proxy() for host in read_hosts(task_vars) if host.node]


def list_read_nodes(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The Nodes of the hosts that were read. hosts: of list_csi_proxies."""
    return [host["node"] for host in hosts if "serving" in host]


def _choose_match(host: str, matches: Sequence[NodeMatch]) -> NodeMatch:
    """The match in which a host has its Node, else any. matches: first its own."""
    named = next((match for match in matches if host in match.matched), None)
    return named or next((match for match in matches if match.nodes or match.errors), NodeMatch())


def read_plans(task_vars: Mapping[str, Any]) -> list[PlannedDriver]:
    results = (task_vars.get("kubewin_plans") or {}).get("results") or ()
    return [PlannedDriver.from_result(result) for result in results if "driver_plan" in result]


def describe_removal(task_vars: Mapping[str, Any], *, check: bool, failed: bool = False) -> RunWork:
    """What the removal of drivers and csi-proxy did. failed: the run ends here, so name what is left."""
    removed = {"changed": False, **(task_vars.get("kubewin_removed") or {})}
    drivers = RunWork.from_result(removed)
    includes_csi_proxy = (task_vars.get(INPUTS) or {}).get("remove_csi_proxy")
    results = read_hosts(task_vars) if includes_csi_proxy else []
    changed = drivers.changed or any(host.change for host in results)
    if not includes_csi_proxy or (failed and not changed):
        return RunWork(lines=drivers.lines, next=drivers.next, changed=changed)
    hosts = [host.name for host in results if host.change and host.change.changed and not host.change.failed]
    line = f"csi-proxy {'would be' if check else 'was'} removed from {', '.join(hosts) or 'no host'}"
    left_out = [f"{host.name} is unreachable: skipped, csi-proxy stays there" for host in results if host.is_skipped]
    unfinished = [host.name for host in results if not host.is_skipped and not host.is_finished]
    left = [f"not removed yet: csi-proxy on {', '.join(unfinished)}"] if failed and unfinished and not check else []
    following = ["remove"] if check and (hosts or removed.get("objects")) else []
    return RunWork(lines=[*drivers.lines, line, *left_out, *left], next=following, changed=changed)
