# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next command can be pasted where the last one was typed, and never repeats what may be secret."""

from __future__ import annotations

import shlex
from itertools import pairwise
from typing import Any

from ansible.parsing.splitter import parse_kv
from ansible_collections.kubewin.csi.plugins.plugin_utils.actions.commands import (
    Invocation,
    lacks_extra_variables,
    render_command,
    repeat_invocation,
)


def typed(*extra: str, awx: bool = False, **more: Any) -> Invocation:
    arguments = {"inventory": ["/srv/site/inventory.yml"], "extra_vars": extra, **more}
    return Invocation.of(arguments, "/srv/site", awx=awx)


def test_a_command_calls_the_playbook_of_the_collection() -> None:
    assert render_command(typed(), "verify") == "ansible-playbook -i inventory.yml kubewin.csi.verify"


def test_limit_files_and_harmless_variables_are_repeated_and_nothing_else() -> None:
    run = typed(
        "@my vars.yml",
        "kubewin_kubeconfig=/home/me/config ansible_password=hunter2",
        '{"ansible_password": "hunter2"}',
        subset="win-1",
    )
    line = render_command(run, "enable_csi -e kubewin_drivers=vsphere,smb")
    assert line == (
        "ansible-playbook -i inventory.yml --limit win-1 kubewin.csi.enable_csi -e '@my vars.yml' "
        "-e kubewin_kubeconfig=/home/me/config -e kubewin_drivers=vsphere,smb"
    )
    assert lacks_extra_variables(run.extra)
    assert not lacks_extra_variables(("@my vars.yml", "kubewin_context=prod"))


def test_a_value_with_blanks_is_repeated_as_ansible_reads_it() -> None:
    given = {"kubewin_upgrade_windows": "Sat,Sun 22:00-04:00; Wed 20:00-23:00", "kubewin_upgrade_hook": "none"}
    run = typed(" ".join(f"{name}='{value}'" for name, value in given.items()))
    program, *words = shlex.split(render_command(run, "upgrade"))
    assert program == "ansible-playbook"
    assert [parse_kv(value) for option, value in pairwise(words) if option == "-e"] == [
        {name: value} for name, value in given.items()
    ]


def test_a_kubeconfig_that_is_given_as_what_it_holds_is_not_repeated() -> None:
    run = typed("kubewin_kubeconfig='{\"users\": 1}'")
    assert "users" not in render_command(run, "verify")


def test_a_failed_dry_run_is_repeated_as_a_dry_run() -> None:
    run = typed(check=True, diff=True)
    expected = "ansible-playbook -i inventory.yml kubewin.csi.enable_csi"
    assert render_command(run, "enable_csi", keep_dry_run=True) == f"{expected} --check --diff"
    assert render_command(run, "enable_csi") == expected
    assert render_command(typed(diff=True), "enable_csi", keep_dry_run=True) == expected


def test_in_awx_a_job_template_is_named() -> None:
    run = typed(awx=True)
    assert render_command(run, "verify") == "launch the job template of kubewin.csi.verify"
    assert render_command(run, "upgrade -e kubewin_upgrade_confirmed=canary") == (
        "launch the job template of kubewin.csi.upgrade with kubewin_upgrade_confirmed=canary"
    )


def test_an_approval_takes_the_place_of_the_one_before() -> None:
    run = typed("kubewin_upgrade_pause=batches", "kubewin_upgrade_confirmed=batch-1")
    assert render_command(run, "upgrade -e kubewin_upgrade_confirmed=batch-2") == (
        "ansible-playbook -i inventory.yml kubewin.csi.upgrade -e kubewin_upgrade_pause=batches "
        "-e kubewin_upgrade_confirmed=batch-2"
    )


def test_a_remedy_calls_its_playbook_with_the_inventory_and_the_cluster_of_the_run() -> None:
    remedy = (
        "it is ours. Hand over: ansible-playbook -i inventory.yml kubewin.csi.handover -e kubewin_drivers=smb "
        "-e kubewin_handover=to_platform; or remove it."
    )
    run = typed("kubewin_context=prod", "kubewin_drivers=vsphere,smb", inventory=["prod/hosts.yml"])
    assert repeat_invocation(remedy, run) == (
        "it is ours. Hand over: ansible-playbook -i prod/hosts.yml kubewin.csi.handover -e kubewin_context=prod "
        "-e kubewin_drivers=smb -e kubewin_handover=to_platform; or remove it."
    )
    assert repeat_invocation("Run ansible-playbook -i inventory.yml kubewin.csi.status.", run) == (
        "Run ansible-playbook -i prod/hosts.yml kubewin.csi.status -e kubewin_context=prod -e kubewin_drivers=vsphere,smb."
    )
