# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout import options


class ModuleDocFragment:
    """Facts of Windows hosts."""

    DOCUMENTATION: str


# Set here, because the sanity test of a fragment's YAML takes only a literal in the class.
ModuleDocFragment.DOCUMENTATION = options.DOCUMENTATION
