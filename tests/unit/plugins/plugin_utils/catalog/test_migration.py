# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""When each in-tree kind moved to CSI, and what the operator of Windows nodes made of that."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog import in_tree, openshift, wmco
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.versions import parse

VSPHERE, AZURE_FILE = (in_tree.find_by_name(f"kubernetes.io/{name}") for name in ("vsphere-volume", "azure-file"))


def test_the_gate_of_vsphere_could_be_switched_off_for_three_releases_more() -> None:
    assert VSPHERE is not None
    assert [VSPHERE.requires_csi(parse(text)) for text in ("1.25", "1.26", "1.28", "1.29", "1.30")] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert AZURE_FILE is not None
    assert [AZURE_FILE.requires_csi(parse(text)) for text in ("1.26", "1.27")] == [False, True]


def test_every_other_gate_was_locked_when_it_was_stable() -> None:
    for known in in_tree.PLUGINS:
        if known.ga and not known.locked:
            major, minor = parse(known.ga).minor
            assert known.requires_csi(parse(known.ga))
            assert not known.requires_csi(parse(f"{major}.{minor - 1}"))


def test_known_faults_are_of_one_release_only() -> None:
    assert VSPHERE is not None
    assert [bool(VSPHERE.find_issue(parse(text))) for text in ("1.28.9", "1.29.0", "v1.29.0-eks-1", "1.29.1")] == [
        False,
        True,
        True,
        False,
    ]


def test_kubelets_may_be_behind_the_api_server_by_the_supported_skew() -> None:
    assert [in_tree.find_allowed_skew(parse(text)) for text in ("1.27", "1.28", "1.36")] == [2, 3, 3]


@pytest.mark.parametrize(
    ("now", "then", "named"),
    [
        ("7.2.0", "8.1.0", "kept"), ("7.1.1", "8.1.0", "added"), ("7.2.0", "8.0.1", "removed"), ("8.1.0", "9.0.0", "kept"),
        ("8.0.1", "9.0.0", "added"), ("7.1.0", "8.0.1", "none"), ("7.2.1", "8.0.1", "removed"),
        ("10.15.0", "10.16.0", "kept"), ("9.0.0", "10.15.0", "kept"),
    ],
)  # fmt: skip
def test_what_an_operator_upgrade_does_to_csi_proxy(now: str, then: str, named: str) -> None:
    assert wmco.classify_upgrade(parse(now), parse(then)) == named


def test_lines_and_operators_belong_to_one_another() -> None:
    for line in wmco.LINES:
        assert wmco.find_line_of_openshift(f"{line.openshift}.7") == line
        of_operator = wmco.find_line_of_operator(parse(f"{line.wmco}.0" if "." in line.wmco else f"{line.wmco}.1.0"))
        assert of_operator is not None
        assert of_operator.kubernetes == line.kubernetes
    # Every line whose drivers are known is known here too, from the first that brings csi-proxy on.
    assert set(openshift.list_lines()) <= {line.openshift for line in wmco.LINES}


@pytest.mark.parametrize(
    ("version", "there"),
    [("7.0.1", False), ("7.2.0", True), ("8.0.1", False), ("8.1.0-803afb0", True), ("9.0.0", True), ("10.16.0", True), ("6.0.0", False)],
)  # fmt: skip
def test_which_releases_bring_csi_proxy(version: str, there: bool) -> None:
    assert wmco.has_csi_proxy(parse(version)) is there
