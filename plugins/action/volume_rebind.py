# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversion's face: runs the module of the same name and shows what it does meanwhile."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.plugin_utils.progress import TellingAction


class ActionModule(TellingAction):
    """The work is the module's. It stops between two requests when the file that it tells its progress to goes."""

    module = "kubewin.csi.volume_rebind"
