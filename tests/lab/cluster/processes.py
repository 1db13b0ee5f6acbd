# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Command lines of the control plane's processes and what tells that each is ready."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lab.state import Paths

SERVICE_RANGE = "10.0.0.0/24"
# Every request leaves one line when it is answered; a watch leaves one when it starts.
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
"""


@dataclass(frozen=True, slots=True)
class Component:
    """One process of the lab. `ports` names the ports it binds; `health` is a URL, empty when it has none."""

    name: str
    command: tuple[str, ...]
    health: str = ""
    ports: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


# Collecting garbage takes half of the API server's time at Go's own setting; at this one a lab needs some 200 MB more. Tests use
# several labs on few cores: a process that spreads its work over all of them pays for waking its threads.
FRUGAL = {"GOGC": "400", "GOMAXPROCS": "1"}

# Controllers of what no lab has: autoscalers, services, certificates, devices, routes.
IDLE = (
    "certificatesigningrequest-approving", "certificatesigningrequest-cleaner", "certificatesigningrequest-signing",
    "cloud-node-lifecycle", "device-taint-eviction", "endpoints", "endpointslice", "endpointslice-mirroring",
    "horizontal-pod-autoscaler", "legacy-serviceaccount-token-cleaner", "node-ipam", "node-route",
    "podcertificaterequest-cleaner", "podgroup-protection", "replicationcontroller", "resourceclaim",
    "resourcepoolstatusrequest", "service-cidr", "service-lb", "storage-version-migrator",
    "storageversion-garbage-collector", "ttl-after-finished", "ttl", "validatingadmissionpolicy-status",
)  # fmt: skip


def etcd(binary: Path, place: Paths, ports: Mapping[str, int]) -> Component:
    client = f"http://127.0.0.1:{ports['etcd']}"
    peer = f"http://127.0.0.1:{ports['etcd-peer']}"
    command = (
        str(binary),
        f"--data-dir={place.directory / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--quota-backend-bytes=8589934592",
        "--heartbeat-interval=1000",
        "--election-timeout=10000",
        "--log-level=warn",
    )
    return Component("etcd", command, f"{client}/health", ("etcd", "etcd-peer"), FRUGAL)


def apiserver(binary: Path, place: Paths, ports: Mapping[str, int]) -> Component:
    pki = place.pki
    command = (
        str(binary),
        f"--etcd-servers=http://127.0.0.1:{ports['etcd']}",
        f"--secure-port={ports['api']}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={place.directory / 'apiserver'}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-account-key-file={pki / 'sa.pub'}",
        f"--service-account-signing-key-file={pki / 'sa.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'apiserver-kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'apiserver-kubelet-client.key'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--audit-policy-file={place.directory / 'audit-policy.yaml'}",
        f"--audit-log-path={place.audit}",
        "--audit-log-mode=blocking",
        "--audit-log-maxsize=2000",
        "--etcd-count-metric-poll-period=0",
        "--etcd-db-metric-poll-interval=0",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
    )
    return Component("apiserver", command, f"https://127.0.0.1:{ports['api']}/readyz", ("api",), FRUGAL)


def controller_manager(binary: Path, place: Paths, ports: Mapping[str, int]) -> Component:
    command = (
        str(binary),
        f"--kubeconfig={place.kubeconfigs / 'controller-manager.yaml'}",
        f"--service-account-private-key-file={place.pki / 'sa.key'}",
        f"--root-ca-file={place.pki / 'ca.crt'}",
        "--use-service-account-credentials=true",
        # The default of 20 requests a second makes the first service account appear after 9 s.
        "--kube-api-qps=300",
        "--kube-api-burst=300",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['controller-manager']}",
        f"--tls-cert-file={place.pki / 'components.crt'}",
        f"--tls-private-key-file={place.pki / 'components.key'}",
        "--authentication-skip-lookup=true",
        # Nobody sends heartbeats: an idle lab is silent.
        "--node-monitor-grace-period=24h",
        "--node-monitor-period=1h",
        "--pvclaimbinder-sync-period=1s",
        f"--controllers=*,{','.join(f'-{name}-controller' for name in IDLE)}",
        "--profiling=false",
    )
    health = f"https://127.0.0.1:{ports['controller-manager']}/healthz"
    return Component("controller-manager", command, health, ("controller-manager",), FRUGAL)


def scheduler(binary: Path, place: Paths, ports: Mapping[str, int]) -> Component:
    command = (
        str(binary),
        f"--kubeconfig={place.kubeconfigs / 'scheduler.yaml'}",
        "--kube-api-qps=300",
        "--kube-api-burst=300",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={ports['scheduler']}",
        f"--tls-cert-file={place.pki / 'components.crt'}",
        f"--tls-private-key-file={place.pki / 'components.key'}",
        "--authentication-skip-lookup=true",
    )
    return Component("scheduler", command, f"https://127.0.0.1:{ports['scheduler']}/readyz", ("scheduler",), FRUGAL)


def kwok(binary: Path, place: Paths, ports: Mapping[str, int]) -> Component:
    address = f"127.0.0.1:{ports['kwok']}"
    command = (
        str(binary),
        f"--kubeconfig={place.kubeconfigs / 'kwok.yaml'}",
        f"--config={place.directory / 'stages.yaml'}",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=0",
        "--node-ip=127.0.0.1",
        f"--node-port={ports['kubelet']}",
        f"--server-address={address}",
        f"--tls-cert-file={place.pki / 'kubelet.crt'}",
        f"--tls-private-key-file={place.pki / 'kubelet.key'}",
    )
    return Component("kwok", command, f"https://{address}/healthz", ("kwok",), FRUGAL)


def kubelet(place: Paths, ports: Mapping[str, int]) -> Component:
    command = (sys.executable, "-m", "lab.cluster.kubelet", "--directory", str(place.directory))
    return Component("kubelet", command, f"https://127.0.0.1:{ports['kubelet']}/healthz", ("kubelet",))
