# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible inventories of a lab, one a transport."""

from __future__ import annotations

from lab.state import LabState


def write(state: LabState) -> dict[str, str]:
    return {}
