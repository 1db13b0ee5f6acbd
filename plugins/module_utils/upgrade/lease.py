# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of the one upgrade of a cluster. A whole run holds it: many modules, and tasks between them."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MANAGED_BY, MANAGER, PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import About, Lease

NAME = "kubewin-upgrade"
PART = "upgrade"


def upgrade_lease(
    client: Client, namespace: str, holder: str, notify: Callable[[str], None] = lambda _line: None
) -> Lease:
    """holder: of the run."""
    labels = {MANAGED_BY: MANAGER, PART_OF: PART}
    return Lease(client, About(namespace, NAME, labels, "an upgrade of this cluster"), holder, notify)
