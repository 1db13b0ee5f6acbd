# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes node plugins of drivers."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..modules.driver_remove import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.catalog.base import Driver
from ..plugin_utils.catalog.registry import DRIVERS
from ..plugin_utils.drivers.handover.apply import make_handover_lease
from ..plugin_utils.drivers.installed import choose_driver
from ..plugin_utils.drivers.observe import read_begun_handover
from ..plugin_utils.drivers.observed_uses import (
    list_applied_objects,
    list_drivers_with_pipes,
    outlives_plugin,
    read_csi_proxy_users,
    read_uses,
    wait_until_gone,
)
from ..plugin_utils.drivers.rollout.apply import make_roll_lease
from ..plugin_utils.drivers.uses import VolumeUse, explain_begun_handover, explain_csi_proxy_refusal, explain_refusal
from ..plugin_utils.kube import kinds
from ..plugin_utils.kube.access import bind_command
from ..plugin_utils.kube.client import Client
from ..plugin_utils.kube.connect import find_driver
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.kube.kinds import Kind

# Seconds for the end of the pods of all plugins; a run that follows continues.
_TIMEOUT = 300.0


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    # Objects that this run began to delete, as text.
    _planned: Sequence[str] = ()

    def sum_up(self) -> None:
        """What is removed and what stays; of a failed task what is left, as it has its own message."""
        csi_proxy = self.inputs["remove_csi_proxy"]
        names = [f"{item['kind']} {item['name']}" for item in self.result.get("objects") or ()]
        lines = [f"{'would remove' if self.check_mode else 'removed'} {name}" for name in names]
        if self.result.get("failed"):
            left = [name for name in self._planned if name not in names]
            self.result["lines"] = (
                [*lines, f"not removed yet: {', '.join(left)}"] if left and not self.check_mode else lines
            )
            return
        drivers = ", ".join(self.result.get("drivers") or ())
        kept = self.result.get("kept") or ()
        if not names and not kept and (drivers or not csi_proxy):
            lines = [f"{drivers or 'node plugins of this collection'}: no objects in the cluster"]
        lines += [f"kept: {text}" for text in kept]
        if self.result.get("namespaces"):
            rest = f"kept: namespace {', '.join(self.result['namespaces'])}, claims, volumes"
            lines.append(rest if csi_proxy else f"{rest}, csi-proxy")
        # The play that removes csi-proxy comes after this one, and prints the command.
        needs_real_run = self.check_mode and names and not (csi_proxy and self.inputs["windows"])
        self.result.update(lines=lines, next=["remove"] if needs_real_run else [])

    def work(self, options: Mapping[str, Any]) -> None:
        """Refuse while a volume or csi-proxy is in use, else delete and wait; return the deleted objects."""
        client = self.connect(options)
        try:
            self._remove(client, options)
        except ClusterError as error:
            if error.reason != "forbidden":
                raise
            bind = bind_command("kubewin-csi-remove", user=client.read_username())
            raise TaskError(f"{error} Bind the ClusterRole of remove: {bind}", error.reason) from error

    def _remove(self, client: Client, options: Mapping[str, Any]) -> None:
        deadline, names = time.monotonic() + _TIMEOUT, list(options["drivers"])
        if not names and not options["csi_proxy"]:
            names = self._choose_drivers(client)
        self.result["drivers"], drivers = names, [find_driver(name) for name in names]
        applied = [(driver, list_applied_objects(client, driver)) for driver in drivers]
        used = [(driver, self._read_uses(client, driver, objects)) for driver, objects in applied]
        self.result["in_use"] = [{"node": use.node, "what": use.evidence} for _driver, uses in used for use in uses]
        refused = [explain_refusal(driver, uses) for driver, uses in used if uses]
        begun = [(driver, read_begun_handover(client, driver, "").get("replaced", "")) for driver in drivers]
        refused += [explain_begun_handover(driver, replaced) for driver, replaced in begun]
        if options["csi_proxy"]:
            removed_drivers = {driver.name for driver in drivers}
            refused.append(explain_csi_proxy_refusal(*read_csi_proxy_users(client, removed_drivers)))
            if refused[-1] and not names and not self.task_vars.get("ansible_limit"):
                # The same command would be refused again. With --limit, drivers cannot be removed.
                own = list_drivers_with_pipes(client)
                self.result["next"] = [f"remove -e kubewin_drivers={','.join(own)}"] if own else []
        if any(refused):
            raise TaskError("\n".join(filter(None, refused)), "in_use")
        kept = [
            _describe_kept(kind, item["metadata"])
            for driver, objects in applied
            for kind, item in objects
            if outlives_plugin(driver, kind, item)
        ]
        self.result.update(objects=[], namespaces=[], kept=kept)
        applied = [(driver, _omit_kept_objects(driver, objects)) for driver, objects in applied]
        self._planned = [
            f"{kind.kind} {item['metadata']['name']}" for _driver, objects in applied for kind, item in objects
        ]
        for driver, objects in applied:
            # The pods of the drivers before took their time to end.
            if self.result["objects"] and not self.check_mode and (uses := self._read_uses(client, driver, objects)):
                raise TaskError(explain_refusal(driver, uses), "in_use")
            for kind, item in objects:
                self._delete(client, kind, item, deadline)

    def _read_uses(
        self, client: Client, driver: Driver, objects: Sequence[tuple[Kind, dict[str, Any]]]
    ) -> tuple[VolumeUse, ...]:
        """Wait until no other run changes the DaemonSets of a driver, and read the uses of its volumes; ClusterError locked.

        A run that continues after the plugin was deleted does not check volumes again: it finishes the rest.
        """
        plugins = [item["metadata"] for kind, item in objects if kind == kinds.DAEMON_SET]
        for metadata in plugins:
            namespace, name = metadata["namespace"], metadata["name"]
            # A rolling update applies its DaemonSet again, and a hand-over needs its record.
            make_roll_lease(client, namespace, name, self.show).wait()
            make_handover_lease(client, namespace, driver, self.show).wait()
        return read_uses(client, driver) if plugins else ()

    def _choose_drivers(self, client: Client) -> list[str]:
        """The only driver of which this collection has objects, also after a removal that was interrupted; none without objects."""
        # What an earlier run kept is no installation.
        applied = {
            key: _omit_kept_objects(driver, list_applied_objects(client, driver)) for key, driver in DRIVERS.items()
        }
        first = {
            key: (f"{objects[0][0].kind} {objects[0][1]['metadata']['name']}",)
            for key, objects in applied.items()
            if objects
        }
        option = "kubewin_drivers" if self.inputs else "drivers"
        return [choose_driver(first, option, "node plugin of this collection")] if first else []

    def _delete(self, client: Client, kind: Kind, item: Mapping[str, Any], deadline: float) -> None:
        """Delete one object, a DaemonSet with its pods by the deadline in monotonic seconds, and add it to the result."""
        metadata = item["metadata"]
        name, namespace = metadata["name"], metadata.get("namespace")
        client.delete(kind, name, namespace, metadata["uid"], dry_run=self.check_mode)
        self.result["changed"] = True
        waits = kind == kinds.DAEMON_SET and not self.check_mode
        if waits and not wait_until_gone(client, dict(item), deadline, self.show):
            raise TaskError(
                f"pods of DaemonSet {namespace}/{name} still exist after {_TIMEOUT:.0f} s, and it "
                "is being deleted. Check these pods and their nodes, then run again.",
                "timeout",
            )
        self.result["objects"].append({"kind": kind.kind, "namespace": namespace, "name": name})
        self.result["namespaces"] = sorted(
            {entry["namespace"] for entry in self.result["objects"] if entry["namespace"]}
        )


def _omit_kept_objects(driver: Driver, objects: list[tuple[Kind, dict[str, Any]]]) -> list[tuple[Kind, dict[str, Any]]]:
    return [(kind, item) for kind, item in objects if not outlives_plugin(driver, kind, item)]


def _describe_kept(kind: Kind, metadata: Mapping[str, Any]) -> str:
    where = f"-n {metadata['namespace']} " if metadata.get("namespace") else ""
    command = f"kubectl {where}delete {kind.plural} {metadata['name']}"
    return f"{kind.kind} {metadata['name']}, since other installations of the driver may rely on it; if there is none: {command}"
