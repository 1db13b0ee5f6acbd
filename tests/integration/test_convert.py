# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In-tree volumes become native CSI ones on the same disk, whatever happens meanwhile, and no byte of them is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from integration.convert import (
    CLAIMS,
    KINDS,
    VOLUMES,
    AtOnce,
    Story,
    convert,
    plant,
    prepare,
    remove,
    runs,
)  # fmt: skip
from integration.convert_kills import (
    api_kills,
    killed_before_and_after_writes_it_goes_on,
    random_kills,
    undone_the_volume_is_what_it_was,
)
from integration.convert_late import (
    SWEEPS,
    a_final_run_killed_before_its_last_write_is_not_rolled_back,
    a_final_run_planned_before_a_rollback_says_so_and_the_next_one_converts,
    a_rollback_planned_before_the_conversion_became_final_finds_nothing_to_do,
    every_write_late,
    writes_that_arrive_late_change_nothing,
)
from integration.convert_parts import account, controller, conversion, deploy, killed_everywhere, untouched
from integration.convert_stories import (
    a_claim_that_was_deleted_and_bound_by_hand_is_gone_on_with,
    a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it,
    a_set_that_deletes_its_claims_meanwhile_is_not_scaled_down,
    a_user_that_restores_the_policy_just_before_the_deletion_loses_nothing,
    by_playbook_nothing_that_was_not_named,
    by_playbook_two_workloads_and_nothing_more_afterwards,
    claims_of_one_workload_are_converted_one_after_the_other_also_after_a_death,
    what_the_blog_does_destroys_the_disk,
)
from integration.convert_trouble import (
    a_clock_that_jumps_changes_nothing,
    a_second_run_is_kept_away,
    a_server_in_trouble_is_no_refusal_and_nothing_is_asked_for_that_was_not_looked_up_before,
    a_server_that_refuses_the_new_volume,
    a_user_that_restores_objects_is_named,
    either_copy_of_the_record_is_enough_and_none_is_too_little,
    what_never_lets_go_is_named_one_after_the_other,
)
from integration.kube import install_csi_proxy, label
from lab import handle
from lab.cluster import settings as lab_settings
from lab.handle import Lab

# Stories at a time.
WIDTH = 4


@pytest.fixture(scope="module")
def ready() -> Iterator[Lab]:
    """Two nodes with vSphere's plugin, and an account that holds kubewin-csi-convert and nothing else."""
    lab = handle.start(f"convert-{os.getpid()}", nodes=2)
    for host in lab.state.hosts:
        install_csi_proxy(lab, host.name)
        label(lab, host.node)
    deploy(lab, "vsphere")
    prepare(lab)
    account(lab)
    yield lab
    lab.stop()


# The longest first.
TOLD = (
    killed_before_and_after_writes_it_goes_on,
    by_playbook_two_workloads_and_nothing_more_afterwards,
    a_rollback_planned_before_the_conversion_became_final_finds_nothing_to_do,
    a_final_run_planned_before_a_rollback_says_so_and_the_next_one_converts,
    writes_that_arrive_late_change_nothing,
    a_final_run_killed_before_its_last_write_is_not_rolled_back,
    claims_of_one_workload_are_converted_one_after_the_other_also_after_a_death,
    a_set_that_deletes_its_claims_meanwhile_is_not_scaled_down,
    what_never_lets_go_is_named_one_after_the_other,
    a_server_in_trouble_is_no_refusal_and_nothing_is_asked_for_that_was_not_looked_up_before,
    a_server_that_refuses_the_new_volume,
    a_user_that_restores_the_policy_just_before_the_deletion_loses_nothing,
    a_claim_that_was_deleted_and_bound_by_hand_is_gone_on_with,
    a_second_run_is_kept_away,
    a_user_that_restores_objects_is_named,
    either_copy_of_the_record_is_enough_and_none_is_too_little,
    a_clock_that_jumps_changes_nothing,
    undone_the_volume_is_what_it_was,
    a_new_volume_before_the_register_has_forgotten_the_old_one_is_lost_to_it,
    by_playbook_nothing_that_was_not_named,
    what_the_blog_does_destroys_the_disk,
)

STORY = {story.__name__: story for story in TOLD}


@pytest.fixture(scope="module")
def at_once(ready: Lab, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AtOnce]:
    """Those stories that were asked for."""
    folder = tmp_path_factory.mktemp("stories")
    asked = [
        item.callspec.params["name"]
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "name" in item.callspec.params
    ]

    def notify(name: str) -> None:
        own = folder / f"{name}.d"
        own.mkdir()
        # Connections cannot be shared by processes.
        STORY[name](Lab(ready.state), own)

    made = AtOnce([name for name in STORY if name in asked], notify, folder, WIDTH)
    yield made
    made.end()


@pytest.mark.parametrize("name", STORY)
def test_a_conversion(at_once: AtOnce, name: str) -> None:
    at_once.result(name)


def test_it_outlives_the_api_server(ready: Lab, tmp_path: Path) -> None:
    api_kills(ready, seed=20261121, count=3)


@pytest.fixture(scope="module")
def every_driver(ready: Lab) -> Lab:
    """The same lab with the other drivers, and stand-ins for their controllers."""
    google = DRIVERS["gce_pd"]
    # Its volumes are bound to a zone, so its nodes have to have one.
    with ready.settings(drivers={google.name: lab_settings.Driver(topology={"topology.gke.io/zone": "zone-a"})}):
        for key in KINDS[1:]:
            deploy(ready, key)
            controller(ready, DRIVERS[key])
    return ready


STORIES = [
    Story(f"{kind}-{policy}-{'set' if stateful else 'web'}".lower().replace("_", "-"), kind, policy, stateful)
    for kind in KINDS
    for policy in ("Delete", "Retain")
    for stateful in (True, False)
]


@pytest.mark.torture
@pytest.mark.parametrize("story", STORIES, ids=[story.name for story in STORIES])
def test_every_kind_of_volume(every_driver: Lab, tmp_path: Path, story: Story) -> None:
    lab = every_driver
    plant(lab, story)
    result = convert(conversion(lab, story))
    assert result["status"] == "converted", result
    volume = lab.api.get(f"{VOLUMES}/{result['volume']}")
    claim = lab.api.get(f"{CLAIMS}/{story.claim}")
    assert volume["spec"]["csi"]["driver"] == DRIVERS[story.kind].name
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == story.policy
    assert volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"] == "thin"
    assert claim["status"]["phase"] == volume["status"]["phase"] == "Bound"
    runs(lab, story)
    untouched(lab, story)
    remove(lab, story)


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_killed_at_every_request(every_driver: Lab, tmp_path: Path, kind: str) -> None:
    story = Story(f"killed-{kind}".replace("_", "-"), kind)
    plant(every_driver, story)
    deaths = killed_everywhere(every_driver, story)
    print(f"{kind}: {deaths} kills at request boundaries: 0 lost")
    remove(every_driver, story)


@pytest.mark.torture
def test_a_thousand_random_kills(ready: Lab, tmp_path: Path) -> None:
    def notify(seed: str) -> None:
        random_kills(Lab(ready.state), int(seed), 1000 // WIDTH)

    seeds = [str(number * 10_000) for number in range(1, WIDTH + 1)]
    lanes = AtOnce(seeds, notify, tmp_path, WIDTH, seconds=3600)
    for seed in seeds:
        lanes.result(seed)
    print(f"1000 kills at random instants, seeds {', '.join(seeds)}: 0 lost")


@pytest.mark.torture
def test_fifty_kills_of_the_api_server(ready: Lab, tmp_path: Path) -> None:
    for seed in range(10):
        api_kills(ready, seed, count=5)


@pytest.mark.torture
def test_a_conversion_killed_before_and_after_every_write_goes_on(ready: Lab, tmp_path: Path) -> None:
    killed_before_and_after_writes_it_goes_on(ready, tmp_path, share=1)


@pytest.mark.torture
@pytest.mark.parametrize("step", ["quiesce", "delete_volume", "create_volume", "finish"])
def test_a_conversion_rolls_back_from_every_step(ready: Lab, tmp_path: Path, step: str) -> None:
    undone_the_volume_is_what_it_was(ready, tmp_path, step)


@pytest.mark.torture
def test_every_write_that_arrives_after_the_next_run(ready: Lab, tmp_path: Path) -> None:
    sweeps = {sweep.name: sweep for sweep in SWEEPS}

    def notify(name: str) -> None:
        every_write_late(Lab(ready.state), sweeps[name])

    lanes = AtOnce(list(sweeps), notify, tmp_path, WIDTH, seconds=3600)
    for name in sweeps:
        lanes.result(name)
