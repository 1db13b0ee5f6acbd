# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's container prints what cmd and bsdtar of Windows print, and fails where they fail."""

from __future__ import annotations

import fcntl
import io
import os
import tarfile
from pathlib import Path

import pytest
from lab.cluster import nanoserver
from lab.cluster.bsdtar import Archive

DATA = "C:\\data"
LINE = "11/21/2026  09:46 AM"


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_bytes(b"abc")
    (tmp_path / "sub/b.txt").write_bytes(b"b")
    (tmp_path / "link.txt").symlink_to("a.txt")
    (tmp_path / "junction").symlink_to(f"{DATA}\\sub")
    for path in (*tmp_path.rglob("*"), tmp_path):
        os.utime(path, (1795254360, 1795254360), follow_symlinks=False)
    return tmp_path


def cmd(volume: Path, *words: str) -> nanoserver.Result:
    found = nanoserver.run(["cmd", *words], {DATA: volume})
    assert isinstance(found, nanoserver.Result)
    return found


def tar(volume: Path, *words: str) -> tuple[Archive, list[tarfile.TarInfo]]:
    found = nanoserver.run(["tar", "-cf", "-", "-C", DATA, *words], {DATA: volume})
    assert isinstance(found, Archive)
    with tarfile.open(fileobj=io.BytesIO(b"".join(found.chunks()))) as archive:
        return found, archive.getmembers()


def test_dir_shows_folders_links_and_what_is_behind_junctions(volume: Path) -> None:
    found = cmd(volume, "/u", "/d", "/c", "dir", "/a", "/s", "/-c", DATA)
    assert found.code == 0
    text = found.output.decode("utf-16-le")
    assert f" Directory of {DATA}\r\n\r\n{LINE}    <DIR>          .\r\n" in text
    assert f"{LINE}                 3 a.txt\r\n" in text
    assert f"{LINE}    <SYMLINK>      link.txt [a.txt]\r\n" in text
    assert f"{LINE}    <JUNCTION>     junction [{DATA}\\sub]\r\n" in text
    assert f" Directory of {DATA}\\junction\r\n" in text


def test_dir_leaves_out_folders_whose_path_is_too_long(volume: Path) -> None:
    deep = volume / "/".join(["x" * 120] * 3)
    deep.mkdir(parents=True)
    (deep / "unseen.txt").write_bytes(b"")
    found = cmd(volume, "/c", "dir", "/a", "/s", "/-c", DATA)
    assert found.code == 1
    assert found.stderr.endswith(" is too long.\r\n")
    assert "unseen.txt" not in found.stdout


@pytest.mark.parametrize(
    "words", [("/c", "dir", "/b", DATA), ("/k", "dir"), ("/c", "dir", "/a", "/s", "/-c", DATA, DATA)]
)
def test_what_is_not_modelled_is_reported(volume: Path, words: tuple[str, ...]) -> None:
    found = cmd(volume, *words)
    assert found.code == 1
    assert "The lab does not know" in found.stderr


def test_tar_walks_into_junctions_and_not_into_links(volume: Path) -> None:
    _archive, members = tar(volume, ".")
    assert {one.name for one in members} == {
        ".", "./a.txt", "./junction", "./junction/b.txt", "./link.txt", "./sub", "./sub/b.txt",
    }  # fmt: skip
    _archive, members = tar(volume, "--exclude", "./junction", ".")
    assert not [one for one in members if "junction" in one.name]


def test_tar_skips_a_locked_file_and_continues_with_the_next(volume: Path) -> None:
    with (volume / "a.txt").open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        archive, members = tar(volume, ".", "./sub/b.txt")
    assert [one.name for one in members] == [".", "./sub/b.txt"]
    assert archive.code == 1
    assert archive.errors.startswith("tar: Couldn't open ./a.txt: Permission denied\n")
    assert archive.errors.endswith("tar: Error exit delayed from previous errors.\n")


def test_names_on_tars_command_line_are_of_the_ansi_code_page(volume: Path) -> None:
    for name in ("Gr\u00fc\u00dfe", "\u65e5\u672c"):
        (volume / name).write_bytes(b"x")
    archive, members = tar(volume, "./Gr\u00fc\u00dfe", "./\u65e5\u672c")
    assert [one.name for one in members] == ["./Gr\u00fc\u00dfe"]
    assert archive.code == 1
    _archive, members = tar(volume, ".")
    assert "./\u65e5\u672c" in {one.name for one in members}


def test_holes_are_described_and_not_sent(volume: Path) -> None:
    with (volume / "sparse").open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 30)
        file.write(b"end")
    done = nanoserver.run(["tar", "-cf", "-", "-C", DATA, "./sparse"], {DATA: volume})
    assert isinstance(done, Archive)
    sent = b"".join(done.chunks())
    assert len(sent) < 1 << 20
    with tarfile.open(fileobj=io.BytesIO(sent)) as archive:
        (member,) = archive.getmembers()
        assert (member.name, member.size) == ("./sparse", (1 << 30) + 3)
        file_in = archive.extractfile(member)
        assert file_in is not None
        assert file_in.read(5) == b"begin"
        file_in.seek(1 << 30)
        assert file_in.read() == b"end"
