# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access lists of files and directories, and which accounts besides administrators may change what lies there. Pure.

A list is read as SDDL, which names accounts by their SIDs: the names that icacls shows are translated, and ``Everyone:(F)``
looks like SYSTEM's entry without its name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SYSTEM, _ADMINISTRATORS, _EVERYONE = "S-1-5-18", "S-1-5-32-544", "S-1-1-0"
OWNER = _ADMINISTRATORS
FULL_CONTROL = (_SYSTEM, _ADMINISTRATORS)
"""SIDs of the only accounts that have rights in the install directory"""
CLOSED = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)"

# Aliases of SDDL ([MS-DTYP] 2.4.2.4) for accounts that Windows itself puts on directories.
_ALIASES = {
    "SY": _SYSTEM,
    "BA": _ADMINISTRATORS,
    "WD": _EVERYONE,
    "BU": "S-1-5-32-545",
    "AU": "S-1-5-11",
    "CO": "S-1-3-0",
    "CG": "S-1-3-1",
    "OW": "S-1-3-4",
}
# CREATOR OWNER, CREATOR GROUP and OWNER RIGHTS are in no token: they stand for the owner. The last is TrustedInstaller.
_TRUSTED = frozenset({_SYSTEM, _ADMINISTRATORS, "S-1-3-0", "S-1-3-1", "S-1-3-4", "LA", "DA", "EA"}) | {
    "S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464"
}
_TRUSTED_IN_DOMAIN = re.compile(r"S-1-5-21-\d+-\d+-\d+-(?:500|512|519)")
"""The built-in Administrator, Domain Admins and Enterprise Admins."""

# Rights of SDDL as bits ([MS-DTYP] 2.4.4.1; winnt.h). For a file DC is writing and DT is deleting a child.
_FULL = 0x1F01FF
_RIGHTS = {
    "CC": 0x1, "DC": 0x2, "LC": 0x4, "SW": 0x8, "RP": 0x10, "WP": 0x20, "DT": 0x40, "LO": 0x80, "CR": 0x100,
    "SD": 0x10000, "RC": 0x20000, "WD": 0x40000, "WO": 0x80000, "GA": _FULL, "GX": 0x1200A0, "GW": 0x120116, "GR": 0x120089,
    "FA": _FULL, "FX": 0x1200A0, "FW": 0x120116, "FR": 0x120089,
}  # fmt: skip
_GENERIC = {0x10000000: _FULL, 0x20000000: 0x1200A0, 0x40000000: 0x120116, 0x80000000: 0x120089}
TAKE_CHILD = 0x40 | 0x40000 | 0x80000
"""Delete or rename any child, or grant oneself that right: FILE_DELETE_CHILD, WRITE_DAC, WRITE_OWNER"""
WRITE = 0x2 | 0x4 | 0x40 | 0x10000 | 0x40000 | 0x80000
"""Change a file, or what lies in a directory"""

_LIST = re.compile(r'(?:^|")(D:([A-Z_]*)((?:\([^()]*\))*))\s*(?:"|$)', re.MULTILINE)
_ENTRY = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. flags: pairs of SDDL such as OI, CI, IO, NP, ID. rights: bits of an access mask, generic ones mapped."""

    allows: bool
    flags: frozenset[str]
    rights: int
    sid: str


@dataclass(frozen=True, slots=True)
class AccessList:
    """The list of one path. text: its SDDL. protected: it inherits nothing."""

    text: str
    protected: bool
    entries: tuple[Entry, ...]

    @property
    def is_closed(self) -> bool:
        """Whether SYSTEM and Administrators have full control, here and below, and no other account has an entry."""
        expected = {Entry(True, frozenset({"OI", "CI"}), _FULL, sid) for sid in FULL_CONTROL}
        return self.protected and set(self.entries) == expected

    def list_others(self, rights: int) -> tuple[str, ...]:
        """SIDs of non-administrators who have any of these rights here. Entries that deny are ignored."""
        here = (entry for entry in self.entries if entry.allows and "IO" not in entry.flags)
        return tuple(
            dict.fromkeys(entry.sid for entry in here if entry.rights & rights and not is_administrator(entry.sid))
        )


def is_administrator(sid: str) -> bool:
    """Whether the SID is of SYSTEM, administrators, or Windows' own installer."""
    return sid in _TRUSTED or _TRUSTED_IN_DOMAIN.fullmatch(sid) is not None


def parse_access_list(text: str) -> AccessList | None:
    """The list in what ``cacls PATH /S`` or ``icacls PATH /save`` printed; None when there is none, or one of another form."""
    match = _LIST.search(text)
    if match is None:
        return None
    entries = [_parse_entry(entry) for entry in _ENTRY.findall(match[3])]
    if match[2] == "NO_ACCESS_CONTROL":
        entries = [Entry(True, frozenset({"OI", "CI"}), _FULL, _EVERYONE)]
    if any(entry is None for entry in entries):
        return None
    return AccessList(match[1], "P" in match[2], tuple(entry for entry in entries if entry is not None))


def parse_access_lists(text: str) -> dict[str, AccessList]:
    """The lists that ``cacls PATH /S`` printed for several paths, by path in lower case."""
    lists = {}
    for line in text.splitlines():
        path, quote, listing = line.partition('"')
        listed = parse_access_list(quote + listing) if quote else None
        if listed is not None:
            lists[path.strip().lower()] = listed
    return lists


def _parse_entry(text: str) -> Entry | None:
    """An entry ``type;flags;rights;object;inherited object;account``. One that neither allows nor denies (a label) has no rights."""
    fields = text.split(";")
    if len(fields) < 6:
        return None
    kind, flags, rights, dummy, dummy, sid = fields[:6]
    allows = kind in ("A", "OA", "XA", "ZA")
    pairs = frozenset(flags[at : at + 2] for at in range(0, len(flags), 2))
    return Entry(allows, pairs, _parse_rights(rights), _ALIASES.get(sid, sid))


def _parse_rights(rights: str) -> int:
    """Rights as bits; everything for one that is unknown."""
    if re.fullmatch(r"0[xX][0-9a-fA-F]{1,8}", rights):
        bits = int(rights, 16)
        return bits | sum(mapped for generic, mapped in _GENERIC.items() if bits & generic)
    bits = 0
    for at in range(0, len(rights), 2):
        bits |= _RIGHTS.get(rights[at : at + 2], _FULL)
    return bits
