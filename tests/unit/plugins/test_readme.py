# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""README's steps. The screen that it promises is compared with a run in tests/integration/test_enable_csi.py."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")


def test_your_cluster_is_five_steps_with_a_command_each() -> None:
    (steps,) = re.findall(r"## For your cluster\n(.*?)\n## ", README, re.DOTALL)
    numbered = re.split(r"^(\d)\. ", steps, flags=re.MULTILINE)[1:]
    assert numbered[::2] == ["1", "2", "3", "4", "5"]
    assert all("```console\n   $ " in text for text in numbered[1::2])
