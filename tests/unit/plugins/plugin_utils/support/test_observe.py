# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What diagnose reads of a cluster: a missing right is not an absent object."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.support.observe import lacks_windows_nodes
from unit.plugins.plugin_utils.kube.fakes import ApiError, ObjectStore, Response, client_of


class Cluster(ObjectStore):
    """A cluster without Nodes. status: of the answer to a list of Nodes."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Response:
        if path == "/api/v1/nodes" and self.status != 200:
            raise ApiError(self.status)
        return super().request(method, path, body, **params)


@pytest.mark.parametrize(("status", "lacks"), [(200, True), (403, False)])
def test_nodes_that_may_not_be_listed_are_not_absent(status: int, lacks: bool) -> None:
    assert lacks_windows_nodes(client_of(Cluster(status))) is lacks
