# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what Windows tools print, without a single localised word: numbers, constants, registry values and names.

Labels are translated (``NOMBRE_SERVICIO``, ``ID_процесса``), so nothing here reads one: values are found by their
position or their shape.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal, NamedTuple

from ..base.decode import read_number

_ROW = re.compile(r"\s+[^\s:][^:]*:\s*(.*?)\s*")
_STATE = re.compile(r"([1-7])\s+\S+")
_EXIT = re.compile(r"(-?\d{1,10})\s+\(0x[0-9a-fA-F]+\)")
_VALUE = re.compile(r"^ {4}(.+?) {4}(REG_[A-Z_]+)(?: {4}(.*))?$")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CSV = re.compile(r'^"((?:[^"]|"")*)","(\d{1,10})",')
_LINK = re.compile(r"\s(\S+)\s\[(.*)\]\s*$")
_VOLUME = re.compile(r"Volume\{[0-9a-f-]+\}", re.IGNORECASE)
_SYSTEM_TIME = re.compile(r"<TimeCreated\s+SystemTime=['\"]([^'\"]+)['\"]")

_EVENT = re.compile(r"<Event\b.*?</Event>", re.DOTALL)
_EVENT_ID = re.compile(r"<EventID[^>]*>(\d{1,5})</EventID>")
_RECORD = re.compile(r"<EventRecordID>(\d{1,18})</EventRecordID>")
_NEW_TIME = re.compile(r"<Data Name=['\"]NewTime['\"]>([^<]*)<")
_OLD_TIME = re.compile(r"<Data Name=['\"]OldTime['\"]>([^<]*)<")
_UPTIME = re.compile(r"<EventData>(?:<Data>[^<]*</Data>|<Data/>){4}<Data>(\d{1,10})</Data>")
_CLOCK_IS_SET = timedelta(hours=1)
"""uptime from which on the clock counts as set by a time service"""
_AGREEMENT = timedelta(minutes=2)
"""by how much two sources of one time may differ"""

RegistryTree = dict[str, dict[str, tuple[str, str]]]
"""Key (lower case, HKEY_LOCAL_MACHINE spelled out) -> value name (lower case) -> (type, data as printed)."""


@dataclass(frozen=True, slots=True)
class ClockEvent:
    """Kernel-General 12 (boot), Kernel-General 1 (step, by ``length``) or EventLog 6013 (uptime of ``length``), at the clock's time."""

    kind: Literal["boot", "step", "uptime"]
    record: int
    at: datetime
    length: timedelta = timedelta()


class Process(NamedTuple):
    image: str
    pid: int


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """``sc queryex``: state number (1 STOPPED ... 7 PAUSED), PID (0 when not running), Win32 and service exit codes."""

    state: int
    pid: int
    win32_exit: int
    service_exit: int


def read_service_status(text: str) -> ServiceStatus | None:
    """The status that ``sc queryex`` or ``sc query`` printed; None when it printed none (no such service, denied).

    The rows are indented and always in this order, whatever they are called: type, state, two exit codes, check point
    and wait hint (both ``0x...``), and with ``queryex`` the PID, the first plain decimal number, and the flags.
    """
    rows = [row[1] for line in text.splitlines() if (row := _ROW.fullmatch(line))]
    if len(rows) < 4:
        return None
    state, win32_exit, service_exit = _STATE.match(rows[1]), _EXIT.match(rows[2]), _EXIT.match(rows[3])
    if state is None or win32_exit is None or service_exit is None:
        return None
    pid = next((value for row in rows[4:] if (value := read_number(row)) is not None), 0)
    return ServiceStatus(int(state[1]), pid, int(win32_exit[1]) & 0xFFFFFFFF, int(service_exit[1]) & 0xFFFFFFFF)


def read_registry(text: str) -> RegistryTree:
    """Everything that one or several ``reg query`` printed. Keys that only appear as subkeys map to an empty dict."""
    tree: RegistryTree = {}
    values: dict[str, tuple[str, str]] | None = None
    for line in text.splitlines():
        if line.startswith("HKEY_"):
            values = tree.setdefault(line.rstrip().lower(), {})
        elif values is not None and (match := _VALUE.match(line.rstrip("\r"))):
            values[match[1].lower()] = (match[2], match[3] or "")
        elif line.strip():
            values = None  # the translated footer of a search
    return tree


def is_search_complete(text: str) -> bool:
    """Whether ``reg query /f`` came to its end: then it prints a last line, with the number of hits.

    A key that cannot be opened can end the search before.
    """
    lines = [line.rstrip("\r") for line in text.splitlines() if line.strip()]
    return bool(lines) and not lines[-1].startswith("HKEY_") and not _VALUE.match(lines[-1])


def spell_key(path: str) -> str:
    """``HKLM\\X`` as :func:`read_registry` spells its keys."""
    root, subkey = path.split("\\", 1)
    return ("hkey_local_machine" if root.upper() == "HKLM" else root.lower()) + "\\" + subkey.lower()


def read_dword(value: tuple[str, str] | None) -> int | None:
    """A REG_DWORD or REG_QWORD as a number; None when it is neither."""
    if value is None:
        return None
    # reg.exe prints a number as 0x and at most 16 digits.
    return int(value[1], 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", value[1]) else read_number(value[1])


def split_strings(value: tuple[str, str] | None) -> tuple[str, ...]:
    """A REG_MULTI_SZ as its strings: reg.exe joins them with a literal backslash and zero."""
    return tuple(part for part in value[1].split("\\0") if part) if value else ()


def read_failure_actions(data: str) -> tuple[int, tuple[tuple[int, int], ...]] | None:
    """The service's ``FailureActions`` blob: (reset period in seconds, ((action type, delay in ms), ...)).

    SERVICE_FAILURE_ACTIONS as 32 bit little endian words. Words 1, 2 and 4 are stale pointers and ignored; actions
    begin at byte 20. None when the blob is damaged.
    """
    try:
        raw = bytes.fromhex(data)
    except ValueError:
        return None
    words = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw) - 3, 4)]
    if len(words) < 5 or len(words) < 5 + 2 * words[3]:
        return None
    return words[0], tuple((words[5 + 2 * i], words[6 + 2 * i]) for i in range(words[3]))


def find_sha256(text: str) -> str | None:
    """The digest in the output of ``certutil -hashfile``, found by its shape (older releases print pairs of digits)."""
    for line in text.splitlines():
        digits = re.sub(r"\s", "", line).lower()
        if _SHA256.fullmatch(digits):
            return digits
    return None


def find_marked_path(text: str) -> str:
    """The path that ``commands.hash_service_program`` printed before its digest; empty when it printed none."""
    mark = text.lstrip().partition("\n")[0]
    return mark[1:].strip() if mark.startswith("*") else ""


def read_processes(text: str) -> tuple[Process, ...]:
    """The processes that ``tasklist /fo csv /nh`` printed; the translated sentence for "none" is no quoted line."""
    return tuple(Process(match[1], int(match[2])) for line in text.splitlines() if (match := _CSV.match(line)))


def read_names(text: str) -> tuple[str, ...]:
    """The lines of ``dir /b``."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def read_pipes(text: str, prefix: str) -> tuple[str, ...]:
    """Bare names of the pipes that begin with ``prefix``, sorted."""
    pipe_names = (line.lstrip("\\") for line in read_names(text))
    return tuple(sorted({name for name in pipe_names if name.lower().startswith(prefix)}))


def read_links(text: str) -> tuple[tuple[str, str], ...]:
    """(path, target) of each link that ``commands.list_links`` printed. The word for its kind is ignored."""
    pairs = []
    directory = ""
    for line in text.splitlines():
        if line.startswith("*"):
            directory = line[1:].rstrip()
        elif directory and (link := _LINK.search(line)):
            pairs.append((rf"{directory}\{link[1]}", link[2]))
    return tuple(pairs)


def read_free_bytes(text: str) -> int | None:
    """The free bytes that ``fsutil volume diskfree`` printed first, None if it printed none.

    Label, unit and separators depend on build and language. Of the numbers behind the first colon the bytes have the most digits.
    """
    numbers = re.split(r"[()]", text.partition("\n")[0].partition(":")[2])
    return read_number(max((re.sub(r"\D", "", number) for number in numbers), key=len))


def find_volumes(text: str) -> frozenset[str]:
    """Every ``Volume{...}`` in a text such as ``mountvol`` prints, in lower case."""
    return frozenset(name.lower() for name in _VOLUME.findall(text))


def read_smb_mappings(text: str) -> tuple[tuple[str, str, int], ...]:
    """(local, remote, status) of each mapping, from lines ``LocalPath=``, ``RemotePath=``, ``Status=`` as WMIC prints them."""
    mappings = []
    rows: dict[str, str] = {}
    for line in text.splitlines():
        # WMIC ends a line with two carriage returns, of which one is masked.
        name, equals, value = "".join(filter(str.isprintable, line)).strip().partition("=")
        if equals:
            rows[name] = value
        # The names are in the order of their letters, so that the status is the last.
        if name == "Status" and rows.get("RemotePath"):
            status = read_number(value)
            mappings.append((rows.get("LocalPath", ""), rows["RemotePath"], -1 if status is None else status))
            rows = {}
    return tuple(mappings)


def read_clock_events(text: str) -> tuple[ClockEvent, ...]:
    """The events of ``wevtutil qe System ... /f:xml`` that say something about the clock, newest first; others are left out."""
    events = []
    for xml in _EVENT.findall(text):
        number, record, created = _EVENT_ID.search(xml), _RECORD.search(xml), _SYSTEM_TIME.search(xml)
        at = _read_event_time(created[1]) if created else None
        if number is None or record is None or at is None:
            continue
        step = [
            _read_event_time(value[1]) if (value := named.search(xml)) else None for named in (_NEW_TIME, _OLD_TIME)
        ]
        uptime = _UPTIME.search(xml)
        if number[1] == "12":
            events.append(ClockEvent("boot", int(record[1]), at))
        elif number[1] == "1" and step[0] is not None and step[1] is not None:
            events.append(ClockEvent("step", int(record[1]), at, step[0] - step[1]))
        elif number[1] == "6013" and uptime is not None:
            events.append(ClockEvent("uptime", int(record[1]), at, timedelta(seconds=int(uptime[1]))))
    return tuple(sorted(events, key=lambda event: -event.record))


def _read_event_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def determine_boot_time(events: Sequence[ClockEvent]) -> str | None:
    """The last boot in UTC, ISO 8601; None where the events do not show it, or two sources disagree.

    The event of the boot carries the time of the hardware's clock, which Windows takes for local time: on KVM and Nutanix it is
    often UTC, and hours off. So it counts with every step of the clock since. Where more steps were logged than read, the
    uptime that the event log writes once a day counts; the one that it writes at the boot carries the same wrong time.
    Sources of the events: captures in the tests; "Every time W32time updates the clock, this event is logged" (Microsoft Learn,
    on Kernel-General 1).
    """
    shift = timedelta()
    boot_times: list[datetime] = []
    steps = [event.length for event in events if event.kind == "step"]
    for event in events:
        if event.kind == "boot":
            boot_times.append(event.at + shift)
            break
        if event.kind == "step":
            shift += event.length
        elif event.length >= _CLOCK_IS_SET:
            boot_times.append(event.at - event.length + shift)
    else:
        if any(abs(step) > _AGREEMENT for step in steps):
            boot_times = []
    if not boot_times or max(boot_times) - min(boot_times) > _AGREEMENT:
        return None
    return boot_times[0].strftime("%Y-%m-%dT%H:%M:%SZ")


def find_executable(command_line: str) -> str:
    """The program in a service's command line: the quoted part, or up to the first ``.exe``, or the first word."""
    text = command_line.strip()
    if text.startswith('"'):
        return text[1:].partition('"')[0]
    match = re.match(r"(.+?\.exe)(?:\s|$)", text, re.IGNORECASE)
    return match[1] if match else text.partition(" ")[0]
