"""Environments are made from pinned files, once, and never stand half made."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import zipfile
from pathlib import Path

import pytest
from ci import linktree, machine, paths, pythons, sanity, venvs
from ci.pythons import Python
from ci.venvs import LANES, Lane, LaneError

HERE = Python(sys.executable, sys.version_info[:3])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(paths, "LOGS", tmp_path / "logs")
    return tmp_path / "cache" / "kubewin-csi"


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "requirements"
    folder.mkdir()
    (folder / "lint.txt").write_text("-r more.txt\n", encoding="utf-8")
    (folder / "more.txt").write_text("# nothing\n", encoding="utf-8")
    monkeypatch.setattr(paths, "REQUIREMENTS", folder)
    monkeypatch.setitem(LANES, "lint", (HERE.minor,))
    return folder


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Stands in for venv and pip, which take seconds; the folders that it was asked for."""
    found: list[Path] = []

    def build(name: str, python: Python, target: Path) -> None:
        found.append(target)
        target.mkdir(parents=True)
        (target / venvs.MARKER).touch()

    monkeypatch.setattr(venvs, "build", build)
    return found


@pytest.mark.parametrize("name", LANES)
def test_every_requirement_of_a_lane_is_pinned(name: str) -> None:
    for file in venvs.requirement_files(name):
        lines = file.read_text(encoding="utf-8").splitlines()
        wanted = [line for line in lines if line and not line.startswith(("#", "-r ", "    --hash=sha256:"))]
        assert [line for line in wanted if not re.fullmatch(r"\S+==\S+( ; .+)? \\", line)] == []
        # A line that goes on is followed by the hashes of all files that were published of it.
        after = [lines[number + 1] for number, line in enumerate(lines) if "==" in line]
        assert all(line.startswith("    --hash=sha256:") for line in after)
        assert "://" not in "\n".join(line for line in lines if not line.startswith("#"))


def test_an_environment_is_made_once_and_anew_when_an_included_file_changes(
    cache: Path, requirements: Path, made: list[Path]
) -> None:
    def ensure() -> Lane:
        return venvs.ensure("lint", {HERE.minor: HERE}, lambda text: None)

    first, again = ensure(), ensure()
    (requirements / "more.txt").write_text("# something else\n", encoding="utf-8")
    changed = ensure()

    assert first == again
    assert made == [first.folder, changed.folder]
    assert changed.folder != first.folder
    assert cache in changed.folder.parents


def test_what_an_interrupted_run_left_is_made_anew(cache: Path, requirements: Path, made: list[Path]) -> None:
    target = venvs.folder("lint", HERE)
    (target / "bin").mkdir(parents=True)

    venvs.ensure("lint", {HERE.minor: HERE}, lambda text: None)

    assert made == [target]
    assert not (target / "bin").exists()


def test_an_unused_lane_is_removed_when_a_new_one_is_built(cache: Path, requirements: Path, made: list[Path]) -> None:
    old, recent = (cache / "venv" / f"lint-{name}" for name in ("old", "recent"))
    for folder, days in ((old, venvs.UNUSED_DAYS + 1), (recent, 1)):
        folder.mkdir(parents=True)
        (folder / venvs.MARKER).touch()
        used = time.time() - days * 86400
        os.utime(folder / venvs.MARKER, (used, used))

    venvs.ensure("lint", {HERE.minor: HERE}, lambda text: None)

    assert not old.exists()
    assert recent.exists()


def test_an_installation_that_fails_names_the_lane_and_shows_why(cache: Path, requirements: Path) -> None:
    (requirements / "lint.txt").write_text("this is no requirement\n", encoding="utf-8")

    with pytest.raises(LaneError, match=r"(?s)lane lint: .*Invalid requirement"):
        venvs.ensure("lint", {HERE.minor: HERE}, lambda text: None)

    assert not (venvs.folder("lint", HERE) / venvs.MARKER).exists()


def test_a_lane_without_its_python_names_the_versions_that_work() -> None:
    with pytest.raises(LaneError, match=r"core-2\.21: no Python 3\.12 or 3\.13 or 3\.14 .* \(found: 3\.11\)"):
        venvs.choose("core-2.21", {"3.11": Python("/usr/bin/python3.11", (3, 11, 2))})


def test_a_shim_that_starts_nothing_is_no_python(tmp_path: Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)

    assert pythons.probe(str(shim)) is None
    found = pythons.probe(sys.executable)
    assert found is not None
    assert found.version == sys.version_info[:3]


def test_a_python_that_pyenv_compiled_gives_way_to_another_one_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    distribution, newer = "/usr/bin/python3.11", "/home/me/.pyenv/versions/3.11.7/bin/python3.11"
    versions = {distribution: (3, 11, 2), newer: (3, 11, 7), newer.replace("3.11", "3.12"): (3, 12, 1)}
    monkeypatch.setattr(pythons, "candidates", lambda: [*versions])
    monkeypatch.setattr(pythons, "probe", lambda path: Python(path, versions[path]))

    assert {minor: python.path for minor, python in pythons.discover().items()} == {
        "3.11": distribution,
        "3.12": newer.replace("3.11", "3.12"),
    }


def test_the_link_tree_points_at_the_checkout_and_replaces_what_stood_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "LINKS", tmp_path / ".collections")
    source = tmp_path / "source"
    for name in linktree.COLLECTIONS:
        (source / "ansible_collections" / name).mkdir(parents=True)
    stale = tmp_path / ".collections" / "ansible_collections" / "kubernetes" / "core"
    (stale / "old").mkdir(parents=True)

    linktree.link(source)
    linktree.link(source)

    own = tmp_path / ".collections" / "ansible_collections" / "kubewin" / "csi"
    assert own.resolve() == tmp_path
    assert not own.readlink().is_absolute()
    assert stale.resolve() == source / "ansible_collections" / "kubernetes" / "core"


def test_of_a_wheel_only_the_named_collections_are_unpacked(tmp_path: Path) -> None:
    wheel = tmp_path / "ansible-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in (*linktree.COLLECTIONS, "other/thing"):
            archive.writestr(f"ansible_collections/{name}/MANIFEST.json", "{}")

    linktree.extract(wheel, tmp_path / "out")

    found = {str(file.parent.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("MANIFEST.json")}
    assert found == {f"ansible_collections/{name}" for name in linktree.COLLECTIONS}


def test_pip_gets_the_callers_configuration_where_only_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://index.example/simple\ntimeout = 7\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.setenv("PIP_TIMEOUT", "9")
    lane = Lane("core-2.19", "3.11", Path(sys.prefix))

    text = sanity.pip_configuration(lane)

    assert "index-url = https://index.example/simple" in text
    assert "timeout = 9" in text
    assert "timeout = 7" not in text


def test_missing_lanes_are_named_for_the_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "WORK", tmp_path)
    lanes = {name: Lane(name, "3.11.2", tmp_path / name) for name in ("core-2.19", "lint")}

    index = json.loads(venvs.write_index(lanes, {"core-2.21": "no Python"}).read_text(encoding="utf-8"))

    assert list(index["lanes"]) == ["core-2.19"]
    assert index["lanes"]["core-2.19"]["ansible_playbook"] == str(tmp_path / "core-2.19" / "bin" / "ansible-playbook")
    assert index["missing"] == {"core-2.21": "no Python"}


def test_packages_are_only_named_where_they_cannot_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    messages: list[str] = []

    trouble = machine.install(["wine64", "shellcheck"], messages.append)

    assert messages == []

    assert trouble == "packages are missing; run: sudo apt-get install -y --no-install-recommends wine64 shellcheck"


def test_only_what_runs_tests_needs_a_browser_and_any_chromium_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "chromium-headless-shell" in machine.probe(checks=False, lab=False, tests=True).packages
    assert "chromium-headless-shell" not in machine.probe(checks=True, lab=True).packages

    (tmp_path / "google-chrome").touch(mode=0o755)
    assert "chromium-headless-shell" not in machine.probe(checks=False, lab=False, tests=True).packages


def test_only_the_rulebook_needs_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "openjdk-17-jre-headless" in machine.probe(checks=False, lab=False, java=True).packages
    assert "openjdk-17-jre-headless" not in machine.probe(checks=True, lab=True, tests=True).packages


def test_an_old_go_is_refused_with_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n", encoding="utf-8")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    trouble = machine.probe_go()

    assert trouble is not None
    assert "go1.19.8" in trouble
    assert f"Go {machine.go_needed()[0]}.{machine.go_needed()[1]} or newer" in trouble
