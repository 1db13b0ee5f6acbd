# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of the report in docs, from a cluster with several things wrong.

``PYTHONPATH=.collections:tests python -m integration.report_pictures docs/images`` takes it anew.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.render.html import render_html
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.verdict import Report
from integration.browser import Page, browser
from situations.cluster import healthy
from situations.named import SITUATIONS

PLANTED = (
    "csi_proxy_has_stopped_under_a_running_plugin",
    "an_unmanaged_azure_disk",
    "an_ext4_disk_that_windows_has_not_mounted_yet",
    "a_cron_job_between_its_runs",
)
WIDTH, HEIGHT = 1000, 760


def shown() -> Report:
    """A report with some of everything."""
    world = healthy()
    for name in PLANTED:
        SITUATIONS[name].plant(world)
    return replace(evaluate(replace(world.snapshot(), name="shop-east")), collection="1.0.0")


def pictures(page: Page, file: Path) -> Iterator[tuple[str, bytes]]:
    """Name and PNG of what is seen first."""
    page.emulate(scheme="light", width=WIDTH, height=HEIGHT)
    page.open(file)
    yield "readiness-light.png", page.picture()


def main(folder: Path) -> None:
    """Take them."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, browser(Path(scratch)) as page:
        file = Path(scratch) / "readiness.html"
        file.write_text(render_html(shown()), encoding="utf-8")
        for name, picture in pictures(page, file):
            (folder / name).write_bytes(picture)
            print(f"{folder / name}: {len(picture):,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
