#!/usr/bin/env python3
"""How well predicted steps are met: sets the report's predicted_step_us against measured steps of the zoo.

    gpuc-calibrate --threads=1 -o one.json && gpuc-calibrate --threads=2 -o two.json
    bench/predicted.py --rates=one.json --rates=two.json [MODEL …] [--sizes=small,default] [--seconds=2] [--json=FILE]

For each model at the sizes of test/end-to-end/small_zoo.py and at its own, and for each file of rates with the threads that it is for:
what is predicted without rates, with them, and what a step takes. On one thread that is the processor's time, which others who use the
machine make longer by little; on several it is the least of all steps, for which the machine should be at rest. Each is the median
of three rounds, between which the models take turns.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

from rows import write_rows

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
BIN = os.environ.get("GPUC_BIN", os.path.join(SOURCE, "build", "bin"))
sys.path.insert(0, os.path.join(SOURCE, "test", "end-to-end"))
from small_zoo import MODELS  # noqa: E402


def run(*arguments):
    subprocess.run([os.path.join(BIN, arguments[0]), *arguments[1:]], check=True, stdout=subprocess.DEVNULL)


def cells(models, sizes):
    """(label, model, keys)"""
    for model, small in MODELS.items():
        if models and model not in models:
            continue
        if "small" in sizes:
            for keys in small:
                special = [key for key in keys if key.startswith(("cell", "lora", "length=144"))]
                yield f"{model}, small" + (f" ({special[0]})" if special else ""), model, keys
        if "default" in sizes:
            yield model, model, []


class Cell:
    def __init__(self, folder, label, model, keys):
        self.label = label
        self.base = os.path.join(folder, label.replace(" ", "_").replace(",", ""))
        run("gpuc-model", model, *keys, "-o", self.base + ".mlir")

    def predicted_us(self, rates):
        report = self.base + ".json"
        run("gpuc-compile", self.base + ".mlir", "-o", self.base + ".plan", "--report=" + report, "--target=host", "--rates=" + rates)
        with open(report, encoding="utf-8") as file:
            return json.load(file)["predicted_step_us"]

    def steps(self, threads, repeat):
        """What gpuc-run says, and the processor's seconds."""
        result = self.base + ".run.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run("gpuc-run", self.base + ".plan", "--entry=train_step", f"--threads={threads}", f"--repeat={repeat}", "--json=" + result)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(result, encoding="utf-8") as file:
            return json.load(file)["step_us"], after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def measured_us(self, threads, seconds):
        guess, _ = self.steps(threads, 1)
        repeat = max(2, min(20000, int(seconds * 1e6 / max(guess["min"], 1))))
        step, processor = self.steps(threads, repeat + 1)
        if threads > 1 or step["min"] < 1000:  # short steps are seldom interrupted
            return step["min"]
        _, once = self.steps(threads, 1)
        return (processor - once) * 1e6 / repeat


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="of the zoo; all of them")
    parser.add_argument("--rates", action="append", required=True, help="what gpuc-calibrate wrote; may be given several times")
    parser.add_argument("--sizes", default="small,default")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json")
    options = parser.parse_args()
    rates = []
    for file in options.rates:
        with open(file, encoding="utf-8") as text:
            rates.append((os.path.abspath(file), json.load(text)["threads"]))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for cell in [Cell(folder, *what) for what in cells(options.models, options.sizes.split(","))]:
            without = cell.predicted_us("none")
            for file, threads in rates:
                rows.append({"cell": cell, "model": cell.label, "threads": threads, "uncalibrated_us": without, "predicted_us": cell.predicted_us(file), "measured": []})
        for _ in range(options.rounds):
            for row in rows:
                row["measured"].append(row["cell"].measured_us(row["threads"], options.seconds))
    print("| model | threads | predicted, µs | measured, µs | ratio | uncalibrated |\n| --- | ---: | ---: | ---: | ---: | ---: |")
    for row in rows:
        del row["cell"]
        row["measured_us"] = statistics.median(row["measured"])
        row["ratio"], row["uncalibrated_ratio"] = (row[key] / row["measured_us"] for key in ("predicted_us", "uncalibrated_us"))
        print(f"| {row['model']} | {row['threads']} | {row['predicted_us']:,.1f} | {row['measured_us']:,.1f} | {row['ratio']:.2f} | {row['uncalibrated_ratio']:.2f} |")
    within = sum(0.75 <= row["ratio"] <= 1.25 for row in rows)
    print(f"{within} of {len(rows)} within 25%; load {os.getloadavg()[0]:.1f}")
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
