# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of a driver's node plugin, as plugins/plugin_utils/drivers/declared.py has them."""

from __future__ import annotations

import json

from ..plugin_utils.drivers import declared

NOTE = (
    "An option that the task does not set is read from the variable of the driver's role, such as C(smb_csi_{0}) with O(driver=smb), and "
    "then from the variable C(kubewin_*) that sets it for all drivers. A variable that is blank or empty counts as not set."
)

_DRIVER = {"description": "Key of the driver, such as V(vsphere) or V(azure_disk).", "type": "str", "required": True}


def _text(module: str) -> str:
    """The options of a module. JSON is YAML."""
    options = {name: option.describe() for name, (_role, option) in declared.list_module_options(module).items()}
    options["driver"] = _DRIVER
    first = next(role for role, _option in declared.list_module_options(module).values())
    return json.dumps({"options": options, "notes": [NOTE.format(first)]})


class ModuleDocFragment:
    """Documentation fragment kubewin.csi.driver: a part for each module."""


# Set here, because the sanity test of a fragment's YAML takes only a literal in the class.
for _part, _content in (
    ("DOCUMENTATION", _text(declared.INFO)),
    ("APPLY", _text(declared.APPLY)),
    ("ROLLOUT", _text(declared.ROLLOUT)),
):
    setattr(ModuleDocFragment, _part, _content)
