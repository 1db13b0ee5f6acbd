# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what support needs of a cluster and its hosts into one archive."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..modules.gather import DOCUMENTATION
from ..plugin_utils.actions.cluster_action import ClusterAction, to_plain
from ..plugin_utils.actions.host_results import HostResult, list_csi_proxies, read_hosts
from ..plugin_utils.actions.secrets import collect_secrets
from ..plugin_utils.actions.summary import brief
from ..plugin_utils.base.documented import read_argument_spec
from ..plugin_utils.base.errors import TaskError
from ..plugin_utils.base.files import write_whole
from ..plugin_utils.base.redaction.redactor import Redactor
from ..plugin_utils.base.redaction.structured import list_structure_names
from ..plugin_utils.base.stored import serialize
from ..plugin_utils.drivers.rollout.snapshot import ObservedHost
from ..plugin_utils.kube.errors import ClusterError
from ..plugin_utils.preflight.report import ReadinessOptions, name_cluster, report_readiness
from ..plugin_utils.support.archive import Missing, Part, build_archive, cut, explain, gather_folder
from ..plugin_utils.support.observe import Gathered, gather

# Of all files before compression. The largest are left out first.
_LIMIT_MIB = 100
# Subdirectories of the folder: files of the hosts, which an earlier task wrote, and the readiness report.
_WRITTEN = ("hosts", "readiness")


class ActionModule(ClusterAction):
    argument_spec = read_argument_spec(DOCUMENTATION)
    remainder = "No archive was written. Run again"

    def work(self, options: Mapping[str, Any]) -> None:
        """Return the files and what is missing; failed only if the archive cannot be written."""
        folder = gather_folder()
        try:
            self._write(options, folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _write(self, options: Mapping[str, Any], folder: Path) -> None:
        self.secrets |= {*self._collect_secrets()} - {""}
        unread = self._report_readiness(options, folder)
        redactor = Redactor([*self.secrets])
        rows = [describe_host(host) for host in read_hosts(self.task_vars)]
        redactor.learn(read_names(folder, rows))
        hosts = redactor.redact_structure(rows)
        gathered = Gathered(redactor)
        if unread:
            gathered.missing.append(Missing("readiness report", redactor.redact_message(unread)))
        try:
            client = self.connect(options, retry_for=20.0)
            gather(client, gathered, self.show)
        except ClusterError as error:
            gathered.missing.append(Missing("cluster", redactor.redact_message(str(error))))
        parts = [cut(part) for part in [*gathered.parts, *read_files(folder, redactor)]]
        archive = build_archive(
            name_cluster(options) or "cluster", parts, gathered.missing, hosts, _LIMIT_MIB, datetime.now(timezone.utc), redactor
        )  # fmt: skip
        path = None
        if not self.check_mode:
            try:
                path = write_whole(options["output_dir"], f"{archive.name}.tar.gz", archive.pack())
            except OSError as error:
                raise TaskError(
                    f"the archive cannot be written to {options['output_dir']}: {error.strerror}, expected a directory with room for it that this "
                    "account can write to. Set kubewin_output_dir to one.",
                    "configuration",
                ) from error
        self.result.update(
            path=path,
            parts=[part.as_dict() for part in archive.files],
            missing=[asdict(gap) for gap in archive.missing],
            lines=explain(archive.files, archive.missing, [str(host["name"]) for host in hosts], path),
        )

    def _report_readiness(self, options: Mapping[str, Any], folder: Path) -> str:
        """Write the readiness report; return why there is none."""
        hosts = tuple(map(ObservedHost.from_option, to_plain(list_csi_proxies(self.task_vars))))
        request = ReadinessOptions(
            hosts=hosts,
            output_dir="" if self.check_mode else str(folder / "readiness"),
            cluster=name_cluster(options),
        )
        try:
            report_readiness(lambda: self.connect(options), request, self)
        except ClusterError as error:
            return str(error)
        return ""

    def _collect_secrets(self) -> Iterator[str]:
        """The secrets of this task and of every host of the play."""
        yield from collect_secrets(self.task_vars, self._templar)
        hostvars = self.task_vars.get("hostvars") or {}
        for host in self.task_vars.get("ansible_play_hosts_all") or ():
            if host in hostvars:
                yield from collect_secrets(hostvars[host], self._templar)


def describe_host(host: HostResult) -> dict[str, Any]:
    """What was read of a host, and why not more."""
    return {
        "name": host.name,
        "node": host.node,
        "problem": host.error or host.latest.problem,
        "csi_proxy": brief(host.state)[0] if host.state else "",
        "findings": [serialize(finding) for finding in host.state.findings] if host.state else [],
        "parts": host.latest.parts,
    }


def read_files(folder: Path, redactor: Redactor) -> Iterator[Part]:
    """What earlier tasks wrote: files of hosts, which may have the secrets of another host, and the readiness report."""
    for path in sorted(path for name in _WRITTEN for path in (folder / name).rglob("*")):
        if path.is_file() and not path.is_symlink():
            name, text = path.relative_to(folder).as_posix(), path.read_text("utf-8", "replace")
            yield Part(
                name,
                redactor.hide_known_secrets(text) if name.startswith("hosts/") else redactor.redact_file(name, text),
            )


def read_names(folder: Path, hosts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The names of hosts, nodes and objects that this run knows already."""
    for host in hosts:
        yield from (str(host.get(field) or "") for field in ("name", "node"))
    try:
        yield from list_structure_names(json.loads((folder / "readiness" / "snapshot.json").read_text("utf-8")))
    except (OSError, ValueError, RecursionError):
        # Without the report, names are learned from the objects that are read.
        return
