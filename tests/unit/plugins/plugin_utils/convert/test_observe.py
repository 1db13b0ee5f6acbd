# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a driver's controller works, its syncer included: a Deployment with ready pods may have no leader."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS
from ansible_collections.kubewin.csi.plugins.plugin_utils.convert.observe import find_controller_trouble
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from unit.plugins.plugin_utils.kube.fakes import ApiError, Clock, Response, Script

NOW = "Sat, 21 Nov 2026 12:00:00 GMT"


def at_work(ready: int, lease: dict[str, Any] | None) -> str:
    """The finding about vSphere's controller, at noon by the server's clock."""
    dated = {"Date": NOW}
    deployment = {
        "metadata": {"namespace": "vmware-system-csi", "name": "vsphere-csi-controller"},
        "status": {"readyReplicas": ready},
    }
    listed, none = ({"items": items, "metadata": {"resourceVersion": "1"}} for items in ([deployment], []))
    spec = ApiError(404, headers=dated) if lease is None else Response({"spec": lease}, headers=dated)
    script = Script(Response(listed, headers=dated), spec if ready else Response(none, headers=dated))
    return find_controller_trouble(Client(script, clock=Clock(), sleep=Clock().sleep), DRIVERS["vsphere"])


@pytest.mark.parametrize(
    ("renewed", "trouble"),
    [
        ("2026-11-21T11:59:50.000000Z", ""),
        ("2026-11-21T11:59:31.000000Z", ""),
        (
            "2026-11-21T11:58:00.000000Z",
            "Lease vmware-system-csi/vsphere-syncer of pod-a was renewed at 2026-11-21T11:58:00.000000Z and lasts 15 s: there is no leader",
        ),
        (None, "Lease vmware-system-csi/vsphere-syncer of pod-a was never renewed: there is no leader"),
    ],
)
def test_a_lease_that_is_not_renewed(renewed: str | None, trouble: str) -> None:
    assert at_work(1, {"holderIdentity": "pod-a", "leaseDurationSeconds": 15, "renewTime": renewed}) == trouble


def test_a_single_pod_works_without_a_lease() -> None:
    assert at_work(1, None) == ""


def test_no_ready_pod() -> None:
    assert at_work(0, None) == "Deployment vmware-system-csi/vsphere-csi-controller has no ready pod"
