# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that people read while a task works or when it ends, beside what the callback prints of the task."""

from __future__ import annotations

import functools

from ansible import constants
from ansible.plugins.callback import default
from ansible.plugins.loader import callback_loader
from ansible.utils.display import Display

display = Display()

# Callbacks of Ansible that print for people and are not made from the default one.
_PLAIN = ("minimal", "oneline")


def show(text: str) -> None:
    """Print it: on stdout where the callback prints for people, and otherwise, as with JSON, on stderr."""
    display.display(text, stderr=not for_people(constants.config.get_config_value("DEFAULT_STDOUT_CALLBACK")))


@functools.cache
def for_people(callback: str) -> bool:
    """Whether a callback's stdout may hold lines that are not its own."""
    found = callback_loader.get(callback, class_only=True)
    return found is None or issubclass(found, default.CallbackModule) or callback.rpartition(".")[2] in _PLAIN
