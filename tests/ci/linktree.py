"""The ignored link tree `.collections/ansible_collections`, by which a checkout works in place wherever it was cloned.

`kubewin/csi` in it is the checkout itself; the collections that ours is built on come out of the `ansible` package's
wheel, because a package index is the one service that every builder can reach.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from . import paths
from .venvs import MARKER, LaneError, Notify, locked, pip_environment

# kubernetes.core is our dependency. ansible.windows is what the benchmarks compare with, awx.awx what extensions/awx is applied with;
# nothing of ours imports them.
COLLECTIONS = ("kubernetes/core", "ansible/windows", "awx/awx")


def ensure_collections(python: str, notify: Notify) -> Path:
    """The cache folder that holds `ansible_collections/<namespace>/<name>` of COLLECTIONS; filled on first use."""
    pins = paths.REQUIREMENTS / "collections.txt"
    digest = hashlib.sha256(pins.read_bytes() + repr(COLLECTIONS).encode()).hexdigest()[:12]
    target = paths.cache() / "collections" / digest
    with locked(target):
        if not (target / MARKER).exists():
            notify(f"collections: fetching {', '.join(COLLECTIONS)} (54 MB)")
            shutil.rmtree(target, ignore_errors=True)
            extract(download(python, pins, target / "wheel"), target)
            shutil.rmtree(target / "wheel")
            (target / MARKER).touch()
    return target


def download(python: str, pins: Path, folder: Path) -> Path:
    """Fetches the pinned wheel through pip, so that the configured index is used."""
    command = [
        python,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--require-hashes",
        "--no-input",
        "-d",
        str(folder),
        "-r",
        str(pins),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=pip_environment())
    wheels = sorted(folder.glob("*.whl")) if folder.exists() else []
    if done.returncode or len(wheels) != 1:
        raise LaneError(f"collections: `{' '.join(command)}` gave {len(wheels)} wheels\n{done.stderr[-1500:]}")
    return wheels[0]


def extract(wheel: Path, target: Path) -> None:
    """Unpacks COLLECTIONS alone: documentation tools take minutes over a hundred collections and seconds over a few."""
    wanted = tuple(f"ansible_collections/{name}/" for name in COLLECTIONS)
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(wanted)]
        archive.extractall(target, members)
    for name in COLLECTIONS:
        if not (target / "ansible_collections" / name / "MANIFEST.json").exists():
            raise LaneError(f"collections: {wheel.name} holds no {name.replace('/', '.')}; see tests/requirements")


def link(source: Path) -> None:
    """Makes the link tree; what already points where it should is left alone."""
    root = paths.LINKS / "ansible_collections"
    own = root / "kubewin" / "csi"
    relink(own, Path(os.path.relpath(paths.ROOT, own.parent)))
    for name in COLLECTIONS:
        relink(root / name, source / "ansible_collections" / name)


def relink(place: Path, target: Path) -> None:
    """Points a link at a target in one step, so that a process that is using the tree always finds one."""
    if place.is_symlink() and os.readlink(place) == str(target):
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    scratch = place.with_name(f".{place.name}.{os.getpid()}")
    scratch.symlink_to(target)
    scratch.replace(place)


def ensure(notify: Notify, python: str = sys.executable) -> None:
    """The whole link tree, ready to use."""
    link(ensure_collections(python, notify))
