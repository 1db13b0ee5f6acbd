# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gather
short_description: Gather support data of a cluster into one archive
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads Windows nodes, node plugins with their logs, VolumeAttachments and events, adds the data of the hosts, and writes one
    archive with a page to read it.
  - Replaces the secrets of the run in everything. Names of hosts, namespaces and workloads stay.
  - What cannot be read is named in the archive and in the result. It fails only if the archive cannot be written.
  - Run M(kubewin.csi.csi_proxy_info) with O(kubewin.csi.csi_proxy_info#module:evidence=true) on the Windows hosts before, for their logs and settings.
extends_documentation_fragment:
  - kubernetes.core.k8s_auth_options
  - kubewin.csi.cluster
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    details: In check mode no archive is written.
options:
  output_dir:
    description: Directory of the archive.
    type: path
    required: true
"""

EXAMPLES = r"""
- name: Write the archive
  kubewin.csi.gather:
    output_dir: /srv/support
"""

RETURN = r"""
path:
  description: The archive, or nothing in check mode.
  returned: success
  type: str
  sample: /srv/support/kubewin-gather-20270102T030405Z.tar.gz
parts:
  description: The files in it, each with C(path), C(bytes) and C(problem).
  returned: success
  type: list
  elements: dict
missing:
  description: What could not be gathered, each with C(what) and C(why).
  returned: success
  type: list
  elements: dict
lines:
  description: Gathered and missing data, as text.
  returned: success
  type: list
  elements: str
"""
