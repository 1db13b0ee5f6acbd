# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the lab: `python -m lab --help`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lab import control, launch, state
from lab.builds import Reporter
from lab.cluster import access
from lab.handle import Lab
from lab.spec import Spec
from lab.state import LabError, LabState
from lab.windows.agent import Agent, AgentError

DEFAULT = "default"
FOLLOW_PAUSE = 0.2


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    work: Callable[[argparse.Namespace], int] = options.work
    try:
        return work(options)
    except (LabError, AgentError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of the output closed it; the interpreter must not complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A Kubernetes cluster with Windows nodes, here.")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def command(name: str, work: Callable[[argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=text)
        made.add_argument("--name", default=DEFAULT, help="which lab (default: %(default)s)")
        made.set_defaults(work=work)
        return made

    up = command("up", _up, "start a lab; one that is up and healthy is left alone")
    up.add_argument("--nodes", type=int, default=3, metavar="N", help="Windows nodes (default: %(default)s)")
    up.add_argument(
        "--windows",
        choices=["auto", "wine", "simulated", "none"],
        default="auto",
        help="what is behind the nodes: auto takes wine where it works (default), none leaves them without hosts",
    )
    up.add_argument("--hosts", type=int, metavar="N", help="how many of the nodes have a host (default: all)")
    up.add_argument(
        "--kubelet",
        action="append",
        default=[],
        metavar="NODE=RELEASE",
        help="a node's kubelet, for example win-1=v1.26.9: below v1.27 it belongs to the in-tree era",
    )
    up.add_argument(
        "--demo", action="store_true", help="bind the roles for preflight and verify to the inventory's account as well"
    )
    up.add_argument("--bare", action="store_true", help="without the vSphere driver's own installation")
    down = command("down", _down, "end a lab and remove everything of it")
    down.add_argument("--all", action="store_true", help="every lab of this checkout")
    down.add_argument("--keep", action="store_true", help="leave its folder with the logs")
    status = command("status", _status, "what runs, where, and whether it is healthy")
    status.add_argument("--json", action="store_true", help="for programs")
    logs = command("logs", _logs, "show logs")
    logs.add_argument("component", nargs="?", help="which; without it the list of them")
    logs.add_argument("-f", "--follow", action="store_true", help="continue until interrupted")
    inventory = command("inventory", _inventory, "paths of the inventories, one a transport")
    inventory.add_argument("transport", nargs="?", help="only this one's path")
    api = command("api", _api, "stop or start the API server")
    api.add_argument("action", choices=["stop", "start"])
    node = command("node", _node, "add or remove a Windows node with its host")
    node.add_argument("action", choices=["add", "remove"])
    node.add_argument("node", nargs="?", help="a name such as win-4; add takes the next free one")
    host = command("host", _host, "reboot a host, stop or start its csi-proxy, or run a command line on it")
    host.add_argument("action", choices=["reboot", "stop-service", "start-service", "run"])
    host.add_argument("host")
    host.add_argument("words", nargs="*", help="the service's name (csi-proxy), or the command line")
    return parser


def _windows(asked: str) -> tuple[str, str]:
    """What is behind the nodes, and why not what was hoped for."""
    if asked not in ("auto", "wine"):
        return asked, ""
    try:
        launch.prepare_wine(Reporter())
    except LabError as error:
        if asked == "wine":
            raise
        return "simulated", str(error)
    return "wine", ""


def _kubelets(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        node, _equals, release = word.partition("=")
        if not re.fullmatch(r"v1\.\d+\.\d+", release):
            raise LabError(f"--kubelet: found {word!r}, expected a node and a release such as win-1=v1.26.9")
        found[node] = release
    return found


def _up(options: argparse.Namespace) -> int:
    started = time.monotonic()

    def notify(text: str) -> None:
        print(f"[{time.monotonic() - started:5.1f} s] {text}", flush=True)

    place = state.paths(options.name)
    found = launch.running(options.name)
    if found is not None:
        if options.demo:
            access.demo(Lab(found).api)
        _reuse(found, options)
        return 0
    windows, why = _windows(options.windows)
    if why:
        print(f"Windows hosts are SIMULATED, not run by Wine: {why}", flush=True)
    if options.nodes < 0 or (options.hosts is not None and options.hosts < 0):
        raise LabError("--nodes and --hosts: found a number below 0, expected 0 or more")
    if state.alive(options.name):
        notify(f"lab {options.name} runs but is not healthy: starting it anew")
    spec = Spec(
        options.name,
        str(place.directory),
        nodes=options.nodes,
        windows=windows,
        requested=options.windows,
        hosts=options.hosts,
        vsphere=not options.bare,
        kubelets=_kubelets(options.kubelet),
        binaries=launch.binaries(windows, Reporter()),
    )
    notify(f"starting lab {options.name}: {options.nodes} Windows nodes, hosts: {windows}")
    made = launch.up(spec, notify)
    if options.demo:
        access.demo(Lab(made).api)
    notify(f"lab {options.name} is up")
    _explain(made)
    return 0


def _reuse(found: LabState, options: argparse.Namespace) -> None:
    print(f"lab {found.name} is up and healthy since {found.started}: reused, nothing changed")
    nodes = sum(name.startswith("win-") for name in found.nodes)
    if nodes != options.nodes or (options.windows not in ("auto", found.windows)):
        print(
            f"lab {found.name} has {nodes} Windows nodes with hosts: {found.windows}; asked for were {options.nodes} "
            f"with {options.windows}. For those, `python -m lab down --name {found.name}` first."
        )
    _explain(found)


def _explain(found: LabState) -> None:
    print(f"  kubeconfig  {_short(found.kubeconfigs['admin'])}")
    if found.hosts:
        print(f"  inventory   {_short(found.inventories['ntlm-http'])}")


def _short(path: str) -> str:
    here = Path.cwd()
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _down(options: argparse.Namespace) -> int:
    for name in state.names() if options.all else [options.name]:
        started = time.monotonic()
        was_up = launch.down(name, options.keep)
        took = f" ({time.monotonic() - started:.1f} s)"
        print(f"lab {name} is down{took}" if was_up else f"lab {name} was not up")
    return 0


def _status(options: argparse.Namespace) -> int:
    if not state.alive(options.name):
        stale = state.paths(options.name).directory.exists()
        left = ", but left its folder behind (`up` or `down` removes it)" if stale else ""
        others = [name for name in state.names() if name != options.name and state.alive(name)]
        running = f"; up are: {', '.join(others)}" if others else ""
        if options.json:
            print(json.dumps({"name": options.name, "up": False}))
        else:
            print(f"lab {options.name} is not up{left}{running}")
        return 3
    found = control.call(options.name, "status")
    lab = state.load(options.name)
    if options.json:
        print(json.dumps({"name": lab.name, "up": True, **found, "state": json.loads(lab.to_json())}, indent=2))
        return 0 if found["healthy"] else 1
    print(f"lab {lab.name}, Kubernetes {lab.version} at {lab.server}, up since {lab.started}")
    rows: list[tuple[str, ...]] = [("COMPONENT", "STATE", "PORTS", "SECONDS", "MIB", "LOG")]
    for row in found["components"]:
        listening = ",".join(str(port) for port in row["ports"])
        rows.append((row["name"], row["state"], listening, str(row["seconds"]), str(row["mib"]), _short(row["log"])))
    _table(rows)
    if lab.hosts:
        print()
        rows = [("HOST", "STATE", "KIND", "ADDRESS", "WINRM", "WINRM-TLS", "SSH", "AGENT")]
        for host in lab.hosts:
            word = "running" if found["hosts"].get(host.name) else "DOWN"
            ports = (str(host.http), str(host.https), str(host.ssh))
            rows.append((host.name, word, host.kind, host.address, *ports, host.agent))
        _table(rows)
    print("healthy" if found["healthy"] else "NOT healthy")
    return 0 if found["healthy"] else 1


def _table(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _logs(options: argparse.Namespace) -> int:
    folder = state.paths(options.name).logs
    files = {path.stem: path for path in sorted(folder.glob("*.log"))}
    files |= {f"host-{path.parent.name}": path for path in sorted(folder.parent.glob("hosts/*/agent.log"))}
    if (audit := state.paths(options.name).audit).exists():
        files["audit"] = audit
    if options.component is None:
        print("\n".join(files) or f"lab {options.name} has no logs in {folder}")
        return 0
    if options.component not in files:
        raise LabError(f"lab {options.name} has no log {options.component!r}; there are {', '.join(files) or 'none'}")
    with files[options.component].open(encoding="utf-8", errors="replace") as lines:
        while True:
            if text := lines.read(1 << 16):
                sys.stdout.write(text)
            elif options.follow:
                sys.stdout.flush()
                time.sleep(FOLLOW_PAUSE)
            else:
                return 0


def _inventory(options: argparse.Namespace) -> int:
    found = state.load(options.name).inventories
    if options.transport is None:
        _table([*((transport, _short(path)) for transport, path in found.items())])
    elif options.transport in found:
        print(found[options.transport])
    else:
        raise LabError(f"no inventory for {options.transport!r}; there are {', '.join(found)}")
    return 0


def _api(options: argparse.Namespace) -> int:
    control.call(options.name, options.action, name="apiserver")
    return 0


def _node(options: argparse.Namespace) -> int:
    if options.action == "add":
        arguments: dict[str, Any] = {}
        if options.node:
            digits = options.node.removeprefix("win-")
            if not digits.isdigit() or not options.node.startswith("win-"):
                raise LabError(f"node {options.node!r}: expected a name such as win-4")
            arguments["number"] = int(digits)
        print(control.call(options.name, "node-add", **arguments))
    elif options.node:
        control.call(options.name, "node-remove", name=options.node)
    else:
        raise LabError("node remove: name the node")
    return 0


def _host(options: argparse.Namespace) -> int:
    host = state.load(options.name).host(options.host)
    if options.action == "reboot":
        print(control.call(options.name, "reboot", name=host.node))
        return 0
    if options.action != "run":
        service = options.words[0] if options.words else "csi-proxy"
        Lab(state.load(options.name)).set_service(host.name, options.action == "start-service", service)
        return 0
    done = Agent(host.agent, host.name).run(" ".join(options.words))
    sys.stdout.buffer.write(done.stdout)
    sys.stderr.buffer.write(done.stderr)
    return min(done.rc, 255)
