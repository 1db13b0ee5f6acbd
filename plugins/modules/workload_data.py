#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: workload_data
short_description: Save a baseline of the data of Windows workloads and compare with it
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Saves a baseline of what is on each claim's volume before a change, and compares with it afterwards. Reports each file that differs and what was not
    compared.
  - Stores baselines in ConfigMaps of O(record_namespace), so that a later run on another machine finds them. Anyone who can read ConfigMaps there can
    read the names of the files. With too many files, a baseline has digests of directories, and the report states that.
  - Lists a volume in use through the pod that uses it, with C(cmd) in that pod's own container. Only names, sizes and times are compared. Reads a
    volume that is not in use, because its workload was scaled to 0, through a helper pod with a read-only mount, which is deleted afterwards.
  - Never calls equal what was not read. Locked files, files that the pod's user may not read, files outside of the sample and directories that could
    not be listed are named as not compared.
  - Contents travel through the API server, limited in bytes, rate and time. If a volume holds more than O(limit), names, sizes and times of all
    files are compared, and the contents of a sample, which is the same for the same O(seed).
  - Compares symbolic links and junctions by their target, and does not follow them. Ignores alternate data streams, attributes, access rights,
    C(System Volume Information) and C($RECYCLE.BIN).
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
attributes:
  check_mode:
    description: Can run in check mode; it returns what it would read and how, and creates and writes nothing.
    support: full
  diff_mode:
    description: Will not return details about what has changed; baselines are data, not configuration.
    support: none
options:
  namespace:
    description: Namespace of claims that are listed without one.
    type: str
    default: ''
  claims:
    description: Names of the PersistentVolumeClaims, as C(name) or C(namespace/name). Each must be bound.
    type: list
    elements: str
    default: []
  name:
    description: Name of this set of baselines, such as the name of the upgrade.
    type: str
    default: default
  record_namespace:
    description:
      - Existing namespace for the baselines. If empty, they are only in O(directory).
    type: str
    default: kubewin
  directory:
    description:
      - Directory on the controller for copies of the baselines, one file for each claim. Only its owner can read them.
    type: path
  keep_going:
    description:
      - Continue with the next claim if one cannot be read, and do not fail because data differ. RV(volumes), RV(report) and RV(lost)
        have the result of each claim, and a later comparison reports why a baseline is missing.
    type: bool
    default: false
  forget:
    description: Only remove this set of baselines from the cluster; with O(claims), only those of these claims.
    type: bool
    default: false
  compare:
    description: Compare with the baselines instead of saving them. The task fails if something differs.
    type: bool
    default: false
  renew:
    description: Replace existing baselines. By default they stay, so that you can repeat a run.
    type: bool
    default: false
  growing:
    description:
      - Patterns of files that may grow, such as logs. Their former contents must still be at the beginning. New files that match are not
        difference. V(*) matches any text. A pattern with a slash matches the path from the volume's root, any other one the name. Case is
        ignored.
    type: list
    elements: str
    default: []
  limit:
    description: Maximum MiB through the API server for each claim.
    type: int
    default: 1024
  rate:
    description: Maximum MiB through the API server in one second.
    type: int
    default: 20
  timeout:
    description: Timeout in seconds for one claim. What was not read by then is named as not compared.
    type: int
    default: 900
  seed:
    description: Seed of the sample, if not all files may be read.
    type: str
    default: kubewin
  image:
    description:
      - Image of the helper pod. It needs C(cmd), C(ping) and C(tar), must fit the node's Windows build, and runs as C(ContainerAdministrator).
        Defaults to C(mcr.microsoft.com/windows/nanoserver) with the tag of the node's build.
    type: str
    default: ''
  node:
    description: Node of the helper pod. Defaults to a node that the volume can reach and that has its driver.
    type: str
    default: ''
  tolerations:
    description: Additional tolerations of the helper pod. Taints that mark Windows nodes are always tolerated.
    type: list
    elements: dict
    default: []
  step_timeout:
    description: Timeout in seconds for the start and for the end of the helper pod.
    type: int
    default: 300
  progress_file:
    description: Internal. Progress messages are appended to this file; the module ends when the file is removed.
    type: path
seealso:
  - module: kubewin.csi.storage_proof
"""

EXAMPLES = r"""
- name: Save a baseline of two volumes
  kubewin.csi.workload_data:
    namespace: shop
    claims: [data-orders-0, data-orders-1]
    name: orders-2026

- name: Compare with the baseline; logs may have grown
  kubewin.csi.workload_data:
    namespace: shop
    claims: [data-orders-0, data-orders-1]
    name: orders-2026
    compare: true
    growing: ['*.log', 'journal/*']
"""

RETURN = r"""
volumes:
  description: Result of each claim.
  returned: after the first claim was read
  type: list
  elements: dict
  contains:
    claim:
      description: The claim, as C(namespace/name).
      type: str
    why:
      description: With O(keep_going=true), why it was not read or not compared.
      type: str
    noted:
      description: V(true) if a baseline of the claim exists that was not compared.
      type: bool
    volume:
      description: Its PersistentVolume.
      type: str
    how:
      description: V(content) when its files were read, V(listing) when it was in use and only listed.
      type: str
    place:
      description: Where the baseline is.
      type: str
    kept:
      description: Whether the baseline was there already and stays.
      type: bool
    files:
      description: Number of files.
      type: int
    bytes:
      description: Size of all files in bytes.
      type: int
    read_files:
      description: Number of files that were read.
      type: int
    read_bytes:
      description: Bytes that were read.
      type: int
    verdict:
      description:
        - Result of a comparison. V(same) if everything was compared and is equal, V(incomplete) if nothing differs but not everything was
          compared, V(different).
      type: str
    differences:
      description:
        - The first 1000 differences, with C(path), C(detail) and C(what), which is V(missing), V(added), V(changed), V(written),
          V(shortened), V(rewritten), V(retargeted) or V(replaced).
      type: list
      elements: dict
    not_compared:
      description: The first 1000 paths that were not compared, with C(path) and C(why).
      type: list
      elements: dict
    different:
      description: Number of differences.
      type: int
    uncompared:
      description: Number of paths that were not compared.
      type: int
    equal:
      description: Number of files that were read and are equal.
      type: int
    grown:
      description: Number of files that grew or were added as declared.
      type: int
    listed:
      description: Number of files that were compared by name and size only, because the volume is in use.
      type: int
lost:
  description: Missing, truncated and replaced files, one line each. Files that were added, written to or grew are not included.
  returned: with O(compare=true)
  type: list
  elements: str
report:
  description: The result as text for display.
  returned: after the first claim was read
  type: str
plan:
  description: In check mode, the planned reads.
  returned: in check mode
  type: list
  elements: str
reason:
  description:
    - Stable key of the failure, one of V(data_differs), V(refused), V(baseline_unreadable), V(not_found), V(not_bound), V(in_use),
      V(not_comparable), V(no_node), V(helper_failed), V(left_behind), V(cut), V(conflict), V(interrupted), V(configuration),
      V(forbidden), V(unreachable), V(unauthorized), V(too_many_requests), V(admission_refused), V(api_error).
  returned: failure
  type: str
  sample: data_differs
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.data import explain
from ansible_collections.kubewin.csi.plugins.module_utils.data.baselines import BaselineError, Baselines
from ansible_collections.kubewin.csi.plugins.module_utils.data.choice import Limits
from ansible_collections.kubewin.csi.plugins.module_utils.data.compare import LOST, compare
from ansible_collections.kubewin.csi.plugins.module_utils.data.manifest import Manifest, NotNoted, summary
from ansible_collections.kubewin.csi.plugins.module_utils.data.needs import needs
from ansible_collections.kubewin.csi.plugins.module_utils.data.observe import Found, Request, VolumeReader
from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, failing, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.namespaces import unusable
from ansible_collections.kubewin.csi.plugins.module_utils.kube.permissions import require
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter, watch_over
from ansible_collections.kubewin.csi.plugins.module_utils.stored import plain

ARGUMENT_SPEC = documented(DOCUMENTATION)
# In a result; baselines hold everything.
_SHOWN = 1000
# Errors that are not of one claim.
_OF_ALL = frozenset({"configuration", "forbidden", "refused", "unauthorized", "unreachable"})


class RefusedError(ClusterError):
    """The task cannot be done as it was asked for."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "refused")


def checked(params: dict[str, Any]) -> list[str]:
    """The claims as namespace/name. Raises RefusedError with every wrong option before a cluster is asked."""
    if not params["record_namespace"] and not params["directory"]:
        raise RefusedError("record_namespace and directory are empty, expected one of them for the baselines.")
    if not params["claims"] and not params["forget"]:
        raise RefusedError("claims is empty; name one or more PersistentVolumeClaims.")
    claims = [one if "/" in one else f"{params['namespace']}/{one}" for one in params["claims"]]
    for one in claims:
        namespace, _slash, name = one.partition("/")
        if not namespace or not name or "/" in name:
            raise RefusedError(f"claims has {one!r}, expected namespace/name, or name with the option namespace.")
    for name in ("limit", "rate", "timeout", "step_timeout"):
        if params[name] < 1:
            raise RefusedError(f"{name} is {params[name]}, expected at least 1.")
    if params["compare"] and params["renew"]:
        raise RefusedError(
            "compare and renew are both true, expected one of them: renew would replace the baseline before the comparison."
        )
    return list(dict.fromkeys(claims))


class DataRun:
    """One call. claims: as namespace/name. returned: takes what is to be returned, also if the run fails."""

    def __init__(self, client: Client, params: dict[str, Any], claims: list[str], returned: dict[str, Any]) -> None:
        self._client, self._params, self._claims = client, params, claims
        in_cluster = client if params["record_namespace"] else None
        self.baselines = Baselines(in_cluster, params["record_namespace"], params["name"], params["directory"])
        desired = Request(
            image=params["image"],
            node=params["node"],
            tolerations=tuple(params["tolerations"]),
            growing=tuple(params["growing"]),
            patience=params["step_timeout"],
        )
        limits = Limits(params["limit"] << 20, params["rate"] << 20, params["timeout"], params["seed"])
        notify = reporter(params["progress_file"])
        self._readers = {
            namespace: VolumeReader(client, namespace, desired, limits, notify)
            for namespace in dict.fromkeys(claim.partition("/")[0] for claim in claims)
        }
        self.returned = returned
        if params["compare"]:
            self.returned["lost"] = []
        self.changed = False

    def refuse(self) -> None:
        """What would go wrong half way."""
        params = self._params
        require(
            self._client,
            needs(list(self._readers), params["record_namespace"]),
            "reading volumes",
            "kubewin-csi-data, kubewin-csi-data-pods and kubewin-csi-records",
        )
        if params["record_namespace"] and (why := unusable(self._client, params["record_namespace"], "baselines are")):
            raise RefusedError(why)
        if params["compare"] and not params["keep_going"]:
            absent = [claim for claim in self._claims if not isinstance(self._before(claim), Manifest)]
            if absent:
                raise RefusedError(
                    f"there is no baseline of {', '.join(absent)} in {self._where}. Record one with compare=false "
                    "while the data is known to be correct."
                )

    @property
    def _where(self) -> str:
        stores = [f"namespace {self._params['record_namespace']}"] if self._params["record_namespace"] else []
        return " or ".join([*stores, *([self._params["directory"]] if self._params["directory"] else [])])

    def _before(self, claim: str) -> Manifest | NotNoted | None:
        if not self._params["renew"]:
            return self.baselines.read(claim)
        # What is replaced anyway need not be readable.
        self.baselines.replace(claim)
        return None

    def plan(self) -> Iterator[str]:
        """What would be done, a line a claim."""
        for claim in self._claims:
            try:
                yield self._planned(claim, self._find(claim), self._before(claim))
            except ClusterError as error:
                if not self._params["keep_going"] or error.reason in _OF_ALL:
                    raise
                yield f"{claim}: cannot be read: {error}"

    def writes(self) -> bool:
        """Whether a baseline would be written."""
        return not self._params["compare"] and any(
            not isinstance(self._before(claim), Manifest) for claim in self._claims
        )

    def _planned(self, claim: str, found: Found, before: Manifest | NotNoted | None) -> str:
        through = (
            f"list it through pod {found.using.pod}" if found.using is not None else "read it with a pod of its own"
        )
        if self._params["compare"]:
            return f"{claim}: {through}, and compare it with the baseline of {before.taken if before else 'never'}"
        if isinstance(before, Manifest):
            return f"{claim}: keep the baseline of {before.taken}"
        return f"{claim}: {through}, and record it in {self.baselines.where(claim)}"

    def _find(self, claim: str) -> Found:
        namespace, _slash, name = claim.partition("/")
        return self._readers[namespace].find(name)

    def run(self) -> None:
        """Read one claim after the other."""
        for claim in self._claims:
            try:
                self._one(claim)
            except ClusterError as error:
                if not self._params["keep_going"] or error.reason in _OF_ALL:
                    raise
                self._skipped(claim, str(error))

    def _skipped(self, claim: str, why: str, *, noted: bool = True) -> None:
        if not self._params["compare"]:
            # So that a later comparison can report why there is no baseline.
            now: datetime = self._client.now()
            self.baselines.write(claim, NotNoted(why, now.strftime("%Y-%m-%dT%H:%M:%SZ")), ())
            self.changed = True
        what = "not compared" if self._params["compare"] else "not recorded"
        left = {"noted": True} if self._params["compare"] and noted else {}
        self._report({"claim": claim, "why": why, **left}, f"{claim}: {what}: {why}")

    def _report(self, volume: dict[str, Any], report: str) -> None:
        self.returned["volumes"].append(volume)
        self.returned["report"] = "\n".join(filter(None, (self.returned["report"], report)))

    def _one(self, claim: str) -> None:
        compares, before = self._params["compare"], self._before(claim)
        if isinstance(before, Manifest) and not compares:
            entry: dict[str, Any] = {"claim": claim, "volume": before.volume, "how": before.how}
            entry |= {"place": self.baselines.where(claim), "kept": True, **summary(before)}
            text = f"{explain.taken(before)}; this is the baseline of {before.taken}, which is kept"
            self._report(entry, text)
            return
        if compares and not isinstance(before, Manifest):
            why = (
                f"it could not be recorded at {before.taken}: {before.why}"
                if before
                else f"there is no baseline of it in {self._where}"
            )
            self._skipped(claim, why, noted=False)
            return
        old = before if isinstance(before, Manifest) else None
        reader = self._readers[claim.partition("/")[0]]
        after = reader.take(reader.find(claim.partition("/")[2]), old)
        entry = {
            "claim": claim,
            "volume": after.volume,
            "how": after.how,
            "place": self.baselines.where(claim),
            "kept": False,
        }
        entry |= summary(after)
        if old is None:
            try:
                kept = self.baselines.write(claim, after, self._params["growing"])
            except BaselineError as error:
                if error.reason != "conflict":
                    raise
                # Another run recorded one meanwhile, which this one keeps, or replaces.
                self._one(claim)
                return
            self.changed = True
            self._report(entry, explain.taken(kept if isinstance(kept, Manifest) else after))
            return
        found = compare(old, after, self._params["growing"])
        entry |= {
            "verdict": found.verdict,
            "differences": [plain(difference) for difference in found.differences[:_SHOWN]],
            "not_compared": [{"path": gap.path, "why": gap.why} for gap in found.not_compared[:_SHOWN]],
            "different": len(found.differences),
            "uncompared": len(found.not_compared),
            "equal": found.equal,
            "grown": len(found.grown),
            "listed": found.listed,
        }
        lost = [one for one in found.differences if one.what in LOST]
        self.returned["lost"] += [f"{claim}: {one.what}: {one.path}: {one.detail}" for one in lost[:_SHOWN]]
        self._report(entry, explain.report(old, after, found))


def main() -> None:
    """Check, read one claim after the other, and report the results."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    watch_over(params["progress_file"], "Its pod was deleted; written baselines are kept")
    returned: dict[str, Any] = {"volumes": [], "report": ""}
    with failing(ansible, returned):
        claims = checked(params)
        data_run = DataRun(connect(ansible.params), params, claims, returned)
        if params["forget"]:
            gone = data_run.baselines.noted(claims) if ansible.check_mode else data_run.baselines.forget(claims)
            ansible.exit_json(changed=bool(gone), **returned)
        data_run.refuse()
        if ansible.check_mode:
            ansible.exit_json(changed=data_run.writes(), plan=list(data_run.plan()))
        data_run.run()
    different = [volume["claim"] for volume in returned["volumes"] if volume.get("verdict") == "different"]
    if different and not params["keep_going"]:
        msg = f"data differs on {', '.join(different)}:\n{returned['report']}"
        ansible.fail_json(msg=msg, reason="data_differs", **returned)
    ansible.exit_json(changed=data_run.changed, **returned)


if __name__ == "__main__":
    main()
