# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records are kept in two namespaces, and either one is enough to continue."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.record import ConversionRecord
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.records import Records
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT
from unit.plugins.plugin_utils.convert.test_record import record
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of

SPACES = ("kubewin", "copies")


def both(store: ObjectStore) -> Records:
    return Records(client_of(store), SPACES)


def path(found: ConversionRecord, space: str = SPACES[0]) -> str:
    return f"/api/v1/namespaces/{space}/configmaps/kubewin-convert-{found.run}"


def spoil(store: ObjectStore, found: ConversionRecord, space: str) -> None:
    store.request("PATCH", path(found, space), {"metadata": {}, "data": {"record.json": "{"}})


def keep_one(store: ObjectStore, space: str, found: ConversionRecord) -> None:
    """A copy as a run leaves it that dies between two writes."""
    changed = Records(client_of(store), (space,))
    changed.list_unfinished()
    changed.write(replace(found, sequence=found.sequence - 1), "later")


@pytest.mark.parametrize("lost", SPACES)
def test_either_namespace_is_enough(lost: str) -> None:
    store = ObjectStore()
    written = both(store).write(record(), "now")
    del store.things[path(written, lost)]
    assert both(store).find("shop", "data-db-0") == written


def test_a_death_between_the_two_writes_leaves_the_newer_one() -> None:
    store = ObjectStore()
    newer = both(store).write(record(), "now").take_over().prepare_save("later")
    keep_one(store, SPACES[0], newer)
    assert both(store).find("shop", "data-db-0") == newer


def test_an_unreadable_copy_is_reported_and_the_other_one_used() -> None:
    store = ObjectStore()
    written = both(store).write(record(), "now")
    spoil(store, written, SPACES[0])
    records = both(store)
    assert records.find("shop", "data-db-0") == written
    (warning,) = records.warnings
    assert "cannot be read: it is not JSON" in warning


def test_the_record_of_a_later_release_is_not_replaced() -> None:
    store = ObjectStore()
    records = both(store)
    written = records.write(record(), "now")
    place = path(written, SPACES[0])
    text = json.dumps({**json.loads(store.things[place]["data"]["record.json"]), "new": True})
    store.request("PATCH", place, {"metadata": {}, "data": {"record.json": text}})
    with pytest.raises(ClusterError, match="run that release") as over:
        records.write(written.move_to("done"), "later")
    assert over.value.reason == "taken_over"
    assert store.things[place]["data"]["record.json"] == text


def test_when_no_copy_can_be_read_nothing_is_done() -> None:
    store = ObjectStore()
    written = both(store).write(record(), "now")
    for space in SPACES:
        spoil(store, written, space)
    with pytest.raises(ClusterError, match="claim shop/data-db-0 may have an unreadable record"):
        both(store).find("shop", "data-db-0")


def test_a_record_that_is_done_is_history() -> None:
    store = ObjectStore()
    both(store).write(record().move_to("done"), "now")
    assert both(store).find("shop", "data-db-0") is None


def test_a_claim_that_is_converted_again_begins_after_its_history() -> None:
    store = ObjectStore()
    records = both(store)
    records.write(record(), "now")
    done = records.write(record().move_to("done"), "now")
    again = both(store)
    assert again.find("shop", "data-db-0") is None
    assert again.write(record(), "later").sequence > done.sequence


def test_records_of_other_claims_are_not_ours() -> None:
    store = ObjectStore()
    both(store).write(record(), "now")
    assert both(store).find("shop", "data-db-1") is None


def test_all_that_is_not_done_is_found_by_its_newest_copy() -> None:
    store = ObjectStore()
    one = both(store).write(record(), "now")
    newer = one.take_over().prepare_save("later")
    keep_one(store, SPACES[1], newer)
    other = both(store).write(replace(record(), run="another", claim="data-db-1"), "now")
    both(store).write(replace(record(), run="over").move_to("done"), "now")
    broken = both(store).write(replace(record(), run="broken"), "now")
    for space in SPACES:
        spoil(store, broken, space)
    assert {found.run: found for found in both(store).list_unfinished()} == {one.run: newer, "another": other}


def test_two_unfinished_runs_of_one_claim_are_not_chosen_from() -> None:
    store = ObjectStore()
    both(store).write(record(), "now")
    both(store).write(replace(record(), run="another"), "now")
    with pytest.raises(ClusterError, match="2 unfinished runs"):
        both(store).find("shop", "data-db-0")


def test_a_record_that_is_too_large_is_refused_before_the_first_change() -> None:
    store, noted = ObjectStore(), random.Random(1).randbytes(LIMIT).hex()
    with pytest.raises(ClusterError, match=r"its text has .* Remove annotations of the claim") as refused:
        both(store).write(replace(record(), objects={"claim": {"note": noted}}), "now")
    assert (refused.value.reason, store.things) == ("too_large", {})
    smaller = both(store).write(replace(record(), objects={**record().objects, "note": noted[: LIMIT // 2]}), "now")
    assert both(store).find("shop", "data-db-0") == smaller
    # Compressed, it still shows a reader of the ConfigMap whose it is.
    assert store.things[path(smaller)]["data"] == {
        "record.txt": f"Conversion of claim {smaller.namespace}/{smaller.claim}, direction forward, step lock\n"
        f"Run {smaller.run}, generation 1\n"
    }


def test_two_runs_of_one_term_do_not_overwrite_one_another() -> None:
    """Both took over from the same copy; the one that writes second has lost, whatever it writes."""
    store = ObjectStore()
    first, second = both(store), both(store)
    begun = first.write(record(), "now")
    ahead = first.write(begun.advance(), "now")
    with pytest.raises(ClusterError, match=r"written by another run \(generation 1, this run has 1\)") as raised:
        second.write(record().move_to("canary"), "now")
    assert raised.value.reason == "taken_over"
    second.write(begun.take_over(), "now")
    with pytest.raises(ClusterError, match=r"generation 2, this run has 1"):
        first.write(ahead, "now")


class Forgetful(ObjectStore):
    """Does what it is asked, and does not answer the first patches."""

    def __init__(self) -> None:
        super().__init__()
        self.unanswered = 0

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        answer = super().request(method, path, body, **params)
        if method == "PATCH" and self.unanswered:
            self.unanswered -= 1
            raise ApiError(503)
        return answer


def test_a_label_and_an_answer_that_was_lost_are_no_other_run() -> None:
    store = Forgetful()
    records = both(store)
    begun = records.write(record(), "now")
    store.request("PATCH", path(begun), {"metadata": {"labels": {"team": "shop"}}})
    store.unanswered = 1
    later = records.write(begun.advance(), "later")
    assert store.unanswered == 0
    assert store.things[path(later)]["data"]["record.json"] == later.to_json()
