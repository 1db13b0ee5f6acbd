# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a run read the bytecode of collections, as Python does of all other files: Ansible compiles them anew in each run."""

from __future__ import annotations

DOCUMENTATION = r"""
name: bytecode
type: aggregate
short_description: Bytecode of collections is kept
description: For the tests of this collection, which start some hundred runs.
"""

from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.collection_loader._collection_finder import _AnsibleCollectionPkgLoaderBase as Loader

_compile: Callable[[Any, str], CodeType | None] = Loader.get_code


def _get_code(self: Any, fullname: str) -> CodeType | None:
    path = self._source_code_path
    if self._compiled_code is None and path and path.endswith(".py") and "/kubewin/csi/" in path:
        self._compiled_code = SourceFileLoader(fullname, path).get_code(fullname)
    return _compile(self, fullname)


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bytecode"

    def __init__(self) -> None:
        super().__init__()
        Loader.get_code = _get_code  # type: ignore[method-assign]  # for the tests' processes alone
