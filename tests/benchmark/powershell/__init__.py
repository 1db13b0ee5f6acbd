# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for the PowerShell of a Windows host, for comparisons with ansible.windows only.

No PowerShell runs here. What a controller sends to start one is real (the winrm connection plugin, the action plugins
and the module scripts of ansible.windows); this package reads it back into a module name and its arguments, lets a
start time pass, and answers as that module would over a modelled host. An unknown module or script is an error.
"""
