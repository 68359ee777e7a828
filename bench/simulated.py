#!/usr/bin/env python3
"""How well gpuc-simulate is met: sets its steps against those of gpuc-train on ranks of this machine, one thread each.

    bench-exchange 2                                   # says the --link of this machine
    gpuc-calibrate --threads=1 -o one.json              # for ranks: as many at once, of which one's rates count
    bench/simulated.py --rates=one.json --link=memory:bandwidth=3300MB,latency=7 [--ranks=1,2] [--rounds=5] [--json=FILE]

mlp, convnet and gpt2, at the sizes of test/end-to-end/small_zoo.py and at their own, or 'mlp hidden=4096,4096', say. With
--slow-link=LINK (ethernet:bandwidth=1GB,latency=50) sums take as long as over that one. A number is the median of all steps of a round
but the first ones, and of the rounds the median, between which models and ranks take turns. Each of the ranks wants a core for itself.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from rows import write_rows

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.environ.get("GPUC_BIN", os.path.join(SOURCE, "build", "bin"))
sys.path.insert(0, os.path.join(SOURCE, "test", "end-to-end"))
from small_zoo import MODELS  # noqa: E402

ZOO = ("mlp", "convnet", "gpt2")


def run(*arguments):
    subprocess.run([os.path.join(BIN, arguments[0]), *arguments[1:]], check=True, stdout=subprocess.DEVNULL)


def flags_of(link):
    """As gpuc-train takes a link that is slower than the one at hand."""
    bandwidth, latency = (re.search(key + "=([^,]*)", link)[1] for key in ("bandwidth", "latency"))
    return [f"--link-bandwidth={bandwidth}", f"--link-latency={latency}"]


def cells_of(models, sizes):
    """(label, model, keys)"""
    for text in models:
        model, *keys = text.split()
        if keys:
            yield text, model, keys
            continue
        for size in sizes:
            yield (model, model, []) if size == "default" else (model + ", small", model, MODELS[model][0])


class Cell:
    def __init__(self, folder, label, model, keys, options):
        self.label, self.options = label, options
        self.base = os.path.join(folder, label.translate(str.maketrans(" ,=", "___")))
        self.link = options.slow_link or options.link
        self.measured = {ranks: [] for ranks in options.ranks}
        run("gpuc-model", model, *keys, "-o", self.base + ".mlir")
        run("gpuc-compile", self.base + ".mlir", "--data-parallel", "--link=" + self.link, "--rates=" + options.rates,
            "-o", self.base + ".plan")

    def predict(self):
        result = self.base + ".json"
        copies = ["--copy-bandwidth=" + self.options.copy_bandwidth] if self.options.copy_bandwidth else []
        run("gpuc-simulate", self.base + ".mlir", "--link=" + self.link, "--rates=" + self.options.rates, *copies,
            "--ranks=" + ",".join(map(str, self.options.ranks)), "--json=" + result)
        with open(result, encoding="utf-8") as file:
            return {world["ranks"]: world for world in json.load(file)["worlds"]}

    def measure(self, ranks, steps):
        metrics = self.base + ".jsonl"
        slow = flags_of(self.options.slow_link) if self.options.slow_link and ranks > 1 else []
        run("gpuc-train", self.base + ".plan", f"--ranks={ranks}", "--threads=1", "--data=synthetic:size=8192", f"--steps={steps}",
            "--log-every=0", "--no-shuffle", "--metrics=" + metrics, *slow)
        with open(metrics, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        os.remove(metrics)
        return statistics.median([event["compute_us"] for event in events if event["event"] == "step"][steps // 5:])

    def round(self):
        for ranks in self.options.ranks:
            guess = self.measure(ranks, 5) / 1e6
            self.measured[ranks].append(self.measure(ranks, max(10, min(3000, int(self.options.seconds / guess)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=ZOO, help="of the zoo, with keys or without")
    parser.add_argument("--rates", required=True, help="what gpuc-calibrate --threads=1 wrote")
    parser.add_argument("--link", default="memory", help="what bench-exchange says of this machine")
    parser.add_argument("--slow-link")
    parser.add_argument("--copy-bandwidth", help="as gpuc-simulate's")
    parser.add_argument("--ranks", default="1,2", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--sizes", default="small,default")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = [Cell(folder, *what, options) for what in cells_of(options.models, options.sizes.split(","))]
        predicted = [cell.predict() for cell in cells]
        for _ in range(options.rounds):
            for cell in cells:
                cell.round()
    print(f"link {options.slow_link or options.link}, load {os.getloadavg()[0]:.1f}\n")
    print("| model | ranks | predicted, µs | measured, µs | ratio | efficiency, predicted | measured |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    rows = []
    for cell, worlds in zip(cells, predicted):
        measured = {ranks: statistics.median(found) for ranks, found in cell.measured.items()}
        first = options.ranks[0]
        for ranks in options.ranks:
            row = {"model": cell.label, "ranks": ranks, "predicted_us": worlds[ranks]["step_us"], "measured_us": measured[ranks],
                   "rounds_us": cell.measured[ranks]}
            rows.append(row)
            print(f"| {cell.label} | {ranks} | {row['predicted_us']:,.0f} | {row['measured_us']:,.0f} | "
                  f"{row['predicted_us'] / row['measured_us']:.2f} | {worlds[first]['step_us'] / row['predicted_us']:.0%} | "
                  f"{measured[first] / row['measured_us']:.0%} |")
    write_rows(options.json, rows)


main()
