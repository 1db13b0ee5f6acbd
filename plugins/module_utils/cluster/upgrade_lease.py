# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one upgrade of a cluster: its lease is held by a whole run, which is many modules that renew it and leave it to the next."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.module_utils.cluster.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.lease import About, Lease
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.removal import PART_OF
from ansible_collections.kubewin.csi.plugins.module_utils.deploy.wanted import MANAGED_BY, MANAGER

NAME = "kubewin-upgrade"
PART = "upgrade"
# Seconds without a sign of life while a module runs.
AT_WORK = 120


def upgrade_lease(client: Client, namespace: str, holder: str, over: str = "") -> Lease:
    """holder: of the run. over: the holder whom this run may take over from although he may live."""
    about = About(
        namespace=namespace,
        name=NAME,
        labels={MANAGED_BY: MANAGER, PART_OF: PART},
        what="an upgrade of this cluster",
        remedy="run again with kubewin_upgrade_take_over={holder}",
    )
    return Lease(client, about, holder, AT_WORK, over)
