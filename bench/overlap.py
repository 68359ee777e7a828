#!/usr/bin/env python3
"""Whether the backward pass hides what ranks exchange: two ranks of this machine, whose link is slower than it is.

    bench/overlap.py 100MB 200MB 400MB [--latency=50] [--model='mlp hidden=2048,2048,2048 batch=384'] [--rounds=5] [--json=FILE]

For each bandwidth, bytes a second, in turn: two processes that train for themselves (`alone`: what computing takes), two ranks with the
buckets that gpuc-compile chooses for the link, with such of 25 MB, and with sums in turn with the commands. One thread each; a number is
the median of a round's steps but the first ones, and of the rounds the median. `first` is when the first bucket is there, of processes that
train for themselves.

`ratio` is the step by the longer of computing, with the last bucket behind it, and of exchanging; `with first` by the same, but that the
exchange of gradients begins when the first ones are there.
"""

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import tempfile

from rows import write_rows

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.environ.get("GPUC_BIN", os.path.join(SOURCE, "build", "bin"))
UNITS = {"KB": 1e3, "MB": 1e6, "GB": 1e9}
STEPS, WARM = 8, 2


def summed_bytes(text):
    """Of each sum over ranks of a plan's training step, in their order. Each program has numbers of its own for its buffers."""
    (step,) = [program for program in text.split("plan.program ") if program.startswith("@train_step")]
    shapes = dict(re.findall(r'(%\d+) = plan\.buffer "[^"]*" : tensor<((?:\d+x)*)f32>', step))
    sizes = {buffer: 4 * math.prod(map(int, shape.split("x")[:-1])) for buffer, shape in shapes.items()}
    return [sizes[buffer] for buffer in re.findall(r"plan\.all_reduce %\d+ -> (%\d+)", step)]


def first_gradient(trace, sizes, steps):
    """Where the first sum of gradients begins in a step, in ms: the median of all but the first ones."""
    events = sorted((event for event in trace if event.get("args", {}).get("entry") == "train_step"), key=lambda event: event["ts"])
    sums = [event["ts"] for event in events if event["name"] == "all_reduce"]
    compute = [event["ts"] for event in events if event["tid"] == 0]
    if len(sums) != steps * len(sizes) or len(compute) % steps != 0:
        raise SystemExit(f"a profile of {len(sums)} sums and {len(compute)} commands that compute is not of {steps} steps of {len(sizes)} sums")
    begins = compute[::len(compute) // steps]
    ends = sums[gradients_from(sizes)::len(sizes)]
    return statistics.median([end - begin for begin, end in zip(begins, ends)][WARM:]) / 1e3


def gradients_from(sizes):
    """The first sum that is not one of numbers, as of losses."""
    return next(number for number, size in enumerate(sizes) if size > 64)


class Bench:
    def __init__(self, folder, options):
        self.folder, self.latency = folder, options.latency
        self.run("gpuc-model", *options.model.split(), "-o", "model.mlir")

    def start(self, tool, *arguments, **how):
        return subprocess.Popen([os.path.join(BIN, tool), *arguments], cwd=self.folder, stdout=subprocess.PIPE, text=True, **how)

    def run(self, *command):
        process = self.start(*command)
        said, _ = process.communicate()
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit {process.returncode}")
        return said

    def compile(self, plan, *flags):
        self.run("gpuc-compile", "model.mlir", "--data-parallel", "-o", plan, *flags)

    def exchanges(self, *flags):
        """Bytes of each, in their order."""
        text = self.run("gpuc-compile", "model.mlir", "--data-parallel", "--emit=plan", "--no-locations", "-o", "-", *flags)
        return summed_bytes(text)

    def train(self, metrics, plan, *flags):
        return self.start("gpuc-train", plan, "--data=synthetic:size=8192", f"--steps={STEPS}", "--threads=1", "--log-every=0",
                          "--metrics=" + metrics, *flags)

    def steps(self, process, metrics):
        process.communicate()
        path = os.path.join(self.folder, metrics)
        with open(path, encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        os.remove(path)
        return statistics.median([event["compute_us"] for event in events if event["event"] == "step"][WARM:]) / 1e3

    def alone(self, plan, sizes):
        """A step, and when its first bucket is there: of the slower one of two."""
        started = [(self.train(name + ".jsonl", plan, f"--profile={name}.json"), name) for name in ("first", "second")]
        return max((self.steps(process, name + ".jsonl"), self.first(name + ".json", sizes)) for process, name in started)

    def first(self, profile, sizes):
        with open(os.path.join(self.folder, profile), encoding="utf-8") as file:
            return first_gradient(json.load(file)["traceEvents"], sizes, STEPS)

    def together(self, plan, bandwidth):
        process = self.train("ranks.jsonl", plan, "--ranks=2", f"--link-bandwidth={bandwidth}", f"--link-latency={self.latency}")
        return self.steps(process, "ranks.jsonl")

    def milliseconds(self, size, bandwidth):
        """Of a sum over two ranks: two messages, each of half of the bytes."""
        number, unit = re.fullmatch(r"([\d.]+)([KMG]B)", bandwidth).groups()
        return 2 * self.latency / 1e3 + size / (float(number) * UNITS[unit]) * 1e3

    def measure(self, bandwidth, rounds):
        link = f"--link=ethernet:bandwidth={bandwidth},latency={self.latency}"
        self.compile("chosen.plan", link)
        self.compile("fixed.plan", link, "--bucket-size=25MB")
        self.compile("turn.plan", "--link=memory")
        sizes = self.exchanges(link)
        found = {"alone": [], "first": [], "chosen": [], "fixed": [], "turn": []}
        for _ in range(rounds):
            for name, value in zip(("alone", "first"), self.alone("chosen.plan", sizes)):
                found[name].append(value)
            for name in ("chosen", "fixed", "turn"):
                found[name].append(self.together(name + ".plan", bandwidth))
        times = [self.milliseconds(size, bandwidth) for size in sizes]
        row = {name: statistics.median(values) for name, values in found.items()}
        row.update(bandwidth=bandwidth, buckets_mb=[round(size / 1e6, 1) for size in sizes], exchange=sum(times), last=times[-1], rounds=found)
        computed, gradients = row["alone"] + row["last"], sum(times[gradients_from(sizes):])
        row["ratio"] = row["chosen"] / max(computed, row["exchange"])
        row["with_first"] = row["chosen"] / max(computed, row["exchange"], row["first"] + gradients)
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bandwidths", nargs="+", help="bytes a second: 100MB, say")
    parser.add_argument("--model", default="mlp hidden=2048,2048,2048,2048,2048,2048,2048 batch=384")
    parser.add_argument("--latency", type=int, default=50, help="of a message, in microseconds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options)
        print("| a second | buckets | alone, ms | exchange | first | last | step | ratio | with first | of 25 MB | in turn |\n|"
              + " ---: |" * 11, flush=True)
        rows = []
        for bandwidth in options.bandwidths:
            row = bench.measure(bandwidth, options.rounds)
            rows.append(row)
            print(f"| {bandwidth} | {len(row['buckets_mb'])} | {row['alone']:.0f} | {row['exchange']:.0f} | {row['first']:.0f} | "
                  f"{row['last']:.0f} | {row['chosen']:.0f} | {row['ratio']:.3f} | {row['with_first']:.3f} | "
                  f"{row['fixed'] / row['chosen']:.2f} | {row['turn'] / row['chosen']:.2f} |", flush=True)
    print(f"\nload {os.getloadavg()[0]:.1f}")
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
