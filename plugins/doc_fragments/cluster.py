# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and requirements of modules that access Kubernetes, in addition to kubernetes.core's options for access."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  api_timeout:
    description:
      - Seconds to repeat requests if the API server does not answer, answers with a server error, or asks to slow down (429 with
        C(Retry-After)).
      - A run that did not reach the API server yet asks it for 5 seconds only, because its address may be wrong.
    type: int
    default: 60
requirements:
  - kubernetes.core >= 5.0.0, < 8.0.0
  - kubernetes (Python library) >= 28.1.0
  - msgspec (Python library) >= 0.18.6
  - PyYAML
notes:
  - Requests are safe to repeat and are repeated until O(api_timeout) has passed.
"""
