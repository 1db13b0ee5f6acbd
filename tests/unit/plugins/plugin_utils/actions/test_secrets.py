# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run counts as its own secrets: hidden everywhere, so a path that it prints is none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.secrets import collect_secrets


class Templar:
    def template(self, value: Any) -> Any:
        return value


def test_the_directory_of_a_run_is_no_secret(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("users: [{name: a, user: {token: token-of-the-kubeconfig}}]\n", encoding="utf-8")
    environment = {
        "PWD": str(tmp_path), "OLDPWD": str(tmp_path.parent), "MY_SECRETS": str(tmp_path), "TOKENIZERS_PARALLELISM": "false",
        "SHARE_PASSWORD": "held-by-the-environment", "LOGIN_PASSWD": "/no/path", "KUBECONFIG": str(kubeconfig),
    }  # fmt: skip
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    variables = {
        "ansible_password": "held-by-a-variable",
        "pwd": str(tmp_path),
        "use_token": "true",
        "ansible_user": "joe",
    }
    found = set(collect_secrets(variables, Templar()))
    assert {"held-by-the-environment", "held-by-a-variable", "token-of-the-kubeconfig", "/no/path"} <= found
    assert not {str(tmp_path), str(tmp_path.parent), "false", "true", "joe"} & found
