# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of csi_proxy and csi_proxy_info, as their modules document them."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.doc_fragments.windows import ModuleDocFragment
from ansible_collections.kubewin.csi.plugins.modules import csi_proxy, csi_proxy_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import ArgumentSpec, read_argument_spec

LOOK: ArgumentSpec = read_argument_spec(ModuleDocFragment.DOCUMENTATION)
INFO: ArgumentSpec = LOOK | read_argument_spec(csi_proxy_info.DOCUMENTATION)
# Without the options for access to the cluster, which are no variables of the role.
CSI_PROXY: ArgumentSpec = LOOK | read_argument_spec(csi_proxy.DOCUMENTATION)
