# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product on a real Windows Server: the play, the transcripts of its command lines, and what they are compared with.

`.github/workflows/windows.yml` runs it on GitHub's machines. Everything here also runs on the lab's simulated hosts, where
tests/lab_tests keeps it working.
"""
