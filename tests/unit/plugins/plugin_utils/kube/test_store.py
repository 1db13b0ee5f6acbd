# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in ConfigMaps: whole or as before, whatever else writes."""

from __future__ import annotations

import base64
import random
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.store import LIMIT, ConfigMaps, TooLargeError
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of

MAPS = "/api/v1/namespaces/kubewin/configmaps"


def maps(store: ObjectStore) -> ConfigMaps:
    return ConfigMaps(client_of(store), "kubewin", "tests", "text.json", "Write less.")


def noise(size: int, seed: int = 1) -> str:
    """Text that hardly gets smaller."""
    return random.Random(seed).randbytes(size // 2).hex()


@pytest.mark.parametrize("size", [0, 100, 200_000, 200_002, 1_800_000])
def test_a_text_is_read_as_it_was_written(size: int) -> None:
    store, text = ObjectStore(), noise(size)
    maps(store).write("first", text, extra_data={"text.txt": "for people"}, labels={"kubewin.io/of": "shop"})
    assert maps(store).read("first") == text
    assert list(maps(store).read_all(**{"kubewin.io/of": "shop"})) == [("first", text)]
    assert list(maps(store).read_all(**{"kubewin.io/of": "another"})) == []
    [thing] = store.things.values()
    assert thing["data"]["text.txt"] == "for people"
    assert ("text.json" in thing["data"]) == (size <= 200_000)
    values = [base64.b64decode(value) for value in thing["binaryData"].values()]
    assert sum(map(len, (*values, *thing["data"].values()))) <= LIMIT


def test_a_text_that_changes_its_size_is_replaced_by_one_write() -> None:
    store = ObjectStore()
    kept = maps(store)
    for text in (noise(1_000_000), "small", noise(900_000, 2)):
        kept.write("first", text)
        assert maps(store).read("first") == text
        thing = store.things[f"{MAPS}/first"]
        assert len(thing["data"]) + len(thing["binaryData"]) == 1
    assert store.serial == 3
    assert kept.forget() == ["first"]
    assert maps(store).read("first") is None


def test_a_text_that_is_too_large_is_refused_by_name_and_nothing_is_written() -> None:
    store = ObjectStore()
    for size, reserved in ((4 * LIMIT, 0), (LIMIT + LIMIT // 2, LIMIT // 2)):
        with pytest.raises(
            TooLargeError, match=r"ConfigMap kubewin/first: its text has \d+ bytes.*Write less"
        ) as refused:
            maps(store).write("first", noise(size), reserved=reserved)
        assert refused.value.reason == "too_large"
    assert store.things == {}
    # Without room for more it fits.
    maps(store).write("first", noise(LIMIT + LIMIT // 2))


def test_a_spoiled_text_is_empty() -> None:
    store = ObjectStore()
    maps(store).write("first", noise(LIMIT))
    store.things[f"{MAPS}/first"]["binaryData"]["text.json.gz"] = "bm90aGluZw=="
    assert maps(store).read("first") == ""


def test_a_missing_namespace_is_reported_as_such() -> None:
    class WithoutNamespace(ObjectStore):
        def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
            if method == "POST":
                raise ApiError(404, {"message": 'namespaces "kubewin" not found'})
            return super().request(method, path, body, **params)

    with pytest.raises(ClusterError, match='namespaces "kubewin" not found'):
        maps(WithoutNamespace()).write("first", "text")


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
