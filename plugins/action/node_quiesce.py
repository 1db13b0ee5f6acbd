# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons a node and waits until no volume operation runs there, or uncordons it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.module_utils.kube.quiesce import at_rest, cordoned, uncordoned
from ansible_collections.kubewin.csi.plugins.modules.node_quiesce import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """Cordons and waits, or uncordons."""

    argument_spec = documented(DOCUMENTATION)

    def work(self, options: Mapping[str, Any]) -> None:
        """Return whether the Node was changed, and what is still busy there if the wait fails."""
        node, reason, timeout = (options[name] for name in ("node", "reason", "timeout"))
        quiesce = options["state"] == "quiesced"
        change = cordoned if quiesce else uncordoned
        client = self.connect(options)
        self.result["changed"] = modify(
            client, kinds.NODE, node, None, lambda live: change(live, reason),
            dry_run=self.check_mode, required=quiesce,
        )  # fmt: skip
        if not quiesce or self.check_mode:
            return
        if busy := at_rest(client, node, timeout, self.show):
            self.result["busy"] = busy
            raise ClusterError(
                f"Node {node}: volume operations did not finish within {timeout} s, and nothing was changed on the "
                f"node: {'; '.join(busy)}. Let them finish and run again, raise kubewin_quiesce_timeout, or accept "
                "the risk with kubewin_quiesce=none.",
                "busy",
            )
