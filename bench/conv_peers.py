#!/usr/bin/env python3
"""The host's convolutions beside oneDNN's through PyTorch, layer by layer, on one thread.

    bench/conv_peers.py [NAME] [--batch=16] [--rounds=3] [--json=FILE]

The layers are those of bench-conv whose name has NAME, at this batch. In each round bench-conv has its turn, then PyTorch, in the quicker
of its two layouts; a number is the median of the rounds. A cell is gpuc's time, its share of the roof that bench-conv prints (of a product's
rate; depthwise, of a copy's), and how many times as long PyTorch takes. The last column says what bounds the time from below, and what share
of that bound the three reach: a product's rate; depthwise, a copy of the pictures, or multiply-adds at a product's rate, whichever takes
longer. PyTorch is what scripts/bench installs.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
from typing import NamedTuple

import environment
from rows import write_rows

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "peers", "torch_convs.py")
KINDS = ("forward", "input_gradient", "filter_gradient")
ROW = re.compile(r"(?P<name>\S.*?)\s+(?P<in>\d+)>(?P<out>\d+) (?P<extent>\d+)x\d+\s+(?P<batch>\d+) +(?P<cells>.*)")


BOUNDS = {"": "product", "c": "copy", "m": "multiply-adds"}


class Cell(NamedTuple):
    """A convolution's µs, its share of the roof, and that of the lower bound of its time, in percent."""

    us: float
    share: int
    of_bound: int
    bound: str


def layers_of(printed, batch):
    """Each row of bench-conv's table: the layer and its cells. A name ends in its filter's size and stride."""
    for row in filter(None, map(ROW.match, printed.splitlines())):
        if int(row["batch"]) != batch:
            continue
        kernel, stride = re.search(r"(\d+)x\d+(?:/(\d+))?$", row["name"]).groups()
        layer = {field: int(row[field]) for field in ("in", "out", "extent", "batch")}
        depthwise = " B " in row["cells"]
        unpadded = row["name"].startswith("lenet") and layer["in"] > 1
        layer |= {
            "kernel": int(kernel),
            "stride": int(stride or 1),
            "padding": 0 if unpadded else int(kernel) // 2,
            "groups": layer["in"] if depthwise else 1,
        }
        cells = re.findall(r"([\d.]+) us +[\d.]+ [GB] +(\d+)%(?: +(\d+)%([cm]))?", row["cells"])
        yield row["name"], layer, [Cell(float(us), int(share), int(of_bound or share), BOUNDS[bound]) for us, share, of_bound, bound in cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", nargs="?", default="")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    binaries = os.environ.get("GPUC_BIN", os.path.join(HERE, "..", "build", "bin"))
    bench = os.path.join(binaries, "bench-conv")
    if not os.path.exists(bench):
        raise SystemExit(f"error: {bench} is not there; build it: scripts/build -DGPUC_BUILD_BENCH=ON bench-conv")
    try:
        python = environment.prepare()
    except environment.SetupError as error:
        raise SystemExit(f"error: {error}") from error
    peer = subprocess.Popen(
        [python, PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env={**os.environ, **environment.variables()}
    )
    found = {}
    for _ in range(options.rounds):
        printed = subprocess.run([bench, "f32", options.name], stdout=subprocess.PIPE, text=True, check=True).stdout
        for name, layer, cells in layers_of(printed, options.batch):
            peer.stdin.write(json.dumps(layer) + "\n")
            answer = json.loads(peer.stdout.readline())
            title = f"{layer['in']}→{layer['out']}, {name.split()[-1]} on {layer['extent']}×{layer['extent']}"
            entry = found.setdefault((name.split()[0], title), {kind: [] for kind in KINDS})
            for kind, cell in zip(KINDS, cells, strict=True):
                entry[kind].append((cell, answer[kind]))
    peer.stdin.close()
    peer.wait()
    peer.stdout.close()
    if not found:
        raise SystemExit(f"error: bench-conv has no layer '{options.name}' at batch {options.batch}")
    print("| model | layer | forward | input's gradient | filter's gradient | bound |\n| --- | --- | ---: | ---: | ---: | ---: |")
    results = []
    for (model, title), entry in found.items():
        texts, of_bounds = [], []
        for kind in KINDS:
            cells, peer_times = zip(*entry[kind], strict=True)
            us, share, of_bound = (statistics.median(values) for values in zip(*(cell[:3] for cell in cells), strict=True))
            # Where two bounds are close, rounds may differ; one that most have is named.
            bound = statistics.mode(cell.bound for cell in cells)
            peer_us = statistics.median(peer_times)
            texts.append(f"{us:,.0f} µs, {share:.0f}%, {peer_us / us:.2f}×")
            of_bounds.append(f"{of_bound:.0f}")
            results.append(
                {"model": model, "layer": title, "kind": kind, "us": us, "share": share, "peer_us": peer_us, "bound": bound, "of_bound": of_bound}
            )
        print(f"| {model} | {title} | {' | '.join(texts)} | {bound} {', '.join(of_bounds)}% |")
    write_rows(options.json, results)


if __name__ == "__main__":
    main()
