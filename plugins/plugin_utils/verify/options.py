# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a verification, checked. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.kubewin.csi.plugins.plugin_utils.catalog.registry import DRIVERS, refuse_unknown_driver
from ansible_collections.kubewin.csi.plugins.plugin_utils.drivers.options import TOLERATION, is_toleration
from ansible_collections.kubewin.csi.plugins.plugin_utils.kube.errors import ClusterError
from ansible_collections.kubewin.csi.plugins.plugin_utils.verify.plan import VerifyRequest


def parse_request(options: Mapping[str, Any]) -> VerifyRequest:
    """Check the options, as far as that needs no cluster. Raises ClusterError."""
    if not options["drivers"]:
        raise ClusterError(f"drivers is empty; name one or more of {', '.join(sorted(DRIVERS))}.", "refused")
    for name in (*options["drivers"], *options["storage_classes"]):
        if name not in DRIVERS:
            # Not by choices, which documentation would have to repeat for every new driver.
            raise ClusterError(refuse_unknown_driver(name), "refused")
    if options["timeout"] < 1:
        raise ClusterError(f"timeout is {options['timeout']}, expected at least 1.", "refused")
    for toleration in options["tolerations"]:
        if not is_toleration(toleration):
            raise ClusterError(f"tolerations has {toleration}, {TOLERATION}.", "refused")
    return VerifyRequest(
        drivers=tuple(DRIVERS[name] for name in dict.fromkeys(options["drivers"])),
        nodes=tuple(dict.fromkeys(options["nodes"])),
        storage_classes={str(key): str(value) for key, value in options["storage_classes"].items()},
        verify_reattach=options["move"],
        image=options["image"],
        tolerations=tuple(options["tolerations"]),
    )
