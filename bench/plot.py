"""The picture of a run: for each cell a bar a candidate, how many times gpuc's time it takes, and the target as a line."""

import math
import xml.sax.saxutils

COLOURS = ("#1b7837", "#ee6c4d", "#b5482f", "#3d5a80", "#8d6a9f")
LEFT, WIDTH, BAR, GAP, TOP = 290, 620, 13, 16, 60


def text(x, y, content, anchor="start", size=12):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{xml.sax.saxutils.escape(content)}</text>'


def rectangle(x, y, width, height, colour):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def line(x, top, bottom, colour, dash=""):
    return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{colour}" stroke-dasharray="{dash}"/>'


def multiples(result, names):
    """Of each candidate, its time over gpuc's; None where it was not there."""
    times = [min((it["us"] for it in result["candidates"] if it["name"] == name), default=None) for name in names]
    return [None if us is None else us / result["gpuc_us"] for us in times]


def draw(results, names, titles):
    """SVG text. The axis is logarithmic, from half of gpuc's time on."""
    rows = [multiples(result, names) for result in results]
    most = max([4.0, *(value for row in rows for value in row if value), *(result["target"] for result in results)])
    scale = WIDTH / math.log(most * 1.2 / 0.5)
    position = lambda multiple: LEFT + max(0.0, scale * math.log(multiple / 0.5))
    height = len(names) * BAR + GAP
    bottom = TOP + len(results) * height
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 60}" height="{bottom + 30}" font-family="sans-serif">',
             rectangle(0, 0, LEFT + WIDTH + 60, bottom + 30, "white"),
             text(10, 20, "Time of one training step as a multiple of gpuc's; the dashed line is the target for the best peer", size=14)]
    for index, name in enumerate(names):
        parts += [rectangle(LEFT + 150 * index, 32, 10, 10, COLOURS[index % len(COLOURS)]), text(LEFT + 150 * index + 15, 41, titles.get(name, name))]
    tick = 1
    while tick <= most:
        parts += [line(position(tick), TOP - 5, bottom, "#cccccc"), text(position(tick), bottom + 15, f"{tick}×", "middle")]
        tick *= 2
    for index, (result, row) in enumerate(zip(results, rows)):
        y = TOP + index * height
        parts.append(text(LEFT - 8, y + height / 2, result["title"], "end"))
        for place, value in enumerate(row):
            if value is None:
                continue
            parts.append(rectangle(LEFT, y + place * BAR, position(value) - LEFT, BAR - 2, COLOURS[place % len(COLOURS)]))
            parts.append(text(position(value) + 4, y + place * BAR + 10, f"{value:.2g}" if value < 100 else f"{value:.0f}", size=10))
        parts.append(line(position(result["target"]), y - 3, y + len(row) * BAR + 1, "black", "4 2"))
    return "\n".join([*parts, "</svg>"]) + "\n"
