# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The writes of a hand-over, beside the DaemonSet controller's."""

from __future__ import annotations

from typing import Any

from ansible_collections.kubewin.csi.plugins.module_utils.handover.apply import Stage
from ansible_collections.kubewin.csi.plugins.module_utils.handover.decide import kept_off
from ansible_collections.kubewin.csi.plugins.module_utils.kube.labels import MANAGER
from unit.plugins.module_utils.drivers.worlds import HOME, VSPHERE, daemon_set
from unit.plugins.module_utils.kube.fakes import ObjectStore, Response, client_of

PATH = f"/apis/apps/v1/namespaces/{HOME}/daemonsets/ours"


class Counted(ObjectStore):
    """The DaemonSet's controller writes how many pods there are, before each of the first so many patches."""

    def __init__(self, often: int) -> None:
        super().__init__()
        self._often = often
        self._put(PATH, daemon_set("ours", labels={"app.kubernetes.io/managed-by": MANAGER}))

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if method == "PATCH" and self._often:
            self._often -= 1
            self._put(PATH, {**self.things[PATH], "status": {"currentNumberScheduled": self._often}})
        return super().request(method, path, body, **params)

    def _listed(self, path: str, selector: str) -> Response:
        return super()._listed(PATH.rpartition("/")[0], selector)


def test_a_node_gets_ours_back_while_the_controller_counts_the_pods() -> None:
    store = Counted(2)
    stage = Stage(client_of(store), VSPHERE, None, lambda _line: None)
    assert stage.keep_off(["win-1"], None)
    assert kept_off(store.things[PATH]) == ("win-1",)
    assert stage.keep_off([], None)
    assert kept_off(store.things[PATH]) == ()
    assert not stage.keep_off([], None)
