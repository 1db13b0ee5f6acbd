# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was gathered, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.kubewin.csi.plugins.plugin_utils.support.parts import MEBIBYTE, Missing, Part

# Lines about what is missing; the archive has all of them.
_NAMED = 20


def explain(files: Sequence[Part], missing: Sequence[Missing], hosts: Sequence[str], path: str | None) -> list[str]:
    """The lines of the closing summary. path: the archive, None in check mode."""
    size = sum(part.size for part in files) / MEBIBYTE
    did = "Gathered" if path else "Would gather"
    sources = f"{len(hosts)} Windows host{'' if len(hosts) == 1 else 's'} and the cluster" if hosts else "the cluster"
    lines = [f"{did} {len(files)} files ({size:.1f} MiB) of {sources}."]
    if missing:
        lines += ["Missing:", *(f"  {gap.line()}" for gap in missing[:_NAMED])]
        lines += [f"  and {len(missing) - _NAMED} more, see summary.json"] if len(missing) > _NAMED else []
    lines.append(
        "Secrets are replaced. Names of hosts, namespaces and workloads are not: read the archive before you send it."
    )
    if path:
        lines += [f"Archive: {path}", "Unpack it and open index.html."]
    return lines
