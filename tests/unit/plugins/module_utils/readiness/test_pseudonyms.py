# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A snapshot with pseudonyms can be shared: it has no name, and is evaluated as before."""

from __future__ import annotations

import json
import re
import types
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime, timezone
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.node import ObservedNode
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.evaluate import Options, evaluate
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.cluster import ObservedConfigMap
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.snapshot import Snapshot
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.sources import Source
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.storage import ObservedClaim, ObservedVolume
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.workloads import ObservedPod, ObservedTemplate
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.pseudonyms import Pseudonyms
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.html import render_html
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.markdown import render_markdown
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.render.terminal import render_terminal
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.suppress import read_suppressions, suppress
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.verdict import Report
from hypothesis import given, settings
from hypothesis import strategies as st
from situations import cluster
from situations.named import SITUATIONS, Situation

KEY = b"a key"

# What stays as it is: words of Kubernetes, versions, states, and keys that a driver or the platform gives.
KEPT = {
    "ObservedClass": {"binding_mode", "policy", "parameters", "created"},
    "ObservedClaim": {"phase", "access_modes", "narrowed", "waits_since"},
    "ClaimTemplate": {"access_modes", "narrowed"},
    "ObservedCluster": {"kubernetes", "openshift", "updating_to", "infrastructure", "storage_driver", "wmco"},
    "Condition": {"type", "status", "reason"},
    "ObservedConfigMap": {"name", "data"},
    "ContainerFacts": {"waiting"},
    "ObservedController": {"driver"},
    "ObservedCsiNode": {"migrated"},
    "ObservedAttachment": {"deleting", "waits_since"},
    "DaemonSetFacts": {"pipes", "template_generation"},
    "ObservedDriver": {"profile"},
    "HostFacts": {"release", "state", "missing_pipes", "pipes"},
    "ObservedHost": {"managed_by", "findings"},
    "ObservedNamespace": {"phase"},
    "ObservedNode": {"os", "kubelet", "build", "runtime", "annotations"},
    "Placement": {"os"},
    "PodFacts": {"phase", "template_generation"},
    "ObservedPod": {"phase", "gone_by"},
    "Requirement": {"operator", "key"},
    "Source": {"attribute", "field", "fs_type", "kind", "protocol"},
    "Taint": {"effect"},
    "ObservedTemplate": {"kind"},
    "Toleration": {"operator", "effect"},
    "Unread": {"resource", "rule"},
    "ObservedVolume": {"policy", "phase", "access_modes", "created"},
    "Volumes": {"pipes"},
}


def filled(hint: Any, token: str) -> Any:
    """A value of a type, every string in it a token."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is str:
        return token
    if hint in (bool, int, float):
        return hint(1)
    if hint is datetime:
        return datetime(2026, 11, 20, tzinfo=timezone.utc)
    if origin in (Union, types.UnionType):
        return filled(inner[0], token)
    if origin is Literal:
        return inner[0]
    if origin is frozenset:
        return frozenset({filled(inner[0], token)})
    if origin is tuple:
        return tuple(filled(one, token) for one in inner if one is not Ellipsis)
    if origin is not None and issubclass(origin, Mapping):
        return {token: filled(inner[1], token)} if inner[1] is not Any else {"acme": {"volumes": [token]}}
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(
            **{
                one.name: filled(hints[one.name], f"Zq{hint.__name__}{one.name.replace('_', '')}zq")
                for one in fields(hint)
            }
        )
    raise AssertionError(f"no value for {hint}")


def pseudonymise(snapshot: Snapshot, key: bytes) -> Snapshot:
    return Pseudonyms(key).snapshot(snapshot)


def written(snapshot: Snapshot) -> str:
    return json.dumps(snapshot.as_dict())


def test_of_every_fact_there_is_only_the_listed_ones_stay() -> None:
    given_away = written(pseudonymise(filled(Snapshot, ""), KEY))
    tokens = {f"Zq{kind}{name.replace('_', '')}zq" for kind, names in KEPT.items() for name in names}
    assert set(re.findall(r"Zq\w+?zq", written(filled(Snapshot, "")))) > tokens
    assert set(re.findall(r"Zq\w+?zq", given_away, re.IGNORECASE)) == tokens


def shop() -> Snapshot:
    """A cluster in which every name is made of words that are nowhere else, which pseudonyms happen to be."""
    return pseudonymise(cluster.healthy().snapshot(), b"what people called it")


class Named(Protocol):
    """An object of the API."""

    @property
    def name(self) -> str: ...


def named(snapshot: Snapshot) -> set[str]:
    """Words of names that people gave: of nodes, namespaces, claims, volumes, pods, workloads, classes; handles, node ids."""
    kinds = (snapshot.nodes, snapshot.volumes, snapshot.claims, snapshot.pods, snapshot.templates, snapshot.classes)
    named_objects: Iterable[Named] = (one for kind in kinds for one in kind)
    names = {snapshot.name, *(one.name for one in named_objects)}
    names |= {one.namespace for one in snapshot.claims}
    names |= {one.source.handle for one in snapshot.volumes}
    names |= {entry.node_id for one in snapshot.csi_nodes for entry in one.drivers}
    return {word for name in names for word in re.findall(r"[a-z]{8}", name)}


def forms(evaluated: Report, snapshot: Snapshot) -> dict[str, str]:
    """Everything that is written."""
    return {
        "json": json.dumps(evaluated.as_dict()),
        "snapshot": written(snapshot),
        "html": render_html(evaluated),
        "markdown": render_markdown(evaluated).replace("\\", ""),
        "terminal": render_terminal(evaluated),
    }


def shape(evaluated: Report) -> dict[str, Any]:
    """A report without names."""
    return {
        "verdict": evaluated.verdict,
        "findings": Counter((one.id, one.severity, one.doubt) for one in evaluated.findings),
        "nodes": Counter((one.ok, tuple(sorted(one.findings))) for one in evaluated.nodes),
        "workloads": Counter(
            (one.runs_on, one.starts_again, tuple(sorted(one.findings))) for one in evaluated.workloads
        ),
        "volumes": Counter((one.verdict, one.source, len(one.nodes)) for one in evaluated.volumes),
    }


def test_no_word_of_a_name_is_left_in_anything_that_is_written() -> None:
    given_away = pseudonymise(shop(), KEY)
    assert len(named(shop())) > 20
    for form, text in forms(evaluate(given_away), given_away).items():
        assert {word for word in named(shop()) if word in text.lower()} == set(), form


@pytest.mark.parametrize("planted", SITUATIONS.values(), ids=SITUATIONS)
def test_it_is_evaluated_as_the_one_with_names_and_names_none_of_them(planted: Situation) -> None:
    snapshot, options = planted.world().snapshot(), Options(target=planted.target)
    original = pseudonymise(snapshot, b"what people called it")
    given_away = pseudonymise(original, KEY)
    evaluated = evaluate(given_away, options)
    assert shape(evaluated) == shape(evaluate(snapshot, options))
    reported = (written(given_away) + json.dumps(evaluated.as_dict())).lower()
    assert {word for word in named(original) if word in reported} == set()


def test_a_key_always_gives_the_same_and_another_key_gives_another() -> None:
    assert pseudonymise(shop(), KEY) == pseudonymise(shop(), KEY)
    assert pseudonymise(shop(), KEY).nodes[0].name != pseudonymise(shop(), b"another").nodes[0].name


def test_a_pseudonymized_snapshot_can_be_read_again() -> None:
    given_away = pseudonymise(shop(), KEY)
    assert Snapshot.from_dict(json.loads(written(given_away))) == given_away


def test_names_made_of_names_still_are() -> None:
    names = Pseudonyms(KEY)
    assert names.name("data-web-0") == f"{names.name('data')}-{names.name('web')}-0"
    assert names.name("Web") == names.name("web")
    assert names.name(names.name("web")) == names.name("web")


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("win-12", r"[a-z]{8}-12"),
        ("ip-10-0-3-17.ec2.internal", r"[a-z]{8}-[a-z]{8}\.[a-z]{8}\.[a-z]{8}"),
        ("10.0.3.17", r"[a-z]{8}"),
        ("123456789012", r"[a-z]{8}"),
        ("42", "42"),
        ("[ds-1] kubevols/pvc-1234.vmdk", r"\[[a-z]{8}-1\] [a-z]{8}/[a-z]{8}-[a-z]{8}\.[a-z]{8}"),
        ("", ""),
    ],
)
def test_the_form_of_a_pseudonym(text: str, pattern: str) -> None:
    assert re.fullmatch(pattern, Pseudonyms(KEY).name(text))


@settings(deadline=None)
@given(st.lists(st.from_regex(r"[a-z][a-z0-9]{2,11}", fullmatch=True), unique=True))
def test_two_words_never_get_one_pseudonym(words: list[str]) -> None:
    names = Pseudonyms(KEY)
    assert len({names.name(word) for word in words}) == len(words)


def test_names_that_every_cluster_has_are_kept() -> None:
    given_away = pseudonymise(shop(), KEY)
    text = written(given_away)
    for public in ("disk.csi.azure.com", "kubernetes.io/os", "csi-proxy-", "kube-system", "StatefulSet"):
        assert public in text
    assert {node.labels["kubernetes.io/os"] for node in given_away.nodes} <= {"windows", "linux"}


def test_volumes_on_a_node_are_still_the_volumes_that_there_are() -> None:
    volume = ObservedVolume(
        "pv-acme", Source("csi", "disk.csi.azure.com", "/subscriptions/Acme/disks/Payroll"), claim="acme/payroll"
    )
    node = ObservedNode(
        "acme-7",
        {"agentpool": "acme", "kubernetes.io/hostname": "acme-7"},
        "windows",
        attached=(
            "kubernetes.io/csi/disk.csi.azure.com^/subscriptions/Acme/disks/Payroll",
            "kubernetes.io/vsphere-volume/[acme] a.vmdk",
        ),
    )
    snapshot = replace(
        shop(), nodes=(node,), volumes=(volume,), claims=(ObservedClaim("acme", "payroll", volume="pv-acme"),)
    )
    given_away = pseudonymise(snapshot, KEY)
    (node,), (volume,), (claim,) = given_away.nodes, given_away.volumes, given_away.claims
    assert node.attached[0] == f"kubernetes.io/csi/disk.csi.azure.com^{volume.source.handle}"
    assert node.attached[1].startswith("kubernetes.io/vsphere-volume/[")
    assert (claim.key, claim.volume) == (volume.claim, volume.name)
    assert node.labels["kubernetes.io/hostname"] == node.name
    assert "acme" not in written(given_away).lower()
    assert "payroll" not in written(given_away).lower()


def test_a_name_in_a_platforms_own_text_is_replaced_there_too() -> None:
    services = ObservedConfigMap(
        "openshift-windows-machine-config-operator",
        "windows-services-9.0.0",
        {"services": '[{"command": "kubelet --node=acme-7"}]'},
    )
    snapshot = replace(shop(), nodes=(ObservedNode("acme-7", {}, "windows"),), config_maps=(services,))
    (found,) = pseudonymise(snapshot, KEY).config_maps
    assert found.namespace == services.namespace
    assert "acme" not in found.data["services"]
    assert json.loads(found.data["services"])[0]["command"].startswith("kubelet --node=")


def test_an_accepted_finding_is_accepted_under_pseudonyms_too_and_its_reason_is_left_out() -> None:
    world = cluster.healthy()
    name = next(one.name for one in world.snapshot().nodes if one.windows)
    world.get("Node", name)["spec"]["unschedulable"] = True
    entries = read_suppressions(
        [{"id": "CSI-N31", "object": f"Node {name}", "reason": f"{name} waits for Jane", "expires": "2027-01-31"}]
    )
    names = Pseudonyms(KEY)
    evaluated = suppress(
        evaluate(names.snapshot(world.snapshot())), [names.suppression(one) for one in entries], date(2026, 11, 20)
    )
    assert [(one.finding.id, one.reason) for one in evaluated.suppressed] == [("CSI-N31", "(left out)")]
    assert evaluated.findings == ()


def test_a_set_keeps_its_claims() -> None:
    template = ObservedTemplate("StatefulSet", "acme", "payroll", replicas=1)
    pod = ObservedPod("acme", "payroll-0", owner="StatefulSet/payroll")
    found = pseudonymise(replace(shop(), templates=(template,), pods=(pod,)), KEY)
    assert found.pods[0].owner == f"StatefulSet/{found.templates[0].name}"
    assert found.pods[0].name == f"{found.templates[0].name}-0"
