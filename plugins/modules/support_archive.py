#!/usr/bin/python
# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: support_archive
short_description: "Internal: gather support data of a cluster into one archive"
version_added: 1.0.0
author: kubewin.csi contributors (@kubewin)
description:
  - Reads Windows nodes, node plugins with their logs, VolumeAttachments and events, adds the data of the hosts, and writes one
    archive with a page to read it.
  - Replaces secrets in everything. Names of hosts, namespaces and workloads stay.
  - What cannot be read is named in the archive and in the result. It fails only if the archive cannot be written.
  - Internal to the playbook C(gather).
extends_documentation_fragment:
  - kubewin.csi.cluster
  - kubewin.csi.attributes
  - kubewin.csi.attributes.info
attributes:
  check_mode:
    description: Can run in check mode.
    support: full
    details: In check mode no archive is written.
options:
  cluster_name:
    description: Name of the cluster on the page.
    type: str
    default: ""
  folder:
    description: Directory with the files that were read on the hosts. It is removed.
    type: path
    required: true
  hosts:
    description: The hosts of the run, each with C(name), C(node), C(problem), C(csi_proxy), C(findings) and C(parts).
    type: list
    elements: dict
    default: []
  missing:
    description: What earlier tasks could not read, each with C(what) and C(why).
    type: list
    elements: dict
    default: []
  limit_mib:
    description: MiB that all files together may have before they are compressed. Those that explain least are left out first.
    type: int
    default: 100
  output_dir:
    description: Directory of the archive.
    type: path
    required: true
  secrets:
    description: Values to replace everywhere. The action adds those of the run.
    type: list
    elements: str
    default: []
  progress_file:
    description: "Internal: progress messages are appended to this file."
    type: path
"""

EXAMPLES = r"""
- name: Write the archive
  kubewin.csi.support_archive:
    folder: /tmp/kubewin-gather
    output_dir: /srv/support
"""

RETURN = r"""
path:
  description: The archive, or nothing in check mode.
  returned: success
  type: str
  sample: /srv/support/kubewin-gather-20270102T030405Z.tar.gz
parts:
  description: The files in it, each with C(path), C(bytes) and C(problem).
  returned: success
  type: list
  elements: dict
missing:
  description: What could not be gathered, each with C(what), C(why) and C(rule).
  returned: success
  type: list
  elements: dict
lines:
  description: Gathered and missing data, as text.
  returned: success
  type: list
  elements: str
"""

import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.documented import documented
from ansible_collections.kubewin.csi.plugins.module_utils.files import write_whole
from ansible_collections.kubewin.csi.plugins.module_utils.kube.connect import connect, module
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.progress import reporter
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.redactor import Redactor
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.structured import structure_names
from ansible_collections.kubewin.csi.plugins.module_utils.support.explain import explain
from ansible_collections.kubewin.csi.plugins.module_utils.support.observe import Gathered, gather
from ansible_collections.kubewin.csi.plugins.module_utils.support.page import render_page
from ansible_collections.kubewin.csi.plugins.module_utils.support.parts import MEBIBYTE, Missing, Part, cut, fit

ARGUMENT_SPEC = documented(DOCUMENTATION, secret="secrets")


def stored(folder: str, redactor: Redactor) -> Iterator[Part]:
    """What earlier tasks wrote: files of hosts, which may have the secrets of another host, and the readiness report."""
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file() and not path.is_symlink():
            name, text = path.relative_to(folder).as_posix(), path.read_text("utf-8", "replace")
            yield Part(
                name, redactor.hide_known_secrets(text) if name.startswith("hosts/") else redactor.report(name, text)
            )


def names(folder: str, hosts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The names of hosts, nodes and objects that this run knows already."""
    for host in hosts:
        yield from (str(host.get(field) or "") for field in ("name", "node"))
    try:
        yield from structure_names(json.loads((Path(folder) / "readiness" / "snapshot.json").read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        # Without the report, names are learned from the objects that are read.
        return


def not_read(hosts: Sequence[Mapping[str, Any]]) -> Iterator[Missing]:
    """Hosts, and files of hosts."""
    for host in hosts:
        if host.get("problem"):
            yield Missing(f"host {host['name']}", str(host["problem"]))
        for part in host.get("parts") or ():
            if part.get("problem"):
                yield Missing(f"hosts/{host['name']}/{part['path']}", str(part["problem"]))


def packed(name: str, parts: Sequence[Part], at: datetime) -> bytes:
    """The archive: one directory, files for their owner alone."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for part in parts:
            entry = tarfile.TarInfo(f"{name}/{part.path}")
            content = part.text.encode("utf-8", "replace")
            entry.size, entry.mode, entry.mtime = len(content), 0o600, int(at.timestamp())
            archive.addfile(entry, io.BytesIO(content))
    return raw.getvalue()


def main() -> None:
    """Read the cluster, put all of it together, and write it."""
    ansible = module(ARGUMENT_SPEC)
    params = ansible.params
    redactor = Redactor(params["secrets"] or ())
    at = datetime.now(timezone.utc)
    gathered = Gathered(redactor)
    redactor.learn(names(params["folder"], params["hosts"] or []))
    hosts = redactor.structure(params["hosts"] or [])
    gathered.missing += [
        Missing(str(one["what"]), redactor.message(str(one["why"]))) for one in params["missing"] or ()
    ]
    try:
        gather(
            connect(ansible.params, retry_for=min(20.0, float(params["api_timeout"]))),
            gathered,
            reporter(params["progress_file"]),
        )
    except ClusterError as error:
        gathered.missing.append(Missing("cluster", redactor.message(str(error))))
    try:
        parts = [cut(part) for part in [*gathered.parts, *stored(params["folder"], redactor)]]
    finally:
        shutil.rmtree(params["folder"], ignore_errors=True)
    kept, left = fit(parts, params["limit_mib"] * MEBIBYTE)
    missing = [*gathered.missing, *not_read(hosts)]
    missing += [Missing(one.path, one.problem) for one in kept if one.problem]
    missing += [Missing(one.path, f"left out: the archive is limited to {params['limit_mib']} MiB.") for one in left]
    named = params["cluster_name"] or "cluster"
    facts = {
        "Gathered at": at.strftime("%Y-%m-%d %H:%M:%S UTC"),
        "Hosts": str(len(hosts)),
        "Missing": str(len(missing)),
    }
    summary = {
        "cluster": named,
        "taken_at": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "hosts": hosts,
        "missing": [{"what": one.what, "why": one.why, "rule": one.rule} for one in missing],
        "files": [one.as_dict() for one in kept],
    }
    page = Part("index.html", redactor.hide_known_secrets(render_page(named, facts, kept, missing, hosts)))
    files = [page, Part("summary.json", redactor.hide_known_secrets(json.dumps(summary, indent=1))), *kept]
    name = f"kubewin-gather-{at.strftime('%Y%m%dT%H%M%SZ')}"
    path = None
    if not ansible.check_mode:
        try:
            path = write_whole(params["output_dir"], f"{name}.tar.gz", packed(name, files, at))
        except OSError as error:
            ansible.fail_json(
                msg=f"the archive cannot be written to {params['output_dir']}: {error.strerror}; a directory that this account can "
                "write to is expected. Set kubewin_output_dir to one.",
                reason="configuration",
            )
    ansible.exit_json(
        changed=False,
        path=path,
        parts=[one.as_dict() for one in files],
        missing=summary["missing"],
        lines=explain(files, missing, [str(one["name"]) for one in hosts], path),
    )


if __name__ == "__main__":
    main()
