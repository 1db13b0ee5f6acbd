# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Before and after, as Ansible's diff shows them. Pure."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import serialize
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import csi_proxy as catalog
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.model import Desired, HostSnapshot, Service
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.plan import PlanStep, find_release


def preview(desired: Desired, snapshot: HostSnapshot, steps: tuple[PlanStep, ...]) -> dict[str, Any]:
    """Before and after as Ansible's diff wants them. After equals before where no step changes anything."""
    service = snapshot.service
    before = {
        "service": service and {**describe_service(service), "description": service.description},
        "executable": describe_executable(snapshot),
        "install_dir": snapshot.own_install_dir or None,
    }
    if not steps:
        return {"before": before, "after": before}
    if desired.state == "absent":
        return {"before": before, "after": {"service": None, "executable": None, "install_dir": None}}
    if desired.state == "staged":
        return {"before": {"staged": snapshot.staged_sha256}, "after": {"staged": desired.sha256}}
    after = {
        "service": {
            "name": service.name if service else catalog.SERVICE_NAMES[0],
            "state": "running",
            "command_line": desired.command_line,
            "start_mode": model.START_MODE,
            "recovery": serialize(model.RECOVERY),
            "description": model.DESCRIPTION,
        },
        "executable": {"path": desired.executable, "sha256": desired.sha256, "release": desired.version},
        "install_dir": desired.install_dir,
    }
    return {"before": before, "after": after}


def describe_service(service: Service) -> dict[str, Any]:
    """What a result shows of a service, and the diff too."""
    return {
        "name": service.name,
        "state": model.STATE_NAMES.get(service.state, "unknown"),
        "command_line": service.command_line,
        "start_mode": service.start_mode,
        "recovery": service.recovery and serialize(service.recovery),
    }


def describe_executable(snapshot: HostSnapshot) -> dict[str, Any] | None:
    """The service's executable, None without a service."""
    if snapshot.service is None:
        return None
    path = snapshot.service.executable
    return {"path": path, "sha256": snapshot.executable_sha256, "release": find_release(snapshot)}
