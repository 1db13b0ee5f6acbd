"""The tooling's command line."""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence

from . import demo, linktree, machine, parts, paths, picture, stories, venvs
from .parts import Bench
from .pythons import Python
from .runner import Part, Runner, durations, interrupt_children, summary
from .venvs import CORES, KERBEROS, LANES, LINT, MAIN, MOLECULE, MOLECULES, RULEBOOK, Lane, LaneError

STARTED = time.monotonic()
TARGETS = (
    "check",
    "test",
    "unit",
    "lab-tests",
    "torture",
    "bench",
    "demo",
    "down",
    "status",
    "links",
    "lane",
    "format",
    "order",
    "picture",
    "tarball",
)
# What needs Go, disk and packages of the machine, by what it is for.
FOR_CHECKS = ("check", "test", "torture")
FOR_LAB = ("test", "lab-tests", "torture", "bench", "demo")
FOR_TESTS = ("test", "lab-tests", "torture")
# Lanes by target; every other target needs the main one alone.
NEEDS: dict[str, tuple[str, ...]] = {
    "check": (*CORES, LINT),
    "tarball": (LINT,),
    "test": (*CORES, LINT, MOLECULE),
    "lab-tests": (*CORES, MOLECULE),
    "torture": (*CORES, *MOLECULES, KERBEROS, RULEBOOK),
}


def notify(text: str) -> None:
    """One line to the reader, at once."""
    print(text, flush=True)


def notify_timed(text: str) -> None:
    """One line of preparation, with the seconds since the start."""
    notify(f"[{time.monotonic() - STARTED:4.0f} s] {text}")


def bench_for(pythons: dict[str, Python], wanted: Sequence[str]) -> Bench:
    """Makes the wanted lanes, the collections and the link tree. The main lane must be there, others may be missing."""
    lanes: dict[str, Lane] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys((MAIN, *wanted)):
        try:
            venvs.choose(name, pythons)
        except LaneError as error:
            if name in (MAIN, LINT):
                raise
            missing[name] = str(error)
            continue
        lanes[name] = venvs.ensure(name, pythons, notify_timed)
    collections = linktree.ensure_collections(str(lanes[MAIN].python), notify_timed)
    linktree.link(collections)
    if set(CORES) <= set(wanted):
        venvs.write_index(lanes, missing)
    return Bench(pythons, lanes, missing, collections)


def run_parts(bench: Bench, chosen: Sequence[Part]) -> int:
    """Runs parts and closes with the summary line."""
    started = time.monotonic()
    try:
        outcomes = Runner(notify).run(chosen)
    finally:
        shutil.rmtree(parts.SCRATCH, ignore_errors=True)
    for name, why in bench.missing.items():
        notify(f"  note  {name} did not run: {why}")
    notify(durations(outcomes))
    dearest = stories.table(stories.dearest(parts.report(part.name) for part in chosen))
    for line in ["the dearest tests, and what each is for:", *dearest] if dearest else []:
        notify(line)
    notify(summary(outcomes, time.monotonic() - started))
    return 1 if any(outcome.counts.failed for outcome in outcomes) else 0


def choose_parts(target: str, bench: Bench, only: Sequence[str]) -> list[Part]:
    """The parts of a target; `only` narrows them by name."""
    chosen = []
    if target in ("lab-tests", "test"):
        # Molecule waits most of its time: the lab's tests work meanwhile. At the end a core would wait with it.
        chosen += [parts.lab_part(bench), parts.molecule_part(bench)]
    if target == "test":
        # What keeps a single core busy for long comes before what does so for a short time.
        chosen.append(parts.unit_part(bench))
    if target in ("check", "test"):
        chosen += parts.check_parts(bench)
    if target == "torture":
        chosen += parts.torture_parts(bench)
    if not only:
        return chosen
    unknown = set(only) - {part.name for part in chosen}
    if unknown:
        raise LaneError(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in chosen)}")
    wanted = set(only)
    for part in reversed(chosen):
        if part.name in wanted:
            wanted.update(part.needs)
    return [part for part in chosen if part.name in wanted]


def order() -> int:
    """Keep what each file of the lab's tests took in the last run, so that the next run begins with the longest."""
    report = parts.report("lab")
    if not report.exists():
        raise LaneError(f"{paths.short(report)} is missing; run `make test` or `make lab-tests` first")
    stories.keep_seconds(report)
    notify(f"written: {paths.short(stories.SECONDS)}")
    return 0


def lane_name(core: str) -> str:
    """The lane of an ansible-core line such as `2.16`, or the lane of that name."""
    name = core if core in LANES else f"core-{core}"
    if name not in LANES:
        raise LaneError(f"no lane {core}; there are {', '.join(LANES)}")
    return name


def run_unit(core: str, pythons: dict[str, Python]) -> int:
    """Runs the tests that need no lab under one ansible-core line."""
    name = f"unit-{core}" if f"unit-{core}" in LANES else lane_name(core)
    bench = bench_for(pythons, (name,))
    return run_parts(bench, [parts.unit_part(bench, name)])


def run_lane(core: str, command: Sequence[str], pythons: dict[str, Python]) -> int:
    """Runs a command in the lane of an ansible-core line, with the link tree."""
    name = lane_name(core)
    if not command:
        raise LaneError(f'nothing to run; for example: make lane CORE={core} CMD="ansible-playbook --version"')
    bench = bench_for(pythons, CORES if name in CORES else (name,))
    if name not in bench.lanes:
        raise LaneError(bench.missing[name])
    environment = {**os.environ, **parts.environment(bench.lanes[name])}
    return subprocess.run(list(command), check=False, cwd=paths.ROOT, env=environment).returncode


def format_all(bench: Bench) -> int:
    """Lays out Python and Go files, and repairs what ruff can repair safely."""
    ruff = str(bench.main.bin / "ruff")
    commands = [
        [ruff, "check", "--fix", "--quiet", "."],
        [ruff, "format", "--quiet", "."],
        ["gofmt", "-w", "tests/lab/go"],
    ]
    return max(
        subprocess.run(command, check=False, cwd=paths.ROOT).returncode
        for command in commands
        if shutil.which(command[0])
    )


def benchmark(bench: Bench, words: Sequence[str]) -> int:
    """Prints the comparisons of tests/benchmark."""
    command = [str(bench.main.python), "-m", "benchmark", *words]
    return subprocess.run(
        command, check=False, cwd=paths.ROOT, env={**os.environ, **parts.environment(bench.main)}
    ).returncode


def dispatch(target: str, words: Sequence[str], pythons: dict[str, Python]) -> int:
    """Does what was asked for on a machine that has what it takes."""
    if target == "order":
        return order()
    if target == "picture":
        return picture.draw()
    if target == "lane":
        return run_lane(words[0] if words else "", words[1:], pythons)
    if target == "unit":
        return run_unit(words[0] if words else MAIN, pythons)
    bench = bench_for(pythons, NEEDS.get(target, (MAIN,)))
    if target == "demo":
        return demo.up(bench, notify_timed)
    if target == "down":
        return demo.down(bench)
    if target == "status":
        return demo.status(bench)
    if target == "format":
        return format_all(bench)
    if target == "bench":
        return benchmark(bench, words)
    if target == "tarball":
        return parts.release(bench)
    if target == "links":
        return 0
    return run_parts(bench, choose_parts(target, bench, words))


def terminated(*unused: object) -> None:
    """A polite kill reaches this process alone; a key press reaches all that it started. Makes the one like the other."""
    interrupt_children()
    raise KeyboardInterrupt


def main(arguments: Sequence[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m ci", description="The repository's tooling; see `make help`.")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("words", nargs=argparse.REMAINDER, help="parts to run alone, or the command for `lane`")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, terminated)
    # Started in the background by a shell, this process ignores SIGINT, and so would all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    words = [word for word in options.words if word != "--"]
    try:
        pythons = machine.require(
            notify_timed,
            checks=options.target in FOR_CHECKS,
            lab=options.target in FOR_LAB,
            tests=options.target in FOR_TESTS,
            kerberos=KERBEROS in NEEDS.get(options.target, ()),
            java=RULEBOOK in NEEDS.get(options.target, ()),
        )
        if pythons is None:
            return 2
        return dispatch(options.target, words, pythons)
    except LaneError as error:
        notify(f"cannot continue:  {error}")
        return 2
    except KeyboardInterrupt:
        notify("stopped")
        return 130
