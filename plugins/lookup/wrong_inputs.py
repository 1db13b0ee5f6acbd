# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: wrong_inputs
short_description: "Internal: check the inputs of a playbook"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Checks the variables of a run against the inputs of one playbook of this collection, and returns one sentence for each problem.
  - Checks values of C(kubewin_*) variables on every Windows host and on localhost, variables with a prefix of this collection that
    do not exist, and whether the inventory and C(--limit) leave the playbook something to do.
  - Reads the file with tasks for an upgrade.
  - Contacts neither a host nor the cluster.
options:
  _terms:
    description: Name of the playbook, such as V(enable_csi).
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Check the inputs
  vars:
    wrong: "{{ query('kubewin.csi.wrong_inputs', 'verify') }}"
  ansible.builtin.assert:
    that: wrong | length == 0
    fail_msg: "{{ wrong | join('\n') }}"
"""

RETURN = r"""
_raw:
  description: The sentences.
  type: list
  elements: str
  sample: ["kubewin_quiesce is drain, expected cordon or none."]
"""

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.parsing.splitter import parse_kv
from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible.utils.vars import load_extra_vars
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions import driver_options, names
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.hosts import (
    ON_HOSTS,
    Chosen,
    not_named,
    nothing_to_do,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS, blank, switched, wrong
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.lists import as_list
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.tags import collect_tags, wrong_tags
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.diagnose import explain_missing_packages
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.options import CSI_PROXY

display = Display()

TASKS = "kubewin_upgrade_tasks"
PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
# What hosts:, serial: and import_playbook read, by playbook. These see extra variables and those of a play, never the inventory's.
OF_PLAYS = {
    "kubewin_hosts": frozenset({"diagnose", "enable_csi", "gather", "preflight", "remove", "status", "verify"}),
    "kubewin_batches": frozenset({"enable_csi", "remove"}),
    "kubewin_remove_csi_proxy": frozenset({"remove"}),
}


class LookupModule(LookupBase):
    """The variables that are set, against what the playbook takes."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """A sentence for each that is wrong. AnsibleError unless one playbook is named."""
        if len(terms) != 1 or kwargs or not any(terms[0] in rule.playbooks for rule in INPUTS.values()):
            raise AnsibleError(
                f"the lookup kubewin.csi.wrong_inputs takes the name of one playbook, found {[*terms, *kwargs]}"
            )
        if self._templar is None or self._loader is None:
            raise AnsibleError(
                "the lookup kubewin.csi.wrong_inputs runs only in a play, because it reads the variables of the play"
            )
        playbook, here = str(terms[0]), variables or {}
        values = {name: self._templar.template(here[name]) for name in INPUTS if name in here}
        extra = load_extra_vars(self._loader)
        unread = self._unread(values, here, extra)
        pattern = str(values.get("kubewin_hosts") or "windows") if "kubewin_hosts" not in unread else "windows"
        windows = self._windows(pattern, here)
        problems = [*wrong(values)]
        problems += [
            f"{name} is set in the inventory, where plays do not read it. Set it with -e {name}=..."
            for name in sorted(unread)
            # Batches are of hosts.
            if playbook in OF_PLAYS[name] and (windows or name != "kubewin_batches")
        ]
        # Which plays enable_csi has is decided before variables of the playbook that imports it can be read.
        asked = str(extra.get("kubewin_hosts") or "windows")
        if playbook == "enable_csi" and bool(windows) != bool(self._windows(asked, here)):
            problems.append(
                f"kubewin_hosts is {pattern}, set at import_playbook, where the plays of enable_csi do not read it. "
                f"Set it with -e kubewin_hosts={pattern}, or name the group of hosts windows."
            )
        # Ours begin with an underscore there.
        given = {name for name in here if not name.startswith("_")}
        checked: list[Mapping[str, Any]] = []
        for host in [*windows, "localhost"] if "hostvars" in here else []:
            raw = _set_outside(here["hostvars"], host)
            given |= set(raw)
            evaluated = {name: raw[name] for name in INPUTS if name in raw}
            if evaluated not in checked:
                checked.append(evaluated)
                of_host = here["hostvars"][host]
                problems += wrong({name: of_host[name] for name in evaluated})
        for driver in DRIVERS if playbook in names.TAKE_DRIVERS else ():
            problems += driver_options.wrong(
                driver,
                {name: self._templar.template(here[name]) for name in driver_options.variables(driver) if name in here},
            )
        own = as_list(values.get(names.OWN))
        refused, elsewhere = names.refused(playbook, _outside(here, given), extra, _typed(), own, _options_of)
        for sentence in elsewhere:
            display.warning(sentence)
        chosen = Chosen(
            limit=here.get("ansible_limit"),
            hosts=tuple(here.get("ansible_play_hosts_all") or ()),
            windows=tuple(windows),
            pattern=pattern,
            cluster_only=switched(values.get("kubewin_cluster_only")),
            on_file=playbook == "preflight" and not blank(values.get("kubewin_snapshot_from")),
        )
        if playbook not in ("build_csi_proxy", "diagnose"):
            # An action whose import fails shows a traceback; diagnose has this among its findings.
            problems += explain_missing_packages(
                [package for package in ("kubernetes.core", "kubernetes") if not _is_installed(package)]
            )
        problems += [*refused, *_nameless_words(), *self._wrong_tags(playbook, here)]
        named = values
        if "hostvars" in here:
            # The plays may run on another host, where only variables of a play are the same as here.
            there = here["hostvars"][windows[0] if windows and playbook in ON_HOSTS else "localhost"]
            of_play = _of_play(self._templar.template, values, here)
            named = {name: there[name] for name in INPUTS if name in there and not blank(there[name])}
            named |= {name: value for name, value in values.items() if name in of_play}
            problems += [*nothing_to_do(playbook, chosen), *not_named(playbook, named, chosen)]
        if playbook == "upgrade" and named.get("kubewin_upgrade_hook") == "tasks":
            problems += _no_tasks(self._loader, str(named.get(TASKS) or ""))
        return list(dict.fromkeys(problems))

    def _unread(self, values: Mapping[str, Any], here: Mapping[str, Any], extra: Mapping[str, Any]) -> set[str]:
        """Those of OF_PLAYS that the inventory alone sets. A play's own, as of a wrapper, differ from the inventory's or are not there."""
        if "hostvars" not in here or self._templar is None:
            return set()
        own = str(here.get("inventory_hostname", "localhost"))
        matching = self._windows(str(values.get("kubewin_hosts") or "windows"), here)
        found = set()
        for host in dict.fromkeys([own, "localhost", *matching]):
            raw = _set_outside(here["hostvars"], host)
            found |= {name for name in OF_PLAYS if name not in extra and not blank(raw.get(name))}
        return found - _of_play(self._templar.template, values, here)

    def _wrong_tags(self, playbook: str, here: Mapping[str, Any]) -> list[str]:
        """Tags of the command line that the playbook does not have."""
        run, skip = here.get("ansible_run_tags") or ["all"], here.get("ansible_skip_tags") or []
        if list(run) == ["all"] and not skip:
            return []
        started = [str(name) for name in context.CLIARGS.get("args") or ()]
        ours = [name for name in started if name.startswith("kubewin.csi.") or Path(name).resolve().parent == PLAYBOOKS]
        if started and ours == started:
            # Of several, each has to take the tags of the others.
            named = {
                Path(name).stem.rpartition(".")[2] if name.startswith("kubewin.csi.") else Path(name).stem
                for name in ours
            }
            return list(wrong_tags(playbook, run, skip, None if len(named) == 1 else ()))
        others: set[str] = set()
        for name in set(started) - set(ours):
            if self._loader is not None and Path(name).is_file():
                others |= collect_tags(self._loader.load_from_file(str(Path(name).resolve())))
        return list(wrong_tags(playbook, run, skip, others))

    def _windows(self, pattern: str, here: Mapping[str, Any]) -> list[str]:
        """Every Windows host of the inventory that matches, with or without --limit."""
        find = lookup_loader.get("ansible.builtin.inventory_hostnames", loader=self._loader, templar=self._templar)
        return [str(name) for name in find.run([pattern], variables=here)] if "groups" in here else []


def _of_play(template: Callable[[Any], Any], values: Mapping[str, Any], here: Mapping[str, Any]) -> set[str]:
    """Those of these variables that a play or the command line sets; the others are of the host of this task alone."""
    mine = _set_outside(here["hostvars"], str(here.get("inventory_hostname", "localhost")))
    return {name for name in values if name not in mine or template(mine[name]) != values[name]}


def _set_outside(hostvars: Any, host: str) -> Mapping[str, Any]:
    """A host's variables from the inventory and extra variables, without those that tasks registered or set."""
    raw: Any = hostvars.raw_get(host)
    if not isinstance(raw, Mapping):
        return {}
    facts = _registered(hostvars, host)
    return {name: value for name, value in raw.items() if name not in facts}


def _registered(hostvars: Any, host: str) -> Mapping[str, Any]:
    # Two playbooks may be imported by one: what the first registered is no input of the second.
    manager = getattr(hostvars, "_variable_manager", None)
    facts: Mapping[str, Mapping[str, Any]] = getattr(manager, "_nonpersistent_fact_cache", {})
    return dict(facts.get(host, {}))


def _outside(here: Mapping[str, Any], given: Iterable[str]) -> set[str]:
    """Without what tasks registered or set for the host of this task."""
    if "hostvars" not in here:
        return set(given)
    return set(given) - set(_registered(here["hostvars"], str(here.get("inventory_hostname", ""))))


def _typed() -> set[str]:
    """Extra variables that were given one by one on the command line; a file of them may serve several playbooks."""
    texts = [str(text) for text in context.CLIARGS.get("extra_vars") or () if text]
    return {str(name) for text in texts if text[0] not in "@[{" for name in parse_kv(text)}


def _is_installed(package: str) -> bool:
    name = f"ansible_collections.{package}" if "." in package else package
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _nameless_words() -> Iterator[str]:
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
                f"expected name=value. Separate the entries of a list with commas, without spaces, and quote a value that contains spaces.{meant}"
            )


def _options_of(role: str) -> set[str]:
    """The variables that a user may set of a role."""
    if role in names.DRIVER_ROLES:
        return set(driver_options.variables(role.removesuffix("_csi")))
    return {f"{role}_{option}" for option in CSI_PROXY if option != "from_variables"}


def _no_tasks(loader: DataLoader, path: str) -> list[str]:
    """Problems of the task file, which would otherwise appear after the first node was drained."""
    if not os.path.isfile(os.path.expanduser(path)):
        return [
            f"{TASKS} is {os.path.realpath(os.path.expanduser(path)) if path else 'not given'}; kubewin_upgrade_hook=tasks expects "
            "the path of a task file that changes the node in node_upgrade_node."
        ]
    try:
        found = loader.load_from_file(os.path.realpath(os.path.expanduser(path)))
    except AnsibleError as error:
        return [f"{TASKS} is {path}, which cannot be read: {error}"]
    tasks = found if isinstance(found, list) else []
    if tasks and all(isinstance(task, dict) and "hosts" not in task for task in tasks):
        return []
    return [f"{TASKS} is {path}, which is not a list of tasks, expected tasks without a play around them."]
