# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes a node: one round trip for a node in the desired state, one more if the service is elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..base.decode import read_number
from ..catalog import csi_proxy as catalog
from . import access, model, parse
from .commands import (
    SYSTEM32,
    Command,
    Steps,
    builtin,
    check_value,
    close_input,
    discard_output,
    hash_service_program,
    list_links,
    list_pipes,
    open_pipe,
    pipe,
    program,
    repeat_for_each,
)
from .errors import CommandTimeoutError, NodeError, build_access_error
from .node import Answers, WindowsHost

IMAGE = "csi-proxy.exe"
_SCAN = "csi-proxy"
_ACTIONS = {0: "none", 1: "restart", 2: "reboot", 3: "run"}

_SERVICES = model.SERVICES_KEY
_TCPIP = _SERVICES + r"\Tcpip\Parameters"
_CLOCK_EVENTS = "/q:*[System[Provider[@Name='Microsoft-Windows-Kernel-General'] and (EventID=1 or EventID=12)]]"
_UPTIME_EVENT = "/q:*[System[(Provider[@Name='EventLog'] and EventID=6013) or (Provider[@Name='Microsoft-Windows-Kernel-General'] and EventID=12)]]"
_CSI_DIRECTORY = r"\plugins\kubernetes.io\csi"
_GLOBAL_MOUNT = "\\globalmount"
_MISSING = (2, 3)
"""ERROR_FILE_NOT_FOUND and ERROR_PATH_NOT_FOUND"""
_SMB_DRIVERS = {"smb.csi.k8s.io", "file.csi.azure.com"}
"""drivers that map SMB shares; each has its socket in a directory of its name"""
MAPPINGS_TIMEOUT = 60.0
"""seconds for a list of the SMB mappings"""
# Without a mapping wmic.exe says so on stderr, and its code is 0.
_WMIC_MAPPINGS = close_input(
    Command(
        rf"{SYSTEM32}\wbem\WMIC.exe /namespace:\\root\microsoft\windows\smb path MSFT_SmbGlobalMapping get "
        "LocalPath,RemotePath,Status /value"
    )
)
# The lines that WMIC prints, by the same class. Format cmdlets cut long paths, and Get-SmbGlobalMapping shows the status as a word. A
# cmdlet that fails ends it with code 1 (about_PowerShell_exe). It calls no method and names no type, which a policy may forbid
# (about_Language_Modes).
_POWERSHELL_MAPPINGS = close_input(
    program(
        r"WindowsPowerShell\v1.0\powershell",
        "-NoProfile",
        "-NonInteractive",
        "-Command",
        "$ErrorActionPreference='Stop';"
        "foreach($m in Get-CimInstance -Namespace root/Microsoft/Windows/SMB -ClassName MSFT_SmbGlobalMapping)"
        "{'LocalPath='+$m.LocalPath;'RemotePath='+$m.RemotePath;'Status='+$m.Status}",
    )
)
_ALWAYS_SERVED = "lsass"
"""A pipe that every Windows serves: where it is not listed, listing does not work (builds are known on which it does not)."""
_PLAIN_NAME = re.compile(r"[\w .$()-]+")


def _query_key(key: str) -> Command:
    return program("reg", "query", key)


def _query_each(key: str, *words: str) -> Command:
    """Queries of ``key``, in which ``%~v`` stands for each word in turn."""
    return repeat_for_each(words, rf"{SYSTEM32}\reg.exe query {key}")


def _group(*commands: Command) -> Command:
    """Several queries under one mark: each names its own key, and what is missing is simply not there."""
    return Command(f"({'&'.join(command.text for command in commands)})")


_LINKS = _group(
    builtin("dir", model.INSTALL_DIR + "*", switches="/b /al"), builtin("dir", model.INSTALL_DIR, switches="/b /s /al")
)
"""Lists reparse points (junctions, symbolic links): the install directory, and what lies in it."""


def _build_service_steps(name: str) -> Steps:
    return [
        ("status", program("sc", "queryex", name)),
        ("service", _group(_query_key(rf"{_SERVICES}\{name}"), _query_key(rf"{_SERVICES}\{name}\Parameters"))),
    ]


def list_directory_itself(path: str) -> Command:
    """List ``path`` among its siblings: ``dir`` of an empty directory is an error, and so shows nothing."""
    return builtin("dir", path + "*", switches="/b /ad")


def build_pipe_steps(node: WindowsHost) -> Steps:
    """Ask for csi-proxy's pipes: by listing them, or on a node where that does not work by opening each."""
    if node.lists_pipes:
        return [("pipes", list_pipes(catalog.PIPE_PREFIX))]
    return [(pipe, open_pipe(pipe)) for pipe in catalog.PIPES]


def collect_pipes(answers: Answers) -> tuple[str, ...]:
    """What the steps of :func:`build_pipe_steps` found."""
    opened = [pipe for pipe in catalog.PIPES if pipe in answers.steps and answers.code(pipe) == 0]
    return tuple(opened) or parse.read_pipes(answers.text("pipes"), catalog.PIPE_PREFIX)


def build_status_steps(node: WindowsHost, name: str, image: str = IMAGE) -> Steps:
    """The few questions that are asked again and again while a service starts or stops."""
    return [
        ("status", program("sc", "queryex", name)),
        *build_pipe_steps(node),
        ("processes", program("tasklist", "/fi", f"IMAGENAME eq {image}", "/fo", "csv", "/nh")),
    ]


def build_observation_steps(desired: model.Desired, with_mounts: bool = False) -> Steps:
    """The whole observation of a node on which the service has its usual name and runs the desired release."""
    name, *other_names = catalog.SERVICE_NAMES
    steps = _build_service_steps(name)
    steps += [
        # Its last line shows that it finished.
        ("scan", program("reg", "query", _SERVICES, "/s", "/f", _SCAN, "/d")),
        ("pipes", _group(list_pipes(_ALWAYS_SERVED), list_pipes(catalog.PIPE_PREFIX))),
    ]
    if desired.version:
        steps.append(("staged", program("certutil", "-hashfile", desired.executable, "SHA256")))
    else:
        steps.append(("program", hash_service_program(rf"{_SERVICES}\{name}")))
    steps += [
        ("processes", program("tasklist", "/fi", f"IMAGENAME eq {IMAGE}", "/fo", "csv", "/nh")),
        ("install_dir", list_directory_itself(model.INSTALL_DIR)),
        ("entries", builtin("dir", model.INSTALL_DIR, switches="/b /ad")),
        ("links", _LINKS),
        ("access", _group(*(program("cacls", path, "/S") for path in list_access_paths(desired)))),
        ("lock", builtin("type", rf"{model.LOCK_DIR}\owner")),
        ("locks", builtin("dir", rf"{model.LOCK_PARENT}\kubewin.csi.*", switches="/b /ad")),
    ]
    if desired.log_file:
        steps.append(("log_dir", list_directory_itself(desired.log_file.rpartition("\\")[0])))
    steps += [
        (
            "registry",
            _group(
                _query_key(model.OWN_KEY),
                _query_each(
                    _SERVICES + r"\%~v",
                    *(rf"{service_name} /v ImagePath" for service_name in other_names),
                    r"Tcpip\Parameters /v Hostname",
                    r"Tcpip\Parameters /v Domain",
                    r"Tcpip\Parameters\Interfaces /s",
                    r"partmgr\Parameters /v SanPolicy",
                    r"hns\State /v EnableCompartmentNamespace",
                ),
                _query_each(_SERVICES + r"\%v /v Start", "defragsvc", "afunix", "rancher-wins"),
            ),
        ),
        ("boot", program("wevtutil", "qe", "System", _CLOCK_EVENTS, "/c:4", "/rd:true", "/f:xml")),
    ]
    if with_mounts:
        steps += [
            ("mounts", list_links(desired.kubelet_path + _CSI_DIRECTORY)),
            *((f"disk {drive}", program("fsutil", "volume", "diskfree", drive)) for drive in desired.drives),
            # Without its usage, which is longer than what most hosts have.
            ("volumes", pipe(program("mountvol"), program("findstr", "Volume{"))),
            ("plugins", builtin("dir", desired.kubelet_path + r"\plugins", switches="/b /ad")),
        ]
    return steps


def list_access_paths(desired: model.Desired) -> tuple[str, ...]:
    """The paths on whose access rights depends who may replace the executable."""
    release = (desired.release_dir, desired.executable) if desired.version else ()
    return (model.DRIVE, model.INSTALL_DIR, *release)


def _read_access(
    node: WindowsHost, desired: model.Desired, answers: Answers
) -> tuple[tuple[str, access.AccessList | None], ...]:
    """Access lists by path, as of HostSnapshot.

    cacls.exe shows a list as SDDL, and Microsoft calls it deprecated. Where it shows none, icacls.exe saves it in a file, which
    is UTF-16, in a directory that only administrators write to.
    """
    paths = list_access_paths(desired)
    shown = access.parse_access_lists(answers.text("access"))
    read: dict[str, access.AccessList | None] = {path: shown[path.lower()] for path in paths if path.lower() in shown}
    if not is_listed(model.INSTALL_DIR, answers.text("install_dir")):
        read |= dict.fromkeys((path for path in paths if path != model.DRIVE), None)
    elif desired.version and not is_listed(desired.release_dir, answers.text("entries")):
        read |= {desired.release_dir: None, desired.executable: None}
    unread = [path for path in paths if path not in read]
    if unread:
        saved = rf"{model.LOCK_PARENT}\kubewin.csi.{int(node.clock.now() * 1000):x}.acl"
        second = node.ask([step for path in unread for step in _build_saved_access_steps(path, saved)])
        for path in unread:
            text = second.steps[f"shown {path}"].output.replace(b"\0", b"").decode("ascii", "replace")
            access_list, code = access.parse_access_list(text), second.code(f"saved {path}")
            if access_list is not None or code in _MISSING:
                read[path] = access_list
    return tuple((path, read[path]) for path in paths if path in read)


def _build_saved_access_steps(path: str, file: str) -> Steps:
    return [
        (f"saved {path}", discard_output(program("icacls", path, "/save", file))),
        (f"shown {path}", builtin("type", file)),
        (f"forgotten {path}", builtin("del", file, switches="/f /q")),
    ]


def observe(node: WindowsHost, desired: model.Desired, *, with_mounts: bool = False) -> model.HostSnapshot:
    """A snapshot of the node. Reads only; costs one command line, two when the service is elsewhere than desired.

    Where the first way to learn something is closed there is one more line for the second: pipes that cannot be listed
    are opened, and the daily uptime tells a boot that the clock's events do not show. ``with_mounts`` follows the kubelet's global mounts by their links.
    Raises ChannelError and NodeError of the lines themselves; access_denied for a denied service control manager.
    """
    answers = node.ask(build_observation_steps(desired, with_mounts))
    node.lists_pipes = bool(parse.read_pipes(answers.text("pipes"), _ALWAYS_SERVED))
    name = catalog.SERVICE_NAMES[0]
    registry = parse.read_registry("\n".join((answers.text("registry"), answers.text("scan"))))
    image_paths = {
        key: value for key, value in _find_csi_proxy_services(registry).items() if key.lower() != name.lower()
    }
    service = _read_service(name, answers)
    if service is None and image_paths:
        preferred = [service_name for service_name in catalog.SERVICE_NAMES if service_name in image_paths]
        name = next(iter([*preferred, *filter(_PLAIN_NAME.fullmatch, sorted(image_paths))]), name)
    executable = _find_program(service) if service else parse.find_executable(image_paths.get(name, ""))
    processes = parse.read_processes(answers.text("processes"))
    hashed_path = desired.executable if desired.version else parse.find_marked_path(answers.text("program"))
    path = (_resolve_path(executable) or "").lower()
    elsewhere = bool(executable) and (service is None or path != hashed_path.lower() or not path.endswith("\\" + IMAGE))
    steps = _build_second_steps(node, answers)
    if elsewhere:
        steps += _build_detail_steps(name, executable)
    second = node.ask(steps) if steps else Answers({})
    hashed, hash_step = (second, "executable") if elsewhere else (answers, "staged" if desired.version else "program")
    if elsewhere:
        service = _read_service(name, second)
        processes = tuple(dict.fromkeys((*processes, *parse.read_processes(second.text("processes")))))
    digest = parse.find_sha256(hashed.text(hash_step))
    image_paths.pop(name, None)
    dependents = _find_dependents(registry, name)
    own_values = registry.get(parse.spell_key(model.OWN_KEY), {})
    return model.HostSnapshot(
        observed_at=node.clock.now(),
        host=_read_host(registry, answers, second),
        service=service,
        dependents=dependents,
        running_dependents=find_running_services(node, dependents)
        if service and service.state == model.RUNNING
        else (),
        other_services=tuple(sorted(image_paths.items())),
        rancher=parse.spell_key(_SERVICES + r"\rancher-wins") in registry,
        processes=processes,
        pipes=collect_pipes(answers if node.lists_pipes else second),
        executable_sha256=digest if service else None,
        staged_sha256=parse.find_sha256(answers.text("staged")),
        owns_install_dir=own_values.get("installdir", ("", ""))[1].lower() == model.INSTALL_DIR.lower(),
        install_dir_exists=is_listed(model.INSTALL_DIR, answers.text("install_dir")),
        install_dir_entries=parse.read_names(answers.text("entries")),
        links=_find_links(answers.text("links")),
        access=_read_access(node, desired, answers),
        lock=_read_lock(answers),
        lock_leftovers=tuple(n for n in parse.read_names(answers.text("locks")) if n.lower() != model.LOCK_NAME),
        log_dir_exists=not desired.log_file or is_listed(desired.log_file.rpartition("\\")[0], answers.text("log_dir")),
        storage=_read_storage(desired.drives, registry, answers),
        executable_code=hashed.code(hash_step) if service and hash_step in hashed.steps else None,
        pipes_listed=node.lists_pipes,
        services_read=parse.is_search_complete(answers.text("scan")),
    )


def _build_second_steps(node: WindowsHost, answers: Answers) -> Steps:
    """Second queries for facts that the first one did not return; none on most nodes."""
    steps = [] if node.lists_pipes else build_pipe_steps(node)
    if parse.determine_boot_time(parse.read_clock_events(answers.text("boot"))) is None:
        steps.append(("uptime", program("wevtutil", "qe", "System", _UPTIME_EVENT, "/c:1", "/rd:true", "/f:xml")))
    return steps


def find_running_services(node: WindowsHost, names: Sequence[str]) -> tuple[str, ...]:
    """Those of ``names`` that are not stopped. Asks nothing when there are none."""
    names = tuple(filter(_PLAIN_NAME.fullmatch, names))
    if not names:
        return ()
    answers = node.ask([(name, program("sc", "query", name)) for name in names])
    statuses = {name: parse.read_service_status(answers.text(name)) for name in names}
    return tuple(name for name, status in statuses.items() if status and status.state != model.STOPPED)


def list_smb_mappings(node: WindowsHost, *, uses_smb: bool) -> tuple[tuple[str, str, int], ...] | None:
    """(local, remote, status) of the global SMB mappings of the host; status 0 is connected. None: they cannot be read.

    ``uses_smb``: a node plugin of the host maps shares, so that PowerShell is worth its start where wmic.exe fails. Windows Server
    2025 has wmic.exe as a feature on demand. ``net use`` shows the mappings of its own session. The links that csi-proxy makes to
    shares (kubernetes-csi/csi-proxy, pkg/server/smb/server.go) show no state, and RemoveSmbGlobalMapping leaves them.
    """
    for command in (_WMIC_MAPPINGS, *([_POWERSHELL_MAPPINGS] if uses_smb else [])):
        try:
            answers = node.ask([("mappings", command)], timeout=MAPPINGS_TIMEOUT)
        except CommandTimeoutError:
            continue
        if answers.code("mappings") == 0:
            return parse.read_smb_mappings(answers.text("mappings"))
    return None


def _build_detail_steps(name: str, executable: str) -> Steps:
    steps = _build_service_steps(name)
    path = _resolve_path(executable)
    if path is None:
        return steps
    steps.append(("executable", program("certutil", "-hashfile", path, "SHA256")))
    image = path.rpartition("\\")[2]
    if image.lower() != IMAGE:
        steps.append(("processes", program("tasklist", "/fi", f"IMAGENAME eq {image}", "/fo", "csv", "/nh")))
    return steps


def _resolve_path(executable: str) -> str | None:
    """A service's executable, None if only the node can resolve its path: one with %, or with what cmd.exe interprets."""
    try:
        return check_value(executable, "executable")
    except NodeError:
        return None


def is_listed(path: str, listing: str) -> bool:
    return path.rpartition("\\")[2].lower() in {name.lower() for name in parse.read_names(listing)}


def _find_links(listing: str) -> tuple[str, ...]:
    """The install directory if ``dir`` listed it by name, and what it listed in there by path."""
    inside = tuple(path for path in parse.read_names(listing) if "\\" in path)
    return (*([model.INSTALL_DIR] if is_listed(model.INSTALL_DIR, listing) else []), *inside)


def _read_service(name: str, answers: Answers) -> model.Service | None:
    tree = parse.read_registry(answers.text("service"))
    values = tree.get(parse.spell_key(rf"{_SERVICES}\{name}"))
    status = parse.read_service_status(answers.text("status"))
    if answers.code("status") == 5:
        raise build_access_error(f"The node denied reading the service {name!r} (sc.exe answered 5).")
    if not values and status is None:
        return None
    values = values or {}
    parameters = tree.get(parse.spell_key(rf"{_SERVICES}\{name}\Parameters"), {})
    raw_recovery = parse.read_failure_actions(values["failureactions"][1]) if "failureactions" in values else None
    recovery = raw_recovery and model.Recovery(
        raw_recovery[0],
        tuple(model.RecoveryAction(_ACTIONS.get(kind, str(kind)), delay) for kind, delay in raw_recovery[1]),
    )
    text = {key: value[1] for key, value in values.items()}
    parameter_text = {key: value[1] for key, value in parameters.items()}
    return model.Service(
        name=name,
        state=status.state if status else 0,
        pid=status.pid if status else 0,
        start=parse.read_dword(values.get("start")),
        delayed=parse.read_dword(values.get("delayedautostart")) == 1,
        command_line=text.get("imagepath", ""),
        description=text.get("description", ""),
        recovery=recovery,
        delete_pending=parse.read_dword(values.get("deleteflag")) == 1,
        record=model.Record(
            release=parameter_text.get("release", ""),
            sha256=parameter_text.get("sha256", "").lower(),
            command_line_sha256=parameter_text.get("commandlinesha256", ""),
            proven_pid=parse.read_dword(parameters.get("provenpid")) or 0,
            previous=parameter_text.get("previous", ""),
            previous_pid=parse.read_dword(parameters.get("previouspid")) or 0,
            adopted_from=parameter_text.get("adoptedfrom", ""),
        ),
        application=parameter_text.get("application", ""),
        app_parameters=parameter_text.get("appparameters", ""),
        app_outputs=tuple(
            dict.fromkeys(parameter_text[key] for key in ("appstdout", "appstderr") if parameter_text.get(key))
        ),
    )


def _find_program(service: model.Service) -> str:
    """The program that really serves: under NSSM the service's own executable is only nssm.exe."""
    if service.executable.lower().endswith("nssm.exe") and service.application:
        return service.application
    return service.executable


def _find_csi_proxy_services(tree: parse.RegistryTree) -> dict[str, str]:
    """Service name -> command line, for every service whose image path or NSSM application is a csi-proxy."""
    prefix = parse.spell_key(_SERVICES) + "\\"
    command_lines: dict[str, str] = {}
    for key, values in tree.items():
        if not key.startswith(prefix):
            continue
        name, *subkeys = key[len(prefix) :].split("\\")
        value = (
            values.get("imagepath") if not subkeys else values.get("application") if subkeys == ["parameters"] else None
        )
        is_known_name = not subkeys and name in catalog.SERVICE_NAMES
        if value and (is_known_name or re.search(r"csi-?proxy", value[1], re.IGNORECASE)):
            command_lines.setdefault(name, value[1])
    return command_lines


def _find_dependents(tree: parse.RegistryTree, name: str) -> tuple[str, ...]:
    prefix = parse.spell_key(_SERVICES) + "\\"
    return tuple(
        sorted(
            key[len(prefix) :]
            for key, values in tree.items()
            if key.startswith(prefix)
            and "\\" not in key[len(prefix) :]
            and name.lower() in {entry.lower() for entry in parse.split_strings(values.get("dependonservice"))}
        )
    )


def _read_host(tree: parse.RegistryTree, answers: Answers, second: Answers) -> model.HostIdentity:
    tcpip = tree.get(parse.spell_key(_TCPIP), {})
    name = tcpip.get("hostname", ("", ""))[1]
    domain = tcpip.get("domain", ("", ""))[1]
    addresses: dict[str, None] = {}
    for key, values in tree.items():
        if "\\interfaces\\" in key:
            static = parse.split_strings(values.get("ipaddress"))
            for address in (*static, values.get("dhcpipaddress", ("", ""))[1]):
                if address and address != "0.0.0.0":
                    addresses[address] = None
    return model.HostIdentity(
        name=name,
        dns_name=f"{name}.{domain}" if name and domain else name,
        addresses=tuple(sorted(addresses)),
        boot_time=parse.determine_boot_time(
            sorted(
                (*parse.read_clock_events(answers.text("boot")), *_read_uptime(second)), key=lambda event: -event.record
            )
        ),
    )


def _read_uptime(answers: Answers) -> list[parse.ClockEvent]:
    """The last uptime that the event log wrote, unless the system booted later."""
    return [event for event in parse.read_clock_events(answers.text("uptime")) if event.kind == "uptime"]


def _read_lock(answers: Answers) -> model.LockOwner | None:
    """The holder of the node lock, also one without a readable name."""
    owner = parse_lock_owner(answers.text("lock"))
    if owner is None and model.LOCK_NAME in {name.lower() for name in parse.read_names(answers.text("locks"))}:
        return model.LockOwner(model.UNREADABLE, 0.0)
    return owner


def parse_lock_owner(text: str) -> model.LockOwner | None:
    """The holder named in the lock's ``owner`` file; None when the file is missing or has no name."""
    words = dict(word.partition("=")[::2] for word in text.split() if "=" in word)
    if not re.fullmatch(r"[0-9a-z]{1,40}", words.get("id", "")):
        return None
    since = float(read_number(words.get("at")) or 0)
    return model.LockOwner(words["id"], since, words.get("process", ""), text.strip())


def _read_storage(drives: Sequence[str], tree: parse.RegistryTree, answers: Answers) -> model.StorageState:
    def value(key: str, name: str) -> int | None:
        return parse.read_dword(tree.get(parse.spell_key(key), {}).get(name.lower()))

    def start(service: str) -> int | None:
        return value(rf"{_SERVICES}\{service}", "Start")

    return model.StorageState(
        san_policy=value(_SERVICES + r"\partmgr\Parameters", "SanPolicy"),
        defragsvc_start=start("defragsvc"),
        afunix_start=start("afunix"),
        compartment_namespace=value(_SERVICES + r"\hns\State", "EnableCompartmentNamespace"),
        free_bytes=tuple(
            (drive, free)
            for drive in drives
            if (free := parse.read_free_bytes(answers.text(f"disk {drive}"))) is not None
        ),
        stale_mounts=_find_stale_mounts(answers),
        uses_smb=bool({name.lower() for name in parse.read_names(answers.text("plugins"))} & _SMB_DRIVERS),
    )


def _find_stale_mounts(answers: Answers) -> tuple[str, ...]:
    """Global mounts whose volume Windows does not have any more. Looks at the links alone, never into a volume or share.

    Whether a share still answers is not asked: that could take minutes.
    """
    present = parse.find_volumes(answers.text("volumes"))
    return tuple(
        path
        for path, target in parse.read_links(answers.text("mounts"))
        if present and path.lower().endswith(_GLOBAL_MOUNT) and parse.find_volumes(target) - present
    )
