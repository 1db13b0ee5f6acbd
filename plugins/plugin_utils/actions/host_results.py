# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hosts of a play returned, in the forms that its cluster-wide tasks take. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..base.start import INPUTS
from ..kube.labels import SERVING_LABEL, SERVING_VALUE
from ..support.diagnose import HostFacts
from ..windows.cluster_node import CORDON_REASON
from .summary import RunFacts, brief

# What tasks registered on a host.
_REGISTERED = ("csi_proxy_plan", "csi_proxy_result", "kubewin_evidence", "kubewin_nodes", INPUTS)


@dataclass(frozen=True, slots=True)
class HostResult:
    """One host. returned: result of csi_proxy or csi_proxy_info. nodes: RV(node_info), empty before hosts are matched.

    evidence: result of host_evidence."""

    name: str
    returned: Mapping[str, Any]
    node_name: str
    skip_unreachable: bool
    nodes: Mapping[str, Any]
    done: Mapping[str, Any]
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> Mapping[str, Any]:
        """What was read on the host, empty when it could not be read."""
        csi_proxy: Mapping[str, Any] = self.returned.get("csi_proxy") or {}
        return csi_proxy if "host" in csi_proxy else {}

    @property
    def left_out(self) -> bool:
        """Whether the run continues without the host: it was lost before the run changed it, so its result has no plan."""
        return self.skip_unreachable and self.returned.get("reason") == "connection_lost" and "plan" not in self.done

    @property
    def problem(self) -> str:
        """Why the host cannot be used, empty when it can."""
        if self.left_out or (self.state and "reason" not in self.returned):
            return ""
        return str(self.returned.get("msg") or "its read returned nothing")

    @property
    def node(self) -> str:
        """Its Node, or the Node of the same name, or empty."""
        matched = (self.nodes.get("matched") or {}).get(self.name)
        named = self.node_name or self.name
        return str(matched or (named if named in (self.nodes.get("nodes") or {}) else ""))

    @property
    def facts(self) -> Mapping[str, Any]:
        """What was read of its Node."""
        return (self.nodes.get("nodes") or {}).get(self.node) or {}

    @property
    def marked(self) -> bool:
        """Whether its Node has the label of a csi-proxy that serves."""
        after: Mapping[str, Any] = self.done.get("node") or {}
        return bool(
            after["labelled"] if after else (self.facts.get("labels") or {}).get(SERVING_LABEL) == SERVING_VALUE
        )


def _latest(variables: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The latest result of a host, and the change if that was the latest; each may be empty. Results of an earlier playbook of the run remain."""
    plan, result = (
        task_result if task_result and not task_result.get("skipped") else {}
        for task_result in (variables.get("csi_proxy_plan"), variables.get("csi_proxy_result"))
    )
    before, after = ((task_result.get("csi_proxy") or {}).get("observed_at") or "" for task_result in (plan, result))
    # A change that read nothing failed, which ends the run: it came last. Where the plan read nothing, nothing was changed after it.
    newer = not plan or not after or (before and after >= before)
    return (result, result) if result and newer else (plan, {})


def host_result(name: str, variables: Mapping[str, Any], nodes: Mapping[str, Any]) -> HostResult:
    """The latest result of a host. variables: the host's, as Ansible's hostvars."""
    returned, done = _latest(variables)
    return HostResult(
        name=name,
        returned=returned,
        node_name=str(variables.get("kubewin_node_name") or ""),
        skip_unreachable=bool((variables.get(INPUTS) or {}).get("skip_unreachable")),
        nodes=nodes,
        done=done,
        evidence=variables.get("kubewin_evidence") or {},
    )


def reported(result: HostResult) -> dict[str, Any]:
    """For O(hosts) of node_info: names and addresses of the host, or why it cannot be used."""
    host = result.state.get("host") or {}
    return {
        "name": result.name,
        "names": [name for name in (host.get("name"), host.get("dns_name")) if name],
        "addresses": list(host.get("addresses") or ()),
        "node_name": result.node_name,
        "problem": result.problem,
    }


def proof(result: HostResult) -> dict[str, Any] | None:
    """For O(hosts) of gate and preflight_info; None if the host was not read."""
    if result.left_out or not result.state:
        return None
    state = result.state
    return {
        "node": result.node,
        "observed_at": state["observed_at"],
        "serving": state["serving"],
        "pipes": state["pipes"],
        "release": (state["executable"] or {}).get("release") or "",
        "state": (state["service"] or {}).get("state") or "absent",
        "reason": str(result.returned.get("msg") or ""),
        "boot_time": state["host"]["boot_time"],
    }


def observed(result: HostResult) -> dict[str, Any] | None:
    """For O(hosts) of preflight_info: a host that could not be read is a row with the reason; None without a Node."""
    if not result.node:
        return None
    host_proof = proof(result)
    if host_proof is None:
        return {"node": result.node, "reason": str(result.returned.get("msg") or "it could not be read")}
    return {
        **{key: value for key, value in host_proof.items() if value is not None},
        "reason": "",
        "findings": result.state.get("findings") or [],
    }


def row(result: HostResult) -> dict[str, Any]:
    """For O(hosts) of summary."""
    unread = "" if result.state else str(result.returned.get("msg") or "it could not be read")
    return {
        "name": result.name,
        "node": result.node or None,
        "left_out": "unreachable; skipped because kubewin_skip_unreachable is set" if result.left_out else unread,
        "csi_proxy": None if result.left_out else result.state or None,
        "changed": [step["description"] for step in result.done.get("plan") or ()]
        if result.done.get("changed")
        else [],
    }


def gathered(result: HostResult) -> dict[str, Any]:
    """What gather shows of a host: what was read, and why not more."""
    # Also for a host that other playbooks skip.
    unread = result.problem or (str(result.returned.get("msg") or "") if result.left_out else "")
    problem = unread or str(result.evidence.get("problem") or result.evidence.get("msg") or "")
    return {
        "name": result.name,
        "node": result.node,
        "problem": problem,
        "csi_proxy": brief(result.state)[0] if result.state else "",
        "findings": [dict(finding) for finding in result.state.get("findings") or ()],
        "parts": [dict(part) for part in result.evidence.get("parts") or ()],
    }


def diagnosed(result: HostResult) -> HostFacts:
    """What diagnose knows of a host: what was read, or why it was not."""
    return HostFacts(
        name=result.name,
        node=result.node,
        reason="" if result.state else str(result.returned.get("reason") or ""),
        problem="" if result.state else str(result.returned.get("msg") or "it could not be read."),
        unmatched=str((result.nodes.get("errors") or {}).get(result.name) or ""),
        state=result.state,
    )


def describe_left_cordons(nodes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A line for each Node that an interrupted run left cordoned. nodes: by name, of describe_node."""
    return [
        f"Node {name} is cordoned ({node['cordoned_for']})"
        + ("" if SERVING_LABEL in node["labels"] else f" and lacks the label {SERVING_LABEL}")
        + ", because a run was interrupted. The next run that succeeds restores it."
        for name, node in nodes.items()
        if node["cordoned_for"]
    ]


def unmarked(result: HostResult) -> dict[str, Any] | None:
    """The Node and whether its csi-proxy serves, if the Node had another label when it was read; None if the host was not read.

    Not for a Node on which a run changes csi-proxy: it removed the label so that the plugin's pod ends, and restores it.
    """
    host_proof = proof(result)
    if (
        host_proof is None
        or host_proof["serving"] == result.marked
        or result.facts.get("cordoned_for") == CORDON_REASON
    ):
        return None
    return {"node": result.node, "serving": host_proof["serving"]}


def verified(result: HostResult) -> dict[str, Any]:
    """For verify: why a host was not read, and why the next volume will not be mounted there although some are proven now."""
    service, doubts = result.state.get("service") or {}, []
    if service and not result.state["serving"]:
        doubts.append(
            f"csi-proxy is {service['state']} and does not serve. The next mount of a volume fails there, whatever this "
            "run proved. Run enable_csi."
        )
    doubts += [finding["message"] for finding in result.state.get("findings") or () if finding["severity"] == "blocker"]
    return {
        "node": str((result.nodes.get("matched") or {}).get(result.name) or ""),
        "error": str((result.nodes.get("errors") or {}).get(result.name) or ""),
        "unread": ""
        if result.state
        else f"{result.name}: {result.returned.get('msg') or 'the host returned no facts'}",
        "doubts": [f"{result.name}: {doubt}" for doubt in doubts],
    }


def unsettled(result: HostResult) -> str | None:
    """The host's name, or None if csi-proxy is as desired, its Node is not cordoned, and labelled where a driver needs csi-proxy."""
    labelled = result.marked or result.returned.get("needed") is False
    settled = result.state and not result.returned.get("plan") and labelled and not result.facts.get("cordoned_for")
    return None if result.left_out or settled else result.name


Row = TypeVar("Row")


def read_rows(make: Callable[[HostResult], Row | None], task_vars: Mapping[str, Any], **registered: Any) -> list[Row]:
    """The Windows hosts of a play as rows, without those that have none. A host without a result is one that could not be read.

    task_vars: variables of a task. registered: results that the task itself is about to register.
    """
    windows = (task_vars.get(INPUTS) or {}).get("windows") or ()
    hosts = [host for host in task_vars.get("ansible_play_hosts_all") or () if host in windows]
    return to_rows(make, hosts, {host: _read_variables(task_vars["hostvars"], host) for host in hosts}, **registered)


def _read_variables(hostvars: Any, host: str) -> dict[str, Any]:
    """What is read of a host's variables. Results hold no templates; templating each host's copy of all Nodes takes N*N steps."""
    raw: Mapping[str, Any] = hostvars.raw_get(host)
    read = {name: raw.get(name) for name in _REGISTERED}
    return read | {"kubewin_node_name": hostvars[host]["kubewin_node_name"] if raw.get("kubewin_node_name") else None}


def to_rows(
    make: Callable[[HostResult], Row | None],
    hosts: Sequence[str],
    variables: Mapping[str, Mapping[str, Any]],
    **registered: Any,
) -> list[Row]:
    """Rows of these hosts. variables: by host."""
    host_variables = {host: {**variables.get(host, {}), **registered} for host in hosts}
    # Registered by a task that ran once for all hosts, or for those of a batch, which it alone matched.
    matches = [facts["kubewin_nodes"] for facts in host_variables.values() if facts.get("kubewin_nodes")]
    rows = (
        make(host_result(host, host_variables[host], _match(host, host_variables[host], matches))) for host in hosts
    )
    return [row for row in rows if row is not None]


def read_plans(task_vars: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The drivers that this playbook planned: RV(driver_plan) of driver_info, and its definition."""
    results = (task_vars.get("kubewin_plans") or {}).get("results") or ()
    return [
        {**result["driver_plan"], "definition": result["definition"]} for result in results if "driver_plan" in result
    ]


def list_warnings(plan: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Warnings of a driver's plan."""
    return [finding for finding in plan["findings"] if finding["severity"] == "warning"]


def read_facts(task_vars: Mapping[str, Any]) -> RunFacts:
    """What the tasks of a playbook registered, for its summary."""
    hosts = read_rows(row, task_vars)
    gates = (task_vars.get("kubewin_gates") or {}).get("results") or ()
    nodes = (task_vars.get("kubewin_nodes") or {}).get("nodes") or {}
    return RunFacts(
        hosts=hosts,
        rollouts={str(gate["item"]): gate["rollout"] for gate in gates if gate.get("rollout")},
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


def describe_removal(task_vars: Mapping[str, Any], *, check: bool) -> dict[str, Any]:
    """What the removal of csi-proxy did, as the result of a task."""
    hosts = [host["name"] for host in read_rows(row, task_vars) if host["changed"]]
    objects = (task_vars.get("kubewin_removed") or {}).get("objects")
    line = f"csi-proxy {'would be' if check else 'was'} removed from {', '.join(hosts) or 'no host'}"
    skipped = read_rows(lambda host: {"name": host.name} if host.left_out else None, task_vars)
    left_out = [f"{host['name']} is unreachable: skipped, csi-proxy stays there" for host in skipped]
    return {"lines": [line, *left_out], "next": ["remove"] if check and (hosts or objects) else []}
