# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on this machine: each is there as a whole, or as it was before, also after the machine went down."""

from __future__ import annotations

import os
import tempfile


def write_whole(folder: str, name: str, content: bytes) -> str:
    """Write a file into a folder, which is made when it does not exist; its path. OSError when that cannot be.

    The file is for its owner alone. The disk has it when this returns.
    """
    path = os.path.join(folder, name)
    os.makedirs(folder, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=folder, prefix=f".{name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise
    directory = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return path
