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


def wrong_tags(playbook: str, run: Iterable[str], skip: Iterable[str]) -> Iterator[str]:
    """A sentence for each tag of --tags and --skip-tags that the playbook does not have."""
    playbook_tags = TAGS.get(playbook, ())
    for option, tags in (("--tags", dict.fromkeys(run)), ("--skip-tags", dict.fromkeys(skip))):
        special = _find_special_tags(option, set(tags), has_tags=bool(playbook_tags))
        for tag in tags:
            # A playbook without tags has nothing that another tag could skip.
            skips_nothing = not playbook_tags and option == "--skip-tags" and tag not in SPECIAL
            if tag in playbook_tags or tag in special or skips_nothing:
                continue
            near = get_close_matches(tag, playbook_tags, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            if playbook_tags:
                yield f"{option} is {tag}, expected {', '.join(playbook_tags[:-1])} or {playbook_tags[-1]}.{meant}"
            else:
                yield f"{option} is {tag}, but {playbook} has no tags and would do nothing. Run without {option}."


def _find_special_tags(option: str, tags: set[str], *, has_tags: bool) -> frozenset[str]:
    """The special tags with which a playbook does something. tags: of the option. has_tags: whether the playbook has tags."""
    whole = frozenset({"all", "tagged" if has_tags else "untagged"})
    if option == "--skip-tags":
        return SPECIAL - whole
    # Beside a tag that selects tasks, the others select no less.
    return SPECIAL if tags - (SPECIAL - whole) else whole
