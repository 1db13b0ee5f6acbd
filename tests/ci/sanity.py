"""ansible-test sanity without containers and without anything but the configured package index.

ansible-test makes environments of its own under `$HOME/.ansible/test` and bootstraps pip in them with a script that it
fetches from a host of its own. Each lane gets a HOME in the cache, where that script is already there as a shim, and
where pip finds the caller's configuration, because ansible-test passes on no PIP_* variable.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import paths, tree
from .pythons import Python
from .runner import PartFailed, Step
from .venvs import MAIN, Lane, locked

SHIM = """\
# Stands in for the hosted pip bootstrap script: the standard library's ensurepip, then pip from the configured index.
# ensurepip runs as a process of its own because it leaves PIP_CONFIG_FILE=/dev/null behind.
import os, subprocess, sys
env = {k: v for k, v in os.environ.items() if k != "GET_PIP"}
subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"], env=env, stdout=subprocess.DEVNULL)
args = [a for a in sys.argv[1:] if a not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", "-q"] + args, env=env))
"""

# Tests that read the code and nothing of the line that runs them.
ONCE = ("pylint", "pep8", "yamllint")
# Folders of what Ansible loads by name. The rest of the code is there for these.
LOADED = ("plugins/action/", "plugins/doc_fragments/", "plugins/inventory/", "plugins/modules/")


def shim_names(lane: Lane) -> set[str]:
    """The names of the bootstrap script for this lane's ansible-test, one for each pip that it knows."""
    code = "import ansible_test._internal.python_requirements as m; print(m.__file__)"
    done = subprocess.run([str(lane.python), "-c", code], check=False, capture_output=True, text=True)
    if done.returncode:
        raise PartFailed(f"{lane.name}: ansible-test cannot be loaded: {done.stderr.strip()[-500:]}")
    text = Path(done.stdout.strip()).read_text(encoding="utf-8")
    versions = set(re.findall(r"pip\s*=\s*'([0-9.]+)'", text))
    if not versions:
        raise PartFailed(f"{lane.name}: no pip version was found in {done.stdout.strip()}; see {__name__}.shim_names")
    return {f"get_pip_{version.replace('.', '_')}.py" for version in versions}


def pip_configuration(lane: Lane) -> str:
    """pip's effective configuration (files and PIP_* variables alike) as the text of a pip.conf."""
    done = subprocess.run([str(lane.python), "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    config = configparser.RawConfigParser()
    # Where a file and the environment name the same option, the environment decides; the listing is by name.
    for line in sorted(done.stdout.splitlines(), key=lambda line: line.startswith(":env:")):
        name, value = line.split("=", 1)
        section, option = name.rsplit(".", 1)
        section = "global" if section == ":env:" else section
        if option in ("config-file", "disable-pip-version-check"):
            continue
        if not config.has_section(section):
            config.add_section(section)
        config.set(section, option, "".join(shlex.split(value)))
    lines = ["# Written at run time from `pip config list`.", ""]
    for section in config.sections():
        lines += [f"[{section}]", *(f"{option} = {value}" for option, value in config.items(section)), ""]
    return "\n".join(lines)


def home(lane: Lane) -> Path:
    """The lane's HOME for ansible-test, filled; its name follows the lane's, so new pins get a new one."""
    place = paths.cache() / "ansible-test" / lane.folder.name
    shims = place / ".ansible" / "test" / "cache"
    shims.mkdir(parents=True, exist_ok=True)
    for name in shim_names(lane):
        (shims / name).write_text(SHIM, encoding="utf-8")
    config = place / ".config" / "pip" / "pip.conf"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(pip_configuration(lane), encoding="utf-8")
    config.chmod(0o600)
    return place


def search_path(lane: Lane, pythons: Mapping[str, Python], links: Path) -> str:
    """A PATH on which `python3.X` is a Python of that line or nothing: a shim that starts none ends ansible-test."""
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for minor, python in pythons.items():
        (links / f"python{minor}").symlink_to(python.path)
    folders = [folder for folder in os.environ["PATH"].split(os.pathsep) if Path(folder).name != "shims"]
    return os.pathsep.join([str(lane.bin), str(links), *folders])


def run(step: Step, lane: Lane, collections: Path, pythons: Mapping[str, Python], *, whole: bool) -> None:
    """Run the sanity tests of one ansible-core line on what ships; with `whole` the main line reads the tests too.

    Without `whole`, each line runs under its lane's own Python, which are the oldest and the newest one between them, and
    imports what Ansible loads, and with it what that uses, instead of each file by itself with all that it uses. Only the main
    line runs ONCE, which take long and read the same code everywhere. `make torture` runs all tests on every line and every
    Python, because each line brings another pylint, which takes longest over the tests: ruff and mypy read those daily.
    """
    ignores = [name for name in tree.listed() if re.fullmatch(r"tests/sanity/ignore-.*\.txt", name)]
    if ignores:
        raise PartFailed(f"{', '.join(ignores)}: nothing is ignored here; repair what the sanity test found")
    work = paths.WORK / "sanity" / lane.name
    # Two runs in one HOME would build the same environments over one another.
    with locked(paths.cache() / "ansible-test" / lane.folder.name):
        own = tree.export(work, collections, shipped=not whole or lane.name != MAIN)
        environment = {
            "HOME": str(home(lane)),
            "PATH": search_path(lane, pythons, work / "bin"),
            "PYTHONPATH": "",
        }
        minor = ".".join(lane.python_version.split(".")[:2])
        command: list[str | Path] = [lane.bin / "ansible-test", "sanity", "--local", "--color", "no"]
        runs = [command]
        if not whole:
            command += ["--python", minor]
            skipped = ["import", *([] if lane.name == MAIN else ONCE)]
            without = [word for name in skipped for word in ("--skip-test", name)]
            runs = [[*command, *without], [*command, "--test", "import", *LOADED]]
        for words in runs:
            step.run(words, cwd=own, env=environment)
