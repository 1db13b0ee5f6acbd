# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that reads a cluster once and reports the cost.

``python -m benchmark.reading SERVER``, with a JSON list of facts of hosts on standard input: reads and evaluates as
preflight_info does. With ``--json``: the same pages through json.loads, of which only the decoding is counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import sys
import time
from datetime import datetime, timezone
from typing import Any

from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.rollout.snapshot import ObservedHost
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.connect import create_client
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.evaluate import evaluate
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.observe import take
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.report import pause_collector

from benchmark.apipeer import KINDS
from benchmark.fleet import Fleet


def ours(client: Client, hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """Read and evaluate, everything counted."""
    began, cpu = time.monotonic(), time.process_time()
    with pause_collector():
        snapshot = take(
            client, hosts=tuple(ObservedHost.from_option(host) for host in hosts), hosts_at=datetime.now(timezone.utc)
        )
        reading = time.process_time() - cpu
        report = evaluate(snapshot)
    return {
        "seconds": time.monotonic() - began,
        "cpu": time.process_time() - cpu,
        "reading": reading,
        "verdict": report.verdict,
        "volumes": len(report.volumes),
    }


def decoding(client: Client) -> dict[str, Any]:
    """The same lists through json.loads, one page at a time; and once more without garbage collection, which ours does
    without as well."""
    spent = {True: 0.0, False: 0.0}
    size = 0

    def decode(page: bytes) -> Any:
        nonlocal size
        size += len(page)
        found: Any = None
        for collecting in (False, True):
            # Nothing of the first try lies around in the second.
            found = None
            (gc.enable if collecting else gc.disable)()
            began = time.process_time()
            found = json.loads(page)
            spent[collecting] += time.process_time() - began
        return found

    served = Fleet(1, 1, 0, 0).shelves()
    for kind in KINDS:
        if kind.path() in served:
            for _page in client.read_pages(kind, decode):
                pass
    return {"cpu": spent[True], "without_gc": spent[False], "bytes": size}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmark.reading", description=__doc__)
    parser.add_argument("server", help="URL of a peer, or kubeconfig")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    peer = options.server.startswith("http:")
    access = {"host": options.server, "api_key": "peer"} if peer else {"kubeconfig": options.server}
    client = create_client(lambda: get_api_client(**access), 60)
    found = decoding(client) if options.json else ours(client, json.load(sys.stdin))
    found["mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
