# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The operator's list of services is refused for what its daemon refuses it for, and for nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.preflight.windows_services import faults, overlooked

KUBELET = {"name": "kubelet", "path": "kubelet.exe", "bootstrap": True, "priority": 1}
PROXY = {"name": "csi-proxy", "path": "C:\\k\\csi-proxy.exe -windows-service", "bootstrap": False, "priority": 2}


def a_list(*services: dict[str, Any], **keys: str) -> dict[str, str]:
    return {"services": json.dumps(services), "files": "[]", **keys}


@pytest.mark.parametrize(
    "data",
    [
        a_list(KUBELET, PROXY),
        a_list(KUBELET, PROXY, environmentVars='{"A": "b"}', watchedEnvironmentVars='["A"]'),
        a_list({**PROXY, "dependencies": ["something-of-windows"]}),
        # The order in which the daemon itself saw a circle that is none.
        a_list({**PROXY, "name": "a", "dependencies": ["b"]}, {**PROXY, "name": "b"}, {**PROXY, "name": "c", "dependencies": ["a", "b"]}),
    ],
)  # fmt: skip
def test_a_list_that_the_daemon_accepts_has_no_fault(data: dict[str, str]) -> None:
    assert not faults(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ({"services": "[]"}, "key files is missing"),
        (a_list(PROXY, certificates="[]"), "key certificates is unknown"),
        ({"services": "[", "files": "[]"}, "key services is not JSON"),
        ({"services": "{}", "files": "[]"}, "key services is a dict, expected a list"),
        (a_list({**KUBELET, "nodeVariablesInCommand": [{"name": "N"}]}), "uses node variables"),
        (a_list({**KUBELET, "dependencies": ["csi-proxy"]}, PROXY), "depends on csi-proxy, which is not one"),
        (a_list({**PROXY, "name": "a", "dependencies": ["b"]}, {**PROXY, "name": "b", "dependencies": ["a"]}), "a -> b -> a"),
        (a_list(KUBELET, {**PROXY, "priority": 1}), "expected bootstrap services first"),
        (a_list({**KUBELET, "priority": 3}, PROXY), "expected bootstrap services first"),
    ],
)  # fmt: skip
def test_a_list_that_the_daemon_refuses_has_its_fault(data: dict[str, str], why: str) -> None:
    assert len(faults(data)) == 1
    assert why in faults(data)[0]


def test_faults_that_the_daemon_overlooks_are_found() -> None:
    def observed(*services: dict[str, Any], immutable: bool = True, brings: bool = True) -> tuple[str, ...]:
        return overlooked(a_list(*services), immutable=immutable, brings_csi_proxy=brings)

    assert not observed(KUBELET, PROXY)
    assert "lacks the service csi-proxy" in observed(KUBELET)[0]
    assert not observed(KUBELET, brings=False)
    assert "lacks -windows-service" in observed({**PROXY, "path": "csi-proxy.exe"})[0]
    assert "bootstrap" in observed({**PROXY, "bootstrap": True})[0]
    assert "not immutable" in observed(PROXY, immutable=False)[0]
    assert not overlooked({}, immutable=False, brings_csi_proxy=True)
