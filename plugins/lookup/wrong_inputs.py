# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: wrong_inputs
short_description: What is wrong with the inputs of the playbooks
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Looks at every C(kubewin_*) variable that is set and that a playbook of this collection takes, and returns a sentence for each
    that cannot work, with what it is and what is expected.
  - The file with tasks for an upgrade is read as well.
  - Contacts nobody. What only a cluster or a host can tell is refused later, by who asks it.
options:
  _terms:
    description: Nothing is looked up by name; leave this empty.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Refuse inputs that cannot work
  vars:
    wrong: "{{ query('kubewin.csi.wrong_inputs') }}"
  ansible.builtin.assert:
    that: wrong | length == 0
    fail_msg: "{{ wrong | join('\n') }}"
"""

RETURN = r"""
_raw:
  description: The sentences.
  type: list
  elements: str
  sample: [kubewin_quiesce is drain; cordon or none is expected.]
"""

import os
from typing import Any

from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.lookup import LookupBase
from ansible_collections.kubewin.csi.plugins.plugin_utils.inputs import INPUTS, wrong

TASKS = "kubewin_upgrade_tasks"


class LookupModule(LookupBase):
    """The variables that are set, against what they may be."""

    def run(self, terms: list[Any], variables: Any = None, **kwargs: Any) -> list[str]:
        """A sentence for each that is wrong. AnsibleError when something is asked by name."""
        if terms or kwargs:
            raise AnsibleError(f"the lookup kubewin.csi.wrong_inputs takes nothing, found {[*terms, *kwargs]}")
        templar, loader, given = self._templar, self._loader, variables or {}
        if templar is None or loader is None:
            raise AnsibleError("the lookup kubewin.csi.wrong_inputs needs a play, whose variables it looks at")
        values = {name: templar.template(given[name]) for name in INPUTS if name in given}
        path = values.get(TASKS) if values.get("kubewin_upgrade_hook") == "tasks" else None
        return wrong(values) + (_no_tasks(loader, path) if isinstance(path, str) and os.path.isfile(path) else [])


def _no_tasks(loader: DataLoader, path: str) -> list[str]:
    """What would else be seen when the first node is closed and empty. Whether there is a file says the play that needs it."""
    try:
        found = loader.load_from_file(os.path.realpath(path))
    except AnsibleError as error:
        return [f"{TASKS} is {path}, which cannot be read: {error}"]
    tasks = found if isinstance(found, list) else []
    if tasks and all(isinstance(task, dict) and "hosts" not in task for task in tasks):
        return []
    return [f"{TASKS} is {path}, in which there is no list of tasks; tasks are expected, without a play around them."]
