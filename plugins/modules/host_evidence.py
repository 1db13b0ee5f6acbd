# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_evidence
short_description: Store logs, events and settings of a Windows host for support
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads the logs of csi-proxy, its service, registry keys, pipes, processes, mounts and events on a Windows host, and the logs of the kubelet,
    containerd and OpenShift's WICD.
  - Replaces secrets and writes a file for each on the controller. The result names the files and never holds their content.
  - It changes nothing on the host. M(kubewin.csi.gather) puts the files into its archive.
extends_documentation_fragment:
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
  - kubewin.csi.windows
attributes:
  check_mode:
    description: Can run in check mode.
    support: full
    details: In check mode no file is written.
"""

EXAMPLES = r"""
- name: Read logs and events of the host
  kubewin.csi.host_evidence:
"""

RETURN = r"""
parts:
  description: The files, each with C(path), C(bytes) and C(problem) (why it is empty or not whole).
  returned: when the host could be read
  type: list
  elements: dict
problem:
  description: Why the host was not read to the end, or nothing.
  returned: when the host could be read
  type: str
"""
