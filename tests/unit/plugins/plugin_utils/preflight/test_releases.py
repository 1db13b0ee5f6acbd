# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between releases of Kubernetes is in the catalog alone."""

from __future__ import annotations

import ast
from pathlib import Path

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight import evaluate


def is_release(node: ast.AST) -> bool:
    """Whether it is a literal such as (1, 26)."""
    if not isinstance(node, ast.Tuple):
        return False
    numbers = [part.value for part in node.elts if isinstance(part, ast.Constant)]
    return len(numbers) == len(node.elts) == 2 and numbers[0] == 1


def test_no_file_compares_with_a_release_of_its_own() -> None:
    files = [*Path(evaluate.__file__).parent.rglob("*.py")]
    assert len(files) > 50
    found = [
        f"{file.name}:{node.lineno}"
        for file in files
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Tuple) and is_release(node)
    ]
    assert found == []
