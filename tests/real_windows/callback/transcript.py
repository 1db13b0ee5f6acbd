# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps every command line that a run sends to a host, with its answer, as JSON lines."""

from __future__ import annotations

DOCUMENTATION = r"""
name: transcript
type: notification
short_description: Command lines and their answers as JSON lines
description: For the tests of this collection. What is sent to a command's standard input is not kept.
"""

from collections.abc import Callable
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import channel
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import LineResult
from real_windows import transcript


def recorded(run: Callable[..., LineResult]) -> Callable[..., LineResult]:
    """The `run` of a channel, with what it sent and got written down."""

    def wrapper(self: Any, line: str, **options: Any) -> LineResult:
        done = run(self, line, **options)
        transcript.keep(line, done.rc, done.stdout, done.stderr)
        return done

    return wrapper


# The processes that run tasks are forks of the one that loads this.
for found in vars(channel).values():
    if isinstance(found, type) and found.__name__.endswith("Channel") and found is not channel.Channel:
        found.run = recorded(found.run)  # type: ignore[attr-defined]  # each channel has one, their base does not


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "transcript"
