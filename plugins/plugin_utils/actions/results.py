# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Registered results of this collection's tasks, as values. A task that failed returns less. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..base.findings import Finding
from ..drivers.rollout.evaluate import GateProblem, NodeEvaluation
from ..windows.model import CsiProxyState


@dataclass(frozen=True, slots=True)
class CsiProxyResult:
    """A result of csi_proxy or csi_proxy_info.

    state: None if the host was not read. plan: descriptions of the steps, None if the task failed before it had a plan. labelled: whether the
    Node has the label of a csi-proxy that serves, None if the task did not read that. parts, problem: of RV(evidence).
    """

    state: CsiProxyState | None = None
    plan: Sequence[str] | None = None
    changed: bool = False
    failed: bool = False
    needed: bool = True
    labelled: bool | None = None
    reason: str = ""
    message: str = "it could not be read"
    parts: Sequence[Mapping[str, Any]] = ()
    problem: str = ""

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> CsiProxyResult:
        state, evidence = result.get("csi_proxy"), result.get("evidence") or {"parts": (), "problem": ""}
        return cls(
            state=CsiProxyState.from_result(state) if state else None,
            plan=[step["description"] for step in result["plan"]] if "plan" in result else None,
            changed=bool(result.get("changed")),
            failed=bool(result.get("failed")),
            needed=result.get("needed", True),
            labelled=result["node"]["labelled"] if "node" in result else None,
            reason=result.get("reason", ""),
            message=str(result.get("msg") or ("" if state else cls().message)),
            parts=[dict(part) for part in evidence["parts"]],
            problem=evidence["problem"],
        )


@dataclass(frozen=True, slots=True)
class NodeMatch:
    """A result of node_info. nodes: RV(nodes). matched: the Node of each host. errors: by host, why it has none."""

    nodes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    matched: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_result(cls, result: Mapping[str, Any] | None) -> NodeMatch:
        """Read a result; empty for one of a task that failed or did not run."""
        if not result or "nodes" not in result:
            return cls()
        return cls(result["nodes"], result["matched"], result["errors"])


@dataclass(frozen=True, slots=True)
class GateReport:
    """RV(gate) of gate; of a gate that failed, only the first nodes that are not green. not_read: why the driver was not read."""

    verdict: str
    nodes: Sequence[NodeEvaluation] = ()
    skipped_nodes: Sequence[tuple[str, str]] = ()
    is_deployed: bool = True
    not_read: str = ""

    @classmethod
    def from_result(cls, gate: Mapping[str, Any]) -> GateReport:
        return cls(
            verdict=gate["verdict"],
            nodes=[
                NodeEvaluation(
                    node["node"],
                    node.get("pod", ""),
                    tuple(GateProblem(**problem) for problem in node["problems"]),
                    tuple(node.get("notes", ())),
                )
                for node in gate["nodes"]
            ],
            skipped_nodes=[(entry["node"], entry["reason"]) for entry in gate.get("skipped_nodes", ())],
            is_deployed=gate.get("daemonset", {}) is not None,
            not_read=gate.get("not_read", ""),
        )


@dataclass(frozen=True, slots=True)
class PlannedDriver:
    """What the playbook uses of RV(driver_plan) and RV(definition) of driver_info."""

    driver: str
    pipes: Sequence[str]
    unselected_nodes: Sequence[str]
    findings: Sequence[Finding]
    definition: str

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> PlannedDriver:
        plan = result["driver_plan"]
        return cls(
            driver=plan["driver"],
            pipes=plan["pipes"],
            unselected_nodes=plan["unselected_nodes"],
            findings=[Finding(**finding) for finding in plan["findings"]],
            definition=result["definition"],
        )


@dataclass(frozen=True, slots=True)
class RunWork:
    """A result of the task that did the work of a playbook.

    next: playbooks to run, each with its arguments. outcome: empty if it follows from the message, which is why the run failed. failure_place:
    where the screen has that already. without_limit: whether the next run needs hosts that this one left out.
    """

    lines: Sequence[str] = ()
    next: Sequence[str] = ()
    outcome: str = ""
    changed: bool = True
    message: str = ""
    failure_place: str = ""
    without_limit: bool = False

    @classmethod
    def from_result(cls, result: Mapping[str, Any]) -> RunWork:
        """Read a result of any task; O(kubewin.csi.summary#module:result) documents the fields."""
        return cls(
            lines=result.get("lines") or (),
            next=result.get("next") or (),
            outcome=str(result.get("outcome") or ""),
            changed=bool(result.get("changed", True)),
            message=str(result.get("msg") or ""),
            failure_place=str(result.get("failure_place") or ""),
            without_limit=bool(result.get("without_limit")),
        )


@dataclass(frozen=True, slots=True)
class ObjectChanges:
    """What a run did to an object, or would do: changes, each as text."""

    object: str
    changes: Sequence[str]

    @classmethod
    def from_driver(cls, result: Mapping[str, Any]) -> ObjectChanges:
        """Read a result of driver_apply, which fails before it has objects if its options are wrong."""
        changes = [
            f"{item['action']} {item['kind']} {item['namespace'] + '/' if item['namespace'] else ''}{item['name']}"
            for item in result.get("objects", ())
            if item["action"] != "none"
        ]
        if result.get("roll") and result["roll"]["replaced"]:
            changes.append(f"replace the plugin pods on {', '.join(result['roll']['replaced'])}")
        return cls(str(result.get("driver", "driver")), changes)
