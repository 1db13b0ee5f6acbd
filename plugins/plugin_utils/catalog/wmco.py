# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Windows Machine Config Operator's lines: which OpenShift each is for, and what it does to storage on its nodes.

Source: go.mod, pkg/nodeconfig/nodeconfig.go, pkg/services/services.go, pkg/servicescm/servicescm.go, and the submodule
csi-proxy (of https://github.com/openshift/csi-proxy, as git describe names its commit), of each branch release-4.N of
https://github.com/openshift/windows-machine-config-operator; config/v1/types_feature.go of each branch of
https://github.com/openshift/api; enhancements/windows-containers/csi-proxy.md of https://github.com/openshift/enhancements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .versions import Version, parse

CsiProxyChange = Literal["kept", "added", "removed", "none"]

_AZURE_FILE, _VSPHERE = "kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"
_AWS, _AZURE_DISK, _GCE = "kubernetes.io/aws-ebs", "kubernetes.io/azure-disk", "kubernetes.io/gce-pd"
_CINDER = "kubernetes.io/cinder"

OPERATOR_NAMESPACE = "openshift-windows-machine-config-operator"
# Prefix of its annotations and labels of Nodes, and those with the state of an upgrade: pkg/metadata/metadata.go.
PREFIX = "windowsmachineconfig.openshift.io/"
VERSION, DESIRED = f"{PREFIX}version", f"{PREFIX}desired-version"
ALLOW, UPGRADING, BLOCKED = f"{PREFIX}allow-upgrade", f"{PREFIX}upgrading", f"{PREFIX}upgrade-blocked"


@dataclass(frozen=True, slots=True)
class Line:
    """One minor release of OpenShift with the operator that belongs to it.

    wmco: what the operator's versions of this line begin with. csi_proxy_since: first that brings csi-proxy, None when none
    does. not_migrated: in-tree plugins that OpenShift's default feature set leaves in-tree. windows_in_tree: those that the operator
    keeps in-tree on its nodes from windows_in_tree_since on, whatever the rest of the cluster does.
    """

    openshift: str
    kubernetes: str
    wmco: str
    csi_proxy_since: str | None
    not_migrated: tuple[str, ...] = ()
    windows_in_tree: tuple[str, ...] = ()
    windows_in_tree_since: str = ""

    def has_csi_proxy(self, version: Version) -> bool:
        return self.csi_proxy_since is not None and version.release >= parse(self.csi_proxy_since).release

    def list_in_tree_plugins(self, version: Version) -> tuple[str, ...]:
        """In-tree plugins that an operator of this line keeps in-tree on its nodes."""
        since = self.windows_in_tree_since
        return self.windows_in_tree if since and version.release >= parse(since).release else ()


# In-tree plugins whose volumes on Windows no upgrade takes over from lines before this one: there is none between in-tree
# and a csi-proxy (enhancements/windows-containers/csi-proxy.md, "Upgrade / Downgrade Strategy").
NO_PATH_BEFORE = "4.12"
NO_PATH = (_AWS, _GCE, _AZURE_DISK)

_UP_TO_410 = (_AWS, _CINDER, _GCE, _AZURE_DISK, _AZURE_FILE, _VSPHERE)

LINES: tuple[Line, ...] = (
    Line("4.10", "1.23", "5", None, not_migrated=_UP_TO_410),
    Line("4.11", "1.24", "6", None, not_migrated=(_AWS, _GCE, _AZURE_FILE, _VSPHERE)),
    Line(
        "4.12", "1.25", "7", "7.2.0", not_migrated=(_AZURE_FILE, _VSPHERE),
        windows_in_tree=(_AZURE_FILE, _VSPHERE), windows_in_tree_since="7.1.0",
    ),
    Line("4.13", "1.26", "8", "8.1.0", windows_in_tree=(_VSPHERE,), windows_in_tree_since="8.0.0"),
    Line("4.14", "1.27", "9", "9.0.0"),
    Line("4.15", "1.28", "10.15", "10.15.0"),
    Line("4.16", "1.29", "10.16", "10.16.0"),
    Line("4.17", "1.30", "10.17", "10.17.0"),
    Line("4.18", "1.31", "10.18", "10.18.0"),
    Line("4.19", "1.32", "10.19", "10.19.0"),
    Line("4.20", "1.33", "10.20", "10.20.0"),
    Line("4.21", "1.34", "10.21", "10.21.0"),
    Line("4.22", "1.35", "10.22", "10.22.0"),
    Line("4.23", "1.36", "11.0", "11.0.0"),
    Line("5.0", "1.36", "11.0", "11.0.0"),
    Line("5.1", "1.36", "11.0", "11.0.0"),
    Line("5.2", "1.36", "11.0", "11.0.0"),
)  # fmt: skip


def find_line_of_openshift(version: str) -> Line | None:
    """The line of an OpenShift version such as "4.14.3"; None when it is not known. ValueError when it is no version."""
    major, minor = parse(version).minor
    return next((line for line in LINES if line.openshift == f"{major}.{minor}"), None)


def find_line_of_operator(version: Version) -> Line | None:
    """The line of an operator's version, None when it is not known."""
    major, minor = version.minor
    return next((line for line in LINES if line.wmco in (str(major), f"{major}.{minor}")), None)


def list_skipped_lines(current: Version, target: Version) -> tuple[str, ...]:
    """Lines of the operator that an upgrade leaps over.

    Its lifecycle manager updates from the line before only: olm.skipRange of each branch's
    bundle/manifests/windows-machine-config-operator.clusterserviceversion.yaml.
    """
    before, after = find_line_of_operator(current), find_line_of_operator(target)
    lines = list(dict.fromkeys(line.wmco for line in LINES))
    if before is None or after is None:
        return ()
    return tuple(lines[lines.index(before.wmco) + 1 : lines.index(after.wmco)])


def has_csi_proxy(version: Version) -> bool:
    """Whether a release of the operator brings csi-proxy; those of lines that are not known yet do."""
    line = find_line_of_operator(version)
    return version.release[0] > 8 if line is None else line.has_csi_proxy(version)


def classify_upgrade(current: Version, target: Version) -> CsiProxyChange:
    """What an upgrade of the operator does to csi-proxy on its nodes; "none" if neither release has it.

    The enhancement calls "kept" A and D, "added" B and E, "removed" C.
    """
    had, has = has_csi_proxy(current), has_csi_proxy(target)
    if has:
        return "kept" if had else "added"
    return "removed" if had else "none"
