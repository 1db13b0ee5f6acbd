# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-playbook, forked from a process that has loaded Ansible and the packages of others: two thirds of the CPU of a short run.

Each run has the environment that it is given. Ansible reads its settings when it is loaded, so a run is forked from a process with
the same ones. The first run of a process loads this collection anew, as those do that `playbooks.start` starts. For the further ones
the process loads the modules that actions import, a third of the CPU of a short run.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
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
from typing import Any, NoReturn

# What ansible-playbook loads on every ansible-core line, and what its connections and this collection import.
PACKAGES = (
    "ansible.cli.playbook",
    "ansible.executor.playbook_executor",
    "ansible.playbook.handler_task_include",
    "ansible.plugins.action.include_vars",
    "ansible.plugins.cache.memory",
    "ansible.plugins.callback.default",
    "ansible.plugins.callback.junit",
    "ansible.plugins.connection.local",
    "ansible.plugins.connection.psrp",
    "ansible.plugins.connection.ssh",
    "ansible.plugins.connection.winrm",
    "ansible.plugins.inventory.auto",
    "ansible.plugins.inventory.host_list",
    "ansible.plugins.inventory.ini",
    "ansible.plugins.inventory.script",
    "ansible.plugins.inventory.toml",
    "ansible.plugins.inventory.yaml",
    "ansible.plugins.shell.cmd",
    "ansible.plugins.shell.powershell",
    "ansible.plugins.shell.sh",
    "ansible.plugins.strategy.linear",
    "ansible.plugins.vars.host_group_vars",
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
# Of these a forked run would have what the process had that it is forked from.
READ_WHEN_LOADED = ("KUBECONFIG",)
# Where a run finds what actions import.
COLLECTIONS = Path(__file__).resolve().parents[2] / ".collections"
UTILS = "ansible_collections/kubewin/csi/plugins/plugin_utils"


def settings(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    """What Ansible and this collection read of an environment when they are loaded."""
    return frozenset(item for item in environment.items() if item[0].startswith("ANSIBLE_") or item[0] == "PWD")


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
    for number, line in enumerate(sys.stdin):
        request = json.loads(line)
        if number == 1 and os.environ["ANSIBLE_COLLECTIONS_PATH"] == str(COLLECTIONS):
            load_collection()
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
            own_folder()
            words: list[str] = request["words"]
            return words
        print(forked, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]), flush=True)
    return []


def own_folder() -> None:
    """Give a run a folder for its temporary files, which it removes when it ends."""
    constants: Any = importlib.import_module("ansible.constants")
    manager: Any = importlib.import_module("ansible.config.manager")
    constants.DEFAULT_LOCAL_TMP = manager.ensure_type(str(Path(constants.DEFAULT_LOCAL_TMP).parent), "tmppath")


def read_metadata_once() -> None:
    """Parse where modules of ansible-core have moved to, a file of 300 kB, once and not in each run. Tools may replace the function."""
    finder: Any = importlib.import_module("ansible.utils.collection_loader._collection_finder")
    finder._meta_yml_to_dict = functools.cache(finder._meta_yml_to_dict)
    config = Path(importlib.import_module("ansible.config").__path__[0])
    finder._meta_yml_to_dict((config / "ansible_builtin_runtime.yml").read_bytes(), ("ansible.builtin", "runtime.yml"))


def load_collection() -> None:
    """Load the modules that actions import, with Ansible's own loader; not the packages that show a run which collection it has."""
    finder: Any = importlib.import_module("ansible.utils.collection_loader._collection_finder")
    loader = finder._AnsibleCollectionPkgLoaderBase
    get_code = loader.get_code
    loader.get_code = runpy.run_path(str(Path(__file__).with_name("callback") / "bytecode.py"))["_get_code"]
    finder._AnsibleCollectionFinder([str(COLLECTIONS)])._install()
    folder = COLLECTIONS / UTILS
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(COLLECTIONS).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    finder._AnsibleCollectionFinder._remove()
    loader.get_code = get_code
    for name in [name for name in sys.modules if name.startswith("ansible_collections") and name.count(".") < 4]:
        del sys.modules[name]
    gc.freeze()


def become(words: list[str]) -> NoReturn:
    """Run a script and end with its exit code, without taking apart all that this process has in common with others."""
    sys.argv = words
    code: Any = 0
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        code = end.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(int(code or 0))


def main(scripts: str) -> None:
    """Load the packages and serve; in what was forked, become the script."""
    # As where the script itself is started.
    sys.path[0] = scripts
    for name in PACKAGES:
        # An environment without packages of others only checks playbooks.
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)
    assert "ansible_collections.kubewin" not in sys.modules
    read_metadata_once()
    # The folder of this process, which each run would remove at its end.
    atexit.unregister(importlib.import_module("ansible.utils.path").cleanup_tmp_file)
    constants: Any = importlib.import_module("ansible.constants")
    Path(constants.DEFAULT_LOCAL_TMP).rmdir()
    # A collection in what is forked would write to the pages of all of it.
    gc.freeze()
    if words := serve():
        become(words)


if __name__ == "__main__":
    main(sys.argv[1])
