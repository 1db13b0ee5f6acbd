# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host that the run changed is read again at its end: another run may have changed csi-proxy since then."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible import template
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

# ansible-core 2.18 and older trust every text.
trusted: Callable[[str], Any] = getattr(template, "trust_as_template", str)

ROLES = Path(__file__).parents[3] / "roles"
REREAD = yaml.safe_load((ROLES / "csi_proxy" / "tasks" / "reread.yml").read_text("utf-8"))


@pytest.mark.parametrize(
    ("registered", "fails"),
    [
        ({"csi_proxy": {}, "plan": []}, False),
        ({"csi_proxy": {}, "plan": [{"step": "prune"}]}, False),
        ({"csi_proxy": {}, "plan": [{"step": "commit"}]}, True),
        ({"reason": "locked", "msg": "another run changes this node"}, True),
        # Of an action that ended with an error of its own, which has no reason.
        ({"msg": "Unexpected failure during module execution"}, True),
    ],
)
def test_what_could_not_be_read_again_is_not_as_this_run_left_it(registered: dict[str, Any], fails: bool) -> None:
    condition = trusted("{{ " + REREAD[-1]["when"] + " }}")
    variables = {"csi_proxy_reread": registered}
    assert Templar(loader=DataLoader(), variables=variables).template(condition) is fails


@pytest.mark.parametrize(
    ("registered", "words"),
    [
        (
            {"reason": "locked", "msg": "the node is locked"},
            "win-1: csi-proxy cannot be verified at the end of the run (the node is locked)",
        ),
        (
            {"csi_proxy": {}, "plan": [{"step": "start", "description": "start it"}]},
            "win-1: csi-proxy missing (start it), expected the installed release, which this run installed: another run or user",
        ),
    ],
)
def test_only_a_csi_proxy_that_was_planned_again_is_called_changed(registered: dict[str, Any], words: str) -> None:
    task = REREAD[-1]
    texts = {name: trusted(text) for name, text in task["vars"].items()}
    variables = {"csi_proxy_reread": registered, "csi_proxy_result": {}, "inventory_hostname": "win-1", **texts}
    message = Templar(loader=DataLoader(), variables=variables).template(trusted(task["ansible.builtin.fail"]["msg"]))
    assert message.startswith(words)
