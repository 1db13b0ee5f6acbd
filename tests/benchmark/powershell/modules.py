# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules of ansible.windows that the comparison uses, over the modelled host.

Each takes the module's own arguments and answers the keys that its documentation promises, as far as the peer role and
the action plugins read them. An option that a stand-in does not model is refused, so that a changed role cannot be
measured wrongly.
"""

from __future__ import annotations

import hashlib
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from benchmark.powershell.host import Host, Node, Service, key, parent
from benchmark.powershell.protocol import ModuleCall, NotUnderstood

Result = dict[str, Any]
Handler = Callable[[Host, Mapping[str, Any], bool], Result]

# The script with which the peer role lists pipes begins with this line.
LIST_PIPES = "# list the pipes of csi-proxy"

# Loopback only: a proxy from the environment must not see downloads.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class ModuleFailed(Exception):
    """The module reports a failure with this text."""


def win_file(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    if arguments["state"] != "directory":
        raise NotUnderstood(f"win_file with state {arguments['state']}")
    path = key(arguments["path"])
    missing = path not in host.nodes
    if missing and not check:
        while path not in host.nodes:
            host.nodes[path] = Node()
            path = parent(path)
    return {"changed": missing}


def win_acl_inheritance(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    node = _existing(host, arguments["path"])
    wanted = arguments["state"] == "present"
    changed = node.inherits is not wanted
    if changed and not check:
        node.inherits = wanted
    return {"changed": changed}


def win_acl(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    node = _existing(host, arguments["path"])
    if arguments["type"] != "allow" or arguments.get("state", "present") != "present":
        raise NotUnderstood("win_acl for anything but an allow entry that is present")
    granted = f"{arguments['rights']} {arguments.get('inherit', '')}"
    changed = node.grants.get(arguments["user"]) != granted
    if changed and not check:
        node.grants[arguments["user"]] = granted
    return {"changed": changed}


def win_get_url(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    if arguments.get("force", True):
        raise NotUnderstood("win_get_url with force: true, which downloads on every run")
    algorithm = arguments["checksum_algorithm"]
    wanted = str(arguments["checksum"]).lower()
    path = key(arguments["dest"])
    there = host.nodes.get(path)
    result: Result = {"dest": arguments["dest"], "url": arguments["url"], "status_code": 200}
    if there is None or there.digest(algorithm) != wanted:
        with _OPENER.open(arguments["url"], timeout=60) as reply:
            content = reply.read()
        if hashlib.new(algorithm, content).hexdigest() != wanted:
            raise ModuleFailed(f"The checksum for {arguments['url']} did not match '{wanted}'")
        if parent(path) not in host.nodes:
            raise ModuleFailed(f"The path of destination '{arguments['dest']}' does not exist")
        there = Node(content)
        if not check:
            host.nodes[path] = there
        result["changed"] = True
    else:
        result["changed"] = False
    return result | {"checksum_dest": there.digest(algorithm), "size": len(there.content or b"")}


def win_copy(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    mode = arguments["_copy_mode"]
    path = key(arguments["dest"])
    if mode == "query":
        if arguments["directories"] or arguments["symlinks"]:
            raise NotUnderstood("win_copy of anything but files")
        # The module compares SHA-1, which is what the action plugin sends.
        stale = []
        for file in arguments["files"]:
            there = host.nodes.get(f"{path}\\{key(file['dest'])}")
            if there is None or there.digest("sha1") != file["checksum"]:
                stale.append(file)
        return {"changed": bool(stale), "files": stale, "directories": [], "symlinks": []}
    if mode != "single":
        raise NotUnderstood(f"win_copy in mode {mode}")
    source = _existing(host, arguments["src"])
    changed = path not in host.nodes or host.nodes[path].content != source.content
    if changed and not check:
        host.nodes[path] = Node(source.content)
    return {
        "changed": changed,
        "src": arguments["src"],
        "dest": arguments["dest"],
        "checksum": source.digest("sha1"),
        "size": len(source.content or b""),
        "operation": "file_copy",
        "original_basename": arguments["_original_basename"],
    }


def win_stat(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    node = host.nodes.get(key(arguments["path"]))
    if node is None:
        return {"changed": False, "stat": {"exists": False}}
    stat: Result = {"exists": True, "path": arguments["path"], "isdir": node.content is None}
    if node.content is not None:
        stat |= {"size": len(node.content), "checksum": node.digest(arguments.get("checksum_algorithm", "sha1"))}
    return {"changed": False, "stat": stat}


def win_service(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    name = arguments["name"]
    settings = {k: v for k, v in arguments.items() if k not in ("name", "state") and v is not None}
    before = host.services.get(name)
    after = Service({**before.settings, **settings} if before else settings, arguments["state"])
    if after.state not in ("started", "stopped"):
        raise NotUnderstood(f"win_service with state {after.state}")
    line = str(after.settings["path"])
    program = line.split('"')[1] if line.startswith('"') else line.split()[0]
    if after.state == "started" and not check:
        _existing(host, program)
    changed = before != after
    if changed and not check:
        host.services[name] = after
    return {
        "changed": changed,
        "exists": True,
        "name": name,
        "path": after.settings["path"],
        "start_mode": after.settings.get("start_mode", "auto"),
        "state": "running" if after.state == "started" else "stopped",
        "username": "NT AUTHORITY\\SYSTEM",
        "depended_by": [],
    }


def win_regedit(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    if arguments.get("state", "present") != "present":
        raise NotUnderstood("win_regedit that removes")
    place = (key(arguments["path"]), str(arguments["name"]).lower())
    wanted = (arguments["data"], str(arguments["type"]))
    known = host.registry.get(place)
    if known != wanted and not check:
        host.registry[place] = wanted
    data_changed = known is None or known[0] != wanted[0]
    return {"changed": known != wanted, "data_changed": data_changed, "data_type_changed": False}


def win_powershell(host: Host, arguments: Mapping[str, Any], check: bool) -> Result:
    script = str(arguments["script"])
    if not script.startswith(LIST_PIPES):
        raise NotUnderstood(f"this script: {script[:200]}")
    result: Result = {"changed": False, "output": host.pipes(), "host_out": "", "host_err": "", "result": {}}
    return result | {name: [] for name in ("error", "warning", "verbose", "debug", "information")}


# Module, and the options that its stand-in models.
MODULES: dict[str, tuple[Handler, frozenset[str]]] = {
    "win_file": (win_file, frozenset({"path", "state"})),
    "win_acl_inheritance": (win_acl_inheritance, frozenset({"path", "state"})),
    "win_acl": (win_acl, frozenset({"path", "user", "rights", "type", "state", "inherit"})),
    "win_get_url": (win_get_url, frozenset({"url", "dest", "checksum", "checksum_algorithm", "force"})),
    "win_copy": (
        win_copy,
        frozenset(
            {"src", "dest", "force", "backup", "files", "directories", "symlinks", "_copy_mode", "_original_basename"}
        ),
    ),
    "win_stat": (win_stat, frozenset({"path", "get_checksum", "checksum_algorithm"})),
    "win_service": (
        win_service,
        frozenset(
            {
                "name",
                "display_name",
                "path",
                "start_mode",
                "state",
                "failure_actions",
                "failure_reset_period_sec",
                "dependencies",
            }
        ),
    ),
    "win_regedit": (win_regedit, frozenset({"path", "name", "data", "type", "state"})),
    "win_powershell": (win_powershell, frozenset({"script"})),
}


def run(host: Host, call: ModuleCall) -> Result:
    """Answer a module as it would; NotUnderstood for a module or option that is not modelled."""
    collection, _dot, name = call.name.removeprefix("ansible_collections.").rpartition(".")
    if name not in MODULES or not collection.startswith("ansible.windows"):
        raise NotUnderstood(f"module {call.name} is not modelled; there are {', '.join(MODULES)} of ansible.windows")
    handler, options = MODULES[name]
    unknown = sorted(set(call.arguments) - options)
    if unknown:
        raise NotUnderstood(f"{call.name} with {', '.join(unknown)}; modelled are {', '.join(sorted(options))}")
    host.modules.append(name)
    try:
        result = handler(host, call.arguments, call.check_mode)
    except ModuleFailed as error:
        result = {"failed": True, "changed": False, "msg": str(error)}
    return result | {"invocation": {"module_args": dict(call.arguments)}}


def _existing(host: Host, path: str) -> Node:
    node = host.nodes.get(key(path))
    if node is None:
        raise ModuleFailed(f"{path} does not exist")
    return node
