# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the cost of reading and evaluating grows with a cluster, as a picture for the documentation.

``python -m benchmark.growth docs/images/readiness-growth.svg`` measures and draws. Once one node in five runs Windows, and
once 200 do in a cluster of any size.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmark.fleet import Fleet
from benchmark.readiness import read, served

NODES = (250, 500, 1250, 2500, 5000)
FEW = 200
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 420, 300, 58, 54, 52
COLOURS = ("#2166ac", "#b2541b")
FONT = 'font-family="sans-serif" font-size="12"'


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a picture: its name, and a value for each number of nodes."""

    name: str
    values: Sequence[float]


def fleet(nodes: int, windows: int) -> Fleet:
    """A cluster of that size: 30 pods a node, and a volume for every third."""
    return Fleet(nodes=nodes, windows=windows, pods=nodes * 30, volumes=nodes * 10)


def panel(title: str, unit: str, lines: Sequence[Line], x: int) -> str:
    """One diagram over the number of nodes, both axes from 0."""
    most = max(max(line.values) for line in lines)
    step = next(one for one in (0.5, 1, 2, 5, 10, 20, 50, 100) if most / one <= 6)
    top = step * (int(most / step) + 1)
    wide, high = WIDTH - LEFT - 20, HEIGHT - TOP - BOTTOM

    def place(nodes: float, value: float) -> tuple[float, float]:
        return x + LEFT + wide * nodes / NODES[-1], TOP + high * (1 - value / top)

    parts = [f'<text x="{x + LEFT}" y="{TOP - 14}" {FONT} font-weight="bold" fill="#555">{title}</text>']
    for number in range(int(top / step) + 1):
        left, level = place(0, number * step)
        parts.append(f'<path d="M{left:.1f} {level:.1f}h{wide}" stroke="#bbb" stroke-width=".6"/>')
        text = f'<text x="{left - 6:.1f}" y="{level + 4:.1f}" {FONT} text-anchor="end" fill="#777">{number * step:g}</text>'
        parts.append(text)
    for nodes in (0, *NODES[2:]):
        left, level = place(nodes, 0)
        parts.append(
            f'<text x="{left:.1f}" y="{level + 18:.1f}" {FONT} text-anchor="middle" fill="#777">{nodes:,}</text>'
        )
    middle = x + LEFT + wide / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{HEIGHT - 14}" {FONT} text-anchor="middle" fill="#777">nodes, 30 pods and 10 volumes each</text>'
    )
    styles = zip(lines, COLOURS, ("", ' stroke-dasharray="6 4"'), (-8, 46), strict=True)
    for line, colour, dash, beside in styles:
        points = [place(nodes, value) for nodes, value in zip(NODES, line.values, strict=True)]
        path = "L".join(f"{left:.1f} {level:.1f}" for left, level in points)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{left:.1f}" cy="{level:.1f}" r="3" fill="{colour}"/>' for left, level in points]
        last, level = points[-1]
        reported = f"{line.values[-1]:.1f} {unit}" if line.values[-1] < 10 else f"{line.values[-1]:.0f} {unit}"
        parts.append(
            f'<text x="{last:.1f}" y="{level + beside:.1f}" {FONT} text-anchor="end" fill="{colour}">{line.name}: {reported}</text>'
        )
    return "\n".join(parts)


def draw(cpu: Sequence[Line], memory: Sequence[Line]) -> str:
    """The picture."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" role="img">\n'
        "<title>CPU and memory of reading and evaluating a cluster, by its number of nodes</title>\n"
        + panel("CPU of reading and evaluating, in seconds", "s", cpu, 0)
        + "\n"
        + panel("Memory of the process at most, in MiB", "MiB", memory, WIDTH)
        + "\n</svg>\n"
    )


def main() -> int:
    target = Path(sys.argv[1])
    names = ("one node in five on Windows", f"{FEW} nodes on Windows")
    found: list[list[dict[str, float]]] = [[], []]
    for nodes in NODES:
        for number, windows in enumerate((nodes // 5, FEW)):
            one = fleet(nodes, windows)
            with served(one) as url:
                found[number].append(read(url, one))
            print(nodes, windows, found[number][-1], file=sys.stderr, flush=True)
    cpu, memory = (
        [Line(name, [one[key] for one in some]) for name, some in zip(names, found, strict=True)]
        for key in ("cpu", "mib")
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draw(cpu, memory), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
