# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of converted volumes: check mode fails where the run would."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.action.convert_volumes import ActionModule, describe_results
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.errors import TaskError
from unit.plugins.plugin_utils.convert.test_run import store_of


def test_check_mode_shows_the_refusal_in_place_of_steps() -> None:
    conversions, result = store_of("made-by-hand", "create_volume")
    action: Any = ActionModule.__new__(ActionModule)
    action._task, action.result = SimpleNamespace(check_mode=True), {}
    with pytest.raises(TaskError, match=r"pv-1 was created by another client \(uid made-by-hand\)") as caught:
        action._convert(conversions, [result])
    assert (caught.value.reason, action.result["changed"]) == ("foreign_volume", False)
    lines = list(describe_results([result], check=True))
    assert len(lines) == 1
    assert lines[0].startswith("shop/data-db-0: failed, PersistentVolume pv-1 was created")
