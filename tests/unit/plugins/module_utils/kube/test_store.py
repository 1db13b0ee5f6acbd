# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts of any size in ConfigMaps: whole or as before, whatever ends a writer and whatever else writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.store import LIMIT, ConfigMaps, Files, TooLargeError
from unit.plugins.module_utils.kube.fakes import ObjectStore, Response, client_of

MAPS = "/api/v1/namespaces/kubewin/configmaps"
PART = "app.kubernetes.io/part-of"


def maps(store: ObjectStore) -> ConfigMaps:
    return ConfigMaps(client_of(store), "kubewin", "tests", "text.json")


def noise(size: int, seed: int = 1) -> str:
    """Text that hardly gets smaller."""
    return random.Random(seed).randbytes(size // 2).hex()


def pieces(store: ObjectStore) -> list[str]:
    return sorted(path for path, thing in store.things.items() if "binaryData" in thing)


@pytest.mark.parametrize("size", [0, 100, 600 << 10, 700 << 10, 4 << 20])
def test_a_text_of_any_size_is_read_as_it_was_written(size: int) -> None:
    store, text = ObjectStore(), noise(size)
    maps(store).write("first", text, beside={"text.txt": "for people"}, labels={"kubewin.io/of": "shop"})
    assert maps(store).read("first") == text
    assert list(maps(store).all(**{"kubewin.io/of": "shop"})) == [("first", text)]
    assert list(maps(store).all(**{"kubewin.io/of": "another"})) == []
    assert store.things[f"{MAPS}/first"]["data"]["text.txt"] == "for people"
    for thing in store.things.values():
        held = [*(thing.get("data") or {}).values(), *(thing.get("binaryData") or {}).values()]
        assert sum(len(one) for one in held) < 1 << 20
    assert bool(pieces(store)) == (size > 600 << 10)


def test_a_text_is_replaced_atomically_and_its_former_pieces_are_deleted() -> None:
    store = ObjectStore()
    kept = maps(store)
    kept.write("first", noise(3 << 20))
    before = pieces(store)
    kept.write("first", noise(2 << 20, 2))
    assert set(before).isdisjoint(pieces(store))
    assert maps(store).read("first") == noise(2 << 20, 2)
    # And to one ConfigMap and back.
    kept.write("first", "small")
    assert (pieces(store), maps(store).read("first")) == ([], "small")
    kept.write("first", noise(2 << 20))
    assert maps(store).read("first") == noise(2 << 20)
    assert kept.named() == ["first"]
    assert kept.forget() == ["first"]
    assert store.things == {}
    assert maps(store).read("first") is None


class Dies(ObjectStore):
    """Whose client dies right before one of its writes."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method != "GET":
            if self.left == 0:
                raise KeyboardInterrupt
            self.left -= 1
        return super().request(method, path, body, **params)


def test_a_writer_that_dies_anywhere_leaves_the_text_of_before_or_the_new_one() -> None:
    old, new, ends = noise(2 << 20, 1), noise(3 << 20, 2), set()
    for writes in range(100):
        store = Dies()
        store.now = datetime(2026, 11, 21, 20, tzinfo=timezone.utc)
        maps(store).write("first", old)
        store.left = writes
        try:
            maps(store).write("first", new)
        except (KeyboardInterrupt, ClusterError):
            # A writer that has not read it meets the one of before, and dies later.
            pass
        else:
            break
        store.left = -1
        found = maps(store).read("first")
        assert found in (old, new), writes
        ends.add(found == new)
        # The next one clears up, once no writer can be at work on what is left.
        store.now += timedelta(hours=2)
        following = maps(store)
        following.read("first")
        following.write("first", "small")
        assert pieces(store) == []
    assert ends == {False, True}


class Meanwhile(ObjectStore):
    """Where something happens once, right before a request. then: what."""

    def __init__(self, method: str, path: str, then: Callable[[ObjectStore], object]) -> None:
        super().__init__()
        self._before, self._then = (method, path), then
        self.armed = False

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        named = body["metadata"]["name"] if method == "POST" else ""
        if self.armed and (method, f"{path}/{named}".rstrip("/")) == self._before:
            self.armed = False
            self._then(self)
        return super().request(method, path, body, **params)


@pytest.mark.parametrize("known", [True, False], ids=["replaced", "new"])
@pytest.mark.parametrize("same", [True, False], ids=["same text", "another text"])
def test_two_writers_at_once_leave_a_whole_text(known: bool, same: bool) -> None:
    mine = noise(2 << 20, 1)
    theirs = mine if same else noise(2 << 20, 2)
    store = Meanwhile(
        "PATCH" if known else "POST", f"{MAPS}/first", lambda here: maps(here).write("first", theirs)
    )  # fmt: skip
    writer = maps(store)
    if known:
        writer.write("first", noise(2 << 20, 3))
    store.armed = True
    met: list[str] = []
    writer.write("first", mine, met.append)
    assert not store.armed
    assert met == ([] if same else [theirs])
    assert maps(store).read("first") == mine
    assert len(pieces(store)) == 2


def test_a_text_that_is_removed_while_it_is_written_is_whole_afterwards() -> None:
    store = Meanwhile("POST", f"{MAPS}/first", lambda here: maps(here).forget())
    store.armed = True
    maps(store).write("first", noise(2 << 20))
    assert maps(store).read("first") == noise(2 << 20)


def test_pieces_of_a_killed_writer_are_deleted_with_their_set() -> None:
    store = Dies()
    store.left = 2
    with pytest.raises(KeyboardInterrupt):
        maps(store).write("first", noise(2 << 20), labels={"kubewin.io/of": "shop"})
    store.left = -1
    maps(store).write("other", noise(1 << 20), labels={"kubewin.io/of": "another"})
    assert len(pieces(store)) == 3
    assert maps(store).forget(**{"kubewin.io/of": "shop"}) == []
    assert len(pieces(store)) == 1
    assert maps(store).read("other") == noise(1 << 20)


def test_a_text_that_is_too_large_is_refused_by_name_and_nothing_is_written() -> None:
    store = ObjectStore()
    with pytest.raises(
        TooLargeError, match=rf"ConfigMap kubewin/first: the text has \d+ bytes.*at most {LIMIT}"
    ) as refused:
        maps(store).write("first", noise(4 * LIMIT))
    assert refused.value.reason == "too_large"
    assert store.things == {}


def test_pieces_that_do_not_belong_together_are_no_text() -> None:
    store = ObjectStore()
    maps(store).write("first", noise(2 << 20))
    lost = pieces(store)[1]
    piece = store.things.pop(lost)
    assert maps(store).read("first") == ""
    store.things[lost] = {**piece, "binaryData": {"piece": "bm90aGluZw=="}}
    assert maps(store).read("first") == ""


def test_a_write_of_another_run_is_checked_and_a_label_or_a_lost_answer_is_not() -> None:
    store = ObjectStore()
    met: list[str] = []
    first, second = maps(store), maps(store)
    first.write("first", "one", met.append)
    assert second.read("first") == "one"
    second.write("first", "two", met.append)
    assert met == []
    first.write("first", "three", met.append)
    assert met == ["two"]
    store.things[f"{MAPS}/first"]["metadata"]["resourceVersion"] = "labelled"
    first.write("first", "four", met.append)
    assert met == ["two"]

    def has_it(_text: str) -> None:
        raise ClusterError("taken over", "taken_over")

    with pytest.raises(ClusterError, match="taken over"):
        second.write("first", "five", has_it)
    assert maps(store).read("first") == "four"
    # Deleted by a user, it is created again.
    del store.things[f"{MAPS}/first"]
    first.write("first", "six", has_it)
    assert maps(store).read("first") == "six"


def test_files_are_whole_and_for_their_owner_alone(tmp_path: Path) -> None:
    files = Files(tmp_path / "kept")
    assert files.read("first.json") is None
    assert list(files.all("*.json")) == []
    files.write("first.json", "text")
    assert files.read("first.json") == "text"
    assert list(files.all("*.json")) == [("first.json", "text")]
    assert (tmp_path / "kept" / "first.json").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
