# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease keeper: a program beside the run that renews its lease while the user's tasks work, and ends with the run.

It records in a file until when the lease is certainly held. The playbook reads that before each task of the user, so that no task begins
long after the keeper died: a lease cannot have been taken over before its duration has passed since its last renewal. If the lease is
lost, the keeper terminates the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..kube.connect import connect
from ..kube.errors import ClusterError
from ..kube.holder import identify_process, is_dead
from ..kube.lease import SECONDS, read_uptime
from .lease import upgrade_lease

# Seconds for a process to end.
_GRACE = 10.0
# Seconds between two looks at a process that is no child, so that nothing tells of its end.
_LOOK = 0.05
# Finds the collections where Ansible's own loader found them. Options for access are secret, so they come from stdin.
_PROGRAM = f"""
import json, sys, types
document = json.load(sys.stdin)
sys.path[:] = document["path"]
sys.modules["ansible_collections"] = types.ModuleType("ansible_collections")
sys.modules["ansible_collections"].__path__ = document["collections"]
from {__name__} import keep_lease
keep_lease(sys.argv[1], **document["lease"])
"""


def start_keeper(path: str, renewed_at: float, holder: str, namespace: str, access: Mapping[str, Any]) -> None:
    """Start the keeper, which neither this process nor Ansible waits for.

    path: of a file of the run. renewed_at: see `record_renewal`. access: options of kube.connect.
    """
    record_renewal(path, renewed_at)
    document = {
        "path": sys.path,
        "collections": list(sys.modules["ansible_collections"].__path__),
        "lease": {"holder": holder, "namespace": namespace, "access": dict(access)},
    }
    # -I: the user's folder, in which the run was started, may have modules of the same names.
    program = subprocess.Popen(
        [sys.executable, "-I", "-c", _PROGRAM, path],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, text=True,
    )  # fmt: skip
    Path(path).write_text(identify_process(program.pid), encoding="utf-8")
    with cast("Any", program.stdin) as stdin:
        json.dump(document, stdin)


def release_keeper(path: str) -> None:
    """End the keeper, if there is one: the caller renews the lease from here on, or gives it back."""
    with contextlib.suppress(FileNotFoundError):
        _end_process(Path(path).read_text(encoding="utf-8"), signal.SIGKILL)


def record_renewal(path: str, renewed_at: float) -> None:
    """Record until when the lease is held, in seconds since 1970. path: of the keeper. renewed_at: by `read_uptime`."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w", encoding="utf-8") as file:
        file.write(str(time.time() + SECONDS - (read_uptime() - renewed_at)))
    os.replace(part, f"{path}.held")


def keep_lease(path: str, holder: str, namespace: str, access: Mapping[str, Any]) -> None:
    """Renew the lease until the run (holder) ends, then give it back: nothing of it can arrive late. Terminate a run that lost it."""

    def renewed(at: float) -> None:
        # Ansible removes the folder with the end of the run.
        with contextlib.suppress(FileNotFoundError):
            record_renewal(path, at)

    try:
        lease = upgrade_lease(connect(access, SECONDS, SECONDS), namespace, holder)
        why = lease.keep(lambda: is_dead(holder), renewed)
    except ClusterError as error:
        why = f"the lease could not be renewed: {error}"
    else:
        if not why:
            lease.end()
    if why:
        end_run(holder, why)


def end_run(holder: str, why: str) -> None:
    """Terminate the run, and kill it if that does not help."""
    line = f"\nkubewin.csi: {why}. The run is terminated; a task in progress may continue. Run again to continue the upgrade.\n"
    if not is_dead(holder):
        with contextlib.suppress(OSError):
            screen = f"/proc/{_parse_number(holder)}/fd/2"
            os.write(os.open(screen, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK), line.encode())
    for number in (signal.SIGTERM, signal.SIGKILL):
        _end_process(holder, number)


def _end_process(process: str, number: signal.Signals) -> None:
    """Send a process a signal and wait for its end. process: as of kube.holder."""
    deadline = time.monotonic() + _GRACE
    with contextlib.suppress(OSError):
        if not is_dead(process):
            os.kill(_parse_number(process), number)
    while not is_dead(process) and time.monotonic() < deadline:
        time.sleep(_LOOK)


def _parse_number(process: str) -> int:
    return int(process.rpartition("/")[2].partition("-")[0])
