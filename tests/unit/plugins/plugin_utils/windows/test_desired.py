# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options become what is wanted, or are refused before a node is asked anything."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.csi_proxy import RECOMMENDED
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import desired, model
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.errors import NodeError
from unit.plugins.plugin_utils.windows.test_commands import c_runtime

DIGEST = "ab" * 32


def wanted(**given: Any) -> model.Desired:
    values = {name: spec.get("default") for name, spec in desired.CSI_PROXY.items()}
    return desired.build_desired({**values, "version": "1.3.0", "checksum": DIGEST, **given})


def test_the_command_line_in_its_fixed_order() -> None:
    line = wanted(require_privacy=False).command_line
    assert line == (
        r"C:\csi-proxy\1.3.0-abababababab\csi-proxy.exe -windows-service -log_file=C:\var\log\csi-proxy\csi-proxy.log"
        r" -logtostderr=false -log_file_max_size=100 -v=2 -kubelet-path=C:\var\lib\kubelet"
        r" -require-privacy=false"
    )


def test_a_path_with_blanks_is_quoted_in_the_command_line() -> None:
    line = wanted(kubelet_path=r"D:\kube let").command_line
    assert r'"-kubelet-path=D:\kube let"' in line


@pytest.mark.parametrize("kubelet_path", [r"C:\k", r"C:\a b", r"D:\kube let\x"])
def test_the_runtime_of_csi_proxy_reads_the_flags_that_were_meant(kubelet_path: str) -> None:
    desired = wanted(kubelet_path=kubelet_path)
    assert c_runtime(desired.command_line) == [desired.executable, "-windows-service", *desired.flags]


@pytest.mark.parametrize("form", ["{}", "sha256:{}", "{}  csi-proxy-1.3.0.exe", "{} *csi-proxy-1.3.0.exe\n"])
def test_a_checksum_may_be_what_sha256sum_wrote(form: str) -> None:
    assert wanted(checksum=form.format("ab" * 32)).sha256 == "ab" * 32


@pytest.mark.parametrize(
    ("given", "reason", "words"),
    [
        ({"checksum": None}, "checksum_missing", "build_csi_proxy.yml"),
        ({"checksum": ""}, "checksum_missing", "build_csi_proxy.yml"),
        ({"checksum": "abc"}, "bad_checksum", "64 hexadecimal digits"),
        ({"version": "latest"}, "bad_version", "latest"),
        ({"version": "१.३.१"}, "bad_version", "not a release"),
        ({"version": "1.3.0-β"}, "bad_version", "not a release"),
        ({"version": "1.1.2"}, "release_floor", "CVE-2023-3893"),
        ({"version": "0.2.2"}, "release_floor", "1.1.3"),
        ({"version": "2.0.0-alpha.2"}, "release_unknown", "HostProcess"),
        ({"version": "1.1.3", "require_privacy": True}, "flag_unknown", "1.2.0 or later"),
        ({"kubelet_path": "csi-proxy"}, "bad_path", "absolute"),
        ({"kubelet_path": "C:\\"}, "bad_path", "absolute"),
        ({"kubelet_path": r"C:\a\..\Windows"}, "bad_path", "'..'"),
        ({"kubelet_path": r"C:\a&b"}, "bad_value", "&"),
        ({"kubelet_path": r"C:\%TEMP%"}, "bad_value", "%"),
        ({"kubelet_path": r"\\server\share"}, "bad_path", "kubelet_path"),
        ({"source": "http://mirror/csi-proxy-1.2.1.exe?sig=1"}, "release_mismatch", "expected csi-proxy 1.3.0"),
        ({"source": "./dist/csi-proxy-v1.1.3.exe"}, "release_mismatch", "csi_proxy_checksum of one release"),
        ({"source": "http://mirror/a b.exe"}, "bad_value", "' '"),
        ({"source": "http://mirror/a\tb.exe"}, "bad_value", "control characters"),
    ],
)
def test_refused(given: dict[str, Any], reason: str, words: str) -> None:
    with pytest.raises(NodeError) as refused:
        wanted(**given)
    assert refused.value.reason == reason
    assert words in str(refused.value), str(refused.value)


@pytest.mark.parametrize("version", ["1.3.0", "v1.3.0", "1.3.0-1.el9", "1.4.2"])
def test_builds_and_later_releases_are_described_by_the_nearest_known_one(version: str) -> None:
    assert len(wanted(version=version).required_pipes) == 23


@pytest.mark.parametrize(
    "url",
    [
        "https://store.example.com/csi proxy.exe?sv=2024&sig=TOPSECRET",
        "https://user:TOPSECRET@store.example.com/a b.exe",
        "https://user:TOP@SECRET@store.example.com/a b.exe",
    ],
)
def test_a_refused_url_does_not_show_what_is_secret_in_it(url: str) -> None:
    with pytest.raises(NodeError) as refused:
        wanted(source=url)
    assert "store.example.com" in str(refused.value)
    assert "SECRET" not in str(refused.value)


@pytest.mark.parametrize(
    "name", ["csi-proxy-1.3.0.exe", "csi-proxy-v1.3.0.exe", "csi-proxy.exe", "csi-proxy-10.0.17763.1.exe"]
)
def test_a_source_that_is_named_for_no_other_release(name: str) -> None:
    location = f"https://mirror.example.com/1.2.1/{name}"
    assert wanted(source=location).source == model.ExecutableSource(location)


def test_the_recommended_release_is_the_default() -> None:
    assert wanted(version=None).version == RECOMMENDED


def test_a_checksum_with_its_algorithm_before_it() -> None:
    assert wanted(checksum="sha256:" + DIGEST.upper()).sha256 == DIGEST


def test_absent_needs_neither_version_nor_checksum() -> None:
    values = {name: spec.get("default") for name, spec in desired.CSI_PROXY.items()}
    assert desired.build_desired({**values, "state": "absent"}).state == "absent"
