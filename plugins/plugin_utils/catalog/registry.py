# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers that this collection knows."""

from __future__ import annotations

from .base import Driver
from .drivers import aws_ebs, azure_disk, azure_file, gce_pd, smb, vsphere

DRIVERS: dict[str, Driver] = {
    driver.key: driver
    for driver in (
        vsphere.DRIVER,
        aws_ebs.DRIVER,
        azure_disk.DRIVER,
        azure_file.DRIVER,
        gce_pd.DRIVER,
        smb.DRIVER,
    )
}


def refuse_unknown_driver(key: str) -> str:
    return f"value of driver must be one of: {', '.join(sorted(DRIVERS))}, got: {key}"
