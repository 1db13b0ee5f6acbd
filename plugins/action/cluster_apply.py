# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Applies objects that differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.modules.cluster_apply import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.cluster_action import ClusterAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.documented import read_argument_spec
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.apply import Applier
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.definitions import build_result, parse_definitions


class ActionModule(ClusterAction):
    """Applies the definitions server-side."""

    argument_spec = read_argument_spec(DOCUMENTATION)

    def work(self, options: Mapping[str, Any]) -> None:
        """Plan in check mode, else apply; return every object."""
        definitions = parse_definitions(options["definition"])
        applier = Applier(
            self.connect(options), only_existing=options["only_existing"], force=options["force_conflicts"]
        )
        outcome = applier.plan(definitions) if self.check_mode else applier.apply(definitions)
        for warning in outcome.warnings:
            self.warn(warning)
        self.result.update(build_result(outcome))
