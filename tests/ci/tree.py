"""Exports files that git tracks or would add into a tree of the shape that Ansible's own tools require.

ansible-test refuses to start anywhere else and through a link, and `ansible-galaxy collection build` packs whatever
lies in the folder, ignored or not. So they are given a copy. A release is built from the last commit alone.
"""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from . import paths

OWN = Path("ansible_collections") / "kubewin" / "csi"
# What a user of the collection gets, by path. tests/ci compares the built tarball with it, so that a new folder is
# either named here or kept out by galaxy.yml.
SHIPPED = re.compile(
    r"(changelogs|docs|extensions|meta|playbooks|plugins|roles)/.+|tests/(config\.yml|sanity/.+)"
    r"|(CHANGELOG\.rst|CODE_OF_CONDUCT\.md|CONTRIBUTING\.md|COPYING|README\.md|SECURITY\.md|bindep\.txt"
    r"|execution-environment\.yml|requirements\.(txt|yml))"
)
MADE_BY_GALAXY = {"MANIFEST.json", "FILES.json"}


def listed(checkout: Path = paths.ROOT) -> list[str]:
    """The files of the checkout, committed or about to be; ignored ones are not among them."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard", "--deduplicate"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (checkout / name).is_file())


def export(target: Path, collections: Path, *, shipped: bool = False) -> Path:
    """Fills `target/ansible_collections` anew and returns our collection in it; kubernetes.core is a link beside it.

    With `shipped` it holds what a user gets and galaxy.yml, without it the whole checkout.
    """
    shutil.rmtree(target, ignore_errors=True)
    own = target / OWN
    for name in listed():
        if shipped and not (SHIPPED.fullmatch(name) or name == "galaxy.yml"):
            continue
        place = own / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(paths.ROOT / name, place, follow_symlinks=False)
    neighbour = target / "ansible_collections" / "kubernetes" / "core"
    neighbour.parent.mkdir(parents=True)
    neighbour.symlink_to(collections / "ansible_collections" / "kubernetes" / "core")
    # The export lies in an ignored folder of the checkout's repository, where ansible-test would take every file for
    # ignored. As a repository of its own it is taken as a whole.
    subprocess.run(["git", "init", "-q", "-b", "main", str(own)], check=True, capture_output=True)
    return own


def export_last_commit(target: Path, checkout: Path = paths.ROOT) -> Path:
    """Fill `target` anew with what a user gets of the last commit, and galaxy.yml; nothing else that lies in the checkout."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    done = subprocess.run(["git", "archive", "--format=tar", "HEAD"], cwd=checkout, capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        wanted = [one for one in archive if one.isfile() and (SHIPPED.fullmatch(one.name) or one.name == "galaxy.yml")]
        archive.extractall(target, wanted)
    return target


def expected_files(checkout: Path) -> set[str]:
    """What the tarball of a checkout must hold."""
    return {name for name in listed(checkout) if SHIPPED.fullmatch(name)} | MADE_BY_GALAXY


def files_in(tarball: Path) -> set[str]:
    """What a tarball holds."""
    with tarfile.open(tarball) as archive:
        return {member.name for member in archive if not member.isdir()}
