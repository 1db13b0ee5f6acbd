# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which image a Windows host can run, and what a node's runtime reports."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.release import (
    match_image,
    read_containerd_release,
)
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.node import ObservedNode


@pytest.mark.parametrize(
    ("build", "images", "expected"),
    [
        ("20348", ("17763", "20348"), "yes"),
        ("26100", ("17763", "20348"), "maybe"),
        ("26100", ("17763",), "no"),
        ("20348", ("17763",), "no"),
        ("19042", ("17763", "20348"), "no"),
        ("17763", ("20348",), "no"),
        ("12345", None, "yes"),
    ],
)
def test_an_older_image_runs_only_from_windows_server_2022_on(
    build: str, images: tuple[str, ...] | None, expected: str
) -> None:
    assert match_image(build, images) == expected


@pytest.mark.parametrize(
    ("runtime", "expected"),
    [
        ("containerd://1.7.27", "1.7.27"),
        ("containerd://2.0.0-rc.1", "2.0.0-rc.1"),
        ("containerd://1.6.8+azure", "1.6.8"),
        ("containerd://Unknown", None),
        ("docker://20.10.21", None),
        ("", None),
    ],
)
def test_a_runtime_names_its_release(runtime: str, expected: str | None) -> None:
    found = read_containerd_release(ObservedNode("win-1", build="20348", labels={}, runtime=runtime))
    assert (str(found) if found else None) == expected
