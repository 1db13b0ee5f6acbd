# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action import node_info
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError


def test_a_run_whose_hosts_are_all_left_out_is_refused() -> None:
    make: Any = node_info.ActionModule
    action = make(None, None, None, None, None, None)
    left_out = {"names": [], "addresses": [], "node_name": "", "problem": ""}
    hosts = [{"name": "win-1", **left_out}, {"name": "win-2", **left_out}]
    with pytest.raises(TaskError, match=r"^win-1, win-2: left out because they are unreachable") as caught:
        action._read({"require": True, "hosts": hosts})
    assert caught.value.reason == "host_unusable"
