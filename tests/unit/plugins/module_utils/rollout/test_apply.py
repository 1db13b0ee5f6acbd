# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How runs over different nodes share the announcements in one DaemonSet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.module_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.module_utils.kube.client import Answer
from ansible_collections.kubewin.csi.plugins.module_utils.kube.errors import MODIFIED, ClusterError
from ansible_collections.kubewin.csi.plugins.module_utils.kube.pod import PodFacts
from ansible_collections.kubewin.csi.plugins.module_utils.rollout import hold
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.apply import Roller
from ansible_collections.kubewin.csi.plugins.module_utils.rollout.hold import ANNOTATION, Rolling

TEMPLATE = {"spec": {"containers": [{"name": "driver", "image": "driver:2"}]}}


class Cluster:
    """A client whose DaemonSet announces the pod of win-1; `pods` are the Ready ones of the last observation."""

    def __init__(self, *observations: list[PodFacts]) -> None:
        self.observations, self.slept = list(observations), 0.0
        self.applied: dict[str, Any] = {}

    def get(self, *_name: object) -> dict[str, Any]:
        state = Rolling("run", "hash", taken={"win-1": "uid-1"})
        return {
            "metadata": {"name": "plugin", "namespace": "d", "resourceVersion": "7", "annotations": {ANNOTATION: state.text()}},
            "spec": {"template": TEMPLATE, "selector": {"matchLabels": {"app": "plugin"}}},
        }  # fmt: skip

    def list(self, kind: object, *_namespace: object, **_selector: object) -> SimpleNamespace:
        return SimpleNamespace(items=() if kind is not kinds.POD else tuple(self.observations[0]))

    def apply(self, definition: dict[str, Any], **_how: object) -> Answer:
        self.applied = definition
        return Answer(definition, ())

    def sleep(self, seconds: float) -> None:
        self.slept += seconds
        del self.observations[:1]


READY = PodFacts("plugin-1", "win-1", ready=True, uid="uid-1")


@pytest.mark.parametrize(
    ("later", "kept"),
    [
        pytest.param([], {"win-1": "uid-1"}, id="the other run lives and has deleted it"),
        pytest.param([READY], {}, id="the other run was killed"),
    ],
)
def test_a_pod_that_another_run_has_announced_and_not_yet_deleted_counts(
    later: list[PodFacts], kept: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PodFacts, "from_object", staticmethod(lambda pod: pod))
    cluster: Any = Cluster([READY], later)
    definition = {"kind": "DaemonSet", "metadata": {"name": "plugin", "namespace": "d"}, "spec": {"template": TEMPLATE}}
    Roller(cluster, definition, force=False, sleep=cluster.sleep).begin()
    state = hold.rolling(cluster.applied)
    assert state is not None
    assert dict(state.taken) == kept
    assert 0 < cluster.slept < 10


class Contested(Cluster):
    """Its controller and other slices write the DaemonSet before each of the first 20 tries."""

    def __init__(self) -> None:
        super().__init__([])
        self.tries = 0

    def apply(self, definition: dict[str, Any], **how: object) -> Answer:
        self.tries += 1
        if self.tries <= 20:
            raise ClusterError(f"conflict: {MODIFIED}", "conflict", 409)
        return super().apply(definition, **how)


def test_a_slice_joins_a_change_while_the_controller_and_other_slices_write() -> None:
    cluster: Any = Contested()
    definition = {"kind": "DaemonSet", "metadata": {"name": "plugin", "namespace": "d"}, "spec": {"template": TEMPLATE}}
    Roller(cluster, definition, force=False, sleep=cluster.sleep).begin()
    assert hold.rolling(cluster.applied) is not None
    assert cluster.tries == 21
