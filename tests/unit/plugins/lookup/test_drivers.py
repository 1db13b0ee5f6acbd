# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks know exactly the drivers that have a role."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleError
from ansible_collections.kubewin.csi.plugins.lookup.drivers import LookupModule

ROLES = Path(__file__).parents[4] / "roles"


def test_every_driver_has_its_role_and_every_role_its_driver() -> None:
    assert LookupModule().run([]) == sorted(role.name.removesuffix("_csi") for role in ROLES.glob("*_csi"))


def test_a_term_is_refused_instead_of_ignored() -> None:
    with pytest.raises(AnsibleError, match="vsphere"):
        LookupModule().run(["vsphere"])
