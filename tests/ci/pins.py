"""Writes the hashes of all published files beside each pin of tests/requirements: ``python -m ci.pins UV``.

UV is the program of that name. Each pin keeps its version; to change one, edit its version and run this again. pip then refuses a file
with another hash, and a package without a pin. Packages that only another Python or system needs are pinned with a marker.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from . import paths


def split(text: str) -> tuple[list[str], list[str]]:
    """Comments and includes of a requirement file, and its pins without hashes."""
    lines = [line.strip().removesuffix("\\").strip() for line in text.splitlines()]
    head = [line for line in lines if line.startswith(("#", "-r "))]
    pins = [line for line in lines if line and not line.startswith(("#", "-"))]
    return head, pins


def add_hashes(uv: str, pins: list[str]) -> str:
    """The pins with the hashes of every file that the index has of them."""
    # The newest Python that a pin requires; files for others have their hashes too.
    options = ["--generate-hashes", "--no-deps", "--python-version", "3.12", "--no-annotate", "--no-header"]
    command = [uv, "pip", "compile", "--quiet", *options, "-"]
    done = subprocess.run(command, input="\n".join(pins), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def write(uv: str, file: Path) -> None:
    """Write one requirement file anew."""
    head, pins = split(file.read_text(encoding="utf-8"))
    text = add_hashes(uv, pins) if pins else ""
    file.write_text("\n".join(head) + "\n" + text, encoding="utf-8")


if __name__ == "__main__":
    for requirement_file in sorted(paths.REQUIREMENTS.glob("*.txt")):
        write(sys.argv[1], requirement_file)
