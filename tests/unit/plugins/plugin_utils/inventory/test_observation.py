# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is read, and so what a cache keeps: enough for the same inventory again, and nothing that is none of its business."""

from __future__ import annotations

import json

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.inventory.observation import SCHEMA, Observation
from unit.plugins.plugin_utils.inventory.clusters import OPERATOR, cluster, csi_node, listed, node

SEEN = cluster(
    node(
        "win-1",
        ("InternalIP", "10.0.0.11"),
        annotations={**OPERATOR, "example.com/asked": "yes", "example.com/note": "s3cret"},
    ),
    csi_nodes=(csi_node("win-1", "smb.csi.k8s.io"),),
    instances={"10.0.0.11": "username=Administrator", "nowhere.example": "password=s3cret"},
    annotations=("example.com/asked", "example.com/absent"),
)


def test_a_cached_result_makes_the_same_inventory() -> None:
    again = Observation.from_dict(json.loads(json.dumps(SEEN.as_dict())))
    assert again == SEEN
    assert listed(again) == listed(SEEN)


def test_annotations_that_were_not_requested_are_not_read() -> None:
    assert SEEN.nodes[0].annotations == {
        "windowsmachineconfig.openshift.io/version": "10.22.0-abc",
        "example.com/asked": "yes",
    }
    assert "s3cret" not in json.dumps(SEEN.as_dict())
    assert "encrypted" not in json.dumps(SEEN.as_dict())


@pytest.mark.parametrize(
    "kept", [{}, {"schema": SCHEMA}, {**SEEN.as_dict(), "schema": SCHEMA + 1}, {**SEEN.as_dict(), "nodes": [{"a": 1}]}]
)
def test_a_cache_of_another_release_is_no_inventory(kept: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Observation.from_dict(kept)
