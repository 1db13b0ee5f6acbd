# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: csi_proxy_info
short_description: Return the state of csi-proxy on a Windows node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reports the csi-proxy of a node, its owner, its pipes, and problems for volumes on the node.
  - Only reads, with in-box commands over the host's own connection. Sets no facts.
extends_documentation_fragment:
  - kubewin.csi.attributes.info
  - kubewin.csi.windows
attributes:
  check_mode:
    details: In check mode O(evidence) writes no file.
options:
  evidence:
    description:
      - Also read the logs of csi-proxy, its service, registry keys, pipes, processes, mounts and events, and the logs of the kubelet,
        containerd and OpenShift's WICD, for the archive of M(kubewin.csi.gather).
      - Secrets are replaced, and each file is kept on the controller until the end of the run. RV(evidence) names the files and never
        holds their content.
    type: bool
    default: false
  smb_mappings:
    description:
      - Return the SMB shares that the host has mapped for all sessions.
      - Read with C(wmic.exe). Where it is missing, as on Windows Server 2025, or fails, and the host has a node plugin of SMB or Azure
        File, read with PowerShell (C(Get-CimInstance)).
    type: bool
    default: false
seealso:
  - module: kubewin.csi.csi_proxy
"""

EXAMPLES = r"""
- name: Check that csi-proxy serves
  kubewin.csi.csi_proxy_info:
  register: node
  failed_when: node is failed or not node.csi_proxy.serving

- name: Also read logs and events of the host, before kubewin.csi.gather
  kubewin.csi.csi_proxy_info:
    evidence: true
  register: csi_proxy_plan
"""

RETURN = r"""
summary:
  description: State of the node in a few lines, with problems for volumes.
  returned: in an ad hoc command, in place of RV(csi_proxy), because Ansible prints the whole result
  type: list
  elements: str
  sample: ["csi-proxy 1.3.0 running, serving, managed by kubewin"]
evidence:
  description: Files for the archive of M(kubewin.csi.gather).
  returned: when O(evidence) is set and the node could be observed
  type: dict
  contains:
    parts:
      description: The files, each with C(path), C(bytes) and C(problem) (why it is empty or not whole).
      type: list
      elements: dict
    problem:
      description: Why the host was not read to the end, or empty.
      type: str
csi_proxy:
  description: State of the node.
  returned: when the node could be observed
  type: dict
  contains:
    observed_at:
      description: Time of the observation, by the controller's clock.
      type: str
    host:
      description: What the host reports, from its registry and event log.
      type: dict
      contains:
        name:
          description: Host name.
          type: str
        dns_name:
          description: Host name with its primary domain.
          type: str
        addresses:
          description: IP addresses of its interfaces.
          type: list
          elements: str
        boot_time:
          description: Last boot, UTC.
          type: str
    managed_by:
      description: Owner of csi-proxy on this host, one of C(none), C(kubewin), C(adopted), C(wicd), C(nssm), C(rancher-wins), C(host-process) or C(foreign).
      type: str
    service:
      description: The Windows service, null if there is none.
      type: dict
    executable:
      description: Path, SHA-256 and, if the digest is the recorded one, release. Null without a service.
      type: dict
    pipes:
      description: Names of csi-proxy's pipes that are served.
      type: list
      elements: str
    pipes_by:
      description: How the pipes were read. V(listing), or V(opening) each one if Windows cannot list pipes.
      type: str
    serving:
      description: Whether the service runs with a stable process and serves every required pipe.
      type: bool
    missing_pipes:
      description: Required pipes that are not served.
      type: list
      elements: str
    smb_mappings:
      description: Mapped SMB shares, each with C(local), C(remote) and C(status), which is 0 when it is connected. Null if they cannot be read
        with C(wmic.exe) and, on a host with RV(csi_proxy.smb_used), with PowerShell.
      type: list
      elements: dict
      returned: when O(smb_mappings) is given
    smb_used:
      description: Whether the host has a node plugin that maps SMB shares.
      type: bool
      returned: when O(smb_mappings) is given
    drift:
      description: Required pipes that are missing and a service that does not run, with C(item), C(found) and C(expected).
      type: list
      elements: dict
    findings:
      description: What volumes trip over, with C(id), C(severity), C(object), C(message) and C(remedy). Nothing of it is changed.
      type: list
      elements: dict
"""
