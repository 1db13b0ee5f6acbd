"""What a user of the collection gets, and what stays in the repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ci import paths, tree


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for name in (
        "README.md",
        "plugins/action/csi_proxy.py",
        "roles/csi_proxy/tasks/main.yml",
        "tests/config.yml",
        "tests/unit/test_one.py",
        "Makefile",
        ".lab/default/lab.json",
        "plugins/action/__pycache__/csi_proxy.pyc",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text(".lab/\n__pycache__/\n", encoding="utf-8")
    return tmp_path


def test_the_collection_ships_without_its_tests_tools_and_leftovers(checkout: Path) -> None:
    assert tree.expected_files(checkout) - tree.MADE_BY_GALAXY == {
        "README.md",
        "plugins/action/csi_proxy.py",
        "roles/csi_proxy/tasks/main.yml",
        "tests/config.yml",
    }


def test_a_file_is_listed_before_it_is_committed_and_no_longer_once_it_is_deleted(checkout: Path) -> None:
    subprocess.run(["git", "-C", str(checkout), "add", "Makefile", "README.md"], check=True)
    (checkout / "Makefile").unlink()

    listed = tree.listed(checkout)

    assert "README.md" in listed
    assert "tests/unit/test_one.py" in listed
    assert "Makefile" not in listed
    assert ".lab/default/lab.json" not in listed


def test_a_release_holds_nothing_that_was_left_in_the_checkout(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    subprocess.run(["git", "clone", "-q", "--no-hardlinks", str(paths.ROOT), str(checkout)], check=True)
    for name in (
        "leftover.exe",
        "plugins/leftover.exe",
        "plugins/action/__pycache__/a.pyc",
        "docs/notes.txt",
        "tests/lab/a",
    ):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("left", encoding="utf-8")
    (checkout / "README.md").write_text("not committed", encoding="utf-8")
    source = tree.export_last_commit(tmp_path / "source", checkout)
    builder = Path(sys.executable).with_name("ansible-galaxy")
    subprocess.run([builder, "collection", "build", "--output-path", tmp_path, source], check=True, capture_output=True)
    (built,) = tmp_path.glob("*.tar.gz")
    names = subprocess.run(["git", "ls-files"], cwd=checkout, check=True, capture_output=True, text=True).stdout.split()
    assert tree.files_in(built) == {name for name in names if tree.SHIPPED.fullmatch(name)} | tree.MADE_BY_GALAXY
    assert (source / "README.md").read_text(encoding="utf-8") != "not committed"
