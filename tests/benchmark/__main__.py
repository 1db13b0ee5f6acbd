# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m benchmark``: prints the comparisons and whether their budgets are met."""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from lab.state import LabError

from benchmark.comparisons import COMPARISONS, USUAL_START, Plan, write_programs
from benchmark.report import table
from benchmark.rig import BenchmarkError, Rig


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def _counts(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when everything was measured and every budget is met; 1 otherwise, with what was missed or not measured by name."""
    parser = argparse.ArgumentParser(prog="python -m benchmark", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*COMPARISONS, []], help="comparisons to run; all by default")
    parser.add_argument("--hosts", type=int, default=100, help="hosts of `many` (default %(default)s)")
    parser.add_argument("--forks", type=_numbers, default=[5], help="forks of `many` (default 5)")
    parser.add_argument(
        "--starts",
        type=_numbers,
        default=[USUAL_START],
        help=f"PowerShell start times of `many` in seconds (default {USUAL_START:g})",
    )
    parser.add_argument("--enabled", type=_counts, default=[50, 200], help="hosts of `enable` (default 50,200)")
    parser.add_argument("--sliced", type=int, default=200, help="hosts of `slices` (default %(default)s)")
    parser.add_argument("--slices", type=_counts, default=[1, 2, 4], help="numbers of slices (default 1,2,4)")
    parser.add_argument(
        "--smallest", action="store_true", help="the smallest form of each part: whether it runs, no figures"
    )
    options = parser.parse_args(arguments)
    if options.smallest:
        options.hosts, options.forks, options.starts, options.enabled, options.sliced, options.slices = (
            1,
            [5],
            [0],
            [1],
            2,
            [2],
        )
    begin = time.monotonic()

    def notify(text: str) -> None:
        print(f"[{time.monotonic() - begin:5.0f} s] {text}", file=sys.stderr, flush=True)

    print(
        f"ansible-core {version('ansible-core')}, Python {platform.python_version()}, loopback."
        " No PowerShell runs here:"
        " what the peer starts is read back and answered over a model, after the start time that is named.\n",
        flush=True,
    )
    with tempfile.TemporaryDirectory(prefix="kubewin-bench-") as name:
        folder = Path(name)
        artifacts = folder / "artifacts"
        artifacts.mkdir()
        write_programs(artifacts)
        try:
            with Rig(folder, artifacts) as rig:
                forks = [int(number) for number in options.forks]
                plan = Plan(
                    rig,
                    artifacts,
                    notify,
                    options.hosts,
                    forks,
                    options.starts,
                    options.enabled,
                    options.sliced,
                    options.slices,
                    options.smallest,
                )
                troubles = [one for name in options.names or COMPARISONS for one in _compare(name, plan)]
        except (BenchmarkError, LabError) as error:
            troubles = [str(error)]
    for trouble in troubles:
        print(f"benchmark: {trouble}", file=sys.stderr)
    return 1 if troubles else 0


def _compare(name: str, plan: Plan) -> list[str]:
    """Run a comparison and print its tables; the budgets that it missed, or why it could not be measured."""
    try:
        tables = COMPARISONS[name](plan)
    except (BenchmarkError, LabError, AssertionError, OSError) as error:
        return [f"{name} was not measured: {type(error).__name__}: {error}"]
    for title, rows in tables.items():
        print(table(title, rows) + "\n", flush=True)
    return [
        f"{name}: {title}: {row.what}: {row.verdict}"
        for title, rows in tables.items()
        for row in rows
        if row.missed_by is not None
    ]


if __name__ == "__main__":
    sys.exit(main())
