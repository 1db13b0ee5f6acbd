# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for podman, as ansible-runner calls it: the machine's own files as the image, the kernel's namespaces around them.

A job gets a process table and a mount table of its own, a random user without a passwd entry and without capabilities, an empty
/tmp, its volumes, and a read-only rest. The boot id is that of its execution node, which is a machine of its own. Images differ in
their environment, which the file of KUBEWIN_IMAGES has by their names. KUBEWIN_COLLECTIONS therein is a folder of collections.
`install` puts the command into a folder for PATH.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VALUED = ("--workdir", "-v", "--env-file", "--name", "--network")
# In the new mount table, as its root. Arguments: folder for the new root, file with the boot id of the machine, user, directory of
# the command, volumes, --, the command.
ENTER = r"""
set -e
root=$1 boot=$2 user=$3 folder=$4; shift 4
mount -t tmpfs image "$root"
for entry in /*; do
  case $entry in /proc|/tmp|/runner) continue ;; esac
  if [ -L "$entry" ]; then cp -P "$entry" "$root$entry"; continue; fi
  [ -d "$entry" ] || continue
  mkdir "$root$entry"; mount --rbind "$entry" "$root$entry"
  mount -o remount,bind,ro "$root$entry" 2>/dev/null || true
done
mkdir "$root/proc" "$root/tmp" "$root/.machine"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mount -t proc proc "$root/proc"
mount --bind "$boot" "$root/proc/sys/kernel/random/boot_id"
while [ "$1" != -- ]; do
  mkdir -p "$root$2"; mount --bind "$1" "$root$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$root$2"
  shift 3
done
shift
cd "$root"; pivot_root . .machine; umount -l /.machine
mount -o remount,ro /
cd "$folder"
exec unshare --user --map-user="$user" --map-group=0 "$@"
"""


@dataclass(slots=True)
class Call:
    """The arguments of `podman run`."""

    options: dict[str, list[str]] = field(default_factory=dict)
    image: str = ""
    command: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, words: Sequence[str]) -> Call:
        """Read a command line. Options that take a value are those of VALUED, or have it behind an equals sign."""
        call, left = cls(), list(words)
        assert left.pop(0) == "run", words
        while left[0].startswith("-"):
            word = left.pop(0)
            call.options.setdefault(word, []).append(left.pop(0) if word in VALUED else "")
        call.image, *call.command = left
        return call

    def volumes(self) -> Iterator[str]:
        """Folder, mount point and mode of each volume. A project is nothing that a job may change."""
        for mapping in self.options.get("-v", []):
            source, place, *mode = mapping.split(":")
            yield from (source.rstrip("/"), place.rstrip("/"), "ro" if "ro" in mode else "rw")
            if place.rstrip("/") == "/runner":
                yield from (f"{source}project", "/runner/project", "ro")
        if collections := self.image_environment().get("KUBEWIN_COLLECTIONS"):
            yield from (collections, "/runner/.ansible/collections", "ro")

    def image_environment(self) -> dict[str, str]:
        """What the image sets."""
        found: dict[str, str] = json.loads(Path(os.environ["KUBEWIN_IMAGES"]).read_text("utf-8"))[self.image]
        return found

    def environment(self) -> dict[str, str]:
        """The image's environment and what the job adds. Nothing of the machine's."""
        lines = [
            line for name in self.options.get("--env-file", []) for line in Path(name).read_text("utf-8").split("\n")
        ]
        given = dict(line.split("=", 1) for line in lines if "=" in line)
        # The entry point of execution environments makes this the home of a user that has none; Ansible needs one.
        image = {"HOME": "/runner", "LANG": "C.UTF-8", **self.image_environment()}
        return {**image, "PYTHONDONTWRITEBYTECODE": "1", **given}


def install(folder: Path) -> Path:
    """Write the command podman into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    command = folder / "podman"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{Path(__file__).resolve()}" "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    return folder


def _pid_of(name: str) -> Path:
    return Path(os.environ["KUBEWIN_CONTAINERS"], f"{name}.pid")


def main() -> None:
    """Become the job. ansible-runner asks for the version first."""
    if sys.argv[1:] == ["--version"]:
        print("podman version 0")
        return
    if sys.argv[1] == "kill":
        # With it ends its process table.
        os.kill(int(_pid_of(sys.argv[2]).read_text("utf-8")), signal.SIGKILL)
        return
    call = Call.read(sys.argv[1:])
    with tempfile.TemporaryDirectory(prefix="kubewin-image-") as root:
        words = ["--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter", root]
        words.append(os.environ["KUBEWIN_BOOT_ID"])
        words += [str(random.randrange(10_000, 60_000)), call.options["--workdir"][0], *call.volumes(), "--"]
        child = os.spawnvpe(os.P_NOWAIT, "unshare", ["unshare", *words, *call.command], call.environment())
        _pid_of(call.options["--name"][0]).write_text(str(child), "utf-8")
        _pid, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
