# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The minor releases of Kubernetes that changed whether a pod starts. Those of in-tree plugins are in in_tree.py.

Sources: https://github.com/kubernetes/kubernetes, and k8s.io/pod-security-admission, policy.
"""

from __future__ import annotations

# A claim that names no class gets a default class that is created later (pkg/features/kube_features.go, RetroactiveDefaultStorageClass).
SETS_DEFAULT_CLASS_LATER = (1, 26)
# Of several default classes the newest counts (pkg/volume/util/storageclass.go, GetDefaultClass). Before, the API server refused claims
# that name none.
TAKES_NEWEST_DEFAULT_CLASS = (1, 26)
# Pod Security exempts pods of Windows from what only Linux has (check_allowPrivilegeEscalation.go, check_capabilities_restricted.go).
EXEMPTS_WINDOWS_PODS = (1, 25)
# The newest minor release against which the rules of preflight and this table were compared. Later ones may differ.
NEWEST = (1, 36)
