"""What `make check` and `make test` run, part by part. Each part stands alone and leaves its log under .work/logs."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from day import DAY

from . import linktree, paths, sanity, tree
from .links import find_broken_links
from .pythons import Python
from .runner import Counts, Part, PartFailed, Step
from .venvs import CORES, KERBEROS, LINT, MAIN, MOLECULE, MOLECULES, Lane, locked

# Tests that need no lab, that start single parts of it, and that start the whole.
TEST_FOLDERS = ("unit", "lab_tests", "integration")
# Of this run alone, so that several can check one checkout at once; removed at its end.
SCRATCH = paths.WORK / "runs" / str(os.getpid())
EXPORT = SCRATCH / "export"
DIST = SCRATCH / "dist"
# The documentation of the last check, which a workflow publishes.
SITE_FOLDER = paths.WORK / "site"
# Where `make tarball` puts what is published.
RELEASE = paths.WORK / "release"
# Scenarios of molecule that run before each landing; `make torture` runs all.
SCENARIOS = ("enable", "limit")
# After which a unit test hangs: none works for longer than ten seconds, and beside the lab's tests it gets little of the CPU.
UNIT_TEST_SECONDS = 600
# The same of torture, whose longest sweep of kills gives up by itself after an hour.
TORTURE_TEST_SECONDS = 5400
# Its own run of ansible-lint is left out: the part of that name has stricter settings, and the importer gives up on it
# after 180 s, which a busy machine needs.
IMPORTER_CONFIG = """\
[galaxy-importer]
CHECK_REQUIRED_TAGS = True
CHECK_CHANGELOG = True
RUN_ANSIBLE_DOC = True
RUN_ANSIBLE_LINT = False
RUN_ANSIBLE_TEST = False
RUN_FLAKE8 = False
LOG_LEVEL_MAIN = INFO
"""


# It checks a copy in a temporary folder whose random name may end in an underscore, which reStructuredText takes for a
# reference in the messages that hold the path. So its random names are made without one.
ANTSIBULL_DOCS = """\
import sys, tempfile
tempfile._RandomNameSequence.characters = "abcdefghijklmnopqrstuvwxyz0123456789"
from antsibull_docs.cli.antsibull_docs import main
sys.exit(main())
"""


# As `antsibull-docs sphinx-init` makes it, without what asks other sites for their pages.
SITE = """\
project, html_title, html_theme = "kubewin.csi", "kubewin.csi", "alabaster"
extensions = ["sphinx_antsibull_ext"]
pygments_style, highlight_language, default_role = "ansible", "YAML+Jinja", "any"
nitpicky = True
nitpick_ignore_regex = [("std:ref", r"(?!ansible_collections\\.kubewin\\.csi\\.).*"), ("std:envvar", "ANSIBLE_.*")]
"""

# The program is built as those of the lab are, and kept with them.
ACTIONLINT = """\
import os, sys
from lab.builds import build
program = build("actionlint")["actionlint"]
os.execv(program, [program, *sys.argv[1:]])
"""

# PowerShell itself is in no package index. This shows an unclosed quote or brace, not a command that is misspelt.
POWERSHELL = """\
import sys
from tree_sitter import Language, Parser
from tree_sitter_powershell import language
broken = [name for name in sys.argv[1:] if Parser(Language(language())).parse(open(name, "rb").read()).root_node.has_error]
sys.exit("no PowerShell: " + " ".join(broken) if broken else 0)
"""


@dataclass(frozen=True)
class Bench:
    """What parts work with: this machine's Pythons and lanes, why lanes are missing, the collections beside ours."""

    pythons: Mapping[str, Python]
    lanes: dict[str, Lane]
    missing: dict[str, str]
    collections: Path

    @property
    def main(self) -> Lane:
        """The lane that carries the tests and the type checker."""
        return self.lanes[MAIN]

    @property
    def lint(self) -> Lane:
        """The lane of the linters."""
        return self.lanes[LINT]


def environment(lane: Lane) -> dict[str, str]:
    """What commands of a lane run under: its commands first, the link tree, and nothing written to the home folder."""
    return {
        "PATH": f"{lane.bin}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join((str(paths.LINKS), str(paths.ROOT / "tests"))),
        # Kept beside the files, git-ignored: without it each of some thousand processes compiles what it imports.
        "PYTHONDONTWRITEBYTECODE": "",
        "ANSIBLE_CONFIG": str(paths.ROOT / "ansible.cfg"),
        "ANSIBLE_COLLECTIONS_PATH": str(paths.LINKS),
        "ANSIBLE_HOME": str(paths.cache() / "ansible"),
        # Playbooks that build csi-proxy find compiled what the lab needs of it.
        **go_caches(),
    }


def lint_environment(bench: Bench) -> dict[str, str]:
    """What linters run under: the exported tree as the only collections, and a HOME and settings of their own."""
    home = paths.WORK / "home"
    home.mkdir(parents=True, exist_ok=True)
    config = home / "ansible.cfg"
    config.touch()
    return {
        **environment(bench.lint),
        "PYTHONPATH": "",
        # What is exported is checked as users get it.
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "ANSIBLE_CONFIG": str(config),
        "ANSIBLE_COLLECTIONS_PATH": str(EXPORT),
        "ANSIBLE_HOME": str(home / ".ansible"),
        "NO_COLOR": "1",
    }


def check_parts(bench: Bench) -> list[Part]:
    """Everything that reads the code and runs no part of the product but its Go unit tests. The longest start first."""
    own = EXPORT / tree.OWN

    def export(step: Step) -> None:
        step.notify(f"exporting to {tree.export(EXPORT, bench.collections)}")

    def ruff(step: Step) -> None:
        command = [bench.main.bin / "ruff"]
        formatted = step.run([*command, "format", "--check", "--quiet", "."], may_fail=True)
        linted = step.run([*command, "check", "--quiet", "--output-format=concise", "."], may_fail=True)
        if formatted or linted:
            raise PartFailed("`make format` repairs the layout" if formatted else "")

    def mypy(step: Step) -> None:
        packages = ["ansible_collections.kubewin.csi.plugins"]
        packages += [
            name
            for name in ("ci", "lab", "real_windows", *TEST_FOLDERS, "kerberos_tests", "benchmark")
            if has_python(name)
        ]
        # The cache remembers which packages were not installed, so each environment has its own. It outlives the checkout:
        # mypy compares contents, and most of them are the same in the next one.
        cache = paths.cache() / "mypy" / bench.main.folder.name
        command: list[str | Path] = [bench.main.bin / "mypy", "--cache-dir", cache]
        named = [word for name in packages for word in ("-p", name)]
        with locked(cache):
            step.run([*command, *named], env=environment(bench.main))

    def actionlint(step: Step) -> None:
        step.run([bench.main.python, "-c", ACTIONLINT, "-no-color"], env=environment(bench.main))

    def powershell(step: Step) -> None:
        files = [name for name in tree.listed() if name.endswith(".ps1")]
        step.run([bench.lint.python, "-c", POWERSHELL, *files], env=environment(bench.lint))

    def ansible_lint(step: Step) -> None:
        # The benchmarks' peer is written with ansible.windows, which no other check needs to see.
        visible = os.pathsep.join((str(EXPORT), str(bench.collections)))
        settings = {**lint_environment(bench), "ANSIBLE_COLLECTIONS_PATH": visible}
        program = paths.ROOT / "tests" / "ci" / "lint.py"
        step.run([bench.lint.python, program, "--offline", "--nocolor"], cwd=own, env=settings)

    def docs(step: Step) -> None:
        # Unknown collections are allowed: kubernetes.core's documentation of its options refers to community.okd.
        words = ["lint-collection-docs", "--plugin-docs", "--validate-collection-refs=all"]
        command: list[str | Path] = [bench.lint.python, "-c", ANTSIBULL_DOCS, *words, "."]
        step.run(command, cwd=own, env=lint_environment(bench))

    def site(step: Step) -> None:
        # A warning of Sphinx is a failure: a reference to a page, section or option that is not there.
        made = SCRATCH / "site"
        (made / "rst").mkdir(parents=True)
        (made / "conf.py").write_text(SITE, encoding="utf-8")
        words = ["collection", "--use-current", "--squash-hierarchy", "--fail-on-error", "kubewin.csi"]
        command: list[str | Path] = [bench.lint.python, "-c", ANTSIBULL_DOCS, *words, "--dest-dir", made / "rst"]
        step.run(command, cwd=made, env=lint_environment(bench))
        quiet: list[str | Path] = ["-q", "-W", "--keep-going", "-b", "html", "-c", made]
        step.run([bench.lint.bin / "sphinx-build", *quiet, made / "rst", made / "html"], env=lint_environment(bench))
        broken = find_broken_links(paths.ROOT, tree.listed(), made / "html")
        if broken:
            raise PartFailed("broken links:  " + "  ".join(broken))
        shutil.rmtree(SITE_FOLDER, ignore_errors=True)
        shutil.copytree(made / "html", SITE_FOLDER)

    def changelog(step: Step) -> None:
        program, made = bench.lint.bin / "antsibull-changelog", "changelogs/changelog.yaml"
        for words in (["lint"], ["lint-changelog-yaml", "--strict", made], ["generate"]):
            step.run([program, *words], cwd=own, env=lint_environment(bench))
        if (own / "CHANGELOG.rst").read_bytes() != (paths.ROOT / "CHANGELOG.rst").read_bytes():
            raise PartFailed(f"CHANGELOG.rst differs from {made};  `antsibull-changelog generate` writes it")

    def builder(step: Step) -> None:
        # What `ansible-builder build` does before it needs a container engine, and its files as a build would get them.
        program, made = bench.lint.bin / "ansible-builder", SCRATCH / "execution-environment"
        made.mkdir(parents=True)
        found = {name: made / name for name in ("pip", "bindep")}
        words: list[str | Path] = []
        for name, file in found.items():
            words += [f"--write-{name}", file]
        step.run([program, "introspect", *words, EXPORT], env=lint_environment(bench))
        context: list[str | Path] = ["-c", made / "context", "--output-filename", "Containerfile"]
        step.run([program, "create", "-f", own / "execution-environment.yml", *context], env=lint_environment(bench))
        lines = {line for file in found.values() for line in file.read_text(encoding="utf-8").splitlines()}
        names = ("requirements.txt", "meta/ee-requirements.txt", "bindep.txt")
        wanted = [line for name in names for line in (own / name).read_text(encoding="utf-8").splitlines()]
        wanted = [line for line in wanted if not line.startswith(("#", "-r "))]
        absent = [line for line in wanted if f"{line}  # from collection kubewin.csi" not in lines]
        if absent:
            raise PartFailed(f"ansible-builder does not see {', '.join(absent)}; see meta/execution-environment.yml")

    parts = [Part("export", export)]
    parts += [sanity_part(name, bench) for name in CORES]
    parts += [
        Part("ansible-lint", ansible_lint, needs=("export",)),
        Part("tarball", lambda step: tarball(step, bench), needs=("export",)),
        Part("galaxy-importer", lambda step: importer(step, bench), needs=("tarball",)),
        Part("mypy", mypy),
        Part("go", go),
        Part("antsibull-docs", docs, needs=("export",)),
        Part("docs-site", site, needs=("export",)),
        Part("ansible-builder", builder, needs=("export",)),
        Part("antsibull-changelog", changelog, needs=("export",)),
        Part("actionlint", actionlint),
        Part("powershell", powershell),
        Part("ruff", ruff),
    ]
    return parts


def has_python(name: str) -> bool:
    """Whether a folder under tests/ holds Python yet."""
    return any((paths.ROOT / "tests" / name).rglob("*.py"))


def sanity_part(name: str, bench: Bench, *, whole: bool = False) -> Part:
    """ansible-test sanity of one line; a line without a Python fails under CI and is named elsewhere."""

    def work(step: Step) -> Counts | None:
        if name not in bench.lanes:
            return missing(bench.missing[name])
        sanity.run(step, bench.lanes[name], bench.collections, bench.pythons, whole=whole)
        return None

    return Part(name.replace("core", "sanity"), work)


def missing(why: str) -> Counts:
    """The verdict on a lane that cannot be made here."""
    if os.environ.get("CI") == "true":
        raise PartFailed(f"{why} (CI=true: every line is required)")
    return Counts(skipped=1, note=why)


def tarball(step: Step, bench: Bench) -> None:
    """Builds the tarball from the export and in the checkout, leftovers and all; both must hold what they should."""
    shutil.rmtree(DIST, ignore_errors=True)
    problems = []
    for place, folder in (("export", EXPORT / tree.OWN), ("checkout", paths.ROOT)):
        target = DIST / place
        command: list[str | Path] = [
            bench.lint.bin / "ansible-galaxy",
            "collection",
            "build",
            "--output-path",
            target,
            folder,
        ]
        step.run(command, cwd=folder, env=lint_environment(bench))
        expected = tree.expected_files(folder)
        found = tree.files_in(next(target.glob("kubewin-csi-*.tar.gz")))
        problems += [
            f"{place}: {name} is packed; name it in galaxy.yml's build_ignore" for name in sorted(found - expected)
        ]
        problems += [
            f"{place}: {name} is not packed; see build_ignore and {tree.__name__}" for name in sorted(expected - found)
        ]
    for problem in problems:
        step.notify(problem)
    if problems:
        raise PartFailed(f"{len(problems)} files differ from what a user should get")


def release(bench: Bench) -> int:
    """Build the tarball of the last commit in RELEASE; the exit code."""
    with tempfile.TemporaryDirectory(prefix="kubewin-release-") as name:
        source = tree.export_last_commit(Path(name) / "csi")
        command = [
            str(bench.lint.bin / "ansible-galaxy"),
            "collection",
            "build",
            "--force",
            "--output-path",
            str(RELEASE),
            str(source),
        ]
        return subprocess.run(command, check=False, cwd=name, env={**os.environ, **lint_environment(bench)}).returncode


def importer(step: Step, bench: Bench) -> None:
    """Galaxy's own import on the tarball; its warnings are failures here."""
    config = DIST / "galaxy-importer.cfg"
    config.write_text(IMPORTER_CONFIG, encoding="utf-8")
    built = next((DIST / "export").glob("kubewin-csi-*.tar.gz"))
    work = DIST / "import"
    work.mkdir()
    settings = {
        **lint_environment(bench),
        "GALAXY_IMPORTER_CONFIG": str(config),
        # It names its own collections path to what it starts. Galaxy's has the dependencies; here Python's path has them.
        "PYTHONPATH": str(bench.collections),
    }
    step.run([bench.lint.python, "-m", "galaxy_importer.main", built], cwd=work, env=settings)
    # Its exit code is 0 whatever it thinks of the content.
    complaints = [line for line in step.tail(10_000) if line.startswith(("WARNING:", "ERROR:"))]
    if complaints:
        raise PartFailed("\n".join(complaints[:20]))


@functools.cache
def go_caches() -> dict[str, str]:
    """Go's caches inside ours; modules that the user has already are read from there instead of downloaded again."""
    settings: dict[str, str] = {}
    if shutil.which("go") is None:
        return settings
    if "GOMODCACHE" not in os.environ and "GOPATH" not in os.environ:
        asked = subprocess.run(
            ["go", "env", "GOMODCACHE", "GOPROXY"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, **paths.go_settings()},
            cwd="/",
        )
        theirs, proxy = asked.stdout.splitlines()
        settings["GOPATH"] = str(paths.cache() / "go")
        if Path(theirs, "cache", "download").is_dir():
            settings["GOPROXY"] = f"file://{theirs}/cache/download,{proxy}"
    if "GOCACHE" not in os.environ:
        settings["GOCACHE"] = str(paths.cache() / "go-build")
    return settings


def go_environment() -> dict[str, str]:
    """What Go's checks run under. The module cache stays writable, so that anybody may remove it."""
    return {**paths.go_settings(), "GOFLAGS": "-modcacherw", "GOWORK": "off", "CGO_ENABLED": "0", **go_caches()}


def go(step: Step) -> Counts:
    """gofmt over all Go files; vet and the unit tests of the Windows userland and of csi-proxy's clients."""
    files = [name for name in tree.listed() if name.endswith(".go")]
    environment = go_environment()
    done = subprocess.run(
        ["gofmt", "-l", *files],
        check=False,
        cwd=paths.ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    if done.stdout or done.returncode:
        step.notify(f"gofmt -l:\n{done.stdout}{done.stderr}")
        raise PartFailed("`make format` repairs the layout")
    code = 0
    for name in ("winland", "csiclient"):
        module = paths.ROOT / "tests" / "lab" / "go" / name
        step.run(["go", "vet", "./..."], cwd=module, env=environment)
        # What is underneath on Windows builds only for Windows, and must not rot between two runs of the lab.
        step.run(["go", "vet", "./..."], cwd=module, env={**environment, "GOOS": "windows"})
        code = max(code, step.run(["go", "test", "-json", "./..."], cwd=module, env=environment, may_fail=True))
    return go_counts(step, code)


def go_counts(step: Step, code: int) -> Counts:
    """Counts the tests in the log of `go test -json` and puts what failed at its end."""
    actions: Counter[str] = Counter()
    failed = []
    output: dict[tuple[str, str], list[str]] = {}
    for line in step.tail(10**9):
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        name = (event.get("Package", event.get("ImportPath", "")), event.get("Test", ""))
        if "Output" in event:
            output.setdefault(name, []).append(event["Output"].rstrip("\n"))
        elif event["Action"] in ("pass", "fail", "skip") and name[1]:
            actions[event["Action"]] += 1
        if event["Action"] in ("fail", "build-fail"):
            failed.append(name)
    for name in failed:
        for line in output.get(name, []):
            step.notify(line)
    if code:
        raise PartFailed("go test failed", Counts(actions["pass"], max(1, actions["fail"]), actions["skip"]))
    return Counts(1 + actions["pass"], 0, actions["skip"])


def report(part: str) -> Path:
    """Where a part that runs pytest leaves its JUnit report."""
    return paths.WORK / "junit" / f"{part}.xml"


def pytest(step: Step, lane: Lane, folders: list[str], *extra: str) -> Counts:
    """Runs pytest in a lane and counts the results of its JUnit report."""
    place = report(step.name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    command: list[str | Path] = [
        lane.python,
        "-m",
        "pytest",
        f"--junitxml={place}",
        "--color=no",
        *extra,
        *folders,
    ]
    code = step.run(command, env={**environment(lane), "KUBEWIN_DAY": str(DAY)}, may_fail=True)
    if not place.exists():
        raise PartFailed(f"pytest ended with {code} and without a report")
    numbers: Counter[str] = Counter()
    root = ET.parse(place).getroot()
    for suite in root.iter("testsuite"):
        for name in ("tests", "failures", "errors", "skipped"):
            numbers[name] += int(suite.get(name, "0"))
    bad = numbers["failures"] + numbers["errors"]
    counts = Counts(numbers["tests"] - bad - numbers["skipped"], bad, numbers["skipped"])
    if code:
        why = "\n".join([f"pytest ended with {code}", *failures(root)])
        raise PartFailed(why, Counts(counts.passed, max(1, bad), counts.skipped))
    if not counts.passed:
        raise PartFailed("no test ran")
    return counts


def failures(report: ET.Element) -> list[str]:
    """A line about each test of a JUnit report that failed, at most ten: which, and the beginning of why."""
    lines = []
    for case in report.iter("testcase"):
        for bad in (*case.findall("failure"), *case.findall("error")):
            why = " ".join((bad.get("message") or "").split())
            lines.append(f"{case.get('classname')}::{case.get('name')}: {why[:500]}")
    return lines[:10] + ([f"and {len(lines) - 10} more"] if len(lines) > 10 else [])


def unit_part(bench: Bench, name: str = MAIN) -> Part:
    """The tests that need neither the lab nor the network, under one ansible-core line."""

    def work(step: Step) -> Counts:
        if name not in bench.lanes:
            return missing(bench.missing[name])
        limit = f"faulthandler_timeout={UNIT_TEST_SECONDS}"
        return pytest(step, bench.lanes[name], ["tests/unit"], "-q", "-m", "not torture", "-o", limit)

    return Part("unit" if name == MAIN else name, work)


def lab_part(bench: Bench) -> Part:
    """The tests that run on the lab."""
    folders = [f"tests/{name}" for name in TEST_FOLDERS[1:] if has_python(name)]
    # The tests of a file share what they set up, and those of a class.
    words = ["-v", "-m", "not torture", "-n", str(lab_workers()), "--dist", "loadscope", "--no-loadscope-reorder"]
    return Part("lab", lambda step: pytest(step, bench.main, folders, *words), first=True)


def lab_workers() -> int:
    """How many of the lab's tests run at once. They wait for a part of their time, and another part runs meanwhile.

    Each further one costs CPU time for the same tests: it collects all of them and has a lab of its own, and what is waited for takes
    longer, while everything that waits asks again. Three leave two cores idle for a third of the time once the other parts ended.
    """
    return max(4, min(6, 2 * len(os.sched_getaffinity(0))))


def molecule_part(bench: Bench, name: str = MOLECULE, *, whole: bool = False) -> Part:
    """Scenarios of extensions/molecule on a lab of their own: the daily ones, or all of them under one ansible-core line."""

    def work(step: Step) -> Counts | None:
        if name not in bench.lanes:
            return missing(bench.missing[name])
        lane = bench.lanes[name]
        # Its state, which another run must not meet.
        folder = SCRATCH / name
        folder.mkdir(parents=True)
        settings = {**environment(lane), "MOLECULE_EPHEMERAL_DIRECTORY": str(folder), "NO_COLOR": "1"}
        down: list[str | Path] = [lane.python, "-m", "lab", "down", "--name", MOLECULE]
        # A lab that a killed run left.
        step.run(down, env=settings)
        chosen = ["--all"] if whole else [word for scenario in SCENARIOS for word in ("-s", scenario)]
        # As in an installed collection, which has no galaxy.yml by which molecule would find the scenarios.
        words: list[str | Path] = [lane.bin / "molecule", "-c", "molecule/config.yml", "test", *chosen]
        try:
            step.run(words, cwd=paths.ROOT / "extensions", env=settings)
        except PartFailed:
            # Interrupted, or failed before its own end.
            step.run(down, env=settings)
            raise
        return None

    # All of them share the lab's name, and parts that come first do not run beside one another.
    return Part(name, work, first=whole)


def kerberos_part(bench: Bench) -> Part:
    """The tests against a KDC, in the lane that has the packages of Kerberos."""

    def work(step: Step) -> Counts | None:
        if KERBEROS not in bench.lanes:
            return missing(bench.missing[KERBEROS])
        return pytest(step, bench.lanes[KERBEROS], ["tests/kerberos_tests"], "-v")

    return Part(KERBEROS, work)


def torture_parts(bench: Bench) -> list[Part]:
    """The tests that are longer than a landing may take, all scenarios, and all sanity tests of every line."""
    folders = [f"tests/{name}" for name in TEST_FOLDERS if has_python(name)]
    words = ["-v", "-m", "torture", "-o", f"faulthandler_timeout={TORTURE_TEST_SECONDS}"]
    tests = Part("torture", lambda step: pytest(step, bench.main, folders, *words), first=True)
    scenarios = [molecule_part(bench, name, whole=True) for name in MOLECULES]
    return [tests, kerberos_part(bench), *scenarios, *(sanity_part(name, bench, whole=True) for name in CORES)]


def prepare(bench: Bench) -> None:
    """What all parts rely on: the link tree."""
    linktree.link(bench.collections)
