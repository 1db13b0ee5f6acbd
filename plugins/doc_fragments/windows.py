# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What csi_proxy and csi_proxy_info share: the options by which they read a host, and notes about its connection."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
requirements:
  - Windows Server 2019 or later on the host, with its in-box tools. PowerShell is used only for O(kubewin.csi.csi_proxy_info#module:smb_mappings).
  - The connection P(ansible.builtin.winrm#connection), P(ansible.builtin.psrp#connection) or P(ansible.builtin.ssh#connection);
    the account is a local administrator.
options:
  kubelet_path:
    description: Root directory of the kubelet on the node. csi-proxy refuses other paths.
    type: str
    default: C:\var\lib\kubelet
attributes:
  platform:
    description: Target OS families that can be operated against.
    platforms: windows
    support: full
  action:
    description: Runs on the controller and uses the host's connection.
    support: full
  async:
    description: Supports being used with the C(async) keyword.
    support: none
    details:
      - C(async), C(become) and C(environment) are refused, because they would have no effect.
notes:
  - A lost connection is a failed task with RV(ignore:reason=connection_lost), never an unreachable host, because Ansible goes
    on with later batches after an unreachable host.
seealso:
  - name: csi-proxy
    description: The project.
    link: https://github.com/kubernetes-csi/csi-proxy
"""
