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
    own = TAGS.get(playbook, ())
    # Without tags, a playbook does nothing for --tags and everything for --skip-tags.
    for option, tags in (("--tags", run), ("--skip-tags", skip if own else ())):
        for tag in dict.fromkeys(tags):
            if tag in own or tag in SPECIAL:
                continue
            near = get_close_matches(tag, own, 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            if own:
                yield f"{option} is {tag}, expected {', '.join(own[:-1])} or {own[-1]}.{meant}"
            else:
                yield f"{option} is {tag}, but {playbook} has no tags and would do nothing. Run without {option}."
