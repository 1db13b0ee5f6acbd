# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One grammar for targets, and targets that no upgrade can reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.target import (
    CurrentReleases,
    find_impossible_targets,
    parse_target,
)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, {}),
        ("", {}),
        ({}, {}),
        ("kubelet=1.27", {"kubernetes": "1.27"}),
        ("kubernetes=1.27", {"kubernetes": "1.27"}),
        ("openshift=4.14, wmco=9.0.0", {"openshift": "4.14", "wmco": "9.0.0"}),
        ("openshift=4.14\nwmco=9.0.0\n", {"openshift": "4.14", "wmco": "9.0.0"}),
        (["openshift=4.14", "wmco=9.0.0"], {"openshift": "4.14", "wmco": "9.0.0"}),
        ({"kubelet": "1.27", "wmco": ""}, {"kubernetes": "1.27"}),
    ],
)
def test_text_and_dictionaries_are_read_alike(given: object, found: Mapping[str, str]) -> None:
    assert parse_target(given) == found


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("1.27", "'1.27' has no release, expected key=release"),
        (
            "kubelets=1.27",
            "'kubelets' is not a valid key, expected one of kubernetes, kubelet, openshift, wmco; did you mean kubelet",
        ),
        ("kubelet=next", "kubelet: 'next' is not a release number"),
        ({"kubelet": 1.3}, "kubelet is the number 1.3, expected text"),
        ("kubelet=1.27,kubernetes=1.28", "kubernetes is set twice: 1.27 and 1.28"),
        (7, "7 is not a target"),
        ("kubelets=1.27,wmco=x", "not a valid key.*; wmco: 'x' is not"),
    ],
)
def test_an_invalid_target_is_named(given: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_target(given)


LATER = {"win-1": "v1.36.0", "win-2": "v1.36.3+k3s1"}


@pytest.mark.parametrize(
    ("target", "now", "found"),
    [
        ({"kubernetes": "1.27"}, CurrentReleases(LATER), {"CSI-T12": "Node win-1 (v1.36.0), win-2 (v1.36.3+k3s1)"}),
        ({"kubernetes": "1.36"}, CurrentReleases(LATER), {}),
        ({"kubernetes": "1.36.2"}, CurrentReleases(LATER), {}),
        ({"kubernetes": "1.37"}, CurrentReleases(LATER), {}),
        # A node that is ahead does not keep others from coming.
        ({"kubernetes": "1.27"}, CurrentReleases({"win-1": "v1.28.1", "win-2": "v1.26.0"}), {}),
        (
            {"kubernetes": "1.27"},
            CurrentReleases({"win-1": "v1.27.9", "win-2": "v1.28.0"}),
            {"CSI-T12": "Node win-2 (v1.28.0)"},
        ),
        ({"kubernetes": "1.27"}, CurrentReleases({}), {}),
        ({"kubernetes": "1.27"}, CurrentReleases({"win-1": ""}), {}),
        ({"openshift": "4.14"}, CurrentReleases(LATER, ""), {"CSI-T13": "Target"}),
        ({"openshift": "4.14"}, CurrentReleases(LATER, None), {}),
        ({"openshift": "4.14"}, CurrentReleases(LATER, "4.15.2"), {"CSI-T12": "OpenShift"}),
        ({"openshift": "4.14"}, CurrentReleases(LATER, "4.14.9"), {}),
        ({"wmco": "8.1.0"}, CurrentReleases(LATER, None, "9.0.0"), {"CSI-T07": "Windows Machine Config Operator"}),
        ({"wmco": "9.0.0"}, CurrentReleases(LATER, None, "8.1.0-1a2b3c"), {}),
        ({"wmco": "9.0.0"}, CurrentReleases(LATER, None, ""), {}),
        ({"kubernetes": "1.37"}, CurrentReleases(LATER, api_server="v1.36.3+k3s1"), {"CSI-T17": "Target"}),
        ({"kubernetes": "1.37.1"}, CurrentReleases(LATER, api_server="v1.36.3"), {"CSI-T17": "Target"}),
        # The minor releases are compared.
        ({"kubernetes": "1.36.9"}, CurrentReleases(LATER, api_server="v1.36.3"), {}),
        ({"kubernetes": "1.36"}, CurrentReleases(LATER, api_server="v1.37.0-rc.1"), {}),
    ],
)
def test_a_target_that_cannot_be_reached(target: dict[str, str], now: CurrentReleases, found: dict[str, Any]) -> None:
    assert {one.id: one.object for one in find_impossible_targets(target, now)} == found
