# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both actions share: refusing what would be ignored, options, the channel, and turning errors into results."""

from __future__ import annotations

import gc
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Set
from functools import partial
from typing import Any, ClassVar

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..base.documented import ArgumentSpec
from ..base.screen import display_line
from ..base.start import INPUTS, refuse_unchecked_inputs
from ..base.waiting import repeat_pauses, report_progress, spell
from .channel import open_channel
from .errors import NodeError
from .node import WindowsHost
from .prove import shorten_failed_result

# What a variable of the role holds that is not given.
_BLANK: tuple[Any, ...] = (None, "", [])


class WindowsAction(ActionBase):
    """An action that works on the host's own connection."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    argument_spec: ClassVar[ArgumentSpec]
    # Options that are not read from variables of the role.
    task_options: ClassVar[Set[str]] = frozenset()
    seldom = staticmethod(repeat_pauses)
    _doing = "reading the host"

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """A result; errors of node and connection come back as failed, never as unreachable.

        Ansible continues with later batches and plays if a host is unreachable, and a failed one stops the run.
        """
        result: dict[str, Any] = {"changed": False}
        try:
            self._refuse_keywords()
            if refusal := refuse_unchecked_inputs(self._task, task_vars or {}):
                raise NodeError("inputs_unchecked", refusal)
            options = self._validate_options(task_vars or {})
            desired = self.prepare(options)
            super().run(tmp, task_vars)
            node = WindowsHost(open_channel(self._connection))
            host, began = (task_vars or {}).get("inventory_hostname", ""), time.monotonic()
            try:
                with report_progress(
                    partial(display_line, self._display.display),
                    lambda: f"  {host}: {self._doing} ({spell(time.monotonic() - began)} so far)",
                    self.seldom,
                ):
                    result.update(self.work(node, desired, options))
            finally:
                node.channel.close()
        except NodeError as error:
            # The callback prints all that a failed task returns.
            result.update(shorten_failed_result(error.result))
            result.update(
                failed=True, changed=bool(error.result.get("changed", False)), reason=error.reason, msg=str(error)
            )
        return result

    def read_run(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        """Options that earlier tasks of a playbook of this collection decide. Those of variables and of the task override them."""
        return {}

    @abstractmethod
    def prepare(self, options: dict[str, Any]) -> Any:
        """Check the options and make of them the desired state, before the node is asked anything."""

    @abstractmethod
    def work(self, node: WindowsHost, desired: Any, options: dict[str, Any]) -> dict[str, Any]:
        """Do it and return the result."""

    def show_progress(self, text: str) -> None:
        """Progress, shown with -vv, and where it takes long."""
        self._doing = text
        self._display.vv(text, host=self._play_context.remote_addr)

    def _refuse_keywords(self) -> None:
        """Name what Ansible would accept and then silently not apply to a command over the connection itself."""
        action = str(self._task.action).rpartition(".")[2]
        refused = {
            "become": (
                bool(self._task.become) or getattr(self._connection, "become", None) is not None,
                "Connect as an administrator instead, and set become: false on the task or play (ansible_become: false for the hosts).",
            ),
            "environment": (
                any(self._task.environment or ()),
                "Remove it: the host downloads without a proxy, from a server that it reaches (source), or gets a file of the controller.",
            ),
            "async": (bool(self._task.async_val), "Remove async and poll; the task has its own timeouts."),
        }
        for keyword, (is_set, remedy) in refused.items():
            if is_set:
                raise NodeError(
                    "keyword_unsupported", f"{action} does not support the keyword {keyword}.", remedy=remedy
                )

    def _validate_options(self, task_vars: Mapping[str, Any]) -> dict[str, Any]:
        options = dict(self._task.args)
        in_playbook = INPUTS in task_vars
        if in_playbook or boolean(options.get("from_variables", False), strict=False):
            options = {
                **(self.read_run(task_vars) if in_playbook else {}),
                **self._read_variables(task_vars, self.argument_spec.keys() - options.keys() - self.task_options),
                **options,
            }
        validated = ArgumentSpecValidator(self.argument_spec).validate(options)
        if validated.error_messages:
            raise NodeError(
                "bad_option", "; ".join(validated.error_messages) + ".", remedy="See ansible-doc for the options."
            )
        return dict(validated.validated_parameters)

    def _read_variables(self, task_vars: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """The role's variables as options, without blank ones, as a survey answers.

        An expression in a task costs each host a millisecond and more, and most variables hold none.
        """
        values = {name: task_vars.get(f"csi_proxy_{name}") for name in names}
        # From ansible-core 2.19 on what is omitted is not in the result, before it is a text.
        blank = (*_BLANK, task_vars.get("omit"))
        templated = self._templar.template({name: value for name, value in values.items() if value not in _BLANK})
        return {name: value for name, value in templated.items() if value not in blank}


# As in actions/cluster_action.py: what is loaded by now needs no garbage collection in the processes that Ansible forks.
gc.freeze()
