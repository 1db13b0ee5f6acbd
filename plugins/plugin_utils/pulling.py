# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What pulling images says on its way and when it ends. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.waiting import so_far
from ansible_collections.kubewin.csi.plugins.plugin_utils.results import failed


def progress(observed: Mapping[str, Any], waited: float, limit: float) -> Iterator[str]:
    """A line for the whole and one for each node that has trouble."""
    done, waiting = observed["pulled"], observed["waiting"]
    yield f"  {so_far(waited, limit)}: {len(done)} of {len(done) + len(waiting)} nodes have the images"
    for node, why in observed["why"].items():
        yield f"    {node}: {why}"


def ended(observed: Mapping[str, Any], left: float) -> dict[str, Any]:
    """What the task's result says: nothing more, or failed with a reason."""
    if observed["failures"]:
        listed = "; ".join(f"{node}: {why}" for node, why in observed["failures"].items())
        return failed(
            "pull_failed",
            f"images of the changed plugin cannot be pulled: {listed}. No plugin pod was replaced. Check "
            "registry, tag and pull secret (the image options and image_mirror set them), then run again.",
        )
    if observed["waiting"] and left <= 0:
        listed = "; ".join(f"{node}: {observed['why'].get(node, 'not pulled yet')}" for node in observed["waiting"])
        return failed(
            "timeout",
            f"images of the changed plugin were not pulled in time: {listed}. No plugin pod was replaced. Pulled "
            "images are kept. Run again, with a higher kubewin_prepull_timeout if the registry is only slow.",
        )
    return {}
