# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The day, by which long tests take turns before a landing. `make torture` runs all of them."""

from __future__ import annotations

import os
import time

# Another day's tests run with KUBEWIN_DAY.
DAY = int(os.environ.get("KUBEWIN_DAY") or time.strftime("%j"))
