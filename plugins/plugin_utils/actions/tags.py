# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tags a playbook has. Ansible runs nothing for an unknown tag, and ends with success. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

TAGS: Mapping[str, tuple[str, ...]] = {"enable_csi": ("check", "proxy", "driver", "gate", "summary")}


def wrong_tags(playbook: str, run: Iterable[str], skip: Iterable[str]) -> Iterator[str]:
    """A sentence for each tag of --tags and --skip-tags that the playbook does not have. run: without --tags it is all."""
    playbook_tags = TAGS.get(playbook, ())
    expected = f", expected {', '.join(playbook_tags[:-1])} or {playbook_tags[-1]}." if playbook_tags else ""
    for option, tags in (("--tags", [tag for tag in run if tag != "all"]), ("--skip-tags", skip)):
        for tag in dict.fromkeys(tags):
            if tag not in playbook_tags:
                yield f"{option} is {tag}" + (expected or f", but {playbook} has no tags. Run without {option}.")
