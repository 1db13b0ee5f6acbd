# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a host cannot be reached. The lab's tests have the texts of every connection plugin."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.reach import WINRM, ConnectionAttempt, explain


@pytest.mark.parametrize(
    "text",
    ["Connection refused", "Connection timed out during banner exchange", "banner line contains invalid characters"],
)
def test_ssh_to_a_winrm_host_names_the_variable_that_was_forgotten(text: str) -> None:
    explained = explain(text, ConnectionAttempt("win-1:5985", "", {}))
    assert explained is not None
    assert explained[1].endswith("For WinRM, set ansible_connection to winrm.")


def test_a_winrm_host_gets_no_advice_to_use_winrm() -> None:
    explained = explain("Connection refused", ConnectionAttempt("http://win-1:5985", "http", WINRM))
    assert explained is not None
    assert "ansible_connection" not in explained[1]
