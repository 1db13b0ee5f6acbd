#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_data
short_description: Note what is on the volumes of Windows workloads, and compare it later
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Takes a baseline of what is on each claim's volume before something is changed, and says afterwards exactly which file
    differs and what was not compared.
  - A volume in use is listed through the pod that uses it, with C(cmd) in that pod's own container; names, sizes and times are
    all that is looked at. A volume that nobody uses, because its workload was scaled to 0, is read too, by a pod that this
    module makes on it, which cannot write, and deletes again.
  - What nobody could read is never called equal. A locked file, one that the pod's user may not read, one outside of the sample
    and a folder that could not be listed are each named as not compared.
  - Contents go through the API server, so they are limited in bytes, rate and time. When a volume holds more than O(limit), names,
    sizes and times are compared of all files and contents of a sample, which is the same for the same O(seed).
  - Symbolic links and junctions are compared by where they lead, and never followed. Alternate data streams, attributes and access
    rights are not looked at, nor are C(System Volume Information) and C($RECYCLE.BIN).
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it says what it would look at and how, and makes and writes nothing.
    support: full
  diff_mode:
    description: Will not return details about what has changed; baselines are data, not configuration.
    support: none
options:
  namespace:
    description: Namespace of the claims.
    type: str
    required: true
  claims:
    description: Names of the PersistentVolumeClaims. Each has to be bound.
    type: list
    elements: str
    required: true
  directory:
    description:
      - Existing directory on this machine where the baselines are, a file a claim. Names of files may be secrets, so only its owner can
        read a baseline.
    type: path
    required: true
  compare:
    description: Compare with the baselines, instead of taking them. The task fails when something differs.
    type: bool
    default: false
  renew:
    description: Take a baseline anew although there is one. Without it the one that is there stays, so that a run can be repeated.
    type: bool
    default: false
  growing:
    description:
      - Patterns of files that may grow, such as logs. Of these what was there before has to be there still, at the beginning; new ones
        are no difference. V(*) stands for anything. A pattern with a slash is about the path from the volume's root, any other
        about the name; case does not matter.
    type: list
    elements: str
    default: []
  limit:
    description: MiB that may go through the API server for each claim.
    type: int
    default: 1024
  rate:
    description: MiB that may go through the API server each second.
    type: int
    default: 20
  timeout:
    description: Seconds that looking at one claim may take. What was not read by then is named as not compared.
    type: int
    default: 900
  seed:
    description: Decides which files are in the sample when not all of them may be read.
    type: str
    default: kubewin
  image:
    description:
      - Image of the pod that reads; it has to hold C(cmd), C(ping) and C(tar) and to fit the node's build of Windows. Without it
        C(mcr.microsoft.com/windows/nanoserver) with the tag of the node's build. It runs as C(ContainerAdministrator).
    type: str
    default: ''
  node:
    description: Node of the pod that reads. Without it one that the volume can go to, with its driver if there is such a one.
    type: str
    default: ''
  tolerations:
    description: Tolerations of the pod that reads besides those for taints that only say Windows.
    type: list
    elements: dict
    default: []
  step_timeout:
    description: Seconds until the pod that reads has to run, and until it has to be gone.
    type: int
    default: 300
  progress_file:
    description: The action sets it. Lines for whoever waits are added to this file, and the run ends when it disappears.
    type: path
seealso:
  - module: kubewin.csi.storage_proof
"""

EXAMPLES = r"""
- name: Note what is on two volumes
  kubewin.csi.workload_data:
    namespace: shop
    claims: [data-orders-0, data-orders-1]
    directory: /srv/upgrade/baselines

- name: Say whether everything is still there, whatever the logs got in between
  kubewin.csi.workload_data:
    namespace: shop
    claims: [data-orders-0, data-orders-1]
    directory: /srv/upgrade/baselines
    compare: true
    growing: ['*.log', 'journal/*']
"""

RETURN = r"""
volumes:
  description: What came of each claim.
  returned: once the first was looked at
  type: list
  elements: dict
  contains:
    claim:
      description: The claim.
      type: str
    volume:
      description: Its PersistentVolume.
      type: str
    how:
      description: V(content) when its files were read, V(listing) when it was in use and only listed.
      type: str
    file:
      description: The baseline.
      type: str
    kept:
      description: Whether the baseline was there already and stays.
      type: bool
    files:
      description: How many files there are.
      type: int
    bytes:
      description: How much they hold.
      type: int
    read_files:
      description: How many of them were read.
      type: int
    read_bytes:
      description: How much of it was read.
      type: int
    verdict:
      description:
        - Of a comparison. V(same) when everything was compared and is equal, V(incomplete) when nothing differs and not everything was
          compared, V(different).
      type: str
    differences:
      description:
        - The first 1000 differences, with C(path), C(told) and C(what), which is V(missing), V(added), V(changed), V(written),
          V(shortened), V(rewritten), V(retargeted) or V(replaced).
      type: list
      elements: dict
    not_compared:
      description: The first 1000 paths that were not compared, with C(path) and C(why).
      type: list
      elements: dict
    different:
      description: How many differences there are.
      type: int
    uncompared:
      description: How many paths were not compared.
      type: int
    equal:
      description: How many files were read and are equal.
      type: int
    grown:
      description: How many files grew, or came, as was declared.
      type: int
    listed:
      description: How many files were compared by name and size alone, since the volume was in use.
      type: int
report:
  description: All of it for people.
  returned: once the first was looked at
  type: str
plan:
  description: In check mode, what would be looked at and how.
  returned: in check mode
  type: list
  elements: str
reason:
  description:
    - Why the task failed, as a word that does not change. One of V(data_differs), V(refused), V(not_found), V(not_bound), V(in_use),
      V(not_comparable), V(no_node), V(helper_failed), V(left_behind), V(cut), V(conflict), V(interrupted), V(configuration),
      V(forbidden), V(unreachable), V(unauthorized), V(too_many_requests), V(admission_refused), V(api_error).
  returned: failure
  type: str
  sample: data_differs
"""

import os
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.cluster.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.permissions import require
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.progress import Interrupted, teller, watch_over
from ansible_collections.kubewin.csi.plugins.module_utils.cluster.volume_data import Found, Looker, Wishes
from ansible_collections.kubewin.csi.plugins.module_utils.data import explain
from ansible_collections.kubewin.csi.plugins.module_utils.data.choice import Limits
from ansible_collections.kubewin.csi.plugins.module_utils.data.compare import compare
from ansible_collections.kubewin.csi.plugins.module_utils.data.manifest import (
    Manifest,
    NoManifest,
    from_json,
    summary,
)
from ansible_collections.kubewin.csi.plugins.module_utils.data.needs import needs
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole

ARGUMENT_SPEC: dict[str, Any] = {
    "namespace": {"type": "str", "required": True},
    "claims": {"type": "list", "elements": "str", "required": True},
    "directory": {"type": "path", "required": True},
    "compare": {"type": "bool", "default": False},
    "renew": {"type": "bool", "default": False},
    "growing": {"type": "list", "elements": "str", "default": []},
    "limit": {"type": "int", "default": 1024},
    "rate": {"type": "int", "default": 20},
    "timeout": {"type": "int", "default": 900},
    "seed": {"type": "str", "default": "kubewin"},
    "image": {"type": "str", "default": ""},
    "node": {"type": "str", "default": ""},
    "tolerations": {"type": "list", "elements": "dict", "default": []},
    "step_timeout": {"type": "int", "default": 300},
    "progress_file": {"type": "path"},
}
# In a result; files hold everything.
_SHOWN = 1000


class Refused(Exception):
    """It cannot be done as it was asked for."""


def checked(params: dict[str, Any]) -> None:
    """Everything that is wrong with the options before a cluster is asked."""
    if not params["claims"]:
        raise Refused("claims is empty; name one or more PersistentVolumeClaims.")
    for name in ("limit", "rate", "timeout", "step_timeout"):
        if params[name] < 1:
            raise Refused(f"{name} is {params[name]}; at least 1 is expected.")
    if params["compare"] and params["renew"]:
        raise Refused("compare and renew are both true: the baseline would be gone before it is compared with.")
    if not os.path.isdir(params["directory"]):
        raise Refused(
            f"directory {params['directory']} does not exist on this machine; make it, where it lasts long enough."
        )


def baseline(params: dict[str, Any], claim: str) -> str:
    """Path of a claim's baseline. Neither namespaces nor claims hold an underscore."""
    return os.path.join(params["directory"], f"{params['namespace']}_{claim}.jsonl")


def load(path: str) -> Manifest | None:
    """A baseline, None when there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            return from_json(file.read())
    except FileNotFoundError:
        return None
    except (NoManifest, OSError) as error:
        raise Refused(f"the baseline {path} cannot be read: {error}. Remove it and take another one.") from error


def store(path: str, manifest: Manifest) -> None:
    """Whole or not at all, for its owner alone, and on the disk before anything is changed."""
    folder, name = os.path.split(path)
    try:
        write_whole(folder, name, manifest.to_json().encode())
    except OSError as error:
        raise Refused(
            f"the baseline {path} cannot be written: {error}. Nothing was changed; make room or give another directory."
        ) from error


def known(params: dict[str, Any]) -> dict[str, Manifest | None]:
    """The baselines that are there. Raises Refused where one is to be compared with and is not."""
    # What is replaced anyway need not be readable.
    found = {
        claim: None if params["renew"] else load(baseline(params, claim)) for claim in dict.fromkeys(params["claims"])
    }
    absent = [claim for claim, one in found.items() if one is None]
    if params["compare"] and absent:
        raise Refused(
            f"there is no baseline of {', '.join(absent)} in {params['directory']}, and what was not noted before cannot be "
            "compared; take it with compare=false while the data are known to be right."
        )
    return found


def planned(params: dict[str, Any], found: Found, before: Manifest | None) -> str:
    """What would be done about one claim."""
    name = f"{params['namespace']}/{found.claim['metadata']['name']}"
    through = f"list it through pod {found.using.pod}" if found.using is not None else "read it with a pod of its own"
    if params["compare"]:
        return f"{name}: {through}, and compare it with the baseline of {before.taken if before else 'never'}"
    if before is not None and not params["renew"]:
        return f"{name}: keep the baseline of {before.taken}"
    return f"{name}: {through}, and note it in {baseline(params, found.claim['metadata']['name'])}"


def one(
    params: dict[str, Any], looker: Looker, claim: str, before: Manifest | None
) -> tuple[dict[str, Any], str, bool]:
    """(result, report, whether a baseline was written) of one claim."""
    path = baseline(params, claim)
    if before is not None and not params["compare"] and not params["renew"]:
        told = {
            "claim": claim,
            "volume": before.volume,
            "how": before.how,
            "file": path,
            "kept": True,
            **summary(before),
        }
        return told, f"{explain.taken(before)}; this is the baseline of {before.taken}, which stays", False
    after = looker.take(looker.find(claim), before if params["compare"] else None)
    told = {"claim": claim, "volume": after.volume, "how": after.how, "file": path, "kept": False, **summary(after)}
    if before is None or not params["compare"]:
        store(path, after)
        return told, explain.taken(after), True
    found = compare(before, after, params["growing"])
    told.update(
        verdict=found.verdict,
        differences=[difference.as_dict() for difference in found.differences[:_SHOWN]],
        not_compared=[{"path": gap.path, "why": gap.why} for gap in found.not_compared[:_SHOWN]],
        different=len(found.differences),
        uncompared=len(found.not_compared),
        equal=found.equal,
        grown=len(found.grown),
        listed=found.listed,
    )
    return told, explain.report(before, after, found), False


def main() -> None:
    """Check, look at one claim after the other, and say what came of it."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    told: dict[str, Any] = {"volumes": [], "report": ""}
    changed = False
    reports: list[str] = []
    watch_over(params["progress_file"])
    try:
        checked(params)
        before = known(params)
        client = connect(ansible)
        require(client, needs(params["namespace"]), "looking at volumes", "kubewin-csi-data")
        wishes = Wishes(
            image=params["image"],
            node=params["node"],
            tolerations=tuple(params["tolerations"]),
            growing=tuple(params["growing"]),
            patience=params["step_timeout"],
        )
        limits = Limits(params["limit"] << 20, params["rate"] << 20, params["timeout"], params["seed"])
        looker = Looker(client, params["namespace"], wishes, limits, teller(params["progress_file"]))
        if ansible.check_mode:
            plan = [planned(params, looker.find(claim), noted) for claim, noted in before.items()]
            writes = not params["compare"] and (params["renew"] or None in before.values())
            ansible.exit_json(changed=writes, plan=plan)
        for claim, noted in before.items():
            result, report, wrote = one(params, looker, claim, noted)
            told["volumes"].append(result)
            reports.append(report)
            told["report"] = "\n".join(reports)
            changed = changed or wrote
    except Refused as error:
        ansible.fail_json(msg=str(error), reason="refused", **told)
    except ClusterError as error:
        ansible.fail_json(msg=str(error), reason=error.reason, **told)
    except Interrupted:
        msg = "the run was ended from outside; the pod that reads was taken away, and baselines that were written stay"
        ansible.fail_json(msg=msg, reason="interrupted", **told)
    different = [volume["claim"] for volume in told["volumes"] if volume.get("verdict") == "different"]
    if different:
        msg = f"data differ on {', '.join(different)}:\n{told['report']}"
        ansible.fail_json(msg=msg, reason="data_differs", **told)
    ansible.exit_json(changed=changed, **told)


if __name__ == "__main__":
    main()
