# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping a running DaemonSet's pods in place while its template changes, and how it is written at each stage. Pure.

Under OnDelete a new template moves no pod: a pod gets it only after its deletion. Where a change stands is kept in an annotation of
the DaemonSet, written together with the template, so that a run that was killed is finished by the next.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.decode import read_number, read_object
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MODE, absent_or_ours
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.facts import template_hash

ANNOTATION = "kubewin.io/rolling"

_GENERATION = "deprecated.daemonset.template.generation"

# Metadata of the DaemonSet that describes its template, and is restored with it.
_OURS = (MODE, "kubewin.io/driver-version")


@dataclass(frozen=True, slots=True)
class Rolling:
    """Where a change of a running DaemonSet stands.

    run: of which template the change is, see run_of; a run with another template takes over. former: hash of the template that all
    pods had before. annotations: those of the DaemonSet for that template. failed: the canary on which the new one did not work,
    while the former one is being restored; because: what failed there. taken: uids by node of the pods that a run
    is deleting or has deleted, until their nodes are back.
    """

    run: str = ""
    former: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""
    because: str = ""
    taken: Mapping[str, str] = field(default_factory=dict)

    @property
    def goes_back(self) -> bool:
        """Whether the former template is being restored."""
        return bool(self.failed)

    def text(self) -> str:
        """As the annotation."""
        return json.dumps({key: value for key, value in asdict(self).items() if value}, sort_keys=True)


def rolling(daemon_set: Mapping[str, Any] | None) -> Rolling | None:
    """State in the annotation, None without one. An unreadable annotation means that a change is in progress."""
    text = ((daemon_set or {"metadata": {}})["metadata"].get("annotations") or {}).get(ANNOTATION)
    if text is None:
        return None
    try:
        given = read_object(text)
        words = {key: str(given.get(key) or "") for key in ("run", "former", "failed", "because")}
        notes, taken = (
            {str(key): str(value) for key, value in (given.get(part) or {}).items()}
            for part in ("annotations", "taken")
        )
    except (ValueError, AttributeError):
        return Rolling()
    return Rolling(annotations=notes, taken=taken, **words)


def run_of(definition: Mapping[str, Any]) -> str:
    """The name of a change: runs with the same template, over different nodes, make one change together."""
    return template_hash(definition)


def must_hold(live: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether applying would let the controller replace pods by itself. after: the server's dry run of the definition."""
    if not absent_or_ours(live):
        return False
    on_delete = (live["spec"].get("updateStrategy") or {}).get("type") == "OnDelete"
    return on_delete or rolling(live) is not None or not same_template(live, after)


def same_template(live: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two DaemonSets make the same pods."""
    return bool(live["spec"]["template"] == after["spec"]["template"])


def to_be(live: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The live DaemonSet as the API server will count it once it was applied, with the status that it has now."""
    metadata = {**live["metadata"], "annotations": dict(live["metadata"].get("annotations") or {})}
    if not same_template(live, after):
        metadata["annotations"][_GENERATION] = str((read_number(metadata["annotations"].get(_GENERATION)) or 0) + 1)
    return {**live, "metadata": metadata, "spec": after["spec"]}


def begun(live: Mapping[str, Any], former: str, run: str, ready: Mapping[str, str]) -> Rolling:
    """A change that starts, or continues an interrupted one: the template before its first step stays the former one.

    ready: uids by node of the Ready pods. A Ready pod that is recorded for deletion was recorded by an interrupted run;
    the others are being replaced, also by runs over other nodes.
    """
    observed = rolling(live)
    if observed is not None and observed.former:
        taken = {node: uid for node, uid in observed.taken.items() if ready.get(node) != uid}
        return replace(observed, run=run, failed="", because="", taken=taken)
    annotations = live["metadata"].get("annotations") or {}
    return Rolling(run=run, former=former, annotations={key: annotations[key] for key in _OURS if key in annotations})


def former_mode(live: Mapping[str, Any]) -> str:
    """The mode that pods had before a change that is under way, or have now; empty if it is unknown."""
    observed = rolling(live)
    annotations = observed.annotations if observed is not None else live["metadata"].get("annotations") or {}
    return str(annotations.get(MODE, ""))


def held(definition: Mapping[str, Any], state: Rolling) -> dict[str, Any]:
    """The DaemonSet as it is applied while its pods are replaced one by one."""
    found: dict[str, Any] = copy.deepcopy(dict(definition))
    found["metadata"].setdefault("annotations", {})[ANNOTATION] = state.text()
    found["spec"]["updateStrategy"] = {"type": "OnDelete"}
    return found


def former(definition: Mapping[str, Any], state: Rolling, template: Mapping[str, Any]) -> dict[str, Any]:
    """The DaemonSet with the template that worked before, as it is left when that is back on every node."""
    found: dict[str, Any] = copy.deepcopy(dict(definition))
    annotations = found["metadata"].setdefault("annotations", {})
    for key in _OURS:
        annotations.pop(key, None)
    annotations.update(state.annotations)
    found["spec"]["template"] = copy.deepcopy(dict(template))
    return found


def max_unavailable(definition: Mapping[str, Any]) -> int | str:
    """How many nodes may be without a Ready plugin, as the definition says."""
    found: int | str = ((definition["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get(
        "maxUnavailable", 1
    )
    return found
