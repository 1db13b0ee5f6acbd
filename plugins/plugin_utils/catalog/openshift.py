# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which upstream release of a driver each OpenShift line ships, since its images are digests without a release.

Source: the branches release-4.N of the forks https://github.com/openshift/vmware-vsphere-csi-driver,
aws-ebs-csi-driver, azure-disk-csi-driver, azure-file-csi-driver, gcp-pd-csi-driver and csi-driver-smb. 4.12 and 4.13 are what their
Makefiles state; where a later branch's chart and Makefile disagree both are listed. Maintenance updates of a line can move them.
"""

from __future__ import annotations

from collections.abc import Mapping

from .versions import Version, parse

# First release whose storage operators bring Windows node plugins, which must then be the only ones of these drivers: HostProcess
# containers that use csi-proxy. "OpenShift 5.x" with Azure File and vSphere first, in
# enhancements/windows-containers/windows-CSI-driver-support.md (pull request 2072 of https://github.com/openshift/enhancements).
OWN_PLUGINS_FROM = "5.0"
OWN_PLUGINS = ("vsphere", "azure_file")

# Keys of the drivers that OpenShift ships.
DRIVERS = ("vsphere", "aws_ebs", "azure_disk", "azure_file", "gce_pd", "smb")

# A line is (vsphere, aws_ebs, azure_disk, azure_file, gce_pd, smb); "-" is a driver that it does not ship, or not known.
_LINES: Mapping[str, str] = {
    "4.12": "2.7.1 1.11.3 1.22.0 1.21.0 - -",
    "4.13": "3.0.2 1.15.0 1.26.7 1.25.0 - -",
    "4.14": "3.0.2 1.17/1.18 1.28.1 1.29.5 1.10.1 -",
    "4.15": "3.0.2 1.24.1/1.25 1.29.0 1.29.5 1.12.2 -",
    "4.16": "3.1.2 1.26 1.29.3 1.29.5 1.13.0 1.14.0",
    "4.17": "3.2.0 1.31/1.32 1.29.7 1.30.3 1.14.1 1.15.0",
    "4.18": "3.3.1 1.33/1.34 1.31.1 1.30.5 1.15.2 1.16.0",
    "4.19": "3.3.1 1.39 1.32.0 1.32.3 1.16.1 1.17.0",
    "4.20": "3.5.0 1.45 1.33.1 1.33.3 1.20.0 1.18.0",
    "4.21": "3.6.0 1.47/1.48 1.34.2 1.34.1 1.21.6 1.18.0",
    "4.22": "3.6.0 1.47/1.48 1.34.2 1.35.0 1.23.3 1.18.0",
    "4.23": "3.7.1 1.47/1.48 1.34.2 1.35.0 1.23.3 -",
    "5.0": "3.7.1 1.47/1.48 1.34.2 1.35.0 1.23.3 -",
    "5.1": "3.7.1 1.47/1.48 1.34.2 1.35.0 1.23.3 -",
}


def list_lines() -> tuple[str, ...]:
    """The lines that are known, oldest first."""
    return tuple(_LINES)


def parse_line(cluster_version: str) -> str:
    """ "4.20" of "4.20.3"."""
    return ".".join(str(number) for number in parse(cluster_version).minor)


def list_shipped_releases(cluster_version: str, driver: str) -> tuple[Version, ...]:
    """The releases of a driver that an OpenShift version may ship, usually one.

    Empty when the line or the driver on it is not known. A text that is no version raises ValueError.
    """
    row = _LINES.get(parse_line(cluster_version))
    if row is None or driver not in DRIVERS:
        return ()
    cell = row.split()[DRIVERS.index(driver)]
    return () if cell == "-" else tuple(parse(text) for text in cell.split("/"))
