# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of csi_proxy and csi_proxy_info. A test compares them with the documentation."""

from __future__ import annotations

from typing import Any

ArgumentSpec = dict[str, dict[str, Any]]

LOOK: ArgumentSpec = {
    "install_dir": {"type": "str", "default": "C:\\csi-proxy"},
    "kubelet_path": {"type": "str", "default": "C:\\var\\lib\\kubelet"},
    "needs_wmic": {"type": "bool", "default": False},
    "required_pipes": {"type": "list", "elements": "str"},
    "service_name": {"type": "str"},
}

_START_MODE: ArgumentSpec = {
    "start_mode": {"type": "str", "choices": ["auto", "delayed-auto", "demand"], "default": "auto"}
}
INFO: ArgumentSpec = {
    **LOOK,
    **_START_MODE,
    "details": {"type": "bool", "default": False},
    "reference_counters": {"type": "str"},
    "smb_mappings": {"type": "bool", "default": False},
}

CSI_PROXY: ArgumentSpec = {
    **LOOK,
    "adopt": {"type": "bool", "default": True},
    "allow_downgrade": {"type": "bool", "default": False},
    "checksum": {"type": "str"},
    "dependencies": {"type": "list", "elements": "str", "default": []},
    "extra_flags": {"type": "dict", "default": {}},
    "from_variables": {"type": "bool", "default": False},
    "lock_timeout": {"type": "int", "default": 60},
    "log_dir": {"type": "str", "default": "C:\\var\\log\\csi-proxy"},
    "log_file_max_size": {"type": "int", "default": 100},
    "log_level": {"type": "int", "default": 2},
    "metrics_bind_address": {"type": "str"},
    "recovery": {
        "type": "dict",
        "options": {
            "actions": {
                "type": "list",
                "elements": "dict",
                "options": {
                    "delay_ms": {"type": "int", "required": True},
                    "type": {"type": "str", "choices": ["none", "restart"], "default": "restart"},
                },
                "default": [],
            },
            "reset_seconds": {"type": "int", "default": 86400},
        },
    },
    "require_privacy": {"type": "bool"},
    "source": {"type": "str"},
    "source_ca_file": {"type": "str"},
    "source_check_revocation": {"type": "bool", "default": True},
    "source_connect_timeout": {"type": "int", "default": 15},
    "source_proxy": {"type": "str"},
    "source_retries": {"type": "int", "default": 3},
    "source_retry_delay": {"type": "int", "default": 5},
    "source_timeout": {"type": "int", "default": 600},
    **_START_MODE,
    "state": {"type": "str", "choices": ["absent", "present", "staged"], "default": "present"},
    "version": {"type": "str"},
    "working_dirs": {"type": "list", "elements": "str", "default": []},
}
