# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A snapshot with pseudonyms, which gives the same verdicts as the original. Pure.

Names are replaced word by word, so that what is made of other names still is: claim ``data-web-0`` of set ``web`` and its
template ``data``. Numbers of up to three digits stay, unless they are an address. The same word gets the same pseudonym
under one key, which is needed to reverse them.

Whatever is not known to be the same in every cluster counts as a name, so a fact that is added one day does not leak. Free
text, such as a message of the API server, is left out.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.catalog import in_tree
from ansible_collections.kubewin.csi.plugins.module_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.surroundings import FILE_SYSTEM
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds, labels, pod
from ansible_collections.kubewin.csi.plugins.module_utils.kube.node import ObservedNode, Taint
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts import (
    cluster,
    nodes,
    placement,
    sources,
    storage,
    workloads,
)
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.facts.snapshot import Snapshot, Unread
from ansible_collections.kubewin.csi.plugins.module_utils.readiness.suppress import Suppression
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.names import texts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout import facts as gate

WITHHELD = "(left out)"

_WORD = re.compile(r"[A-Za-z0-9]+")
# Four numbers with the same sign between them, also as names of machines spell them: 10.0.3.17, ip-10-0-3-17.
_ADDRESS = re.compile(r"(?<!\d)\d{1,3}([.-])\d{1,3}\1\d{1,3}\1\d{1,3}(?!\d)")
_TOKEN = re.compile(r"[\w.-]+")
_ONSETS, _VOWELS = "bdfgklmnprstvz", "aeiou"

# The owners of these use the same names in every cluster.
_DOMAINS = (
    ".kubernetes.io", ".k8s.io", ".openshift.io", ".kubewin.io", ".coreos.com", ".amazonaws.com", ".aws.com", ".azure.com",
    ".google.com", ".gke.io", ".vmware.com", ".openstack.org", ".portworx.com", ".ceph.com", ".cattle.io", ".rancher.io",
)  # fmt: skip
_DRIVERS = frozenset(
    [
        *(driver.name for driver in DRIVERS.values()),
        *(name for one in in_tree.PLUGINS for name in (one.plugin, one.driver)),
        "kubernetes.io/no-provisioner",
    ]
)
_NAMESPACES = frozenset(
    [
        "default",
        "kube-system",
        "openshift-config",
        "openshift-config-managed",
        "openshift-windows-machine-config-operator",
        *(name for driver in DRIVERS.values() for name in (driver.namespace, *driver.controller.namespaces)),
    ]
)
_KINDS = frozenset(kind.kind for kind in (kinds.POD, kinds.NODE, *kinds.TEMPLATES))
# Values of labels and parameters that identify no user.
_VALUES = frozenset(
    [
        "", "true", "false", "windows", "Windows", "linux", "Linux", "amd64", "arm64", "ntfs", labels.PROVEN_VALUE,
        labels.MANAGER, "Helm", "privileged", "baseline", "restricted", "latest", "Managed", "Dedicated",
    ]
)  # fmt: skip
# The key of the taint that the Windows Machine Config Operator sets.
_KEYS = frozenset(["os"])
# Labels whose values are the build of Windows.
_BUILDS = ("node.kubernetes.io/windows-build",)


# Values of upstream's CSIDrivers.
_SPECS = frozenset(text for driver in DRIVERS.values() for text in texts(driver.csi_driver))


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word.lower() for text in texts for word in _WORD.findall(text))


# In images, paths and arguments of containers: words of upstream's images and of the kubelet's directories.
_PARTS = _words(
    *(image for driver in DRIVERS.values() for one in driver.releases for image in one.images.values()),
    *_DRIVERS,
    r"c:\var\lib\kubelet\plugins\plugins_registry unix csi.sock windows programdata",
    "external csi provisioner attacher resizer snapshotter registrar liveness probe node driver controller",
)


class Pseudonyms:
    """Pseudonyms under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()
        self._names: dict[str, str] = {}

    def snapshot(self, snapshot: Snapshot) -> Snapshot:
        """The same cluster under other names."""
        found: Snapshot = self._any(snapshot)
        return found

    def suppression(self, suppression: Suppression) -> Suppression:
        """The same entry for a report under other names. A glob that ends within a word fits no pseudonym."""
        kind, space, name = suppression.object.partition(" ")
        return Suppression(suppression.id, f"{kind}{space}{self._namespaced(name)}", WITHHELD, suppression.expires)

    # By what a value is

    def name(self, text: str) -> str:
        """A name, or several with signs between them."""
        if text not in self._names:
            hidden = _ADDRESS.sub(lambda found: self._word(found[0]), text)
            self._names[text] = (
                self._word(hidden)
                if hidden.isdigit()
                else _WORD.sub(lambda found: found[0] if found[0] in self._taken else self._word(found[0]), hidden)
            )
        return self._names[text]

    def _word(self, word: str) -> str:
        if word.isdigit() and len(word) <= 3:
            return word
        plain = word.lower()
        if plain not in self._of:
            digest = int.from_bytes(hmac.new(self._key, plain.encode(), hashlib.sha256).digest(), "big")
            made = ""
            while len(made) < 8 or made in self._taken:
                digest, onset = divmod(digest, len(_ONSETS))
                digest, vowel = divmod(digest, len(_VOWELS))
                made += _ONSETS[onset] + _VOWELS[vowel]
            self._taken.add(made)
            self._of[plain] = made
        return self._of[plain]

    def _keep(self, value: Any) -> Any:
        return value

    def _text(self, text: str) -> str:
        return WITHHELD if text else ""

    def _namespaced(self, text: str) -> str:
        namespace, slash, name = text.partition("/")
        kept = namespace if namespace in _NAMESPACES else self.name(namespace)
        return f"{kept}{slash}{self.name(name)}"

    def _owner(self, text: str) -> str:
        kind, slash, name = text.partition("/")
        return f"{kind if kind in _KINDS else self.name(kind)}{slash}{self.name(name)}"

    def _driver(self, text: str) -> str:
        return text if text in _DRIVERS or text.endswith(_DOMAINS) else self.name(text)

    def _volume(self, text: str) -> str:
        """A volume's unique name on a node: kubernetes.io/csi/<driver>^<handle>, kubernetes.io/<plugin>/<handle>."""
        by_csi = "kubernetes.io/csi/"
        if text.startswith(by_csi):
            driver, sign, handle = text[len(by_csi) :].partition("^")
            return f"{by_csi}{self._driver(driver)}{sign}{self.name(handle)}"
        plugin = next((one.plugin for one in in_tree.PLUGINS if text.startswith(f"{one.plugin}/")), "")
        return plugin + self.name(text[len(plugin) :])

    def _label(self, key: str) -> str:
        domain = key.rpartition("/")[0]
        public = domain and f".{domain}".endswith(_DOMAINS)
        return key if public or key in _KEYS else self.name(key)

    def _label_value(self, key: str, value: str) -> str:
        return value if value in _VALUES or key in _BUILDS else self.name(value)

    def _manager(self, value: str) -> str:
        return self._label_value("", value)

    def _labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        return {self._label(key): self._label_value(key, value) for key, value in labels.items()}

    def _pairs(self, pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(self._labels(dict(pairs)).items()))

    def _annotations(self, given: Mapping[str, str]) -> dict[str, str]:
        """Those of the Windows Machine Config Operator; its versions identify no user."""
        return {
            key: value if key.endswith("version") or value in _VALUES else self.name(value)
            for key, value in given.items()
        }

    def _marks(self, given: Mapping[str, str]) -> dict[str, str]:
        """Annotations that show an owner; that the owner is OpenShift's storage operator is kept."""
        return {
            key if key in labels.OPENSHIFT_OPERATOR else self._label(key): self.name(value)
            for key, value in given.items()
        }

    def _node_ids(self, ids: Mapping[str, str]) -> dict[str, str]:
        return {self._driver(driver): self.name(node_id) for driver, node_id in ids.items()}

    def _server(self, text: str) -> str:
        """A host's name; that it is one of the cluster is kept."""
        return ".".join(part if part == "svc" else self.name(part) for part in text.split("."))

    def _parameters(self, parameters: Mapping[str, str]) -> dict[str, str]:
        kept = (*FILE_SYSTEM, "protocol")
        return {
            key: value if key.lower() in kept or value in _VALUES else self._server(value)
            for key, value in parameters.items()
        }

    def _parts(self, text: str) -> str:
        return _WORD.sub(lambda found: found[0] if found[0].lower() in _PARTS else self._word(found[0]), text)

    def _image(self, image: str) -> str:
        rest, at, digest = image.partition("@")
        name, colon, tag = rest.rpartition(":")
        if not colon or "/" in tag:
            name, colon, tag = rest, "", ""
        return f"{self._parts(name)}{colon}{tag}{at}{digest}"

    def _images(self, images: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
        return tuple((self._parts(container), self._image(image)) for container, image in images)

    def _data(self, data: Mapping[str, str]) -> dict[str, str]:
        """A ConfigMap of the platform, which may contain a name."""

        def known(found: re.Match[str]) -> str:
            return self._names.get(found[0], found[0])

        return {key: _TOKEN.sub(known, value) for key, value in data.items()}

    def _host_finding(self, found: Mapping[str, str]) -> dict[str, str]:
        kept = ("id", "severity", "remedy")
        return {key: value if key in kept else self._text(value) for key, value in found.items()}

    def _raw(self, value: Any, key: str = "") -> Any:
        """A part of an object as the API has it: of pod specs, and of CSIDrivers."""
        if isinstance(value, Mapping):
            if key in ("nodeSelector", "matchLabels"):
                return self._labels(value)
            if "key" in value or "operator" in value:
                return self._expression(value)
            return {name: self._raw(one, name) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._raw(one, key) for one in value]
        if isinstance(value, str) and value not in _SPECS:
            return self.name(value)
        return value

    def _expression(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """A toleration, or an expression of an affinity."""
        key, found = str(value.get("key") or ""), dict(value)
        if "key" in value:
            found["key"] = key if key == "metadata.name" else self._label(key)
        if value.get("value"):
            found["value"] = self._label_value(key, str(value["value"]))
        if value.get("values"):
            found["values"] = [self._label_value(key, str(one)) for one in value["values"]]
        return found

    # The walk

    def _any(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, tuple):
            return tuple(self._any(one) for one in value)
        if isinstance(value, Mapping):
            return {self.name(str(key)): self._any(one) for key, one in value.items()}
        special = _WHOLE.get(type(value))
        if special is not None:
            return special(self, value)
        if is_dataclass(value) and not isinstance(value, type):
            kind = type(value)
            return kind(**{name: rule(self, getattr(value, name)) for name, rule in _rules(kind).items()})
        return value

    def _requirement(self, one: placement.Requirement) -> placement.Requirement:
        if one.field:
            return placement.Requirement(one.key, one.operator, tuple(map(self.name, one.values)), True)
        values = tuple(self._label_value(one.key, value) for value in one.values)
        return placement.Requirement(self._label(one.key), one.operator, values)

    def _toleration(self, one: placement.Toleration) -> placement.Toleration:
        return placement.Toleration(
            self._label(one.key) if one.key else "", one.operator, self._label_value(one.key, one.value), one.effect
        )

    def _taint(self, one: Taint) -> Taint:
        return Taint(self._label(one.key), self._label_value(one.key, one.value), one.effect)


_Rule = Callable[[Pseudonyms, Any], Any]

_WHOLE: Mapping[type, _Rule] = {
    placement.Requirement: Pseudonyms._requirement,
    placement.Toleration: Pseudonyms._toleration,
    Taint: Pseudonyms._taint,
}


def _each(rule: _Rule) -> _Rule:
    """A rule for each of a tuple or set, None where there is none."""
    return lambda names, values: None if values is None else type(values)(rule(names, one) for one in values)


# What is the same in every cluster; everything else is a name, or hidden as below.
_KEPT: Mapping[type, str] = {
    Unread: "resource rule",
    placement.Placement: "os",
    sources.Source: "field fs_type kind attribute protocol",
    sources.Volumes: "pipes",
    sources.ClaimTemplate: "access_modes narrowed",
    ObservedNode: "os kubelet build runtime",
    nodes.ObservedCsiNode: "migrated",
    nodes.ObservedHost: "managed_by",
    storage.ObservedVolume: "policy phase access_modes created",
    storage.ObservedClaim: "phase access_modes narrowed waits_since",
    storage.ObservedAttachment: "deleting waits_since",
    storage.ObservedClass: "binding_mode policy created",
    workloads.ObservedPod: "phase gone_by",
    workloads.ObservedTemplate: "kind",
    pod.PodFacts: "template_generation phase",
    pod.ContainerFacts: "waiting",
    gate.DaemonSetFacts: "template_generation pipes",
    gate.HostFacts: "release state missing_pipes pipes",
    cluster.ObservedController: "driver",
    cluster.Condition: "type status reason",
    cluster.ObservedNamespace: "phase",
    cluster.ObservedCluster: "kubernetes openshift updating_to infrastructure storage_driver wmco",
    cluster.ObservedConfigMap: "name",
    cluster.ObservedDriver: "profile",
}
# By the name of a field, in every dataclass unless one is named. A rule that keeps more than public words names one.
_HIDDEN: Mapping[_Rule, str] = {
    Pseudonyms._text: "why message not_ready_because attach_error detach_error not_scheduled waiting_message "
    "ended_because HostFacts.reason",
    Pseudonyms._namespaced: "namespace secret_namespace claim ObservedNamespace.name",
    Pseudonyms._owner: "ObservedPod.owner ObservedTemplate.owner",
    Pseudonyms._driver: "driver provisioner provisioned_by migrated_to attacher DriverEntry.name ObservedDriver.name",
    Pseudonyms._server: "server",
    _each(Pseudonyms._driver): "registers names",
    _each(Pseudonyms._volume): "in_use ObservedNode.attached",
    _each(Pseudonyms._label): "topology_keys",
    Pseudonyms._labels: "labels node_selector",
    Pseudonyms._pairs: "selector places",
    Pseudonyms._annotations: "ObservedNode.annotations",
    Pseudonyms._marks: "Marks.annotations",
    Pseudonyms._node_ids: "node_ids",
    Pseudonyms._parameters: "ObservedClass.parameters",
    Pseudonyms._images: "images",
    Pseudonyms._image: "ObservedController.image",
    Pseudonyms._parts: "ContainerFacts.name ObservedDaemonSet.words",
    _each(Pseudonyms._parts): "ObservedDaemonSet.host_paths",
    Pseudonyms._manager: "ObservedDaemonSet.managed_by",
    Pseudonyms._raw: "DaemonSetFacts.pod_spec ObservedDriver.spec",
    Pseudonyms._data: "ObservedConfigMap.data",
    _each(Pseudonyms._host_finding): "ObservedHost.findings",
}
_BY_FIELD = {name: rule for rule, names in _HIDDEN.items() for name in names.split()}


@cache
def _rules(kind: Any) -> Mapping[str, _Rule]:
    """How each field of a dataclass is hidden."""
    rules = {one.name: _BY_FIELD.get(one.name, Pseudonyms._any) for one in fields(kind)}
    rules |= {name: _BY_FIELD.get(f"{kind.__name__}.{name}", rule) for name, rule in rules.items()}
    return rules | dict.fromkeys(_KEPT.get(kind, "").split(), Pseudonyms._keep)
