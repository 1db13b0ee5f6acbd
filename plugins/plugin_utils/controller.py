# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the actions whose work is a module that runs on the controller, whatever connection the host has.

An action imports its module. Ansible's strategy loads an action before it forks the processes of its tasks, so a run pays
for the Kubernetes client once, and a module is one more fork: no zip file, no Python start, no interpreter of the host.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import logging
import os
import selectors
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, NoReturn

from ansible.errors import AnsibleActionFail
from ansible.module_utils import basic
from ansible.module_utils.common import json as ansible_json
from ansible.module_utils.common import warnings
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.kubewin.csi.plugins.plugin_utils import driver_options
from ansible_collections.kubewin.csi.plugins.plugin_utils.inputs import blank

display = Display()

# What Ansible calls the form of arguments and results of modules that name none; from ansible-core 2.19 on.
_PROFILE = "legacy"
# What a process of Ansible's handles in its own way, and a Python that has just started does not.
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD)
# The descriptors of this process, and how many there are at most where they cannot be listed.
_DESCRIPTORS = "/proc/self/fd"
_MOST = 1 << 16
# Of the role kubewin, which every play of the playbooks has.
_KUBECONFIG = "_kubewin_kubeconfig"
# Seconds between two calls of `meanwhile` while a module works.
_TICK = 0.3


class ControllerAction(ActionBase):
    """An action that runs a module on the controller. module: the module's file, imported.

    A module with the option progress_file gets one: its lines are shown as they come, and it ends when the file disappears.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False
    module: ModuleType

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what the module returns for the task's options."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        self._take_variables(task_vars)
        result.update(self._work(task_vars))
        return result

    def _work(self, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """The result of the task: the module's, and what an action adds."""
        return self._run_module(self._task.args, task_vars)

    def _say(self, *lines: str) -> None:
        for line in lines:
            self._display.display(line)

    def _take_variables(self, task_vars: Mapping[str, Any] | None) -> None:
        """Add what variables set and the task does not: access to the cluster in the playbooks, options of a driver.

        AnsibleActionFail for a wrong value.
        """
        module, given = self.module.__name__.rpartition(".")[2], task_vars or {}

        def variable(name: str) -> Any:
            # What is omitted is left out of a dictionary from ansible-core 2.19 on, and a text before.
            value = self._templar.template({name: given[name]}).get(name) if name in given else None
            return None if value == given.get("omit", "") else value

        try:
            found = driver_options.of_module(module, str(self._task.args.get("driver")), variable)
        except ValueError as error:
            raise AnsibleActionFail(str(error), result={"reason": "configuration"}) from None
        access = {"kubeconfig": _KUBECONFIG, "context": "kubewin_context"} if _KUBECONFIG in given else {}
        found |= {option: value for option, name in access.items() if not blank(value := variable(name))}
        self._task.args = {**found, **self._task.args}

    def _run_module(self, options: Mapping[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        """Run the module with these options."""
        if "progress_file" not in self.module.ARGUMENT_SPEC or self._task.check_mode:
            return self._run_silently(options, task_vars)
        with tempfile.NamedTemporaryFile("r", prefix="kubewin-progress-", encoding="utf-8") as lines:

            def show() -> None:
                self._say(*(f"  {line.rstrip()}" for line in lines))

            return self._run_silently({**options, "progress_file": lines.name}, task_vars, show)

    def _run_silently(
        self,
        options: Mapping[str, Any],
        task_vars: dict[str, Any] | None,
        meanwhile: Callable[[], None] | None = None,
    ) -> dict[str, Any]:
        name = self._module_name
        status, stdout, stderr = in_child(self._as_module(options, task_vars, self.module.main), meanwhile)
        return _result(name, status, stdout, stderr)

    def _run_beside(
        self, options: Mapping[str, Any], task_vars: dict[str, Any] | None, work: Callable[[], object]
    ) -> None:
        """Do the work with the module's options in a process that outlives this task. It must end by itself."""
        beside(self._as_module(options, task_vars, work))

    @property
    def _module_name(self) -> str:
        return f"kubewin.csi.{self.module.__name__.rpartition('.')[2]}"

    def _as_module(
        self, options: Mapping[str, Any], task_vars: dict[str, Any] | None, work: Callable[[], object]
    ) -> Callable[[], None]:
        """What a child does that is to work as the module."""
        name = self._module_name
        arguments = dict(options)
        self._update_module_args(name, arguments, task_vars or {})
        # Directories for temporary files are the host's; without them the controller's own is used.
        arguments.update(_ansible_tmpdir=None, _ansible_remote_tmp=None)
        environment: dict[str, Any] = {}
        self._compute_environment_string(environment)  # type: ignore[no-untyped-call]  # has none on any line
        payload = _encode({"ANSIBLE_MODULE_ARGS": arguments})
        folder = self._loader.get_basedir()

        def in_the_child() -> None:
            _be_a_module(payload, {str(key): str(value) for key, value in environment.items()}, folder)
            work()

        return in_the_child


def in_child(work: Callable[[], object], meanwhile: Callable[[], None] | None = None) -> tuple[int, str, str]:
    """Do the work in a child process. Returns its exit code (negative: the signal that ended it), stdout and stderr.

    meanwhile: called now and then until the child ends, and once after that. The child detects on its stdout that no process reads
    any more: this process was ended, or an exception left this function.
    """
    (out, out_end), (err, err_end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, out_end, err_end)
    os.close(out_end)
    os.close(err_end)
    read: dict[int, bytearray] = {out: bytearray(), err: bytearray()}
    try:
        with selectors.DefaultSelector() as selector:
            for end in read:
                selector.register(end, selectors.EVENT_READ)
            while selector.get_map():
                for key, _events in selector.select(_TICK if meanwhile else None):
                    data = os.read(key.fd, 1 << 16)
                    read[key.fd] += data
                    if not data:
                        selector.unregister(key.fd)
                if meanwhile:
                    meanwhile()
    finally:
        os.close(out)
        os.close(err)
    _pid, status = os.waitpid(child, 0)
    if meanwhile:
        meanwhile()
    stdout, stderr = (bytes(one).decode("utf-8", "replace") for one in read.values())
    return os.waitstatus_to_exitcode(status), stdout, stderr


def beside(work: Callable[[], object]) -> None:
    """Do the work in a process of a session of its own, which neither this one nor Ansible waits for."""
    nothing = os.open(os.devnull, os.O_RDWR)
    between = os.fork()
    if between == 0:
        # PID 1 reaps an orphan: the background process leaves no zombie.
        if os.fork() == 0:
            os.setsid()
            _child(work, nothing, nothing)
        os._exit(0)
    os.close(nothing)
    os.waitpid(between, 0)


def _child(work: Callable[[], object], out: int, err: int) -> NoReturn:
    """What comes after a fork: leave all that is the parent's alone, work, and end without returning to the parent's code."""
    code = 1
    try:
        for number in _SIGNALS:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        # What exists now is the parent's; looking through it would only copy its pages.
        gc.freeze()
        # The parent's, as removing its temporary files.
        atexit._clear()
        logging.getLogger().handlers.clear()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        _close_all_but_three()
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
        sys.stdout, sys.stderr = (
            os.fdopen(end, "w", encoding="utf-8", errors="surrogateescape", closefd=False) for end in (1, 2)
        )
        try:
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
            if isinstance(ended.code, str):
                sys.stderr.write(ended.code)
        except BaseException:
            traceback.print_exc()
        threading._shutdown()  # type: ignore[attr-defined]  # as multiprocessing ends its processes
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _close_all_but_three() -> None:
    """Close all descriptors but stdin, stdout and stderr. Trying every number takes long where the limit is 1e9, as in containers."""
    try:
        found = [int(name) for name in os.listdir(_DESCRIPTORS)]
    except OSError:
        # As on macOS, where the limit is small.
        os.closerange(3, min(os.sysconf("SC_OPEN_MAX"), _MOST))
        return
    for number in found:
        if number > 2:
            # The one that the folder was read with is closed already.
            with contextlib.suppress(OSError):
                os.close(number)


def _be_a_module(payload: bytes, environment: Mapping[str, str], folder: str) -> None:
    """Make of this process what AnsibleModule expects, as Ansible's own wrapper does."""
    os.environ.update(environment)
    # It is read when the client is imported, which was before.
    kube_config = sys.modules.get("kubernetes.config.kube_config")
    if kube_config is not None and "KUBECONFIG" in environment:
        kube_config.KUBE_CONFIG_DEFAULT_LOCATION = environment["KUBECONFIG"]  # type: ignore[attr-defined]  # sys.modules gives a plain module
    os.chdir(folder)
    # From ansible-core 2.19 on a warning goes into the result only outside of Ansible's own processes.
    internal = sys.modules.get("ansible.module_utils._internal")
    if internal is not None:
        internal.is_controller = False  # type: ignore[attr-defined]  # absent before 2.19
        basic._ANSIBLE_PROFILE = _PROFILE
    warnings._global_warnings.clear()
    warnings._global_deprecations.clear()
    basic._ANSIBLE_ARGS = payload


def _encode(arguments: Mapping[str, Any]) -> bytes:
    """The arguments as the module reads them."""
    if hasattr(ansible_json, "get_module_encoder"):
        to_module = ansible_json.Direction.CONTROLLER_TO_MODULE
        return json.dumps(arguments, cls=ansible_json.get_module_encoder(_PROFILE, to_module)).encode()
    options: dict[str, Any] = {"cls": ansible_json.AnsibleJSONEncoder, "vault_to_text": True}
    return json.dumps(arguments, **options).encode()


def _result(name: str, status: int, stdout: str, stderr: str) -> dict[str, Any]:
    """What the module printed: the last line that is an object, as libraries may print too."""
    decoder: type[json.JSONDecoder] | None = None
    if hasattr(ansible_json, "get_module_decoder"):
        decoder = ansible_json.get_module_decoder(_PROFILE, ansible_json.Direction.MODULE_TO_CONTROLLER)
    for line in reversed(stdout.splitlines()):
        if line.startswith("{"):
            try:
                found = json.loads(line, cls=decoder)
            except ValueError:
                continue
            # The options are the task's already.
            return {
                key: value for key, value in found.items() if not key.startswith("_ansible_") and key != "invocation"
            }
    if status < 0:
        message = f"was ended by {signal.Signals(-status).name}"
        remedy = "Find the cause, such as a lack of memory on the controller (journalctl -k), and run again."
    else:
        message = f"ended with code {status}: {(stderr.strip() or 'no output').splitlines()[-1]}"
        remedy = "This is a bug in the module or a library; -vvv shows the traceback."
    return {
        "failed": True,
        "reason": "module_lost",
        "msg": f"{name}: the process of the module {message}, expected a result. {remedy}",
        # From ansible-core 2.19 on -vvv shows no exception of a result.
        **({"traceback": stderr.splitlines()} if stderr.strip() and display.verbosity >= 3 else {}),
    }


# Ansible forks a process for each task on each host. What is loaded by now stays for good: a garbage collection in those would
# only traverse it, and copy its memory that way.
gc.freeze()
