# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The surveys of AWX's job templates, made from the declared inputs. unit.roles.specs writes their file.

The form is AWX's survey_spec: https://docs.ansible.com/automation-controller/latest/html/userguide/job_templates.html
"""

from __future__ import annotations

import re
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.inputs import INPUTS
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS

# What a survey asks, in this order. Other inputs are extra variables of the template.
QUESTIONS = {
    "preflight": "target fail_on cluster_name cluster_only hold_operator",
    "enable_csi": (
        "drivers batches quiesce quiesce_timeout gate_timeout fail_on readiness_gate prepull allow_downgrade "
        "create_cluster_objects skip_unreachable cluster_only"
    ),
    "status": "drivers skip_unreachable cluster_only",
    "diagnose": "drivers fail_on cluster_only",
    "gather": "output_dir gather_limit gather_log_limit cluster_name cluster_only",
    "verify": (
        "drivers verify_nodes verify_move verify_namespace verify_image verify_size verify_parallel skip_unreachable "
        "cluster_only"
    ),
    "upgrade": (
        "upgrade_target upgrade_hook upgrade_tasks upgrade_name drivers upgrade_nodes upgrade_canary upgrade_pause "
        "upgrade_confirmed upgrade_windows upgrade_time_zone upgrade_data upgrade_unproven_canary "
        "upgrade_delete_unowned fail_on"
    ),
    "handover": "drivers handover replace handover_restart_pods quiesce create_cluster_objects",
    "convert_volumes": (
        "convert_claims convert_variant convert_storage_class convert_volume_name convert_compare convert_image "
        "convert_roll_back convert_final convert_allow_managed"
    ),
    "remove": "drivers remove_csi_proxy remove_while_in_use",
}
# A playbook that needs one of these refuses to start without it, and so does its survey. What gather writes elsewhere ends with its job.
REQUIRED = {"handover": "drivers handover", "convert_volumes": "convert_claims", "gather": "output_dir"}
# What an input means in AWX, where that is not what it means in a shell.
TEXTS = {
    ("gather", "output_dir"): (
        "Directory of the archive. It must outlive the container of the job: mount it with the setting Paths to expose "
        "to isolated jobs of AWX, such as /var/lib/awx/support:/support:rw, and answer /support."
    ),
}
# These have no default driver.
NO_DEFAULT = {"handover": "drivers", "remove": "drivers"}
# What a whole workflow asks: each of its jobs gets every answer.
WORKFLOWS = {
    "enable": {"enable_csi": "drivers batches"},
    "upgrade": {"preflight": "target", "upgrade": "upgrade_target upgrade_hook upgrade_tasks drivers"},
}


def question(playbook: str, name: str) -> dict[str, Any]:
    """One question of a playbook's survey. name: of an input, without its prefix."""
    rule = INPUTS[f"kubewin_{name}"]
    assert playbook in rule.playbooks, f"{playbook} does not take {name}"
    assert rule.type not in ("list", "dict"), f"{name} cannot be answered with text"
    found: dict[str, Any] = {
        "variable": f"kubewin_{name}",
        "question_name": name.replace("_", " ").capitalize(),
        "question_description": TEXTS.get((playbook, name)) or plain(rule.text),
        "required": name in REQUIRED.get(playbook, "").split(),
        "default": "" if rule.default is None or name in NO_DEFAULT.get(playbook, "").split() else _word(rule.default),
    }
    if name == "drivers":
        return {**found, "type": "multiselect", "choices": sorted(DRIVERS)}
    if rule.choices or rule.type == "bool":
        return {**found, "type": "multiplechoice", "choices": [*(rule.choices or ("true", "false"))]}
    if rule.type == "int":
        return {**found, "type": "integer", "min": 0 if rule.fits("0") else 1, "max": 2**31 - 1}
    return {**found, "type": "text", "min": 0, "max": 1024}


def _word(value: bool | int | str) -> int | str:
    return str(value).lower() if isinstance(value, bool) else value


def plain(text: str) -> str:
    """A description without markup."""
    text = re.sub(r"\b[OV]\(([^)#]*#module:)?([^)]*)\)", r"\2", text)
    return re.sub(r"\bC\(([^)]*)\)", r"\1", text)


def survey(questions: list[dict[str, Any]]) -> dict[str, Any]:
    """A survey_spec."""
    return {"name": "", "description": "", "spec": questions}


def surveys() -> dict[str, Any]:
    """Every survey, by playbook and by workflow."""
    found = {
        playbook: survey([question(playbook, name) for name in names.split()]) for playbook, names in QUESTIONS.items()
    }
    for workflow, asked in WORKFLOWS.items():
        questions = [question(playbook, name) for playbook, names in asked.items() for name in names.split()]
        found[f"workflow_{workflow}"] = survey(questions)
    return {"surveys": found}
