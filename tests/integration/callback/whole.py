# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints a run as one JSON document, as ansible.posix.json does for programs that read stdout."""

from __future__ import annotations

DOCUMENTATION = r"""
name: whole
type: stdout
short_description: One JSON document of a run
description: For the tests of this collection.
"""

import json
from typing import Any

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "whole"

    def v2_playbook_on_stats(self, stats: Any) -> None:
        self._display.display(json.dumps({"custom": stats.custom}))
