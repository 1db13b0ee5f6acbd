# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known about the releases of csi-proxy: flags, pipes, the floor and the recommendation.

Source: ``cmd/csi-proxy/main.go``, ``pkg/server/*/api_group_generated.go`` and the vendored klog of each tag of
https://github.com/kubernetes-csi/csi-proxy.
"""

from __future__ import annotations

FLOOR = "1.1.3"
"""Lowest release that may be installed: the first one that fixes CVE-2023-3893."""

RECOMMENDED = "1.3.0"
"""The default. tests/unit/plugins/plugin_utils/catalog/test_csi_proxy_release.py lists the texts that name it too."""

PIPE_PREFIX = "csi-proxy-"

SERVICE_NAMES = ("csi-proxy", "csiproxy")
"""Names under which installers register the service: the first is ours, the second the upstream README's."""

PRIVACY_SINCE = "1.2.0"
"""First release with the flag -require-privacy. A release ends at once when it is started with a flag that it does not have."""

_API_GROUPS = (
    ("disk", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v1beta3")),
    ("filesystem", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v2alpha1")),
    ("iscsi", ("v1alpha1", "v1alpha2")),
    ("smb", ("v1", "v1alpha1", "v1beta1", "v1beta2")),
    ("system", ("v1alpha1",)),
    ("volume", ("v1", "v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v2alpha1")),
)


PIPES = tuple(sorted(f"{PIPE_PREFIX}{group}-{version}" for group, versions in _API_GROUPS for version in versions))
"""Bare names of the pipes of every release from FLOOR on. Flags and API groups were only ever added within version 1."""

MAJOR = 1
"""Release 2 has no service."""
