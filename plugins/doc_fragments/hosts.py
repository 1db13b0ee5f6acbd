# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """Facts of Windows hosts: the option hosts of the modules that need them."""

    DOCUMENTATION = r"""
options:
  hosts:
    description: Facts of the hosts, for example from RV(kubewin.csi.csi_proxy_info#module:csi_proxy).
    type: list
    elements: dict
    default: []
    suboptions:
      node:
        description: Name of the Node.
        type: str
        required: true
      observed_at:
        description: Time of the observation, RFC 3339.
        type: str
      serving:
        description: Whether csi-proxy serves. Omit it if the host could not be read.
        type: bool
      release:
        description: Release of csi-proxy.
        type: str
      state:
        description: State of the service.
        type: str
      reason:
        description: Why csi-proxy does not serve, or why the host could not be read.
        type: str
      pipes:
        description: Existing pipes. If set, every pipe that a pod mounts is checked.
        type: list
        elements: str
      boot_time:
        description: Time of the host's last boot, RFC 3339.
        type: str
      findings:
        description: Findings of M(kubewin.csi.csi_proxy_info) for the host, which M(kubewin.csi.preflight_info) includes in its report.
        type: list
        elements: dict
"""
