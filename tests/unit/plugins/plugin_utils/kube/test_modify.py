# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An object that its controller or kubelet writes between the read and the patch is read again."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube import kinds
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.client import Client
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.labels import CORDONED
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.modify import modify
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.quiesce import plan_cordon
from unit.plugins.plugin_utils.kube.fakes import ApiError, Response, Script

OURS = "csi-proxy is being replaced"
CONFLICT = ApiError(409, {"message": "the object has been modified"})


def node(version: str = "7", unschedulable: bool = False) -> dict[str, Any]:
    return {"metadata": {"name": "win-1", "resourceVersion": version}, "spec": {"unschedulable": unschedulable}}


def cordon(client: Client, *, dry_run: bool = False, required: bool = False) -> bool:
    return modify(
        client, kinds.NODE, "win-1", None, lambda live: plan_cordon(live, OURS), dry_run=dry_run, required=required
    )


def test_the_patch_is_bound_to_the_object_that_was_read() -> None:
    script = Script(Response(node()), Response({}))
    assert cordon(Client(script))
    assert script.asked[-1][2]["body"] == {
        "metadata": {"resourceVersion": "7", "annotations": {CORDONED: OURS}},
        "spec": {"unschedulable": True},
    }
    assert "dry_run" not in script.asked[-1][2]
    script = Script(Response(node()), Response({}))
    assert cordon(Client(script), dry_run=True)
    assert script.asked[-1][2]["dry_run"] == "All"


def test_what_was_written_meanwhile_is_read_again() -> None:
    script = Script(Response(node()), CONFLICT, Response(node("8")), Response({}))
    assert cordon(Client(script))
    assert [method for method, *_rest in script.asked] == ["GET", "PATCH", "GET", "PATCH"]
    assert script.asked[-1][2]["body"]["metadata"]["resourceVersion"] == "8"
    script = Script(Response(node()), CONFLICT, Response(node("8", unschedulable=True)))
    assert not cordon(Client(script))
    with pytest.raises(ClusterError, match="Node win-1 changes faster than it can be written"):
        cordon(Contested(Script(Response(node()))))


class Contested(Client):
    """An object that another client writes before each of our writes."""

    def patch(self, *_what: Any, **_how: Any) -> dict[str, Any]:
        raise ClusterError("the object has been modified", "conflict", 409)


def test_a_deleted_object_needs_no_change_unless_it_is_required() -> None:
    assert not cordon(Client(Script(ApiError(404))))
    with pytest.raises(ClusterError, match="Node win-1 does not exist"):
        cordon(Client(Script(ApiError(404))), required=True)
