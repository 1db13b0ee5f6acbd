# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of the hosts as Ansible's hostvars has them."""

from __future__ import annotations

from typing import Any


class HostVars(dict[str, dict[str, Any]]):
    """Variables by host, all of them plain, so that templating changes none."""

    def raw_get(self, host: str) -> dict[str, Any]:
        return self.get(host, {})


class UntemplatedHostVars(HostVars):
    """Variables of which none may be templated."""

    def __getitem__(self, host: str) -> dict[str, Any]:
        raise AssertionError(f"variables of {host} are templated")
