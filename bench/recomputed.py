#!/usr/bin/env python3
"""What a memory budget costs in time, predicted and measured: 75, 50 and 35% of what a model's activations take, on the host.

    gpuc-calibrate --threads=2 -o two.json
    bench/recomputed.py --rates=two.json --threads=2 resnet50:batch=8 gpt2:size=124M,batch=1 [--rounds=5] [--json=FILE]

The plans of a model take turns, a process with two steps each, of which the shorter one counts. What recomputation adds is the median over
the rounds of a plan's step against that of the plan that keeps everything in the same round. It is as predicted where the two are three
points apart at most, or a third of what is predicted. Where nothing fits, the least plan that there is stands for it.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

from predicted import BIN
from rows import write_rows

SHARES = (0.75, 0.5, 0.35)
HEAD = """| model | of its activations | arena, MiB | predicted | measured | step with all kept, ms | as predicted |
| --- | ---: | ---: | ---: | ---: | ---: | --- |"""


def tool(name, *arguments):
    return subprocess.run([os.path.join(BIN, name), *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def compiled(plan, model, rates, *flags):
    """The report; of a budget that nothing fits, that of the least plan."""
    command = ["gpuc-compile", model, "-o", plan, "--report=" + plan + ".json", "--target=host", "--rates=" + rates]
    done = tool(*command, *flags)
    least = re.search(r"give at least (--memory-budget=\d+)", done.stderr)
    if done.returncode and least:
        done = tool(*command, least[1])
    if done.returncode:
        sys.exit(done.stderr.rstrip())
    with open(plan + ".json", encoding="utf-8") as file:
        return json.load(file)


def step_us(plan, threads):
    tool("gpuc-run", plan, "--entry=train_step", f"--threads={threads}", "--repeat=2", "--json=" + plan + ".run.json")
    with open(plan + ".run.json", encoding="utf-8") as file:
        return json.load(file)["step_us"]["min"]


def plans(folder, wish, rates):
    """(share of the activations, plan, report), everything kept first."""
    name, _, keys = wish.partition(":")
    model = os.path.join(folder, "model.mlir")
    made = tool("gpuc-model", name, *filter(None, keys.split(",")), "-o", model)
    if made.returncode:
        sys.exit(made.stderr.rstrip())
    plan = os.path.join(folder, "kept.plan")
    kept = compiled(plan, model, rates)
    yield 1, plan, kept
    for share in SHARES:
        budget = kept["peak_bytes"] - round((1 - share) * kept["by_category"]["activation"])
        plan = os.path.join(folder, f"{share:.0%}.plan")
        yield share, plan, compiled(plan, model, rates, f"--memory-budget={budget}")


def measured(wish, rates, threads, rounds):
    """A row for each budget."""
    with tempfile.TemporaryDirectory() as folder:
        made = list(plans(folder, wish, rates))
        times = [[step_us(plan, threads) for _, plan, _ in made] for _ in range(rounds)]
    kept = made[0][2]
    for index, (share, _, report) in enumerate(made[1:], 1):
        yield {"model": wish, "share": share, "peak_bytes": report["peak_bytes"],
               "predicted": report["predicted_step_us"] / kept["predicted_step_us"] - 1,
               "measured": statistics.median(step[index] / step[0] for step in times) - 1,
               "kept_us": statistics.median(step[0] for step in times)}


def is_as_predicted(row):
    off = abs(row["measured"] - row["predicted"])
    return off <= max(0.03, row["predicted"] / 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="MODEL[:KEY=VALUE,…]", help="of the zoo")
    parser.add_argument("--rates", default="none", help="what gpuc-calibrate wrote for so many threads")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    rates = options.rates if options.rates == "none" else os.path.abspath(options.rates)
    rows = []
    for wish in options.models:
        for row in measured(wish, rates, options.threads, options.rounds):
            if not rows:
                print(HEAD)
            rows.append(row)
            print(f"| {row['model']} | {row['share']:.0%} | {row['peak_bytes'] / 2**20:,.0f} | {row['predicted']:+.1%} | {row['measured']:+.1%} | "
                  f"{row['kept_us'] / 1e3:,.0f} | {'yes' if is_as_predicted(row) else 'no'} |", flush=True)
    print(f"{sum(map(is_as_predicted, rows))} of {len(rows)} as predicted; {options.threads} threads, load {os.getloadavg()[0]:.1f}")
    write_rows(options.json, rows)


if __name__ == "__main__":
    main()
