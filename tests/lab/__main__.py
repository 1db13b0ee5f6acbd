# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m lab`"""

from __future__ import annotations

import sys


def start() -> int:
    """Run the command line, or print how to, if this Python lacks packages of the lab."""
    try:
        from lab.cli import main
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("lab", "ansible_collections"):
            raise
        print(
            f"lab: the Python package {error.name} is missing in {sys.executable}, expected the environment that make builds. "
            'Run:\n  make lane CORE=2.19 CMD="python -m lab --help"',
            file=sys.stderr,
        )
        return 1
    return main()


if __name__ == "__main__":
    sys.exit(start())
