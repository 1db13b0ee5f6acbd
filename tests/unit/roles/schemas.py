# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The schemas that Kubernetes publishes with each minor release."""

from __future__ import annotations

from functools import cache
from typing import Any

import kubernetes_validate.utils  # type: ignore[import-untyped]  # the package has neither types nor stubs

MINORS = range(25, 38)
"""Minor releases of Kubernetes 1 that the collection's manifests are tried against: 1.25 to the newest."""

# It reads a schema anew for each object.
kubernetes_validate.utils.schema_contents = cache(kubernetes_validate.utils.schema_contents)


def validate(item: dict[str, Any], minor: int) -> None:
    """Raises the package's ValidationError for what that release does not know or not accept."""
    kubernetes_validate.validate(item, f"1.{minor}.0", strict=True)
