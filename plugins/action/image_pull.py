# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pulls the images of a node plugin before its pods need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.kubewin.csi.plugins.module_utils.documented import ArgumentSpec, documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers import declared
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull import lacking
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.pull_apply import Pulls
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import driver_named
from ansible_collections.kubewin.csi.plugins.module_utils.kube.definitions import daemon_set, documents
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import absent_or_ours, selector_of
from ansible_collections.kubewin.csi.plugins.modules.image_pull import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.cluster_action import ClusterAction


class ActionModule(ClusterAction):
    """Finds the images that each Node lacks, and pulls them."""

    argument_spec: ClassVar[ArgumentSpec] = {**declared.spec(declared.PULL), **documented(DOCUMENTATION)}
    remainder = "Its pods were deleted; pulled images are kept"

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the images and the Nodes that have them now."""
        driver = driver_named(options["driver"]).name
        plugin = daemon_set(documents(options["definition"]))
        client = self.connect(options)
        metadata = plugin["metadata"]
        live = client.get(kinds.DAEMON_SET, metadata["name"], metadata["namespace"])
        pods = (
            client.list(kinds.POD, metadata["namespace"], label_selector=selector_of(live)).items
            if live is not None and absent_or_ours(live)
            else ()
        )
        missing = lacking(plugin, pods, client.windows_nodes(), options["nodes"])
        images = list(dict.fromkeys(image for node_images in missing.values() for image in node_images))
        self.result.update(changed=bool(missing), images=images, pulled=list(missing) if self.check_mode else [])
        if self.check_mode:
            return
        pulls = Pulls(client, driver, plugin, self.show)
        try:
            pulls.run(missing, float(options["timeout"]))
        finally:
            self.result["pulled"] = list(pulls.done)
