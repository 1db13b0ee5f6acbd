# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Manifests kept as files, command lines, and pods that use a claim."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.stored import FormatError
from ansible_collections.kubewin.csi.plugins.plugin_utils.data import objects
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import (
    FileEntry,
    Gap,
    Manifest,
    describe_manifest,
    from_json,
    summarize_counts,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.read import split_command_line
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.objects import MOUNT
from unit.plugins.plugin_utils.verify.clusters import node

SHA = "a" * 64
KEPT = Manifest(
    "shop",
    "data",
    "pv-1",
    "content",
    "2026-11-21T10:00:00Z",
    (
        FileEntry("Gr\u00fc\u00dfe", "file", 3, "monday", sha256=SHA),
        FileEntry("x", "file", 4, why="locked"),
        FileEntry("d", "directory"),
    ),
    (Gap("deep", "too long"),),
)


def test_a_manifest_read_from_its_file_is_unchanged() -> None:
    assert from_json(KEPT.to_json()) == KEPT
    assert summarize_counts(KEPT) == {"files": 2, "bytes": 7, "read_files": 1, "read_bytes": 3}
    assert "2 files with 7 bytes, 1 of them read, 1 folders could not be listed" in describe_manifest(KEPT)


OTHER = KEPT.to_json().replace('"schema": 1', '"schema": 2')


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 1}', KEPT.to_json()[:-5], OTHER])
def test_a_text_that_is_not_a_manifest_is_refused(text: str) -> None:
    with pytest.raises(FormatError):
        from_json(text)


def test_names_are_given_in_command_lines_that_windows_takes() -> None:
    paths = [f"{'x' * 300}/{number}" for number in range(200)]
    found = list(split_command_line(paths))
    assert [path for group in found for path in group] == paths
    assert max(sum(len(path) + 8 for path in group) for group in found) < 32000
    assert list(split_command_line([])) == []


def pod(
    name: str, *mounts: dict[str, Any], phase: str = "Running", claim: str = "data", **metadata: Any
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **metadata},
        "spec": {
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}, {"name": "t", "emptyDir": {}}],
            "containers": [
                {"name": "app", "image": "shop:1", "volumeMounts": [{"name": "t", "mountPath": "C:\\t"}, *mounts]}
            ],
        },
        "status": {"phase": phase},
    }


WHOLE = {"name": "v", "mountPath": "/test/"}


def test_users_of_a_claim_and_those_that_can_list_all_of_it() -> None:
    pods = [
        pod("runs", WHOLE),
        pod("part", {**WHOLE, "subPath": "orders"}),
        pod("waits", WHOLE, phase="Pending"),
        pod("ends", WHOLE, deletionTimestamp="now"),
        pod("done", WHOLE, phase="Succeeded"),
        pod("other", WHOLE, claim="others"),
        pod("ours", WHOLE, labels=objects.LABELS),
    ]
    found = {one.pod: one for one in objects.find_uses(pods, "data")}
    assert set(found) == {"runs", "part", "waits", "ends"}
    assert (found["runs"].running, found["runs"].mounts, found["runs"].image) == (
        True,
        (("app", "C:\\test"),),
        "shop:1",
    )
    assert found["part"].mounts == ()
    assert not found["waits"].running
    assert not found["ends"].running


@pytest.mark.parametrize(
    ("mount", "folder"), [("/", "C:\\"), ("D:\\", "D:\\"), ("D:\\x\\", "D:\\x"), ("c:/x/y", "c:\\x\\y")]
)
def test_folders_as_windows_has_them(mount: str, folder: str) -> None:
    assert objects.to_windows_path(mount) == folder


def test_the_pod_that_reads_cannot_write_and_ends_by_itself() -> None:
    claim = {"metadata": {"name": "data", "namespace": "shop", "uid": "u"}}
    made = objects.define_helper(claim, node("win-1"), "", [], 900)
    (container,) = made["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "data", "mountPath": MOUNT, "readOnly": True}]
    assert container["image"] == "mcr.microsoft.com/windows/nanoserver:ltsc2022"
    assert made["spec"]["activeDeadlineSeconds"] > 900
    assert objects.is_ours(made)
    assert not objects.is_ours({"metadata": {}})
