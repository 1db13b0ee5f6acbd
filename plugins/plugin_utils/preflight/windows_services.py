# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Windows Machine Config Operator's list of services, as its daemon on each node reads it, and what it overlooks. Pure.

The daemon refuses the whole list for one fault in it (pkg/servicescm/servicescm.go of
https://github.com/openshift/windows-machine-config-operator). Nothing here is ever written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.decode import read_json
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.csi_proxy import SERVICE_NAMES

PREFIX = "windows-services-"

_REQUIRED = ("services", "files")
_OPTIONAL = ("environmentVars", "watchedEnvironmentVars")


def faults(data: Mapping[str, str]) -> tuple[str, ...]:
    """Why the daemon refuses this list; empty when it takes it."""
    parsed, wrong = _parse(data)
    if wrong:
        return wrong
    return tuple(_service_faults([one for one in parsed["services"] if isinstance(one, dict)]))


def _parse(data: Mapping[str, str]) -> tuple[dict[str, Any], tuple[str, ...]]:
    missing = [key for key in _REQUIRED if key not in data]
    unknown = [key for key in data if key not in (*_REQUIRED, *_OPTIONAL)]
    wrong = [f"key {key} is missing" for key in missing] + [f"key {key} is unknown" for key in unknown]
    parsed: dict[str, Any] = {}
    for key, text in data.items():
        if key in unknown:
            continue
        try:
            parsed[key] = read_json(text)
        except ValueError as error:
            wrong.append(f"key {key} is not JSON: {error}")
            continue
        kind: type = dict if key == "environmentVars" else list
        if not isinstance(parsed[key], kind):
            wrong.append(f"key {key} is a {type(parsed[key]).__name__}, expected a {kind.__name__}")
    return parsed, tuple(wrong)


def _service_faults(services: list[dict[str, Any]]) -> Iterator[str]:
    by_name = {str(one.get("name", "")): one for one in services}
    for name, one in by_name.items():
        if not one.get("bootstrap"):
            continue
        if one.get("nodeVariablesInCommand"):
            yield f"bootstrap service {name} uses node variables, which do not exist yet"
        for other in one.get("dependencies") or ():
            if other in by_name and not by_name[other].get("bootstrap"):
                yield f"bootstrap service {name} depends on {other}, which is not one"
    cycle = _cycle(by_name)
    if cycle:
        yield f"services have a dependency cycle: {' -> '.join(cycle)}"
    boot = {int(one.get("priority") or 0) for one in services if one.get("bootstrap")}
    later = {int(one.get("priority") or 0) for one in services if not one.get("bootstrap")}
    if boot and later and max(boot) >= min(later):
        yield f"a bootstrap service has priority {max(boot)} and another service {min(later)}, expected bootstrap services first"


def _cycle(by_name: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A circle of dependencies, whatever the order of the list; services that are not in it may be depended on."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done or name not in by_name:
            return []
        for other in by_name[name].get("dependencies") or ():
            found = visit(str(other), [*path, name])
            if found:
                return found
        done.add(name)
        return []

    return next((found for name in by_name if (found := visit(name, []))), [])


def overlooked(data: Mapping[str, str], *, immutable: bool, brings_csi_proxy: bool) -> tuple[str, ...]:
    """What the daemon takes and storage trips over. brings_csi_proxy: this release of the operator should."""
    parsed, wrong = _parse(data)
    if wrong:
        return ()
    services = {str(one.get("name", "")): one for one in parsed["services"] if isinstance(one, dict)}
    found = []
    proxy = next((services[name] for name in SERVICE_NAMES if name in services), None)
    if proxy is None and brings_csi_proxy:
        found.append("it lacks the service csi-proxy, which this release of the operator includes")
    if proxy is not None and "-windows-service" not in str(proxy.get("path", "")):
        found.append("the command of csi-proxy lacks -windows-service, so the service manager stops it")
    if proxy is not None and proxy.get("bootstrap"):
        found.append("csi-proxy is a bootstrap service, so it starts before the node has joined")
    if not immutable:
        found.append("it is not immutable, so it may have changed since the operator wrote it")
    return tuple(found)
