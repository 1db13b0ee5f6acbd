# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the collection knows of a CSI driver's Windows node plugin: the shapes, without any driver's data.

One file a driver below `drivers/` holds one `Driver`; `registry` names them. Everything here is immutable data, so that
planning stays a pure function and the templates hold no numbers of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .capability import Table
from .versions import Version, find_closest, has_fix, is_between, parse

Mode = Literal["csi_proxy", "host_process"]

# Roles of an image in a node plugin pod; a user's overrides are keyed by them.
IMAGE_ROLES = ("driver", "registrar", "liveness_probe")


def map_images(driver: str, registrar: str, liveness_probe: str = "") -> dict[str, str]:
    """Image references by role; without a liveness probe the driver has none."""
    pairs = zip(IMAGE_ROLES, (driver, registrar, liveness_probe), strict=True)
    return {role: image for role, image in pairs if image}


def build_resources(cpu: str, memory: str, most: str) -> Mapping[str, Mapping[str, str]]:
    """A container's resources as manifests have them: requests, and the memory limit (most)."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}}


def build_probe(delay: int, timeout: int, period: int, failures: int) -> Mapping[str, int]:
    """A probe's numbers as templates read them, in seconds (failures: a count)."""
    return {"delay": delay, "timeout": timeout, "period": period, "failures": failures}


def build_rule(groups: tuple[str, ...], resources: tuple[str, ...], verbs: tuple[str, ...]) -> Mapping[str, list[str]]:
    """A rule as rbac.authorization.k8s.io/v1 PolicyRule."""
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a driver and what differs from release to release.

    Only releases are listed of which a source, named in the driver's file, shows that their images can be pulled. Others are derived
    from the nearest listed one, with a warning.

    version: without a leading v. images: by IMAGE_ROLES, "repository:tag". mode_images: by mode, what replaces them there.
    unproven_modes: modes of which no source shows that the driver's image can be pulled.
    max_volumes: most volumes a node may take by upstream's default, 0 when the release leaves that to Kubernetes.
    """

    version: str
    images: Mapping[str, str]
    max_volumes: int = 0
    mode_images: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unproven_modes: tuple[str, ...] = ()

    def map_images_of(self, mode: str) -> dict[str, str]:
        return {**self.images, **self.mode_images.get(mode, {})}


@dataclass(frozen=True, slots=True)
class ModeRule:
    """A mode of the node plugin on Windows, and its releases.

    first, last: its releases, both included; None is open. default_from: first release that upstream runs in this
    mode by default, None if it is the fallback. template: file below the role's
    templates/drivers. why: one sentence, for refusals.
    pipes: csi-proxy pipes the pod mounts, bare names; beta_pipes: further ones for csi-proxy before 1.0.
    ports: by use, container ports, which are the node's where the pod is a HostProcess one. min_kubernetes: "1.20".
    min_containerd: "1.6". any_windows: its image carries no Windows build and so fits all of them.
    wmic_before: releases of the driver before this one start wmic.exe themselves in this mode. notes: what to
    know before choosing it. resources: by IMAGE_ROLES, requests and limits that upstream gives. mounts_directories:
    whether the HostProcess mode mounts directories of the host. Further arguments of its containers are in the template.
    """

    mode: Mode
    why: str
    template: str
    first: str | None = None
    last: str | None = None
    default_from: str | None = None
    pipes: tuple[str, ...] = ()
    beta_pipes: tuple[str, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)
    liveness: Mapping[str, int] | None = None
    readiness: Mapping[str, int] | None = None
    registrar_liveness: Mapping[str, int] | None = None
    min_kubernetes: str = "1.20"
    min_containerd: str | None = None
    any_windows: bool = False
    wmic_before: str | None = None
    notes: tuple[str, ...] = ()
    resources: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    mounts_directories: bool = False

    @property
    def all_pipes(self) -> tuple[str, ...]:
        """Every pipe that the pod mounts, in upstream's order."""
        return self.pipes + self.beta_pipes

    def is_default(self, version: Version) -> bool:
        """Whether upstream runs that release in this mode by default."""
        return self.default_from is not None and version.release >= parse(self.default_from).release

    def supports(self, version: Version) -> bool:
        return is_between(version, self.first, self.last)


@dataclass(frozen=True, slots=True)
class Controller:
    """The driver's Linux controller, installed separately; the node plugin has to match its version.

    deployments, container: the names it has upstream and in distributions. namespaces: where to look, in this order.
    pointer: where its installation is described. lease: name of the Lease by which its syncer leads, where it has one.
    """

    deployments: tuple[str, ...]
    container: str
    namespaces: tuple[str, ...]
    pointer: str
    lease: str = ""


@dataclass(frozen=True, slots=True)
class FeatureStates:
    """A ConfigMap of feature switches that the node plugin reads.

    shipped: data that upstream installs with releases that require no switch. required_before: by switch, the first release that
    does without it; earlier ones need it to be "true". migrates_before: likewise, and only for volumes of its in-tree plugin.
    """

    name: str
    shipped: Mapping[str, str]
    required_before: Mapping[str, str] = field(default_factory=dict)
    migrates_before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StorageClass:
    """The StorageClass for Windows claims: upstream's example, with the file system Windows needs.

    required: parameters that only the user can give.
    """

    name: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    binding_mode: str = "WaitForFirstConsumer"
    allow_expansion: bool = True
    reclaim_policy: str = "Delete"
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Advisory:
    """A published weakness of a driver. fixed: the first release with the fix, for each minor release that has one.

    source: where it is published. effect: completes "release ... ".
    """

    name: str
    fixed: tuple[str, ...]
    effect: str
    source: str

    def matches(self, version: Version) -> bool:
        """Whether a release has it still."""
        return not has_fix(version, self.fixed)


@dataclass(frozen=True, slots=True)
class KnownIssue:
    """A known bug of a driver on Windows in one mode, which no release fixes yet.

    latest: the newest release without the fix; the first one after it has it. effect: completes "release ... ". source: the fix upstream.
    workaround: an imperative sentence.
    """

    mode: Mode
    latest: str
    effect: str
    source: str
    workaround: str

    def matches(self, version: Version, mode: str) -> bool:
        return mode == self.mode and version.release <= parse(self.latest).release


@dataclass(frozen=True, slots=True)
class DiskTypes:
    """Types of disks that only some machine types of a cloud attach. Which ones is in the documentation of the cloud.

    parameters: those of a StorageClass that name the type, in lower case. default: the type without them. limited: pattern of
    the types.
    """

    parameters: tuple[str, ...]
    limited: str
    default: str = ""

    def find_limited_type(self, parameters: Mapping[str, str]) -> str:
        """The type of a class with these parameters if only some machine types attach it, else empty."""
        types = (value for name, value in parameters.items() if name.lower() in self.parameters)
        disk_type = next(types, "") or self.default
        return disk_type if re.fullmatch(self.limited, disk_type) else ""


# Of the drivers of SMB shares.
STALE_MAPPING = (
    "does not mount a share again after its node restarted, if Windows has kept a disconnected mapping of the share"
)
REMOVE_MAPPING = "remove the mapping on the node (Remove-SmbGlobalMapping), or drain the node before you restart it"


@dataclass(frozen=True, slots=True)
class Driver:
    """One CSI driver.

    key: its name in options and file names. name: its CSI name, which is also its plugin directory. daemonset,
    namespace, container: upstream's names. role_label: label role of its pods, where upstream has one.
    csi_driver: the spec of its CSIDriver object as upstream installs it; csi_driver_before: by the first release that no
    longer does, what it installed until then. topology_keys: of its nodes; one that ends in a
    slash is what the keys begin with. in_tree: the in-tree plugin it replaces. windows_builds: os.version builds its
    images exist for; windows_since: by build, the first release that has one. fstypes: values of csi.storage.k8s.io/fstype with which
    a class makes volumes for Windows, empty when the driver mounts shares. capabilities: what its node plugin supports.
    platform_daemonsets: by platform, the
    DaemonSet with which it brings this driver to Windows nodes itself. avoid_nodes: by label, the values of Nodes that it
    keeps away from. prerequisites: what is required but not visible in the cluster. fixed_modes: modes to which a node
    plugin that runs in another one cannot change. advisories: published weaknesses of releases.
    known_issues: errors without a released fix. handle: the pattern of its volume handles, with the groups zone, region and
    account (a project or subscription) of the volume; empty where every handle may be one. default_file_system: of volumes whose
    class names none, where its platform hides the arguments of its provisioner. disk_types: those that only some machine types attach.
    """

    key: str
    title: str
    name: str
    namespace: str
    daemonset: str
    container: str
    modes: tuple[ModeRule, ...]
    releases: tuple[Release, ...]
    default_version: str
    controller: Controller
    csi_driver: Mapping[str, Any]
    cluster_rules: tuple[Mapping[str, list[str]], ...]
    storage_class: StorageClass
    role_label: str | None = None
    namespace_rules: tuple[Mapping[str, list[str]], ...] = ()
    csi_driver_before: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    priority_class: str = "system-node-critical"
    max_unavailable: str = "1"
    feature_states: FeatureStates | None = None
    topology_keys: tuple[str, ...] = ()
    in_tree: str | None = None
    windows_builds: tuple[str, ...] = ()
    windows_since: Mapping[str, str] = field(default_factory=dict)
    fstypes: tuple[str, ...] = ()
    capabilities: Table = field(default_factory=dict)
    platform_daemonsets: Mapping[str, str] = field(default_factory=dict)
    avoid_nodes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prerequisites: tuple[str, ...] = ()
    fixed_modes: tuple[Mode, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    known_issues: tuple[KnownIssue, ...] = ()
    handle: str = ""
    default_file_system: str = ""
    disk_types: DiskTypes | None = None

    @property
    def service_account(self) -> str:
        """Ours, always separate from the one of the driver's own installation."""
        return f"kubewin-{self.key.replace('_', '-')}-csi-node"

    @property
    def app_label(self) -> str:
        """Label app of its pods, as upstream has it."""
        return self.daemonset

    def find_csi_driver_spec(self, version: Version) -> Mapping[str, Any]:
        earlier = self.csi_driver_before.items()
        return next((spec for first, spec in earlier if version.release < parse(first).release), self.csi_driver)

    @property
    def newest(self) -> Version:
        return max(parse(release.version) for release in self.releases)

    def list_builds(self, version: Version, rule: ModeRule) -> tuple[str, ...] | None:
        """Windows builds that a release has an image for in a mode; None when one image fits all."""
        if rule.any_windows:
            return None
        since = self.windows_since
        return tuple(
            build
            for build in self.windows_builds
            if build not in since or version.release >= parse(since[build]).release
        )

    def find_release(self, version: Version) -> Release | None:
        return next((release for release in self.releases if parse(release.version) == version), None)

    def list_mode_rules(self, version: Version) -> tuple[ModeRule, ...]:
        """The modes that exist in a release, in upstream's order of preference."""
        rules = [rule for rule in self.modes if rule.supports(version)]
        return tuple(sorted(rules, key=lambda rule: not rule.is_default(version)))

    def rule(self, mode: str) -> ModeRule | None:
        return next((rule for rule in self.modes if rule.mode == mode), None)

    def find_nearest(self, version: Version, rule: ModeRule) -> Release | None:
        """The listed release in a mode that is closest to `version`, None without any."""
        releases = {parse(release.version): release for release in self.releases}
        closest = find_closest(version, [listed for listed in releases if rule.supports(listed)])
        return None if closest is None else releases[closest]
