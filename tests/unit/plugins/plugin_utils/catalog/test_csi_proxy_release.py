# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts that cannot read the catalog recommend the release of csi-proxy that the catalog recommends."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.csi_proxy import RECOMMENDED

ROOT = Path(__file__).parents[5]
GUIDES = "docs/docsite/rst"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("README.md", "csi_proxy_version: {}\n"),
        ("README.md", "dist/csi-proxy-{}.exe"),
        ("README.md", "{} running, serving"),
        ("extensions/awx/settings.yml", "csi_proxy_version: {}\n"),
        ("extensions/awx/settings.yml", "csi-proxy-{}.exe"),
        ("playbooks/build_csi_proxy.yml", "kubewin_release: {}\n"),
        ("playbooks/files/csi_proxy_build/{}/go.mod", "require github.com/kubernetes-csi/csi-proxy v{}\n"),
        ("plugins/modules/csi_proxy.py", "Defaults to {}."),
        ("plugins/modules/csi_proxy.py", "version: {}\n"),
        ("plugins/modules/csi_proxy.py", "csi-proxy-{}.exe"),
        ("plugins/modules/csi_proxy_info.py", "csi-proxy {} running, serving"),
        ("plugins/modules/gate.py", "release: {}\n"),
        ("plugins/modules/summary.py", "csi_proxy: {} running, serving"),
        ("roles/csi_driver/README.md", "prefer {},"),
        ("roles/csi_proxy/README.md", "csi_proxy_version: {}\n"),
        ("roles/csi_proxy/README.md", "csi-proxy-{}.exe.sha256"),
        (f"{GUIDES}/findings.rst", "Install {}."),
        (f"{GUIDES}/findings.rst", "Plan the upgrade to {}."),
        (f"{GUIDES}/guide_air_gapped.rst", "csi_proxy_version: {}\n"),
        (f"{GUIDES}/guide_air_gapped.rst", "csi-proxy-{}.exe"),
        (f"{GUIDES}/guide_build.rst", "csi-proxy-{}.exe.sha256"),
        (f"{GUIDES}/guide_build.rst", "csi_proxy_build/{}\n"),
        (f"{GUIDES}/guide_upgrade.rst", "kubewin_upgrade_name=csi-proxy-{}"),
        (f"{GUIDES}/guide_windows_hosts.rst", "csi-proxy-{}.exe"),
        (f"{GUIDES}/tutorial.rst", "csi_proxy_version: {}\n"),
        (f"{GUIDES}/tutorial.rst", "csi-proxy-{}.exe"),
        (f"{GUIDES}/tutorial.rst", "{} running, serving"),
    ],
)
def test_a_text_names_the_recommended_release(path: str, text: str) -> None:
    assert text.format(RECOMMENDED) in (ROOT / path.format(RECOMMENDED)).read_text(encoding="utf-8")
