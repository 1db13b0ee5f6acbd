# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this account may do what is about to be done, asked of the API server before the first change."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.kubewin.csi.plugins.module_utils.kube.access import Need, bind_command, missing
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError


def require(client: Client, desired: Iterable[Need], what: str, role: str) -> None:
    """ClusterError with every rule that is missing. what: is to be done, "an upgrade". role: the ClusterRole that has all of them."""
    if rules := missing(desired, client.allowed):
        raise ClusterError(
            f"this account lacks permissions for {what}; nothing was changed. For this account, bind {role} of "
            f"roles/csi_driver/files/kubewin-rbac.yaml, such as {bind_command(role.replace(',', ' ').split()[0])}; or "
            f"add these rules to one of its roles: {'; '.join(rules)}",
            "forbidden",
            403,
        )
