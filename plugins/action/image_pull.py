# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module of the same name and shows how far the Nodes are."""

from __future__ import annotations

from ansible_collections.kubewin.csi.plugins.modules import image_pull
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction


class ActionModule(ControllerAction):
    """The work is the module's."""

    module = image_pull
