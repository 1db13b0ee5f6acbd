# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next command of a run, ready to paste. Pure: no I/O."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .inputs import INPUTS

# A command in a remedy, which does not know how the run was started.
_REMEDY = re.compile(
    r"ansible-playbook -i inventory\.yml kubewin\.csi\.(?P<following>\w+(?: -e [\w.]+=[\w./,-]*[\w/])*)"
)


@dataclass(frozen=True, slots=True)
class Invocation:
    """How this run was started.

    dry: options of a dry run. awx: whether AWX started it, where no command line exists.
    """

    inventories: tuple[str, ...] = ()
    limit: str = ""
    extra: tuple[str, ...] = ()
    dry: tuple[str, ...] = ()
    awx: bool = False

    @classmethod
    def of(cls, arguments: Mapping[str, Any], folder: str, *, awx: bool) -> Invocation:
        """From Ansible's parsed command line. folder: the working directory; paths below it are shown relative to it."""
        below = folder.rstrip("/") + "/"
        return cls(
            inventories=tuple(str(inventory).removeprefix(below) for inventory in arguments.get("inventory") or ()),
            limit=str(arguments.get("subset") or ""),
            extra=tuple(map(str, arguments.get("extra_vars") or ())),
            dry=tuple(
                f"--{option}" for option in ("check", "diff") if arguments.get("check") and arguments.get(option)
            ),
            awx=awx,
        )


def render_command(run: Invocation, following: str, *, keep_dry_run: bool = False) -> str:
    """The command line of a playbook, as this run was started.

    following: its name, and more arguments behind it. keep_dry_run: whether a dry run is repeated as a dry run.
    """
    name, *arguments = shlex.split(following)
    if run.awx:
        answers = [word for word in arguments if word != "-e"]
        return f"launch the job template of kubewin.csi.{name}" + (f" with {shlex.join(answers)}" if answers else "")
    words = ["ansible-playbook"]
    for inventory in run.inventories:
        words += ["-i", inventory]
    words += ["--limit", run.limit] if run.limit else []
    dry = run.dry if keep_dry_run else ()
    return shlex.join(
        [
            *words,
            f"kubewin.csi.{name}",
            *_repeat_extra_variables(run.extra, name, arguments),
            *arguments,
            *dry,
        ]
    )


def repeat_invocation(text: str, run: Invocation) -> str:
    """A text whose remedies call our playbooks with the inventory and the access to the cluster of this run."""
    return _REMEDY.sub(lambda match: render_command(replace(run, limit=""), match["following"]), text)


def _repeat_extra_variables(extra: Sequence[str], name: str, arguments: Sequence[str]) -> Iterator[str]:
    argument_names = {word.partition("=")[0] for word in arguments}
    for words in extra:
        if words.startswith("@"):
            yield from ("-e", words)
            continue
        for word in _split_assignments(words):
            key = word.partition("=")[0]
            if _is_harmless(word) and name in INPUTS[key].playbooks and key not in argument_names:
                yield from ("-e", _quote_blanks(word))


def lacks_extra_variables(extra: Sequence[str]) -> bool:
    """Whether a command may lack extra variables of this run."""
    return any(
        not words.startswith("@")
        and (words.lstrip().startswith(("{", "[")) or not all(map(_is_harmless, _split_assignments(words))))
        for words in extra
    )


def _split_assignments(words: str) -> list[str]:
    """The assignments of one -e; JSON has none."""
    if words.lstrip().startswith(("{", "[")):
        return []
    try:
        return shlex.split(words)
    except ValueError:
        return [words]


def _quote_blanks(word: str) -> str:
    """An assignment for -e: Ansible splits it again, and would drop what follows a blank."""
    key, _equals, value = word.partition("=")
    return f'{key}="{value}"' if len(value.split()) > 1 else word


def _is_harmless(word: str) -> bool:
    """Whether it sets an input of ours to plain text; other variables, and a kubeconfig with all that it holds, may be secret."""
    key, equals, value = word.partition("=")
    return bool(equals) and key in INPUTS and not set(value) & set('{\n"')
