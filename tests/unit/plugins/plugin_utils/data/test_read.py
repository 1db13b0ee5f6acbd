# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading a volume through a container, with the commands run by the lab's own container over real files."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tarfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.compare import (
    VolumeComparison,
    compare_manifests,
    find_head_sizes,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry, Manifest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.read import (
    ContainerFolder,
    Reader,
    ReadLimits,
    read_digest,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError, StreamError
from lab.cluster import nanoserver
from lab.cluster.bsdtar import Archive

FOLDER = "C:\\volume"
PLENTY = ReadLimits(total=1 << 40, rate=1 << 40, seconds=600)
DEEP = "/".join(["a" * 60] * 6)


class Output:
    """What an exec puts out, as cluster.streams.Output is read."""

    def __init__(self, done: nanoserver.Result | Archive) -> None:
        self._done = done
        self._chunks = iter([done.output]) if isinstance(done, nanoserver.Result) else done.chunks()
        self._rest = b""
        self.code, self.stderr = -1, ""

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and self.code < 0:
            try:
                self._rest += next(self._chunks)
            except StopIteration:
                done = self._done
                self.code = done.code
                self.stderr = done.errors if isinstance(done, Archive) else done.errors.decode()
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def close(self) -> None:
        """Nothing is open."""


class Container:
    """Where commands run: a volume and nanoserver's tools."""

    def __init__(self, volume: Path) -> None:
        self._mounts = {FOLDER: volume}
        self.commands: list[Sequence[str]] = []
        self.wrong: Callable[[Sequence[str]], Exception | None] = lambda _command: None

    def open_output(self, namespace: str, pod: str, container: str, command: Sequence[str], timeout: float) -> Output:
        self.commands.append(command)
        if (error := self.wrong(command)) is not None:
            raise error
        return Output(nanoserver.run(list(command), self._mounts))


@pytest.fixture
def volume(tmp_path: Path) -> Path:
    folder = tmp_path / "volume"
    for path, data in {
        "orders.db": b"\x00\x1a\xff" * 3000,
        "Gr\u00fc\u00dfe/\u65e5\u672c.txt": b"2026\r\n",
        "logs/app.log": b"one\r\ntwo\r\n",
        "empty": b"",
        "zz.txt": b"last of all",
        f"{DEEP}/bottom.txt": b"deep down",
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    (folder / "here.lnk").symlink_to("orders.db")
    # A junction: to a folder of the same volume, which must not be found twice.
    (folder / "there").symlink_to(f"{FOLDER}\\logs")
    # And one that tar cannot exclude.
    (folder / "w\u00e4rts").symlink_to(f"{FOLDER}\\logs")
    return folder


def reader_of(container: Container, limits: ReadLimits = PLENTY, folder: str = FOLDER, **clock: Any) -> Reader:
    return Reader(cast("Any", container), ContainerFolder("shop", "reader", "read", folder), limits, "nano", **clock)


def read(
    volume: Path, limits: ReadLimits = PLENTY, before: Manifest | None = None, container: Container | None = None
) -> Manifest:
    """As the module does it for an unused volume."""
    reader = reader_of(container or Container(volume), limits)
    listed = reader.read_listing()
    found = reader.read_contents(listed, find_head_sizes(before, ("*.log",)) if before is not None else {})
    return Manifest("shop", "data", "pv-1", "content", "now", found.entries, found.gaps)


def again(volume: Path, before: Manifest, limits: ReadLimits = PLENTY) -> VolumeComparison:
    return compare_manifests(before, read(volume, limits, before), ("*.log",))


def test_everything_is_read_whatever_its_name_and_however_long_its_path(volume: Path) -> None:
    found = read(volume)
    files = {one.path: one for one in found.files}
    assert set(files) == {
        str(path.relative_to(volume)) for path in volume.rglob("*") if path.is_file() and not path.is_symlink()
    }
    for path, one in files.items():
        data = (volume / path).read_bytes()
        assert (one.size, one.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert len(f"{FOLDER}\\{DEEP}") > 260
    assert not found.gaps
    assert {one for one in found.entries if one.kind == "link"} == {
        FileEntry("here.lnk", "link", target="orders.db"),
        FileEntry("there", "link", target=f"{FOLDER}\\logs"),
        FileEntry("w\u00e4rts", "link", target=f"{FOLDER}\\logs"),
    }


def test_progress_can_be_read_at_any_time(volume: Path) -> None:
    (volume / "film.mkv").write_bytes(bytes(3 << 20))
    container = Container(volume)
    now = [100.0]
    reader = reader_of(container, clock=lambda: now[0])
    observed: list[str] = []

    def ask(_command: Sequence[str]) -> None:
        observed.append(reader.standing)
        now[0] += 80

    container.wrong = ask
    listed = reader.read_listing()
    reader.read_contents(listed, {})
    assert observed[0].startswith("0.0 MiB came through the API server (0 s of ")
    assert observed[1].startswith("0 of 6 files read, ")
    assert "(1 min 20 s of " in observed[1]
    assert reader.standing.startswith("6 of 6 files read, 3.0 MiB came through the API server (")


def test_nothing_changed_is_the_same(volume: Path) -> None:
    assert again(volume, read(volume)).verdict == "same"


def changed_byte(volume: Path) -> None:
    data = bytearray((volume / "orders.db").read_bytes())
    data[4000] ^= 1
    (volume / "orders.db").write_bytes(data)


def shortened(volume: Path) -> None:
    (volume / "logs/app.log").write_bytes(b"one\r\n")


def begun_anew(volume: Path) -> None:
    (volume / "logs/app.log").write_bytes(b"TWO\r\nthree\r\nfour\r\n")


def deep_change(volume: Path) -> None:
    (volume / f"{DEEP}/bottom.txt").write_bytes(b"deep DOWN")


def retargeted(volume: Path) -> None:
    (volume / "there").unlink()
    (volume / "there").symlink_to("C:\\Windows")


CHANGES: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "a changed byte": (changed_byte, "orders.db", "changed"),
    "a missing file": (lambda volume: (volume / "zz.txt").unlink(), "zz.txt", "missing"),
    "an added file": (lambda volume: (volume / "new").write_bytes(b"new"), "new", "added"),
    "a name beyond ASCII": (
        lambda volume: (volume / "Gr\u00fc\u00dfe/\u65e5\u672c.txt").write_bytes(b"2027\r\n"), "Gr\u00fc\u00dfe/\u65e5\u672c.txt", "changed",
    ),
    "a shortened log": (shortened, "logs/app.log", "shortened"),
    "a log begun anew": (begun_anew, "logs/app.log", "rewritten"),
    "below a long path": (deep_change, f"{DEEP}/bottom.txt", "changed"),
    "a symlink": (lambda volume: (volume / "here.lnk").unlink(), "here.lnk", "missing"),
    "a junction": (retargeted, "there", "retargeted"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "path", "what"), CHANGES.values(), ids=CHANGES)
def test_exactly_that_is_reported(volume: Path, change: Callable[[Path], Any], path: str, what: str) -> None:
    before = read(volume)
    change(volume)
    found = again(volume, before)
    assert [(one.path, one.what) for one in found.differences] == [(path, what)]
    assert not found.not_compared


def test_a_log_that_only_grew_is_as_it_should_be(volume: Path) -> None:
    before = read(volume)
    with (volume / "logs/app.log").open("ab") as log:
        log.write(b"three\r\n")
    found = again(volume, before)
    assert (found.verdict, found.grown) == ("same", ["logs/app.log"])


def test_a_locked_file_is_not_compared_and_all_following_ones_are(volume: Path) -> None:
    """tar ends at a file that it cannot open; the others are then asked for by their names."""
    before = read(volume)
    (volume / "zz.txt").write_bytes(b"LAST of all")
    with (volume / "orders.db").open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        found = again(volume, before)
    assert [(one.path, one.what) for one in found.differences] == [("zz.txt", "changed")]
    (gap,) = found.not_compared
    assert gap.path == "orders.db"
    assert "locked, or the user of the pod may not read it: tar: Couldn't open" in gap.why


def test_a_name_that_tar_cannot_take_is_not_compared_after_a_locked_file(volume: Path) -> None:
    with (volume / f"{DEEP}/bottom.txt").open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        found = {one.path: one for one in read(volume).entries}
    assert not found["Gr\u00fc\u00dfe/\u65e5\u672c.txt"].sha256
    assert "its name cannot be passed to tar" in found["Gr\u00fc\u00dfe/\u65e5\u672c.txt"].why
    assert found["zz.txt"].sha256
    # cmd could not list that deep, and tar did not get there.
    assert f"{DEEP}/bottom.txt" not in found


def test_without_tar_nothing_is_read_and_the_result_reports_it(volume: Path) -> None:
    container = Container(volume)
    container.wrong = lambda command: ClusterError("no such program", "exec_failed") if command[0] == "tar" else None
    found = read(volume, container=container)
    assert {one.why for one in found.files if one.size} == {"tar could not be started in image nano: no such program"}
    assert compare_manifests(found, found, ()).verdict == "incomplete"
    assert sum(command[0] == "tar" for command in container.commands) == 1


def test_reading_ends_when_a_volume_is_larger_than_allowed(volume: Path) -> None:
    """For example a file that grew between the listing and the reading."""
    limits = ReadLimits(total=9100, rate=1 << 30, seconds=600)
    container = Container(volume)

    def grown(command: Sequence[str]) -> None:
        if command[0] == "tar":
            (volume / "orders.db").write_bytes(os.urandom(3 << 20))

    container.wrong = grown
    found = {one.path: one for one in read(volume, limits, container=container).files}
    assert found["zz.txt"].why == "more than 9100 bytes would have passed through the API server"


def test_reading_is_no_faster_than_allowed_and_ends_in_time(volume: Path) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    (volume / "large").write_bytes(os.urandom(5 << 20))
    limits = ReadLimits(total=1 << 30, rate=1 << 20, seconds=600)
    reader = reader_of(Container(volume), limits, clock=lambda: now[0], sleep=sleep)
    listed = reader.read_listing()
    reader.read_contents(listed, {})
    assert 5 <= now[0] < 6

    container = Container(volume)
    container.wrong = lambda command: StreamError("it did not end", "timeout") if command[0] == "tar" else None
    found = read(volume, container=container)
    assert {one.why for one in found.files if one.size} == {"the 600 s for reading were exceeded"}


def test_a_lost_connection_is_an_error_and_not_a_difference(volume: Path) -> None:
    container = Container(volume)
    container.wrong = lambda command: StreamError("gone", "cut") if command[0] == "tar" else None
    with pytest.raises(StreamError):
        read(volume, container=container)


def test_a_folder_that_is_not_there_is_not_an_empty_volume(volume: Path) -> None:
    reader = reader_of(Container(volume), folder="C:\\nowhere")
    with pytest.raises(ClusterError, match=r"cannot list C:\\nowhere") as caught:
        reader.read_listing()
    assert caught.value.reason == "not_comparable"


def test_a_volume_above_the_limit_is_refused_with_the_input_that_raises_it(volume: Path) -> None:
    (volume / "large").write_bytes(b"x" * (2 << 20))
    client = cast(Any, Container(volume))
    with pytest.raises(
        ClusterError, match=r"more than 1 MiB.* Raise kubewin_convert_compare_limit, or set it to 0"
    ) as caught:
        read_digest(client, "shop", "helper", "read", FOLDER, 1 << 20, 60)
    assert caught.value.reason == "not_comparable"
    assert read_digest(client, "shop", "helper", "read", FOLDER, 3 << 20, 60).size > 2 << 20


def test_two_gigabytes_are_read_in_constant_memory(volume: Path) -> None:
    dense = bytes(range(256)) * 4096
    with (volume / "disk.vhdx").open("wb") as file:
        for _mebibyte in range(48):
            file.write(dense)
        file.seek((2 << 30) - 3)
        file.write(b"end")
    tracemalloc.start()
    found = {one.path: one for one in read(volume).files}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found["disk.vhdx"].size == 2 << 30
    # As sha256sum has it.
    assert found["disk.vhdx"].sha256 == "a4ef7f5de52f624fc15ae82cd4e7acb2b8026d04f25ffae83f4cdf618f8feea3"
    assert peak < 16 << 20


def test_of_many_files_only_what_is_noted_is_kept(volume: Path) -> None:
    for number in range(2000):
        (volume / f"{number}").write_bytes(b"x")
    container = Container(volume)
    reader = reader_of(container)
    listed = reader.read_listing()
    alive: list[int] = []
    hashed = tarfile.TarFile.next

    def counted(archive: tarfile.TarFile) -> tarfile.TarInfo | None:
        alive.append(len(archive.members))  # type: ignore[attr-defined]  # what it keeps
        return hashed(archive)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tarfile.TarFile, "next", counted)
        found = reader.read_contents(listed, {})
    assert len(found.entries) > 2000
    assert len(alive) > 2000
    assert max(alive) <= 1
