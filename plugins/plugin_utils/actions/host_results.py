# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts of a play returned, for its cluster-wide tasks. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..base.start import INPUTS
from ..kube.labels import SERVING_LABEL, SERVING_VALUE
from .summary import RunFacts

# What tasks registered on a host.
_REGISTERED = ("csi_proxy_plan", "csi_proxy_result", "kubewin_nodes", INPUTS)


@dataclass(frozen=True, slots=True)
class HostResult:
    """One host. latest: its latest result of csi_proxy or csi_proxy_info. change: the same if that changed csi-proxy, else empty.

    nodes: RV(node_info), empty before hosts are matched.
    """

    name: str
    latest: Mapping[str, Any]
    node_name: str
    skip_unreachable: bool
    nodes: Mapping[str, Any]
    change: Mapping[str, Any]

    @property
    def state(self) -> Mapping[str, Any]:
        """What was read on the host, empty when it could not be read."""
        csi_proxy: Mapping[str, Any] = self.latest.get("csi_proxy") or {}
        return csi_proxy if "host" in csi_proxy else {}

    @property
    def evidence(self) -> Mapping[str, Any]:
        """RV(evidence) of csi_proxy_info: files for the archive of gather."""
        return self.latest.get("evidence") or {}

    @property
    def is_skipped(self) -> bool:
        """Whether the run continues without the host: it was lost before the run changed it, so its result has no plan."""
        return self.skip_unreachable and self.latest.get("reason") == "connection_lost" and "plan" not in self.change

    @property
    def message(self) -> str:
        """What its latest result says of a failure."""
        return str(self.latest.get("msg") or "it could not be read")

    @property
    def error(self) -> str:
        """Why its read or change failed, empty if it did not."""
        return "" if self.state and "reason" not in self.latest else self.message

    @property
    def unread(self) -> str:
        """Why it was not read, empty when it was."""
        return "" if self.state else self.message

    @property
    def unmatched(self) -> str:
        """Why its Node is unknown though it was read; empty where it is known, or no host was matched."""
        return str((self.nodes.get("errors") or {}).get(self.name) or "")

    @property
    def node(self) -> str:
        """Its Node, or the Node of the same name if the host was not read or not matched, or empty."""
        matched = (self.nodes.get("matched") or {}).get(self.name)
        named = self.node_name or self.name
        return str(matched or (named if named in (self.nodes.get("nodes") or {}) else ""))

    @property
    def node_facts(self) -> Mapping[str, Any]:
        """What was read of its Node."""
        return (self.nodes.get("nodes") or {}).get(self.node) or {}

    @property
    def has_label(self) -> bool:
        """Whether its Node has the label of a csi-proxy that serves."""
        after: Mapping[str, Any] = self.change.get("node") or {}
        return bool(
            after["labelled"] if after else (self.node_facts.get("labels") or {}).get(SERVING_LABEL) == SERVING_VALUE
        )

    @property
    def is_settled(self) -> bool:
        """Whether csi-proxy is in its desired state and its Node is not cordoned, and has the label if a driver needs csi-proxy."""
        labelled = self.has_label or self.latest.get("needed") is False
        return bool(self.state and not self.latest.get("plan") and labelled and not self.node_facts.get("cordoned_for"))

    @property
    def is_finished(self) -> bool:
        """Whether the run changed csi-proxy as it planned, or read that there is nothing to change."""
        return not self.change.get("failed") if self.change else bool(self.state and not self.latest.get("plan"))

    def describe_identity(self) -> dict[str, Any]:
        """For O(hosts) of node_info: names and addresses of the host, or why it cannot be used."""
        host = self.state.get("host") or {}
        return {
            "name": self.name,
            "names": [name for name in (host.get("name"), host.get("dns_name")) if name],
            "addresses": list(host.get("addresses") or ()),
            "node_name": self.node_name,
            "problem": "" if self.is_skipped else self.error,
        }

    def describe_csi_proxy(self) -> dict[str, Any]:
        """For O(hosts) of gate and preflight_info; only why, if it was not read or not matched: it may be another machine than its name says."""
        if self.is_skipped or not self.state or self.name not in (self.nodes.get("matched") or {}):
            return {"node": self.node, "reason": self.unmatched or self.message}
        state = self.state
        return {
            "node": self.node,
            "observed_at": state["observed_at"],
            "serving": state["serving"],
            "pipes": state["pipes"],
            "release": (state["executable"] or {}).get("release") or "",
            "state": (state["service"] or {}).get("state") or "absent",
            "reason": "" if state["serving"] else str(self.latest.get("msg") or ""),
            "boot_time": state["host"]["boot_time"],
            "findings": state.get("findings") or [],
        }

    def describe_change(self) -> dict[str, Any]:
        skipped = "unreachable; skipped because kubewin_skip_unreachable is set"
        return {
            "name": self.name,
            "node": self.node or None,
            "left_out": skipped if self.is_skipped else self.unread,
            "unmatched": self.unmatched,
            "csi_proxy": None if self.is_skipped else self.state or None,
            "changed": ([step["description"] for step in self.change.get("plan") or ()] or [_RESTORED])
            if self.change.get("changed")
            else [],
        }


def _choose_latest(variables: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The latest result of a host, and the change if that was the latest; each may be empty. Results of an earlier playbook of the run remain."""
    plan, result = (
        task_result if task_result and not task_result.get("skipped") else {}
        for task_result in (variables.get("csi_proxy_plan"), variables.get("csi_proxy_result"))
    )
    before, after = ((task_result.get("csi_proxy") or {}).get("observed_at") or "" for task_result in (plan, result))
    # A change that read nothing failed, which ends the run: it came last. Where the plan read nothing, nothing was changed after it.
    newer = not plan or not after or (before and after >= before)
    return (result, result) if result and newer else (plan, {})


def build_result(name: str, variables: Mapping[str, Any], nodes: Mapping[str, Any]) -> HostResult:
    """The latest result of a host. variables: the host's, as Ansible's hostvars."""
    latest, change = _choose_latest(variables)
    return HostResult(
        name=name,
        latest=latest,
        node_name=str(variables.get("kubewin_node_name") or ""),
        skip_unreachable=bool((variables.get(INPUTS) or {}).get("skip_unreachable")),
        nodes=nodes,
        change=change,
    )


# What a run changes where csi-proxy is as desired.
_RESTORED = f"restore the label {SERVING_LABEL} of its Node, and uncordon the Node if an interrupted run cordoned it"


def describe_left_cordons(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each Node that a run cordoned and did not restore yet. nodes: by name, of describe_node."""
    return [
        f"Node {name} is cordoned ({node['cordoned_for']})"
        + ("" if SERVING_LABEL in node["labels"] else f" and lacks the label {SERVING_LABEL}")
        + ", by a run that was interrupted or still works there. The next run that succeeds restores it."
        for name, node in nodes.items()
        if node["cordoned_for"]
    ]


def read_hosts(task_vars: Mapping[str, Any], **registered: Any) -> list[HostResult]:
    """The results of the Windows hosts of a play. A host without a result is one that could not be read.

    task_vars: variables of a task. registered: results that the task itself is about to register.
    """
    windows = (task_vars.get(INPUTS) or {}).get("windows") or ()
    hosts = [host for host in task_vars.get("ansible_play_hosts_all") or () if host in windows]
    return build_results(hosts, {host: _read_variables(task_vars["hostvars"], host) for host in hosts}, **registered)


def describe_unusable(task_vars: Mapping[str, Any]) -> list[str]:
    """Why Windows hosts that an earlier play read cannot be used, a line a host: unread, or without exactly one Node."""
    windows, hostvars = task_vars[INPUTS]["windows"], task_vars["hostvars"]
    return [
        f"{host.name}: {why}"
        for host in build_results(windows, {host: _read_variables(hostvars, host) for host in windows})
        if host.latest and (why := host.unread or host.unmatched)
    ]


def _read_variables(hostvars: Any, host: str) -> dict[str, Any]:
    """What is read of a host's variables. Results hold no templates; templating each host's copy of all Nodes takes N*N steps."""
    raw: Mapping[str, Any] = hostvars.raw_get(host)
    read = {name: raw.get(name) for name in _REGISTERED}
    return read | {"kubewin_node_name": hostvars[host]["kubewin_node_name"] if raw.get("kubewin_node_name") else None}


def build_results(
    hosts: Sequence[str], variables: Mapping[str, Mapping[str, Any]], **registered: Any
) -> list[HostResult]:
    host_variables = {host: {**variables.get(host, {}), **registered} for host in hosts}
    # Registered by a task that ran once for all hosts, or for those of a batch, which it alone matched.
    matches = [facts["kubewin_nodes"] for facts in host_variables.values() if facts.get("kubewin_nodes")]
    return [build_result(host, host_variables[host], _match(host, host_variables[host], matches)) for host in hosts]


def list_csi_proxies(task_vars: Mapping[str, Any]) -> list[dict[str, Any]]:
    """O(hosts) of gate and preflight_info: csi-proxy on each Windows host of a play that is a Node."""
    return [host.describe_csi_proxy() for host in read_hosts(task_vars) if host.node]


def list_read_nodes(hosts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The Nodes of the hosts that were read. hosts: of list_csi_proxies."""
    return [host["node"] for host in hosts if "serving" in host]


def read_plans(task_vars: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The drivers that this playbook planned: RV(driver_plan) of driver_info, and its definition."""
    results = (task_vars.get("kubewin_plans") or {}).get("results") or ()
    return [
        {**result["driver_plan"], "definition": result["definition"]} for result in results if "driver_plan" in result
    ]


def list_warnings(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [finding for finding in plan["findings"] if finding["severity"] == "warning"]


def read_facts(task_vars: Mapping[str, Any]) -> RunFacts:
    """What the tasks of a playbook registered, for its summary."""
    hosts = [host.describe_change() for host in read_hosts(task_vars)]
    gates = (task_vars.get("kubewin_gates") or {}).get("results") or ()
    nodes = (task_vars.get("kubewin_nodes") or {}).get("nodes") or {}
    return RunFacts(
        hosts=hosts,
        gates={str(result["item"]): result["gate"] for result in gates if result.get("gate")},
        # Without Windows hosts, only the gate reports the nodes.
        nodes_without_host=[name for name in nodes if name not in {host["node"] for host in hosts}] if hosts else [],
        readiness=task_vars.get("kubewin_readiness") or {},
        applied=(task_vars.get("kubewin_applied") or {}).get("results") or (),
        warnings=[finding for plan in read_plans(task_vars) for finding in list_warnings(plan)],
        accepts_unproven=not hosts,
    )


def _match(host: str, variables: Mapping[str, Any], matches: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """RV(node_info) in which a host has its Node, else any."""
    own_match = variables.get("kubewin_nodes")
    candidates = [
        match for match in (*([own_match] if own_match else ()), *matches) if host in (match.get("matched") or {})
    ]
    return next(iter([*candidates, *matches]), {})


def describe_removal(task_vars: Mapping[str, Any], *, check: bool, failed: bool = False) -> dict[str, Any]:
    """What the removal of drivers and csi-proxy did, as the result of a task. failed: the run ends here, so name what is left."""
    drivers: Mapping[str, Any] = task_vars.get("kubewin_removed") or {}
    includes_csi_proxy = (task_vars.get(INPUTS) or {}).get("remove_csi_proxy")
    results = read_hosts(task_vars) if includes_csi_proxy else []
    changed = bool(drivers.get("changed") or any(host.change for host in results))
    if not includes_csi_proxy or (failed and not changed):
        return {"lines": list(drivers.get("lines", ())), "next": drivers.get("next") or [], "changed": changed}
    hosts = [host.name for host in results if host.change.get("changed") and not host.change.get("failed")]
    line = f"csi-proxy {'would be' if check else 'was'} removed from {', '.join(hosts) or 'no host'}"
    left_out = [f"{host.name} is unreachable: skipped, csi-proxy stays there" for host in results if host.is_skipped]
    unfinished = [host.name for host in results if not host.is_skipped and not host.is_finished]
    left = [f"not removed yet: csi-proxy on {', '.join(unfinished)}"] if failed and unfinished and not check else []
    lines = [*drivers.get("lines", ()), line, *left_out, *left]
    following = ["remove"] if check and (hosts or drivers.get("objects")) else []
    return {"lines": lines, "next": following, "changed": changed}
