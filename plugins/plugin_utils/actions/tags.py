# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tags a playbook has. Ansible runs nothing for an unknown tag, and ends with success. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

TAGS: Mapping[str, tuple[str, ...]] = {"enable_csi": ("check", "proxy", "driver", "gate", "summary")}
# https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_tags.html#special-tags
SPECIAL = frozenset({"all", "always", "never", "tagged", "untagged"})


def wrong_tags(
    playbook: str, run: Iterable[str], skip: Iterable[str], others: Iterable[str] | None = None
) -> Iterator[str]:
    """A sentence for each tag of --tags and --skip-tags that the playbook does not have.

    others: None if the command line names the playbook itself. Otherwise the tags in the user's playbook that imports it; a tag
    of a file that it includes is not among them, so only a near miss is refused.
    """
    own = TAGS.get(playbook, ())
    valid = {*own, *SPECIAL, *(others or ()), *(() if others is None else _all_tags())}
    for option, tags in (("--tags", run), ("--skip-tags", skip)):
        # Without tags, a playbook does nothing for --tags and everything for --skip-tags.
        if not own and others is None and option == "--skip-tags":
            continue
        for tag in dict.fromkeys(tags):
            if tag in valid:
                continue
            near = get_close_matches(tag, own, 1)
            if own and (near or others is None):
                meant = f" Did you mean {near[0]}?" if near else ""
                yield f"{option} is {tag}, expected {', '.join(own[:-1])} or {own[-1]}.{meant}"
            elif others is None:
                yield f"{option} is {tag}, but {playbook} has no tags and would do nothing. Run without {option}."


def _all_tags() -> set[str]:
    return {tag for tags in TAGS.values() for tag in tags}


def collect_tags(content: object) -> set[str]:
    """All tags in a playbook's text as YAML reads it."""
    if isinstance(content, Mapping):
        tags = content.get("tags") or ()
        own = tags.split(",") if isinstance(tags, str) else tags if isinstance(tags, list) else ()
        return {str(tag).strip() for tag in own} | collect_tags(list(content.values()))
    if isinstance(content, list):
        return {tag for entry in content for tag in collect_tags(entry)}
    return set()
