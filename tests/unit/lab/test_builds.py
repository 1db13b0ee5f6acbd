# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds: keyed by what decides the result, done once, whole or not at all."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path

import pytest
from lab import builds, state
from lab.builds import Recipe, Reporter
from lab.state import LabError


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A tiny module as the only recipe, in a cache of its own."""
    module = tmp_path / "module"
    module.mkdir()
    (module / "go.mod").write_text("module example.invalid/tiny\n\ngo 1.21\n")
    (module / "main.go").write_text('package main\n\nfunc main() { println("tiny") }\n')
    made = Recipe("tiny", module, {"tiny": "."})
    # Go's own cache stays where it is: only results are this test's.
    monkeypatch.setenv("GOCACHE", os.environ.get("GOCACHE") or str(builds.cache() / "go-build"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(builds, "recipes", lambda: {"tiny": made})
    return made


def built(stream: io.StringIO) -> int:
    return stream.getvalue().count("tiny: built in")


def test_key_covers_sources_flags_and_go(recipe: Recipe) -> None:
    key = builds.key(recipe, "go1")
    assert builds.key(recipe, "go1") == key
    changed = {
        builds.key(recipe, "go2"),
        builds.key(Recipe("tiny", recipe.module, recipe.programs, ldflags="-w"), "go1"),
        builds.key(Recipe("tiny", recipe.module, recipe.programs, environment={"GOOS": "windows"}), "go1"),
    }
    (recipe.module / "main.go").write_text("package main\n\nfunc main() {}\n")
    changed.add(builds.key(recipe, "go1"))
    assert len(changed) == 4
    assert key not in changed


def test_key_ignores_tests(recipe: Recipe) -> None:
    key = builds.key(recipe, "go1")
    (recipe.module / "main_test.go").write_text("package main\n")
    assert builds.key(recipe, "go1") == key


def test_built_once_by_two_at_a_time(recipe: Recipe) -> None:
    streams = [io.StringIO(), io.StringIO()]
    threads = [
        threading.Thread(target=builds.build, args=("tiny", Reporter(stream)), daemon=True) for stream in streams
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sum(built(stream) for stream in streams) == 1
    third = io.StringIO()
    found = builds.build("tiny", Reporter(third))
    assert third.getvalue() == ""
    assert os.access(found["tiny"], os.X_OK)


def test_failed_build_leaves_nothing_and_reports_why(recipe: Recipe) -> None:
    (recipe.module / "main.go").write_text("package main\n\nfunc main() { nothing() }\n")
    with pytest.raises(LabError, match="undefined: nothing"):
        builds.build("tiny", Reporter(io.StringIO()))
    assert [entry.name for entry in (builds.cache() / "bin").iterdir() if entry.is_dir()] == []


def test_missing_module_is_named(recipe: Recipe) -> None:
    (recipe.module / "go.mod").unlink()
    with pytest.raises(LabError, match=r"tiny: .*go\.mod does not exist"):
        builds.build("tiny", Reporter(io.StringIO()))


def test_csi_proxy_is_built_as_the_playbook_builds_it() -> None:
    text = (state.REPOSITORY / "playbooks" / "build_csi_proxy.yml").read_text(encoding="utf-8")
    for release in builds.CSI_PROXY_RELEASES:
        recipe = builds.recipes()[f"csi-proxy-{release}"]
        assert recipe.ldflags.replace(release, "{{ kubewin_release }}") in text
        assert next(iter(recipe.programs.values())) in text
        for name in ("GOAMD64", "GOFIPS140", "GOTOOLCHAIN"):
            assert f"{name}: {recipe.environment[name]}".replace("off", '"off"') in text
