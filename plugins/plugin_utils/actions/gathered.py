# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a run of gather keeps the files that it read, until they are in the archive."""

from __future__ import annotations

from pathlib import Path

from ansible import constants


def gather_folder() -> Path:
    """A folder in the directory that Ansible makes for each run, and removes at its end."""
    return Path(vars(constants)["DEFAULT_LOCAL_TMP"]) / "kubewin-gather"
