"""The upgrade's action: runs the module of the same name, and keeps the run's lease while tasks work between its calls."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of_run
from ansible_collections.kubewin.csi.plugins.module_utils.kube.lease import uptime
from ansible_collections.kubewin.csi.plugins.modules import node_upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction
from ansible_collections.kubewin.csi.plugins.plugin_utils.lease_keeper import (
    keep_lease,
    record_renewal,
    release_keeper,
)

# Options that identify a lease.
_LEASE = ("kubeconfig", "context", "host", "namespace")

# What a failed task returns of what is long, by the fields of its entries.
_BRIEF = {"journal": ("node", "step", "failed", "why"), "findings": ("id", "object")}
_LEFT_OUT = frozenset({"next", "max_rounds", "claims", "text", "plan"})


class ActionModule(ControllerAction):
    """The work is the module's. It ends between two requests once its progress file is deleted."""

    module = node_upgrade

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        self._task.args["holder"] = holder = holder_of_run()
        path = _lease_file(self._task.args)
        only_renews = self._task.args.get("only_lease") and int(self._task.args.get("generation") or 0)
        if not only_renews and not self._task.check_mode:
            # The module renews the lease itself, and may give it back.
            release_keeper(path)
        began = uptime()
        result = super()._work(task_vars)
        if only_renews and not result.get("failed"):
            record_renewal(path, began)
            result["lease"] = path
        if result.get("failed"):
            # The callback prints all that a failed task returns; the rest is in the journal.
            result = failed_part(result)
        self._say(*(f"  {line}" for line in result.get("plan") or ()))
        if result.get("outcome") in ("delegated", "held"):
            self._run_beside(self._task.args, task_vars, lambda: keep_lease(path, holder, node_upgrade.keep))
        return result


def failed_part(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns: why it failed, and where each node stands."""
    part = {key: value for key, value in result.items() if key not in _LEFT_OUT}
    for name in _BRIEF.keys() & part.keys():
        part[name] = [{key: one[key] for key in _BRIEF[name] if one.get(key)} for one in part[name]]
    return part


def _lease_file(options: Mapping[str, Any]) -> str:
    """A file in the folder that Ansible makes for each run, and removes at its end."""
    identity = repr([options.get(name) for name in _LEASE])
    return os.path.join(
        vars(constants)["DEFAULT_LOCAL_TMP"], f"kubewin-lease-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    )
