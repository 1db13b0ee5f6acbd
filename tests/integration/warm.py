# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook, forked from a process that has loaded the packages of others: that is a third of the CPU of a short run.

Each run loads Ansible, its settings and this collection anew, and has the environment that it is given.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

# What ansible-core, its connections and this collection import. None of it reads settings when it is loaded but `kubernetes`,
# which reads KUBECONFIG.
PACKAGES = (
    "concurrent.futures",
    "cryptography.hazmat.backends.openssl.backend",
    "importlib.metadata",
    "jinja2.nativetypes",
    "kubernetes.dynamic",
    "kubernetes.stream",
    "msgspec",
    "multiprocessing.queues",
    "multiprocessing.synchronize",
    "packaging.specifiers",
    "pypsrp.powershell",
    "pypsrp.wsman",
    "requests",
    "tarfile",
    "winrm",
    "xml.dom.minidom",
    "yaml",
)
READ_WHEN_LOADED = ("KUBECONFIG",)


class Warm:
    """A process of an interpreter, from which runs are forked, one at a time. It ends with the process that made it."""

    def __init__(self, python: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, __file__, str(python.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], screen: Path, timeout: float
    ) -> int:
        """Run a script of the interpreter's environment with its output in the file `screen`; its exit code.

        Raises TimeoutError, when it has been killed.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"words": words, "folder": str(folder), "environment": dict(environment), "screen": str(screen)}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        forked = int(self._process.stdout.readline())
        over = bool(select.select([self._process.stdout], [], [], timeout)[0])
        if not over:
            os.kill(forked, 9)
        code = int(self._process.stdout.readline())
        if not over:
            raise TimeoutError
        return code


def serve() -> list[str]:
    """Fork for each request that comes, and report the exit code. Returns in what was forked, with its command line."""
    for line in sys.stdin:
        request = json.loads(line)
        forked = os.fork()
        if forked == 0:
            os.setsid()
            os.chdir(request["folder"])
            os.environ.clear()
            os.environ.update(request["environment"])
            screen = os.open(request["screen"], os.O_WRONLY | os.O_CREAT, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(screen, 1)
            os.dup2(screen, 2)
            words: list[str] = request["words"]
            return words
        print(forked, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]), flush=True)
    return []


def main(scripts: str) -> None:
    """Load the packages and serve; in what was forked, become the script."""
    # As where the script itself is started.
    sys.path[0] = scripts
    for name in PACKAGES:
        importlib.import_module(name)
    assert not {"ansible", "ansible_collections"} & {name.partition(".")[0] for name in sys.modules}
    # A collection in what is forked would write to the pages of all of it.
    gc.freeze()
    if words := serve():
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1])
