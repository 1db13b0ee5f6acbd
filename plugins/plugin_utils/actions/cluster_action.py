# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Base of the actions that work with the cluster: options in, feature called, result out, in the process of the task.

Ansible forks a process for each task on each host and loads the action before it forks, so the Kubernetes client is imported
once a run. The host's connection is not used.
"""

from __future__ import annotations

import copy
import gc
import os
import sys
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from ansible import constants as C
from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.parameters import remove_values
from ansible.plugins.action import ActionBase

from ..base.documented import ArgumentSpec
from ..base.errors import TaskError
from ..base.interruption import Interrupted, interruptible
from ..base.redaction.names import list_kubeconfig_secrets, list_texts
from ..base.screen import display_line
from ..base.start import INPUTS, refuse_unchecked_inputs
from ..base.text import mask_values
from ..kube.client import Client
from ..kube.connect import CLUSTER_ARG_SPEC, CONNECT_FOR, connect
from ..kube.errors import UnreachableError
from . import driver_options
from .inputs import is_blank


class ClusterAction(ActionBase):
    """An action that works with the cluster. argument_spec: its own options, without those of the cluster.

    result: what the task returns, also when it fails; `work` fills it. secrets: texts that are shown nowhere. task_vars: the variables
    of the task. remainder: the state that an interruption leaves, as a sentence.
    """

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _requires_connection = False
    argument_spec: ClassVar[ArgumentSpec]
    remainder: ClassVar[str] = "Run again"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return what `work` returns for the task's options."""
        self.secrets: frozenset[str] = frozenset()
        self.result: dict[str, Any] = super().run(tmp, task_vars)
        self.result["changed"] = False
        self.task_vars: Mapping[str, Any] = task_vars or {}
        try:
            self._refuse_keywords()
            if refusal := refuse_unchecked_inputs(self._task, self.task_vars):
                raise TaskError(refusal, "inputs_unchecked")
            self._set_environment()
            name, defaults = str(self._task.action).rpartition(".")[2], self.read_run() if self.inputs else {}
            options = self.read_options(name, self.argument_spec, self._task.args, defaults)
            with interruptible(self.remainder):
                self.work(options)
        except (TaskError, Interrupted) as error:
            reason = {"reason": error.reason} if error.reason else {}
            self.result.update(failed=True, msg=str(error), **reason, **getattr(error, "returned", {}))
        if self.inputs:
            self.sum_up()
        masked: dict[str, Any] = mask_values(remove_values(to_plain(self.result), self.secrets))
        return masked

    @abstractmethod
    def work(self, options: Mapping[str, Any]) -> None:
        """Perform the task and fill `result`. TaskError or Interrupted fail the task with what `result` has by then."""

    def read_run(self) -> dict[str, Any]:
        """Options that earlier tasks of a playbook of this collection decide. Those of variables and of the task override them."""
        return {}

    def sum_up(self) -> None:
        """Add what a playbook of this collection prints at its end: lines, next (playbooks) and outcome; and set its statistic."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """The inputs of the playbook, empty in other plays."""
        inputs: Mapping[str, Any] = self.task_vars.get(INPUTS) or {}
        return inputs

    def set_statistic(self, name: str, data: Mapping[str, Any]) -> None:
        """Set a statistic of the job. Ansible drops it if the task fails."""
        self.result["ansible_stats"] = {"data": {name: to_plain(data)}, "per_host": False, "aggregate": False}

    @property
    def check_mode(self) -> bool:
        return bool(self._task.check_mode)

    def show(self, *lines: str) -> None:
        """Display progress at once, indented."""
        self.display(*(f"  {line}" for line in lines))

    def display(self, *lines: str) -> None:
        """Display lines at once, without secrets."""
        for line in lines:
            display_line(self._display.display, remove_values(line, self.secrets))

    def warn(self, text: str) -> None:
        self.result.setdefault("warnings", []).append(text)

    def connect(self, options: Mapping[str, Any], retry_for: float | None = None) -> Client:
        """A Client for the task's options; errors as of kube.connect. retry_for: seconds, if less than api_timeout.

        An API server that this run has reached restarts, and is waited for. A playbook of this collection asks a server that it never
        reached only once.
        """
        # Ansible makes this directory for each run, and declares its constants when it starts.
        note = Path(vars(C)["DEFAULT_LOCAL_TMP"]) / "kubewin-api-server"
        problem = note.read_text(encoding="utf-8") if note.exists() else None
        if self.inputs and problem:
            raise UnreachableError(problem, "unreachable")
        try:
            timeout = float(options["api_timeout"])
            retry_for = timeout if retry_for is None else min(retry_for, timeout)
            client = connect(options, retry_for, timeout if problem == "" else CONNECT_FOR)
        except UnreachableError as error:
            if problem is None:
                note.write_text(str(error), encoding="utf-8")
            raise
        note.write_text("", encoding="utf-8")
        return client

    def read_options(
        self, module: str, spec: ArgumentSpec, arguments: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The options of a module for the cluster of this task, validated and converted. TaskError for wrong ones.

        arguments: override the options that variables set, which override the defaults.
        """
        variables = self.read_driver_variables(module, str(arguments.get("driver"))) | read_access(
            self._templar, self.task_vars
        )
        access = {name: value for name, value in self._task.args.items() if name in CLUSTER_ARG_SPEC}
        # Validation fills suboptions into the defaults of the spec itself.
        spec = copy.deepcopy({**CLUSTER_ARG_SPEC, **spec})
        validated = ArgumentSpecValidator(spec).validate(
            to_plain({**(defaults or {}), **variables, **access, **arguments})
        )
        options: dict[str, Any] = validated.validated_parameters
        self.secrets |= find_secrets(spec, options)
        if validated.error_messages:
            raise TaskError("; ".join(validated.error_messages), "configuration")
        return options

    def read_driver_variables(self, module: str, driver: str) -> dict[str, Any]:
        """The options of a module that variables of a driver set. AnsibleActionFail for a wrong value."""
        try:
            return driver_options.read_module_options(
                module, driver, partial(read_variable, self._templar, self.task_vars)
            )
        except ValueError as error:
            raise AnsibleActionFail(str(error), result={"reason": "configuration"}) from None

    def _refuse_keywords(self) -> None:
        """Refuse keywords that this action cannot apply: it does not run on a host or as another user."""
        name = str(self._task.action).rpartition(".")[2]
        for keyword, value in (("become", self._task.become), ("async", self._task.async_val)):
            if value:
                option = " or --become" if keyword == "become" else ""
                raise TaskError(
                    f"{name}: keyword {keyword}, expected none: the task works on the controller. Remove {keyword}{option}.",
                    "keyword_unsupported",
                )

    def _set_environment(self) -> None:
        """Apply the keyword environment to this process, which ends with the task."""
        for scope in self._task.environment or ():
            for name, value in (self._templar.template(scope) or {}).items():
                os.environ[str(name)] = str(value)
        # The client reads it when it is imported, which was before.
        kube_config = sys.modules.get("kubernetes.config.kube_config")
        if kube_config is not None and "KUBECONFIG" in os.environ:
            vars(kube_config)["KUBE_CONFIG_DEFAULT_LOCATION"] = os.environ["KUBECONFIG"]


def read_variable(templar: Any, task_vars: Mapping[str, Any], name: str) -> Any:
    """The value of a variable of the task, None where it is not set or omitted."""
    # What is omitted is left out of a dictionary from ansible-core 2.19 on, and a text before.
    value = templar.template({name: task_vars[name]}).get(name) if name in task_vars else None
    return None if value == task_vars.get("omit", "") else value


def read_access(templar: Any, task_vars: Mapping[str, Any]) -> dict[str, Any]:
    """Options for access to the cluster that the playbooks' inputs set, empty in other plays.

    Paths start where the run was started. A kubeconfig may also be given as its content.
    """
    if INPUTS not in task_vars:
        return {}
    kubeconfig = read_variable(templar, task_vars, "kubewin_kubeconfig") or os.environ.get("K8S_AUTH_KUBECONFIG")
    if kubeconfig and not isinstance(kubeconfig, Mapping):
        kubeconfig = os.path.realpath(os.path.expanduser(str(kubeconfig)))
    access = {"kubeconfig": kubeconfig, "context": read_variable(templar, task_vars, "kubewin_context")}
    return {option: value for option, value in access.items() if not is_blank(value)}


def find_secrets(spec: ArgumentSpec, options: Mapping[str, Any]) -> frozenset[str]:
    """The texts of options that are shown nowhere.

    All texts of a kubeconfig are secret to Ansible, also the "v1" of its apiVersion; hiding those would damage manifests.
    """
    return frozenset({*_secret_texts(spec, options), *list_kubeconfig_secrets(options.get("kubeconfig"))} - {""})


def to_plain(value: Any) -> Any:
    """The same in JSON's types alone: a vaulted text is decrypted, Ansible's tags go, and tuples are lists."""
    if isinstance(value, Mapping):
        return {str(name): to_plain(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(entry) for entry in value]
    if isinstance(value, str):
        # str() of what ansible-core 2.16 marks as unsafe is unsafe again, and yaml's C loader takes no subclass.
        return str.__str__(value)
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _secret_texts(spec: ArgumentSpec, options: Mapping[str, Any]) -> Iterator[str]:
    """The texts of options that are declared with no_log, but those of the kubeconfig."""
    for name, declared in spec.items():
        value = options.get(name)
        if declared.get("no_log") and name != "kubeconfig":
            yield from list_texts(value)
        elif "options" in declared:
            for entry in value if isinstance(value, list) else [value]:
                yield from _secret_texts(declared["options"], entry if isinstance(entry, Mapping) else {})


# What is loaded by now stays for good: a garbage collection in the processes of the tasks would only copy its pages.
gc.freeze()
