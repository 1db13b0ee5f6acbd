# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a namespace can take what is to be kept there, asked before the first change."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client


def check_namespace(client: Client, name: str, what: str) -> str:
    """Why it cannot be in that namespace, empty when it can. what: its future content, as text."""
    live = client.get(kinds.NAMESPACE, name)
    if live is None:
        return f"Namespace {name}, where {what} to be kept, does not exist. Create it: kubectl create namespace {name}"
    if "deletionTimestamp" in live["metadata"]:
        return (
            f"Namespace {name}, where {what} to be kept, is being deleted. Wait until it is deleted (kubectl "
            f"describe namespace {name} shows what blocks that), then: kubectl create namespace {name}; or set "
            "another one"
        )
    return ""
