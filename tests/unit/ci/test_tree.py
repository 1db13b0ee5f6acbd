"""What a user of the collection gets, and what stays in the repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ci import tree


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
