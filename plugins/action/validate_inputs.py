# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Validates the inputs of a playbook, before any host and the cluster are contacted, and returns their values."""

from __future__ import annotations

import importlib.util
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv
from ansible.plugins.action import ActionBase
from ansible.plugins.loader import lookup_loader
from ansible.utils.vars import load_extra_vars

from ..modules.validate_inputs import DOCUMENTATION
from ..plugin_utils.actions import driver_options, variable_names
from ..plugin_utils.actions.inputs import INPUTS, as_list, is_blank, is_on, list_wrong_inputs, parse_inputs
from ..plugin_utils.actions.selection import (
    ON_HOSTS,
    Selection,
    explain_missing_choice,
    explain_nothing_to_do,
    explain_wrong_tags,
)
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.screen import display_line
from ..plugin_utils.catalog.registry import DRIVERS
from ..plugin_utils.support.diagnose import explain_missing_packages

ARGUMENT_SPEC = read_argument_spec(DOCUMENTATION)
PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
_TASKS = "kubewin_upgrade_tasks"
# build_csi_proxy uses no cluster. An action whose import fails shows a traceback; diagnose has this among its findings.
_WITHOUT_PACKAGES = ("build_csi_proxy", "diagnose")


class ActionModule(ActionBase):
    """Runs on the controller alone: it needs no connection and changes nothing."""

    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the values of the inputs; failed with a sentence for each problem."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, options = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        playbook = options["playbook"]
        if not any(playbook in rule.playbooks for rule in INPUTS.values()):
            return _refuse(result, f"playbook: {playbook}, expected a playbook of this collection")
        self._task_vars: Mapping[str, Any] = task_vars or {}
        self._hostvars: Any = self._task_vars["hostvars"]
        self._extra: Mapping[str, Any] = load_extra_vars(self._loader)
        self._of_play: Mapping[str, Any] = self._task.get_play().get_vars()
        pattern = str(self._read_inputs("localhost").get("kubewin_hosts") or "windows")
        self._pattern = pattern
        windows = self._find_hosts(pattern)
        self._limited = tuple(self._task_vars.get("ansible_play_hosts_all") or ())
        self._target = "localhost"
        if windows and playbook in ON_HOSTS:
            self._target = next((host for host in windows if host in self._limited), windows[0])
        inputs = self._read_inputs(self._target)
        problems = list(self._find_problems(playbook, pattern, windows, inputs))
        if problems:
            return _refuse(result, "\n".join(dict.fromkeys(problems)))
        values = parse_inputs(playbook, inputs)
        hosts = pattern if windows and playbook in ON_HOSTS else "localhost"
        if playbook == "upgrade":
            # Its other plays are on localhost.
            hosts = pattern if windows and values["upgrade_hook"] == "tasks" else "all:!all"
        if playbook == "enable_csi" and not windows:
            display_line(
                self._display.display,
                f"  No Windows host in the inventory ({pattern}): csi-proxy on the nodes is not read. Nodes can register, but stay "
                "unproven until their hosts are read or a pod has written to a volume there.",
            )
        reads = hosts not in ("localhost", "all:!all") and not values.get("snapshot_from")
        return {
            **result,
            "changed": False,
            **values,
            "playbook": playbook,
            "hosts": hosts,
            "reads_hosts": reads,
            "windows": windows,
        }

    def _read_inputs(self, host: str) -> dict[str, Any]:
        """The inputs that are set for a host, without blank ones. A play's own variables override those of the inventory."""
        host_variables, inputs = self._hostvars[host], {}
        for name in INPUTS:
            if name in self._of_play and name not in self._extra:
                inputs[name] = self._templar.template(self._task_vars[name])
            elif name in host_variables:
                inputs[name] = host_variables[name]
        return {name: value for name, value in inputs.items() if not is_blank(value)}

    def _find_hosts(self, pattern: str) -> list[str]:
        """Every host of the inventory that matches, with or without --limit."""
        find = lookup_loader.get("ansible.builtin.inventory_hostnames", loader=self._loader, templar=self._templar)
        return [str(name) for name in find.run([pattern], variables=self._task_vars)]

    def _find_problems(
        self, playbook: str, pattern: str, windows: list[str], inputs: Mapping[str, Any]
    ) -> Iterator[str]:
        yield from list_wrong_inputs(inputs)
        yield from self._find_wrong_values(playbook, windows, inputs)
        if playbook in variable_names.TAKE_DRIVERS:
            for driver in DRIVERS:
                options = driver_options.map_variables(driver)
                templates = {name: self._task_vars[name] for name in options if name in self._task_vars}
                yield from driver_options.list_wrong_options(driver, self._templar.template(templates))
        set_names = {name for host in [*windows, "localhost"] for name in self._set_outside(host)} | {
            name for name in self._of_play if not name.startswith("_")
        }
        refused, elsewhere = variable_names.find_refused_variables(
            playbook, set_names, self._extra, _list_typed_names()
        )
        for sentence in elsewhere:
            self._display.warning(sentence)
        if playbook not in _WITHOUT_PACKAGES:
            yield from explain_missing_packages(
                [package for package in ("kubernetes.core", "kubernetes") if not _is_installed(package)]
            )
        yield from [*refused, *_find_nameless_words(), *self._wrong_tags(playbook)]
        chosen = Selection(
            limit=self._task_vars.get("ansible_limit"),
            hosts=self._limited,
            windows=tuple(windows),
            pattern=pattern,
            cluster_only=is_on(inputs.get("kubewin_cluster_only")),
            on_file=playbook == "preflight" and "kubewin_snapshot_from" in inputs,
            tasks=inputs.get("kubewin_upgrade_hook") == "tasks",
        )
        name = "kubewin_remove_csi_proxy"
        if playbook == "remove" and name in inputs and name not in self._extra and name not in self._of_play:
            yield (
                f"{name} is set in the inventory, where it would apply to every later run, expected on the command line. Remove it "
                f"there, and give it with -e {name}=true."
            )
        yield from [*explain_nothing_to_do(playbook, chosen), *explain_missing_choice(playbook, inputs, chosen)]
        if playbook == "upgrade" and chosen.tasks:
            yield from _check_task_file(self._loader, str(inputs.get(_TASKS) or ""))

    def _find_wrong_values(self, playbook: str, windows: list[str], inputs: Mapping[str, Any]) -> Iterator[str]:
        """A sentence for each wrong value of a host, and for each of which the run would use the value of another host."""
        drivers = DRIVERS if playbook in variable_names.TAKE_DRIVERS else ()
        options = {option for driver in drivers for option in driver_options.map_variables(driver)}
        used, checked = {**self._read_outside(self._target, options), **inputs}, list[tuple[bool, Mapping[str, Any]]]()
        for host in [*windows, "localhost"]:
            templates = {
                name: value for name, value in self._set_outside(host).items() if name in INPUTS or name in options
            }
            # The values of a host outside the limit are not compared.
            key = host in self._limited, templates
            if key in checked:
                continue
            checked.append(key)
            values = self._read_outside(host, templates)
            yield from list_wrong_inputs(values)
            if host in windows and host in self._limited:
                yield from self._find_other_values(playbook, host, values, used)

    def _read_outside(self, host: str, names: Collection[str]) -> dict[str, Any]:
        """Variables of a host that are set outside the playbook, without blank ones."""
        values = {name: self._hostvars[host][name] for name in self._set_outside(host) if name in names}
        return {name: value for name, value in values.items() if not is_blank(value)}

    def _find_other_values(
        self, playbook: str, host: str, values: Mapping[str, Any], used: Mapping[str, Any]
    ) -> Iterator[str]:
        """A sentence for each variable that has another value for a host than for the one whose values the run uses (used)."""
        expected = "expected one value. Set it for all hosts and localhost, such as in group_vars/all, or with -e."
        chosen = values.get("kubewin_hosts", self._pattern)
        takes_hosts = playbook in INPUTS["kubewin_hosts"].playbooks
        if takes_hosts and chosen != self._pattern and "kubewin_hosts" not in self._of_play:
            # Read on localhost, which a group of Windows hosts does not include.
            yield f"kubewin_hosts is {chosen} for {host} and {self._pattern} for localhost, {expected}"
        set_names = set(values)
        if playbook in ON_HOSTS or used.get("kubewin_upgrade_hook") == "tasks":
            # Some of its tasks use the variables of that host.
            set_names |= used.keys()
        for name in sorted(set_names - self._of_play.keys() - {"kubewin_node_name", "kubewin_hosts"}):
            value, used_value = values.get(name, "not set"), used.get(name, "not set")
            if value == used_value or (name in INPUTS and playbook not in INPUTS[name].playbooks):
                continue
            if name in INPUTS and INPUTS[name].secret:
                yield f"{name} differs between {host} and {self._target}, {expected} Use an inventory and a run for each cluster."
            else:
                yield f"{name} is {value} for {host} and {used_value} for {self._target}, {expected}"

    def _set_outside(self, host: str) -> Mapping[str, Any]:
        """A host's variables of the inventory and extra variables, without those that tasks of this run registered or set."""
        variables: Any = self._hostvars.raw_get(host)
        if not isinstance(variables, Mapping):
            return {}
        return {
            name: value
            for name, value in variables.items()
            if name in self._extra or not (name in variable_names.FACTS or is_task_result(value))
        }

    def _wrong_tags(self, playbook: str) -> Iterator[str]:
        """Tags that the playbook does not have. Another playbook in the run may have them, so only one that runs alone is checked."""
        (started, *further_playbooks), run = (
            context.CLIARGS.get("args") or ("",),
            self._task_vars.get("ansible_run_tags"),
        )
        is_own_playbook = started.startswith("kubewin.csi.") or Path(started).resolve().parent == PLAYBOOKS
        if is_own_playbook and not further_playbooks:
            yield from explain_wrong_tags(playbook, run or (), self._task_vars.get("ansible_skip_tags") or ())


def _refuse(result: Mapping[str, Any], message: str) -> dict[str, Any]:
    return {**result, "failed": True, "reason": "configuration", "msg": message}


def is_task_result(value: object) -> bool:
    """Whether a task registered a variable's value. Two playbooks may be imported by one: no result of the first is an input of the second."""
    return isinstance(value, Mapping) and "changed" in value


def _list_typed_names() -> set[str]:
    """Extra variables that were given one by one on the command line; a file of them may serve several playbooks."""
    texts = [str(text) for text in context.CLIARGS.get("extra_vars") or () if text]
    return {str(name) for text in texts if text[0] not in "@[{" for name in parse_kv(text)}


def _is_installed(package: str) -> bool:
    name = f"ansible_collections.{package}" if "." in package else package
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _find_nameless_words() -> Iterator[str]:
    """Words of -e without a name, which Ansible drops: a value with blanks that was not quoted. They may be part of a secret."""
    for text in (str(text) for text in context.CLIARGS.get("extra_vars") or () if text):
        if text[0] in "@[{":
            continue
        pairs = parse_kv(text)
        if words := str(pairs.pop("_raw_params", "")).split():
            drivers = [*as_list(pairs.get("kubewin_drivers")), *words]
            meant = f" Did you mean kubewin_drivers={','.join(drivers)}?" if set(drivers) <= set(DRIVERS) else ""
            yield (
                f"-e {' '.join(f'{name}=...' for name in pairs) or '...'} has words without a name, which Ansible drops, "
                "expected name=value. Separate the entries of a list with commas, without spaces. Quote a value with spaces within "
                f"the quotes of the shell: -e \"name='one two'\".{meant}"
            )


def _check_task_file(loader: DataLoader, path: str) -> list[str]:
    """Problems of the task file, which would otherwise appear after the first node was drained."""
    file = Path(path).expanduser().resolve()
    if not path or not file.is_file():
        return [
            f"{_TASKS} is {file if path else 'not given'}; kubewin_upgrade_hook=tasks expects "
            "the path of a task file that changes the node in kubewin_upgrade_node."
        ]
    try:
        content = loader.load_from_file(str(file))
    except AnsibleError as error:
        return [f"{_TASKS} is {path}, which cannot be read: {error}"]
    tasks = content if isinstance(content, list) else []
    if tasks and all(isinstance(task, dict) and "hosts" not in task for task in tasks):
        return []
    return [f"{_TASKS} is {path}, which is not a list of tasks, expected tasks without a play around them."]
