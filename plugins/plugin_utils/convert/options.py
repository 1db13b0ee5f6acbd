# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a conversion, checked. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.errors import TaskError
from .eligibility import ConversionRequest

# Where the second copy of each record is, so that deleting one namespace loses nothing.
SECOND_NAMESPACE = "kubewin-records"


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The request. final: the conversions can no longer be rolled back. record_namespaces: two.

    step: seconds that one wait may take. compare: bytes that may be read of a volume, 0 for no comparison.
    image: of the helper pod, empty for the one of the node's build. tolerations: of the helper in addition to those for Windows.
    """

    desired: tuple[ConversionRequest, ...]
    roll_back: bool
    final: bool
    record_namespaces: tuple[str, str]
    step: float
    compare: int
    image: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()


def parse_run_options(options: Mapping[str, Any]) -> RunOptions:
    """Check the options, as far as that needs no cluster. Raises TaskError."""
    desired = []
    for name in dict.fromkeys(options["claims"]):
        namespace, dummy, claim = name.partition("/")
        if not namespace or not claim or "/" in claim:
            raise TaskError(
                f"claims has {name!r}, expected namespace/name, for example shop/data-db-0.", "configuration"
            )
        desired.append(ConversionRequest(namespace, claim, options["allow_managed"], options["volume_handle"]))
    if not desired:
        raise TaskError("claims is empty. Name the claims to convert as namespace/name.", "configuration")
    if options["volume_handle"] and len(desired) > 1:
        raise TaskError(
            f"volume_handle is for one claim, found {len(desired)}. Convert that claim alone.", "configuration"
        )
    for name, minimum in (("compare_limit", 0), ("step_timeout", 1)):
        if options[name] < minimum:
            raise TaskError(f"{name} is {options[name]}, expected at least {minimum}.", "configuration")
    namespaces = (options["record_namespace"], SECOND_NAMESPACE)
    if namespaces[0] in ("", SECOND_NAMESPACE):
        raise TaskError(
            f"record_namespace is {namespaces[0]!r}, expected another namespace than {SECOND_NAMESPACE}, which has the copies.",
            "configuration",
        )
    unsafe = [request.title for request in desired if request.namespace in namespaces]
    if unsafe:
        raise TaskError(
            f"the record of {', '.join(unsafe)} would be deleted with its own namespace. Set another record_namespace.",
            "configuration",
        )
    roll_back = options["state"] == "rolled_back"
    if roll_back and options["final"]:
        raise TaskError(
            "state is rolled_back and final is true, but a final conversion cannot be rolled back. Set one of them.",
            "configuration",
        )
    return RunOptions(
        tuple(desired), roll_back, options["final"], namespaces,
        step=float(options["step_timeout"]), compare=options["compare_limit"] << 20,
        image=options["image"], tolerations=tuple(options["tolerations"]),
    )  # fmt: skip
