# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m real_windows --binaries FOLDER --transcripts FOLDER [HOST ...]`: accept csi-proxy on each host, one by one.

Leaves a transcript a host, differences.txt, and conformance.json with the answers to the lines of the case table, which
`python -m real_windows.captures` takes into the table. Fails when a play fails or an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from real_windows import transcript

HERE = Path(__file__).resolve().parent
HOSTS = ("ntlm-http", "ntlm-https", "psrp-https", "ssh")
"""Those of the inventory that need no change of the machine."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """A folder over HTTP on loopback; its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def accept(play: Path, host: str, inventory: Path, binaries: Path, url: str, record: Path) -> int:
    """Run a play on a host; its exit code."""
    environment = {
        **os.environ,
        "ANSIBLE_ACTION_PLUGINS": ":".join(
            filter(None, (os.environ.get("ANSIBLE_ACTION_PLUGINS"), str(HERE / "action")))
        ),
        "ANSIBLE_CALLBACK_PLUGINS": str(HERE / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "transcript",
        transcript.FILE: str(record),
    }
    words = [
        "-v",
        "-i",
        str(inventory),
        "--limit",
        host,
        "-e",
        f"binaries_folder={binaries}",
        "-e",
        f"binaries_url={url}",
        "-e",
        f"output_folder={record.parent}",
    ]
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    return subprocess.run([program, *words, str(play)], check=False, env=environment).returncode


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m real_windows", description="Accept csi-proxy on Windows hosts.")
    parser.add_argument("--play", type=Path, default=HERE / "acceptance.yml")
    parser.add_argument("--inventory", type=Path, default=HERE / "inventory.yml")
    parser.add_argument("--binaries", type=Path, required=True, help="folder with csi-proxy-<release>.exe and .sha256")
    parser.add_argument("--transcripts", type=Path, required=True, help="folder for what was sent and answered")
    parser.add_argument("hosts", nargs="*", default=HOSTS, help="hosts of the inventory (default: %(default)s)")
    options = parser.parse_args(arguments)
    options.transcripts = options.transcripts.resolve()
    options.transcripts.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    answers: list[dict[str, Any]] = []
    with served(options.binaries) as url:
        for host in options.hosts:
            record = options.transcripts / f"{host}.jsonl"
            record.write_text("", encoding="utf-8")
            code = accept(
                options.play.resolve(), host, options.inventory.resolve(), options.binaries.resolve(), url, record
            )
            lines += [f"{host}: the play ended with {code}"] if code else []
            records = transcript.read(record)
            lines += [f"{host}: {text}" for text in transcript.differences(records)]
            answers += [entry for entry in records if "case" in entry]
    # GitHub's machines name their image so (actions/runner-images, Configure-SystemEnvironment.ps1).
    image = " ".join(os.environ.get(name, "") for name in ("ImageOS", "ImageVersion")).strip() or platform.node()
    text = json.dumps({"image": image, "answers": answers}, ensure_ascii=False, indent=1)
    (options.transcripts / "conformance.json").write_text(text, encoding="utf-8")
    (options.transcripts / "differences.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print("\n".join(lines) or "every answer was as expected")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
