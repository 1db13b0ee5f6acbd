"""The upgrade's action: runs the module of the same name, and keeps the run's lease while tasks work between its calls."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Mapping
from typing import Any

from ansible import constants
from ansible_collections.kubewin.csi.plugins.module_utils.kube.holder import holder_of_run
from ansible_collections.kubewin.csi.plugins.modules import node_upgrade
from ansible_collections.kubewin.csi.plugins.plugin_utils.controller import ControllerAction

# Options that identify a lease.
_LEASE = ("kubeconfig", "context", "host", "namespace")

# What a failed task returns of what is long, by the fields of its entries.
_BRIEF = {"journal": ("node", "step", "failed", "why"), "findings": ("id", "object")}
_LEFT_OUT = frozenset({"next", "max_rounds", "claims", "text", "plan"})


class ActionModule(ControllerAction):
    """The work is the module's. It ends between two requests once its progress file is deleted."""

    module = node_upgrade

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        self._task.args["holder"] = holder_of_run()
        result = super()._work(task_vars)
        if result.get("failed"):
            # The callback prints all that a failed task returns; the rest is in the journal.
            result = failed_part(result)
        self._say(*(f"  {line}" for line in result.get("plan") or ()))
        if result.get("outcome") in ("delegated", "held"):
            lock = _lock(self._task.args)
            self._run_beside(self._task.args, task_vars, lambda: _keep(lock))
        return result


def failed_part(result: Mapping[str, Any]) -> dict[str, Any]:
    """What a failed task returns: why it failed, and where each node stands."""
    part = {key: value for key, value in result.items() if key not in _LEFT_OUT}
    for name in _BRIEF.keys() & part.keys():
        part[name] = [{key: one[key] for key in _BRIEF[name] if one.get(key)} for one in part[name]]
    return part


def _lock(options: Mapping[str, Any]) -> str:
    """A file in the folder that Ansible makes for each run, and removes at its end."""
    identity = repr([options.get(name) for name in _LEASE])
    return os.path.join(
        vars(constants)["DEFAULT_LOCAL_TMP"], f"kubewin-lease-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    )


def _keep(path: str) -> None:
    """Renew the lease until the run ends. One process of a run does this; another one ends at once."""
    with open(path, "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        node_upgrade.keep()
