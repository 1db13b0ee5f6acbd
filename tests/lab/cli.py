# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the lab."""

from __future__ import annotations

import argparse
import sys
import time

from lab import launch, state
from lab.spec import Spec
from lab.state import LabError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lab")
    sub = parser.add_subparsers(dest="command", required=True)
    up = sub.add_parser("up")
    up.add_argument("--name", default="default")
    up.add_argument("--nodes", type=int, default=3)
    up.add_argument("--windows", default="none")
    down = sub.add_parser("down")
    down.add_argument("--name", default="default")
    options = parser.parse_args(arguments)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    try:
        if options.command == "up":
            files = launch.binaries(options.windows)
            spec = Spec(options.name, str(state.paths(options.name).directory), options.nodes, options.windows, "none", binaries=files)
            launch.up(spec, say)
            say("up")
        else:
            launch.down(options.name)
            say("down")
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0
