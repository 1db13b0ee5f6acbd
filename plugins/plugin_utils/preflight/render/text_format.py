# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Words that every form of a report shares. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...base.text import MASKED
from ...kube import kinds

# A cell is shortened for reading; the whole text is in the JSON.
LONGEST = 600

_COMMANDS = frozenset({"kubectl", "oc", "az", "aws", "gcloud", "ansible-playbook"})


def plain(text: object) -> str:
    """Text that is safe to show: one line, without characters that control a terminal or reverse the reading direction.

    Such characters are shown as their code, so that two names that differ look different.
    """
    raw = str(text)
    shown = raw if raw.isprintable() else "".join(map(_show_character, raw))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"


def _show_character(text: str) -> str:
    if text.isprintable():
        return text
    if text in "\n\t":
        return " "
    code = ord(text) - MASKED if ord(text) >= MASKED else ord(text)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def sentence(text: str) -> str:
    """Text that begins and ends as a sentence does. A command in it stays what it is, to be copied."""
    begins = text.partition(" ")[0].rstrip(";:,").isalpha() and not starts_with_command(text)
    words = text.split()
    is_address = "://" in words[-1] if words else False
    ends = not text.endswith((".", "!", "?", ":", "/")) and _COMMANDS.isdisjoint(words) and not is_address
    return (f"{text[:1].upper()}{text[1:]}" if begins else text) + ("." if ends and begins else "")


def starts_with_command(text: str) -> bool:
    """Whether a remedy is a command to be copied."""
    return text.partition(" ")[0] in _COMMANDS


def format_number(count: int, singular: str, plural: str = "") -> str:
    """ "1 node", "3 nodes", "12,000 nodes"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


# Without one of these lists the workloads with volumes on Windows are unknown.
_NEEDED = frozenset(kind.plural for kind in (kinds.NODE, kinds.POD, *kinds.TEMPLATES))


def describe_no_workloads(unread: Iterable[Mapping[str, str]]) -> str:
    """The text for no workload: there is none, or it could not be read."""
    lacking = sorted(_NEEDED & {entry["resource"] for entry in unread})
    if lacking:
        return f"which workloads on Windows have volumes is unknown, because {format_list(lacking)} could not be read"
    return "no workload on Windows uses volumes"


def format_list(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most:,} more" if len(names) > most else shown
