# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: csi_proxy
short_description: Run csi-proxy as a service on a Windows node
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Installs, upgrades, adopts, repairs and removes csi-proxy. Succeeds only if the service was observed to serve its pipes.
  - Runs in-box commands over the host's own connection. A node in the desired state costs one command and no write.
  - An upgrade downloads and verifies the new release while the old one runs, then changes the command line of the service. If the new release
    does not serve, the old one is restored.
  - Releases lie in C(C:\csi-proxy). The collection creates this directory and restricts it to SYSTEM and Administrators, because csi-proxy runs
    from there as SYSTEM. A directory of this name that it did not create is refused.
  - The service starts with Windows, which also restarts it when it ends unexpectedly. It writes C(C:\var\log\csi-proxy\csi-proxy.log), which is
    renamed to C(csi-proxy.log.1) when the service is stopped for a change.
  - A service that runs csi-proxy from another directory and that no other tool manages is taken over. The executable stays there. Its command line
    is recorded, and restored if the takeover fails.
  - A csi-proxy that another tool manages (WMCO, NSSM as on AKS, rancher-wins, a HostProcess pod) is verified and never changed,
    except with O(take_over).
  - With O(node), the task also takes care of the Node. Before it restarts csi-proxy, it cordons the Node and waits until no volume
    operation is in flight there. It labels the Node C(kubewin.io/csi-proxy) once csi-proxy serves, and uncordons it. The cordon names its
    owner in the annotation C(kubewin.io/cordoned), so the next task restores the Node if this one is killed. The annotation
    C(kubewin.io/csi-proxy-run) names the run, so a write of a former run that arrives late is refused.
  - Without O(node), the task contacts no cluster. Then make sure yourself that no volume operation is in flight on the node.
extends_documentation_fragment:
  - kubewin.csi.attributes
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.windows
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
options:
  state:
    description:
      - V(present) installs or upgrades the service, starts it and waits until it serves.
      - V(absent) removes the service and the directory that the collection created. Logs stay.
      - V(staged) stores the verified executable on the node and does not change the service. V(present) with the same options
        then needs no download.
    type: str
    choices: [absent, present, staged]
    default: present
  needed:
    description:
      - Whether a CSI driver uses csi-proxy on this node. With V(false) the task only reads the node, like M(kubewin.csi.csi_proxy_info), and needs
        neither O(source) nor O(checksum). An installed csi-proxy stays as it is.
      - Has no effect with O(state=absent).
    type: bool
    default: true
  from_variables:
    description:
      - Read each option that the task does not set from the variable C(csi_proxy_<option>), as the role C(csi_proxy) does.
        A blank variable counts as not set.
    type: bool
    default: false
  unchanged:
    description:
      - Change nothing, and fail if the node is not in the desired state, because another run or user changed it after an earlier task.
    type: bool
    default: false
  node:
    description:
      - Name of the Kubernetes Node of the host, as M(kubewin.csi.node_info) matches it.
      - While csi-proxy restarts, and for good with O(state=absent), the Node has no label C(kubewin.io/csi-proxy), so that the node plugins
        of this collection have no pod there.
    type: str
  quiesce_timeout:
    description:
      - Timeout in seconds for the volume operations in flight. After it, the task fails and names them, nothing is changed on the node, and
        the Node is uncordoned.
    type: int
    default: 300
  version:
    description:
      - Release of csi-proxy. Defaults to 1.3.0.
      - Releases below 1.1.3 are refused (CVE-2023-3893).
    type: str
  source:
    description:
      - Source of C(csi-proxy.exe). An C(http) or C(https) URL that the node can reach, or a file on the controller, which is sent
        through the connection. Relative paths are searched in C(files).
      - User information and query of a URL, such as a signature, are sent to the node's curl through its standard input.
        They do not appear on a command line, in output or in logs.
      - Required if the node does not have the release yet. A file with the name of another release, such as
        C(csi-proxy-1.2.1.exe), is refused.
    type: str
  checksum:
    description:
      - SHA-256 of C(csi-proxy.exe), with or without C(sha256:) before it, or the line of a C(.sha256) file. Required
        unless O(state=absent) or O(needed=false).
      - The csi-proxy project publishes no binary, so only the digest identifies the file. The playbook C(kubewin.csi.build_csi_proxy)
        prints it.
    type: str
  source_check_revocation:
    description: Whether the node checks if the server certificate is revoked. Windows fails if it cannot reach the revocation list.
    type: bool
    default: true
  require_privacy:
    description: Whether SMB mappings must be encrypted. Requires csi-proxy 1.2.0. Defaults to the release's own default.
    type: bool
  take_over:
    description:
      - V(rancher-wins) takes over the service C(csiproxy) that rancher-wins created, like a service that no other tool manages. Without it,
        such a service is verified only.
      - rancher-wins creates the service only if it does not exist, and then leaves it as it is. To return it, remove csi-proxy with O(state=absent)
        and restart rancher-wins on the node.
    type: str
    choices: [rancher-wins]
  allow_downgrade:
    description: Whether to install a lower release than the installed one.
    type: bool
    default: false
seealso:
  - module: kubewin.csi.csi_proxy_info
"""

EXAMPLES = r"""
- name: Let each node download csi-proxy from a mirror
  kubewin.csi.csi_proxy:
    version: 1.3.0
    source: https://mirror.example.com/csi-proxy/1.3.0/csi-proxy.exe
    checksum: 4a5d2c8f0b1e6a79d3c2b5f8e1a4d7c0936f2b8e5d1a4c7f0e3b6d9c2f5a8b1e

- name: Send a file from the controller
  kubewin.csi.csi_proxy:
    version: 1.3.0
    source: /srv/artifacts/csi-proxy-1.3.0.exe
    checksum: 4a5d2c8f0b1e6a79d3c2b5f8e1a4d7c0936f2b8e5d1a4c7f0e3b6d9c2f5a8b1e

- name: Upgrade csi-proxy on a node that runs pods
  kubewin.csi.csi_proxy:
    version: 1.3.0
    source: https://mirror.example.com/csi-proxy/1.3.0/csi-proxy.exe
    checksum: 4a5d2c8f0b1e6a79d3c2b5f8e1a4d7c0936f2b8e5d1a4c7f0e3b6d9c2f5a8b1e
    node: win-1

- name: Remove it
  kubewin.csi.csi_proxy:
    state: absent
"""

RETURN = r"""
csi_proxy:
  description:
    - State of the node after the task. In check mode, and if the task was refused, the state before.
    - The fields are those of RV(kubewin.csi.csi_proxy_info#module:csi_proxy). C(drift) has all differences from the desired state.
  returned: when the node could be observed
  type: dict
plan:
  description: The steps of the task, in check mode the planned ones, each with C(step) and C(description).
  returned: unless refused
  type: list
  elements: dict
node:
  description: The Node. C(labelled) is whether it has the label C(kubewin.io/csi-proxy), in check mode whether it would have it.
  returned: success, with O(node)
  type: dict
  sample: {name: win-1, labelled: true}
needed:
  description: O(needed).
  returned: success
  type: bool
reason:
  description: Stable key of the failure, such as C(connection_lost), C(checksum_mismatch) or C(start_failed).
  returned: on failure
  type: str
rolled_back:
  description: Whether the former release was restored.
  returned: if the new release failed
  type: bool
log_tail:
  description: The last lines of csi-proxy's log.
  returned: if the service did not start or serve
  type: list
  elements: str
"""
