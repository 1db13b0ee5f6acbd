# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Compares the rendered DaemonSets with upstream's, apart from the differences that are meant.

Upstream's manifests are not kept here. With clones of the drivers' repositories below one folder, each under its own name,

    PYTHONPATH=.collections:tests python -m unit.roles.upstream ~/clones

prints every difference that `tests/unit/manifests/differences.yaml` does not explain, and every explanation that nothing
needs. It ends with 1 when there is one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import yaml
from unit.roles.manifests import FOLDER, Case, cases


@dataclass(frozen=True, slots=True)
class Source:
    """Where upstream keeps a mode's manifest; {release} is filled in."""

    repository: str
    commit: str
    path: str


# AWS EBS has its HostProcess mode in a chart's template only: it was compared manually, not here.
SOURCES: Mapping[tuple[str, str], Source] = {
    ("vsphere", "csi_proxy"): Source("vsphere-csi-driver", "v{release}", "manifests/vanilla/vsphere-csi-driver.yaml"),
    ("vsphere", "host_process"): Source(
        "vsphere-csi-driver", "v{release}", "manifests/vanilla/vsphere-csi-driver.yaml"
    ),
    ("aws_ebs", "csi_proxy"): Source("aws-ebs-csi-driver", "v{release}", "deploy/kubernetes/base/node-windows.yaml"),
    ("azure_disk", "csi_proxy"): Source(
        "azuredisk-csi-driver", "HEAD", "deploy/v{release}/csi-azuredisk-node-windows.yaml"
    ),
    ("azure_disk", "host_process"): Source(
        "azuredisk-csi-driver", "HEAD", "deploy/v{release}/csi-azuredisk-node-windows-hostprocess.yaml"
    ),
    ("azure_file", "csi_proxy"): Source(
        "azurefile-csi-driver", "HEAD", "deploy/v{release}/csi-azurefile-node-windows.yaml"
    ),
    ("azure_file", "host_process"): Source(
        "azurefile-csi-driver", "HEAD", "deploy/v{release}/csi-azurefile-node-windows-hostprocess.yaml"
    ),
    ("gce_pd", "csi_proxy"): Source(
        "gcp-compute-persistent-disk-csi-driver", "v{release}", "deploy/kubernetes/base/node_windows/node.yaml"
    ),
    ("smb", "csi_proxy"): Source("csi-driver-smb", "v{release}", "deploy/v{release}/csi-smb-node-windows.yaml"),
    ("smb", "host_process"): Source(
        "csi-driver-smb", "v{release}", "deploy/v{release}/csi-smb-node-windows-hostprocess.yaml"
    ),
}

CONTAINERS = {
    "node-driver-registrar": "registrar",
    "csi-driver-registrar": "registrar",
    "liveness-probe": "liveness",
    "init": "init",
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is meant: paths of `facts` by pattern, in some modes ("smb", "smb-csi_proxy") or, when empty, in all."""

    path: str
    why: str
    only: tuple[str, ...] = ()

    def explains(self, path: str, driver: str, mode: str) -> bool:
        """Whether it is the reason for a difference at that path."""
        return fnmatchcase(path, self.path) and (
            not self.only or driver in self.only or f"{driver}-{mode}" in self.only
        )


def differences() -> tuple[Difference, ...]:
    """What differs from upstream on purpose."""
    entries = yaml.safe_load((FOLDER / "differences.yaml").read_text(encoding="utf-8"))
    return tuple(Difference(one["path"], one["why"], tuple(one.get("only", ()))) for one in entries)


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Paths and leaf values; lists and volume sources are leaves."""
    if not isinstance(value, dict) or not value:
        return {prefix: value}
    return {
        path: leaf
        for key, inner in value.items()
        for path, leaf in flatten(inner, f"{prefix}.{key}" if prefix else key).items()
    }


def facts(daemon_set: Mapping[str, Any]) -> dict[str, Any]:
    """A DaemonSet as paths and values.

    Lists whose elements have names are keyed by them, since their order means nothing; pipes by their own name, since the
    name of their volume means nothing. Kubernetes reads a hostPath without a type as one with an empty type.
    """
    spec = daemon_set["spec"]["template"]["spec"]
    pod = {key: value for key, value in spec.items() if key not in ("containers", "initContainers", "volumes")}
    result = flatten(
        {
            "metadata": daemon_set["metadata"],
            "spec": {
                **{key: value for key, value in daemon_set["spec"].items() if key != "template"},
                "template": {"metadata": daemon_set["spec"]["template"]["metadata"], "spec": pod},
            },
        }
    )
    for container in [*spec.get("initContainers", []), *spec["containers"]]:
        role = CONTAINERS.get(container["name"], "driver")
        for mount in container.get("volumeMounts", []):
            result.update(
                flatten({key: value for key, value in mount.items() if key != "name"}, f"{role}.mount.{_of(mount)}")
            )
        for entry in container.get("env", []):
            result[f"{role}.env.{entry['name']}"] = entry.get("value", entry.get("valueFrom"))
        for port in container.get("ports", []):
            result[f"{role}.port.{port['name']}"] = port["containerPort"]
        rest = {key: value for key, value in container.items() if key not in ("env", "ports", "volumeMounts")}
        result.update(flatten(rest, role))
    for volume in spec.get("volumes", []):
        path = volume.get("hostPath", {}).get("path", "")
        name = path.rpartition("\\")[2] if "\\pipe\\" in path else volume["name"]
        source = {"type": "", **volume["hostPath"]} if "hostPath" in volume else "emptyDir"
        result[f"volume.{name}"] = source
    return result


def _of(mount: Mapping[str, Any]) -> str:
    path = str(mount["mountPath"])
    return path.rpartition("\\")[2] if "\\pipe\\" in path else str(mount["name"])


def different(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> set[str]:
    """The paths at which two DaemonSets are not the same."""
    return {path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path)}


def theirs(case: Case, clones: Path) -> dict[str, Any] | None:
    """Upstream's DaemonSet, None where there is nothing to compare with."""
    source = SOURCES.get((case.driver.key, case.rule.mode))
    if source is None:
        return None
    place = f"{source.commit}:{source.path}".replace("{release}", case.version)
    clone = clones / source.repository
    shown = subprocess.run(["git", "-C", str(clone), "show", place], capture_output=True, text=True, check=True)
    objects = [item for item in yaml.safe_load_all(shown.stdout) if item]
    found: dict[str, Any] = next(
        item for item in objects if item["kind"] == "DaemonSet" and item["metadata"]["name"] == case.driver.daemonset
    )
    return found


def unexplained(clones: Path) -> Iterator[str]:
    """One line for every difference that is not meant, and for every explanation that nothing needs."""
    known = differences()
    used: set[Difference] = set()
    for case in cases():
        upstream = theirs(case, clones)
        if upstream is None:
            continue
        ours, other = facts(case.daemon_set()), facts(upstream)
        for path in sorted(different(ours, other)):
            reasons = [one for one in known if one.explains(path, case.driver.key, case.rule.mode)]
            used.update(reasons)
            if not reasons:
                yield f"{case.name}: {path}: ours {ours.get(path)!r}, upstream's {other.get(path)!r}"
    compared = {"-".join(pair) for pair in SOURCES} | {driver for driver, _mode in SOURCES}
    for one in known:
        if one not in used and (not one.only or compared & set(one.only)):
            yield f"differences.yaml: {one.path}: no difference needs this"


def main() -> int:
    """Print what is not explained."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    lines = list(unexplained(Path(sys.argv[1])))
    print("\n".join(lines) or "as upstream, apart from what is meant")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
