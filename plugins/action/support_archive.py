# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Adds the secrets of the run to what the module of the same name replaces; the module does the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.modules import support_archive
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.secrets import held


class ActionModule(ControllerAction):
    """Runs the module where the task runs."""

    module = support_archive

    def _run_module(self, options: Mapping[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        given = task_vars or {}
        hostvars = given.get("hostvars") or {}
        found = list(held(given, self._templar))
        for host in given.get("ansible_play_hosts_all") or ():
            found += held(hostvars[host], self._templar) if host in hostvars else ()
        # Not in the task's arguments, which callbacks see.
        return super()._run_module({**options, "secrets": list(dict.fromkeys(found))}, task_vars)
