#!/usr/bin/env python3
"""How well gpuc-simulate is met: sets its steps against those of gpuc-train on ranks of this machine, one thread each.

    bench-exchange 2                                   # says the --link of this machine
    bench/simulated.py --link=memory:bandwidth=3300MB,latency=7 [--ranks=1,2] [--rounds=5] [--json=FILE]

mlp, convnet and gpt2, at the sizes of test/end-to-end/small_zoo.py and at their own, or 'mlp hidden=4096,4096', say. With
--slow-link=LINK (ethernet:bandwidth=1GB,latency=50), once or more, sums take as long as over each. Times of commands
are, in each round anew, those of gpuc-calibrate, or with --profiled of a run of the model, of as many at once as there are ranks; or of --rates=FILE. A number is the
median of all steps of a round but the first ones, and of the rounds the median, between which models, links and ranks take turns. Each of
the ranks wants a core for itself.
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


def run_at_once(count, arguments):
    """As ranks do, which use the same memory."""
    commands = [arguments(number) for number in range(count)]
    running = [subprocess.Popen([os.path.join(BIN, each[0]), *each[1:]], stdout=subprocess.DEVNULL) for each in commands]
    if any([each.wait() for each in running]):
        sys.exit("gpuc-run failed")


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
    """A model over a link."""

    def __init__(self, folder, label, model, keys, link, options):
        self.label, self.link, self.options = label, link or options.link, options
        self.is_slow = link is not None
        self.base = os.path.join(folder, f"{label}_{self.link}".translate(str.maketrans(" ,=:", "____")))
        self.measured, self.predicted = ({ranks: [] for ranks in options.ranks} for _ in range(2))
        run("gpuc-model", model, *keys, "-o", self.base + ".mlir")

    def times(self, rates):
        """Flags that say what commands take."""
        if not self.options.profiled:
            return ["--rates=" + rates]
        trace = self.base + ".trace.json"
        run("gpuc-compile", self.base + ".mlir", "--data-parallel", "--link=" + self.link, "--rates=none", "-o", self.base + ".plan")
        run_at_once(max(self.options.ranks), lambda number: [
            "gpuc-run", self.base + ".plan", "--entry=train_step", "--threads=1", f"--repeat={self.repeat()}",
            "--profile=" + (trace if number == 0 else trace + str(number))])
        return ["--rates=none", "--profile-in=" + trace]

    def repeat(self):
        return max(5, min(300, int(self.options.seconds / (self.measure(1, 3) / 1e6))))

    def predict(self, times):
        result = self.base + ".json"
        run("gpuc-simulate", self.base + ".mlir", "--link=" + self.link, *times,
            *(["--copy-bandwidth=" + self.options.copy_bandwidth] if self.options.copy_bandwidth else []),
            "--ranks=" + ",".join(map(str, self.options.ranks)), "--json=" + result)
        with open(result, encoding="utf-8") as file:
            for world in json.load(file)["worlds"]:
                self.predicted[world["ranks"]].append(world["step_us"])

    def measure(self, ranks, steps):
        metrics = self.base + ".jsonl"
        slow = flags_of(self.link) if self.is_slow and ranks > 1 else []
        run("gpuc-train", self.base + ".plan", f"--ranks={ranks}", "--threads=1", "--data=synthetic:size=8192", f"--steps={steps}",
            "--log-every=0", "--no-shuffle", "--metrics=" + metrics, *slow)
        with open(metrics, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        os.remove(metrics)
        return statistics.median([event["compute_us"] for event in events if event["event"] == "step"][steps // 5:])

    def round(self, rates):
        times = self.times(rates)
        run("gpuc-compile", self.base + ".mlir", "--data-parallel", "--link=" + self.link, *times, "-o", self.base + ".plan")
        self.predict(times)
        for ranks in self.options.ranks:
            guess = self.measure(ranks, 5) / 1e6
            self.measured[ranks].append(self.measure(ranks, max(10, min(3000, int(self.options.seconds / guess)))))

    def rows(self):
        for ranks in self.options.ranks:
            yield {"model": self.label, "link": self.link, "ranks": ranks,
                   "predicted_us": statistics.median(self.predicted[ranks]), "measured_us": statistics.median(self.measured[ranks]),
                   "predicted_rounds_us": self.predicted[ranks], "measured_rounds_us": self.measured[ranks]}


def print_table(rows):
    print("| model | link | ranks | predicted, µs | measured, µs | ratio |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for row in rows:
        print(f"| {row['model']} | {row['link']} | {row['ranks']} | {row['predicted_us']:,.0f} | {row['measured_us']:,.0f} | "
              f"{row['predicted_us'] / row['measured_us']:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=ZOO, help="of the zoo, with keys or without")
    parser.add_argument("--rates", help="what gpuc-calibrate --threads=1 wrote, instead of a calibration in each round")
    parser.add_argument("--profiled", action="store_true", help="times of commands are those of a run, of as many at once as there are ranks")
    parser.add_argument("--link", default="memory", help="what bench-exchange says of this machine")
    parser.add_argument("--slow-link", action="append", help="may be given several times")
    parser.add_argument("--copy-bandwidth", help="as gpuc-simulate's")
    parser.add_argument("--ranks", default="1,2", type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--sizes", default="small,default")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cells = [Cell(folder, *what, link, options)
                 for what in cells_of(options.models, options.sizes.split(",")) for link in options.slow_link or [None]]
        for _ in range(options.rounds):
            rates = options.rates or os.path.join(folder, "rates.json")
            if not options.rates and not options.profiled:
                run("gpuc-calibrate", "--threads=1", "-o", rates)
            for cell in cells:
                cell.round(rates)
    rows = [row for cell in cells for row in cell.rows()]
    print(f"load {os.getloadavg()[0]:.1f}\n")
    print_table(rows)
    write_rows(options.json, rows)


main()
