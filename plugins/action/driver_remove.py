# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes the node plugin of a driver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

from ansible_collections.kubewin.csi.plugins.module_utils.documented import ArgumentSpec, documented
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.declared import DRIVER
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal import refusal
from ansible_collections.kubewin.csi.plugins.module_utils.drivers.removal_observe import (
    applied_for,
    in_use,
    wait_until_gone,
)
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import driver_named
from ansible_collections.kubewin.csi.plugins.modules.driver_remove import DOCUMENTATION
from ansible_collections.kubewin.csi.plugins.plugin_utils.cluster_action import ClusterAction, TaskError


class ActionModule(ClusterAction):
    """Deletes the objects that were applied for a driver."""

    argument_spec: ClassVar[ArgumentSpec] = {**DRIVER, **documented(DOCUMENTATION)}

    def work(self, options: Mapping[str, Any]) -> None:
        """Refuse while a volume is in use, else delete and wait; return the deleted objects."""
        deadline = time.monotonic() + options["timeout"]
        driver = driver_named(options["driver"])
        client = self.connect(options)
        applied = applied_for(client, driver)
        # A run that continues after the plugin was deleted does not check volumes again: it finishes the rest.
        used = in_use(client, driver) if any(kind == kinds.DAEMON_SET for kind, _item in applied) else ()
        signs = [{"node": use.node, "what": use.what} for use in used]
        if used and not options["force_in_use"]:
            raise TaskError(refusal(driver, used), "in_use", in_use=signs)
        objects = []
        for kind, item in applied:
            metadata = item["metadata"]
            namespace = metadata.get("namespace")
            client.delete(kind, metadata["name"], namespace, metadata["uid"], dry_run=self.check_mode)
            objects.append({"kind": kind.kind, "namespace": namespace, "name": metadata["name"]})
            if (
                kind == kinds.DAEMON_SET
                and not self.check_mode
                and not wait_until_gone(client, item, deadline, self.show)
            ):
                raise TaskError(
                    f"pods of DaemonSet {namespace}/{metadata['name']} still exist after {options['timeout']} s, and it "
                    "is being deleted. Check these pods and their nodes, then run again, with a higher timeout if they "
                    "are only slow.",
                    "timeout",
                    in_use=signs,
                )
        self.result.update(
            changed=bool(objects),
            objects=objects,
            in_use=signs,
            namespaces=sorted({item["namespace"] for item in objects if item["namespace"]}),
        )
