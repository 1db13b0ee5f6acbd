# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The difference between the desired state and what is found, and the steps that close it. Pure: no I/O, no clock.

Check mode and diff print what this module returns, and ``apply`` runs it, so they cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from ..catalog import csi_proxy as catalog
from ..catalog.versions import is_above
from . import access, model, parse
from .errors import ChangeRefusedError
from .model import Desired, Drift, HostSnapshot, ManagedBy

StagingKind = Literal[
    "remember_directory",
    "create_directory",
    "secure_directory",
    "create_log_directory",
    "fetch",
    "push",
    "set_aside",
    "promote",
]
StepKind = Literal[
    StagingKind,
    "create_service",
    "commit",
    "configure",
    "describe",
    "set_recovery",
    "stop",
    "start",
    "record",
    "prune",
    "delete_service",
    "remove_files",
    "forget_directory",
    "clear_lock",
]

STAGING: tuple[StepKind, ...] = get_args(StagingKind)
"""Steps that touch nothing that serves; all that can go wrong with a source goes wrong in them."""

ELSEWHERE: dict[str, str] = {
    "wicd": "OpenShift's Windows Instance Config Daemon (WMCO), which sets its command, description and dependencies again every two minutes",
    "nssm": "NSSM (AKS and others), which runs csi-proxy as its child",
    "rancher-wins": "rancher-wins",
    "host-process": "a process that no service runs, such as csi-proxy in a HostProcess pod",
}

# As ours are named; a user may have made another one.
_RELEASE_DIR = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+([+.][0-9A-Za-z.+]*)?-.+")


@dataclass(frozen=True, slots=True)
class PlanStep:
    kind: StepKind
    description: str
    target: str = ""


@dataclass(frozen=True, slots=True)
class HostPlan:
    steps: tuple[PlanStep, ...]

    def has(self, *kinds: StepKind) -> bool:
        return any(step.kind in kinds for step in self.steps)


def hide_url_secrets(location: str) -> str:
    """A URL without what may be secret in it: user information, and the query (signed links carry their key there)."""
    if "://" not in location:
        return location
    return re.sub(r"[?#].*", "?...(hidden)", re.sub(r"(?<=://)[^/?#]*@", "", location))


def find_manager(snapshot: HostSnapshot) -> ManagedBy:
    """Who owns the csi-proxy on this node."""
    service = snapshot.service
    if service is None:
        return "host-process" if snapshot.pipes and not snapshot.other_services else "none"
    if service.description.startswith("OpenShift managed"):
        return "wicd"
    if service.executable.lower().endswith("nssm.exe"):
        return "nssm"
    if snapshot.owns_install_dir and _find_release_dir(service.command_line):
        return "adopted" if service.record.adopted_from else "kubewin"
    if "\\rancher\\" in service.command_line.lower() or (
        "\\wins\\" in service.command_line.lower() and snapshot.rancher
    ):
        return "rancher-wins"
    return "foreign"


def is_managed_elsewhere(desired: Desired, snapshot: HostSnapshot) -> bool:
    """Whether another program manages csi-proxy, and the task does not take its service over."""
    owner = find_manager(snapshot)
    return owner in ELSEWHERE and owner != desired.take_over


def find_missing_pipes(required: tuple[str, ...], snapshot: HostSnapshot) -> tuple[str, ...]:
    present = {name.lower() for name in snapshot.pipes}
    return tuple(name for name in required if name.lower() not in present)


def is_serving(required: tuple[str, ...], snapshot: HostSnapshot) -> bool:
    """RUNNING with a PID that the process list, read later on the same line, still shows; and every required pipe."""
    if find_missing_pipes(required, snapshot) or not snapshot.pipes:
        return False
    service = snapshot.service
    if service is None:
        return find_manager(snapshot) == "host-process"
    if service.state != model.RUNNING or not service.pid:
        return False
    if find_manager(snapshot) == "nssm":
        return bool(snapshot.processes)
    return service.pid in {process.pid for process in snapshot.processes}


def find_release(snapshot: HostSnapshot) -> str | None:
    """The release of the service's executable, if its digest is the recorded one."""
    service = snapshot.service
    if service is None or not service.record.sha256 or service.record.sha256 != snapshot.executable_sha256:
        return None
    return service.record.release or None


def is_old_process_running(snapshot: HostSnapshot) -> bool:
    """Whether the process was started from another executable than the one that the service names now.

    It is the one that an unproven swap was to replace, or one that was proven with another digest.
    """
    service = snapshot.service
    if service is None or not service.pid:
        return False
    record = service.record
    proven_as_another = record.sha256 not in ("", snapshot.executable_sha256) and service.pid == record.proven_pid
    return proven_as_another or (bool(record.previous) and service.pid == record.previous_pid)


def compare_with_desired(desired: Desired, snapshot: HostSnapshot) -> tuple[Drift, ...]:
    """What differs from the desired state. For a service with another manager only what drivers depend on."""
    drifts: list[Drift] = []

    def compare(item: str, is_: object, expected: object) -> None:
        if is_ != expected:
            drifts.append(Drift(item, is_, expected))

    service = snapshot.service
    if desired.state == "absent":
        compare("service", service.name if service else None, None)
        return tuple(drifts)
    missing = find_missing_pipes(desired.required_pipes, snapshot)
    if is_managed_elsewhere(desired, snapshot) or not desired.version:
        compare("missing_pipes", list(missing), [])
        if service:
            compare("state", model.STATE_NAMES.get(service.state, "unknown"), "running")
        return tuple(drifts)
    compare(
        "service",
        service.name if service else None,
        service.name if service else catalog.SERVICE_NAMES[0],
    )
    if service is None:
        return tuple(drifts)
    compare("command_line", service.command_line, desired.command_line)
    compare("executable_sha256", snapshot.executable_sha256, desired.sha256)
    compare("start_mode", service.start_mode, model.START_MODE)
    compare("recovery", service.recovery, model.RECOVERY)
    compare("description", service.description, model.DESCRIPTION)
    compare("recorded_release", service.record.release, desired.version)
    compare("recorded_sha256", service.record.sha256, desired.sha256)
    compare("unproven_swap_from", service.record.previous, "")
    compare("state", model.STATE_NAMES.get(service.state, "unknown"), "running")
    compare("missing_pipes", list(missing), [])
    drifts += _compare_access(desired, snapshot)
    return tuple(drifts)


def _compare_access(desired: Desired, snapshot: HostSnapshot) -> list[Drift]:
    """Whether SYSTEM and Administrators alone have rights in the install directory, and no other account may write the executable."""
    lists = dict(snapshot.access)
    own_list = lists.get(model.INSTALL_DIR)
    drifts = (
        []
        if own_list and own_list.is_closed
        else [Drift("access", own_list.text if own_list else "not read", access.CLOSED)]
    )
    for path in (desired.release_dir, desired.executable):
        content = lists.get(path)
        if content is not None and content.list_others(access.WRITE):
            drifts.append(Drift("access", f"{path}: {content.text}", "nothing for others"))
    return drifts


def _refuse_unsafe_directory(snapshot: HostSnapshot) -> None:
    """Refuse a directory that other accounts may rename or replace: csi-proxy runs as SYSTEM from it.

    On the drive, the right to delete or rename any child counts, and the right to grant oneself that. Adding files and directories, as
    Windows lets users do at C:\\, takes nothing away from those that are there (access rights of directories: Microsoft's File
    Security and Access Rights).
    """
    if snapshot.links:
        raise ChangeRefusedError(
            "directory_unsafe",
            f"{', '.join(snapshot.links)} is a junction or symbolic link, expected directories: the owner of a link decides from where "
            "csi-proxy runs as SYSTEM.",
            f"Delete it (cmd /c rd {snapshot.links[0]}), which keeps what it leads to.",
        )
    lists = dict(snapshot.access)
    drive_list = lists.get(model.DRIVE)
    if drive_list is None:
        raise _build_unread_error(model.DRIVE)
    sids = drive_list.list_others(access.TAKE_CHILD)
    if sids:
        removed = " ".join(f"*{sid}" for sid in sids)
        raise ChangeRefusedError(
            "directory_unsafe",
            f"Accounts other than administrators ({', '.join(sids)}) have rights on {model.DRIVE} and can replace {model.INSTALL_DIR}, "
            "from which csi-proxy runs as SYSTEM.",
            f"Remove these rights: icacls {model.DRIVE} /remove:g {removed}",
        )
    if model.INSTALL_DIR not in lists:
        raise _build_unread_error(model.INSTALL_DIR)


def _build_unread_error(path: str) -> ChangeRefusedError:
    return ChangeRefusedError(
        "access_unread",
        f"The access rights of {path} were not read, expected a list that cacls.exe or icacls.exe shows.",
        f"Run on the node: icacls {path}. A file system without access rights, such as FAT32, is refused.",
    )


def plan(desired: Desired, snapshot: HostSnapshot) -> HostPlan:
    """The steps from what is found to the desired state, in their order. Raises ChangeRefusedError."""
    _refuse(desired, snapshot)
    if is_managed_elsewhere(desired, snapshot):
        return HostPlan(())
    steps = _plan_absent(snapshot) if desired.state == "absent" else _plan_present(desired, snapshot)
    if any(step.kind == "stop" for step in steps) and snapshot.service and snapshot.running_dependents:
        raise refuse_running_dependents(snapshot.service.name, snapshot.running_dependents)
    if desired.state == "staged":
        steps = [step for step in steps if step.kind in STAGING]
    if snapshot.lock_leftovers or (snapshot.lock and not steps):
        steps.append(PlanStep("clear_lock", f"remove the node lock {model.LOCK_DIR} of an ended run"))
    return HostPlan(tuple(steps))


def _refuse(desired: Desired, snapshot: HostSnapshot) -> None:
    service, owner = snapshot.service, find_manager(snapshot)
    if is_managed_elsewhere(desired, snapshot):
        _refuse_other_manager(desired, snapshot, owner)
        return
    if service is not None and service.delete_pending:
        raise ChangeRefusedError(
            "marked_for_deletion",
            f"The service {service.name!r} is marked for deletion (1072): it is deleted when its last handle is closed.",
            "Close services.msc, Task Manager and other tools that have it open, or reboot the node; then run the play again.",
        )
    if owner in ("foreign", desired.take_over) and service is not None:
        if desired.state == "absent":
            raise ChangeRefusedError(
                "foreign_owner",
                f"The service {service.name!r} runs {service.command_line!r}, which this collection did not install.",
                "Remove it with the tool that installed it.",
            )
        if "%" in service.command_line or "!" in service.command_line:
            raise ChangeRefusedError(
                "foreign_owner",
                f"The command line of the service {service.name!r} is {service.command_line!r}; a rollback could not restore its % or !.",
                "Write full paths into it (sc.exe config ... binPath=), or remove the service, then run the play again.",
            )
    if desired.state == "absent":
        return
    if service is None and snapshot.other_services:
        name, command = snapshot.other_services[0]
        raise ChangeRefusedError(
            "second_service",
            f"The service {name!r} already runs a csi-proxy ({command}); a second one could not open its pipes.",
            "Delete that service first.",
        )
    foreign = find_foreign_processes(snapshot)
    if snapshot.pipes and foreign and (service is None or service.state != model.RUNNING):
        listed = ", ".join(f"{process.image} PID {process.pid}" for process in foreign)
        raise ChangeRefusedError(
            "pipes_taken",
            f"Another csi-proxy already serves the pipes: {listed}. Only one can.",
            "If it is a HostProcess pod, remove its DaemonSet. If it remained when this service was stopped "
            f"manually, end it: taskkill /F /PID {foreign[0].pid}. Then run the play again.",
        )
    if snapshot.install_dir_exists and not snapshot.owns_install_dir:
        raise ChangeRefusedError(
            "directory_foreign",
            f"{model.INSTALL_DIR} exists, expected a new directory or one that this collection created.",
            "Move it away, then run the play again.",
        )
    _refuse_unsafe_directory(snapshot)
    release = find_release(snapshot)
    if release and is_above(release, desired.version) and not desired.allow_downgrade:
        raise ChangeRefusedError(
            "downgrade",
            f"The node has csi-proxy {release}, requested is the lower {desired.version}.",
            "Set allow_downgrade to true (kubewin_allow_downgrade in the playbooks), or correct version.",
        )
    if snapshot.staged_sha256 != desired.sha256 and desired.source is None:
        raise ChangeRefusedError(
            "source_missing",
            f"csi-proxy {desired.version} with SHA-256 {desired.sha256} is not on the node, and csi_proxy_source (option source) is not "
            "set.",
            "Set csi_proxy_source to a URL that the node can reach, or to a file on the controller.",
        )


def refuse_running_dependents(name: str, running: tuple[str, ...]) -> ChangeRefusedError:
    return ChangeRefusedError(
        "dependents_running",
        f"The service {name!r} must be stopped, but running services depend on it (1051): {', '.join(running)}.",
        f"Drain the node and stop them there (sc.exe stop {running[0]}), then run the play again.",
    )


def find_foreign_processes(snapshot: HostSnapshot) -> tuple[parse.Process, ...]:
    """Processes named as csi-proxy that are neither the service's nor known to be left over from it."""
    pids = list_own_pids(snapshot)
    return tuple(process for process in snapshot.processes if process.pid not in pids)


def list_own_pids(snapshot: HostSnapshot) -> set[int]:
    """PIDs of processes that are the service's, or known to be left over from it."""
    service = snapshot.service
    if service is None:
        return set()
    service_pids = {service.pid, service.record.proven_pid, service.record.previous_pid}
    return service_pids & {process.pid for process in snapshot.processes}


def _refuse_other_manager(desired: Desired, snapshot: HostSnapshot, owner: str) -> None:
    subject = f"csi-proxy on this node is managed by {ELSEWHERE[owner]}"
    if desired.state == "absent":
        raise ChangeRefusedError(
            "foreign_owner",
            f"{subject}; this collection does not remove it.",
            "Remove it with the tool that installed it.",
        )
    if is_serving(desired.required_pipes, snapshot):
        return
    missing = find_missing_pipes(desired.required_pipes, snapshot)
    state = model.STATE_NAMES.get(snapshot.service.state, "unknown") if snapshot.service else "no service"
    lack = f"the pipes {', '.join(missing)} are missing" if missing else "its process does not serve"
    take_over = "set take_over (csi_proxy_take_over) to rancher-wins; or " if owner == "rancher-wins" else ""
    raise ChangeRefusedError(
        "foreign_owner",
        f"{subject}, and does not serve the required pipes: {lack} ({state}). Nothing was changed.",
        f"Repair it with that tool; or {take_over}remove it there and run the play again to install csi-proxy with this collection.",
    )


def list_kept_releases(desired: Desired, snapshot: HostSnapshot) -> set[str]:
    """Names (lower case) of the releases that stay: the desired one, and the one in place."""
    keep = {desired.release_dir_name.lower()}
    service = snapshot.service
    for command_line in (service.record.previous, service.command_line) if service else ():
        name = _find_release_dir(command_line)
        if name and len(keep) < 2:
            keep.add(name.lower())
    return keep


def _find_release_dir(command_line: str) -> str:
    path = parse.find_executable(command_line)
    prefix = model.INSTALL_DIR.lower() + "\\"
    return path[len(prefix) :].partition("\\")[0] if path.lower().startswith(prefix) else ""


def _plan_present(desired: Desired, snapshot: HostSnapshot) -> list[PlanStep]:
    service = snapshot.service
    items = {item.item for item in compare_with_desired(desired, snapshot)}
    steps: list[PlanStep] = []
    name = service.name if service else catalog.SERVICE_NAMES[0]
    if not snapshot.owns_install_dir:
        steps.append(PlanStep("remember_directory", f"record {model.INSTALL_DIR} as created by kubewin.csi"))
    if not snapshot.install_dir_exists:
        steps.append(PlanStep("create_directory", f"create {model.INSTALL_DIR}", model.INSTALL_DIR))
    # A first installation that was cut off may have found a directory that another account made, whose owner could open it again.
    begun = service is None and snapshot.install_dir_exists and desired.state == "present"
    if begun or _compare_access(desired, snapshot):
        steps.append(PlanStep("secure_directory", f"give {model.INSTALL_DIR} to SYSTEM and Administrators alone"))
    if not snapshot.log_dir_exists:
        log_dir = desired.log_file.rpartition("\\")[0]
        steps.append(PlanStep("create_log_directory", f"create {log_dir}", log_dir))
    running = service is not None and service.state not in (0, model.STOPPED)
    commit = service is not None and "command_line" in items
    stage = snapshot.staged_sha256 != desired.sha256
    damaged = stage and desired.release_dir_name.lower() in {entry.lower() for entry in snapshot.install_dir_entries}
    if stage and desired.source is not None:
        location = hide_url_secrets(desired.source.location)
        if desired.source.is_url:
            steps.append(
                PlanStep("fetch", f"download csi-proxy {desired.version} from {location} and verify its SHA-256")
            )
        else:
            steps.append(
                PlanStep(
                    "push", f"send csi-proxy {desired.version} from {location} on the controller and verify its SHA-256"
                )
            )
    if damaged:
        steps.append(
            PlanStep("set_aside", f"set aside {desired.release_dir_name}, whose executable is missing or another one")
        )
    if stage:
        steps.append(PlanStep("promote", f"move it to {desired.executable}"))
    if service is None:
        steps.append(PlanStep("create_service", f"create the service {name}: {desired.command_line}", name))
    elif commit:
        steps.append(PlanStep("commit", f"set the command line of the service {name} to {desired.command_line}", name))
    if service is not None and "start_mode" in items:
        steps.append(PlanStep("configure", f"set start mode {model.START_MODE}", name))
    if service is None or "description" in items:
        steps.append(PlanStep("describe", f"set the description of the service {name}", name))
    if service is None or "recovery" in items:
        steps.append(PlanStep("set_recovery", f"set the recovery actions of the service {name}", name))
    # The process may run the damaged executable: it was loaded from the very path that is replaced.
    restart = (
        commit or (damaged and running) or is_old_process_running(snapshot) or _is_stopping_or_mute(desired, snapshot)
    )
    if service is not None and (restart or _has_leftovers(snapshot)):
        steps.append(_plan_stop(service))
    if restart or service is None or service.state != model.RUNNING:
        steps.append(PlanStep("start", f"start the service {name} and wait for its pipes", name))
    if (
        service is None
        or any(step.kind in ("commit", "start", "promote") for step in steps)
        or items & {"recorded_release", "recorded_sha256", "unproven_swap_from"}
    ):
        steps.append(PlanStep("record", f"record release and SHA-256 under the Parameters key of {name}", name))
    # Leftovers are removed with a change, and are no change by themselves: an interrupted transfer can hold its
    # file for hours (WinRS keeps its input open), and the run that cannot remove it yet has still converged.
    if steps:
        steps += _plan_prune(desired, snapshot)
    return steps


def _is_stopping_or_mute(desired: Desired, snapshot: HostSnapshot) -> bool:
    """Running without the pipes that it should serve, or in a state that it does not leave by itself."""
    service = snapshot.service
    if service is None or service.state in (0, model.STOPPED, model.START_PENDING):
        return False
    return service.state != model.RUNNING or bool(find_missing_pipes(desired.required_pipes, snapshot))


def _has_leftovers(snapshot: HostSnapshot) -> bool:
    """A stopped service whose process still lives: csi-proxy reports STOPPED and keeps serving its pipes."""
    service = snapshot.service
    return service is not None and service.state == model.STOPPED and bool(snapshot.processes)


def _plan_stop(service: model.Service) -> PlanStep:
    if service.state == model.STOPPED:
        return PlanStep(
            "stop",
            f"end the remaining process of the stopped service {service.name}, and wait until its pipes are closed",
            service.name,
        )
    return PlanStep(
        "stop", f"stop the service {service.name} and wait until its process ends and its pipes close", service.name
    )


def _plan_prune(desired: Desired, snapshot: HostSnapshot) -> list[PlanStep]:
    keep = list_kept_releases(desired, snapshot)
    old = [name for name in snapshot.install_dir_entries if _RELEASE_DIR.fullmatch(name)]
    # What cut-off runs left.
    left = [name for name in snapshot.install_dir_entries if name.lower().startswith(("stage-", "aside-"))]
    names = [*left, *(name for name in old if name.lower() not in keep)]
    return [PlanStep("prune", f"remove {model.INSTALL_DIR}\\{name}", name) for name in names]


def _plan_absent(snapshot: HostSnapshot) -> list[PlanStep]:
    steps: list[PlanStep] = []
    service = snapshot.service
    if service is not None:
        if service.state != model.STOPPED or snapshot.processes:
            steps.append(_plan_stop(service))
        steps.append(PlanStep("delete_service", f"delete the service {service.name}", service.name))
    if snapshot.owns_install_dir:
        if snapshot.install_dir_exists:
            steps.append(PlanStep("remove_files", f"remove {model.INSTALL_DIR}", model.INSTALL_DIR))
        steps.append(PlanStep("forget_directory", f"remove the record {model.OWN_KEY}"))
    return steps
