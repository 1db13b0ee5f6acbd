# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """What was seen on Windows hosts."""

    DOCUMENTATION = r"""
options:
  hosts:
    description: What was seen on the hosts, for example made from RV(kubewin.csi.csi_proxy_info#module:csi_proxy).
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: Name of the Node.
        type: str
        required: true
      observed_at:
        description: When it was seen, RFC 3339.
        type: str
      serving:
        description: Whether csi-proxy serves. Not given means that the host could not be looked at.
        type: bool
      release:
        description: Release of csi-proxy.
        type: str
      state:
        description: State of the service.
        type: str
      reason:
        description: Why it does not serve, or why nobody could look.
        type: str
      missing_pipes:
        description: Required pipes that are not there, bare names.
        type: list
        elements: str
      pipes:
        description: All pipes that are there. With them every pipe the pod mounts is checked.
        type: list
        elements: str
      boot_time:
        description: When the host booted, RFC 3339.
        type: str
"""
