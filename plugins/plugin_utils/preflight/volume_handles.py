# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the handle of a volume says: whether its driver can read it, and where the volume is. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.facts.sources import Source
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.index import BY_NAME

# In-tree disks of AWS may name their zone.
_EBS_URL = re.compile(r"aws://(?P<zone>[^/]+)/.+")


@dataclass(frozen=True, slots=True)
class VolumeHandle:
    """A parsed handle. zone: empty where the handle does not name one."""

    valid: bool = True
    zone: str = ""


def parse_volume_handle(source: Source) -> VolumeHandle:
    """Parse the handle of a volume by the pattern of its driver."""
    if source.field == "awsElasticBlockStore":
        match = _EBS_URL.fullmatch(source.handle)
        return VolumeHandle(zone=match["zone"] if match is not None else "")
    driver = BY_NAME.get(source.driver) if source.field == "csi" else None
    if driver is None or not driver.handle or not source.handle:
        return VolumeHandle()
    match = re.fullmatch(driver.handle, source.handle)
    if match is None:
        return VolumeHandle(valid=source.shared)
    return VolumeHandle(zone=match.groupdict().get("zone") or "")
