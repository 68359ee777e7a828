#!/usr/bin/env python3
"""Where a step's time goes: sums up the commands of a trace.

    gpuc-run PLAN --entry=train_step --repeat=200 --profile=trace.json && bench/where.py trace.json [ENTRY] [LINES] [--report=REPORT.json]

Commands of the same name are one line: the median of one, times how often it comes in a run of the entry. A median,
because a machine that does other work too stretches a few of them a lot. Taking times costs about 60 ns a command.

With the report of gpuc-compile, kernels and products have their rates: GFLOP/s, and GB/s of the least that they move. What is in
a cache is moved faster than memory is.
"""

import collections
import json
import statistics
import sys


def durations(trace, entry):
    """(kind, name) → µs of each time that it ran; and how often the entry ran."""
    found, first, runs = collections.defaultdict(list), None, 0
    for event in trace["traceEvents"]:
        if event["ph"] != "X" or event["args"]["entry"] != entry:
            continue
        key = event["cat"], event["name"]
        place = (*key, event["args"]["location"], event["tid"])
        first = first or place
        found[key].append(event["dur"])
        runs += place == first
    return found, runs


def work_of(report, entry):
    """(kind, name) as in a trace → (flops, bytes) of one execution, averaged over commands of the same name."""
    found = collections.defaultdict(list)
    for command in report["work"]:
        if command["entry"] == entry and command["kind"] in ("launch", "matmul"):
            name = command["name"] if command["kind"] == "launch" else "matmul " + command["shape"]
            found[command["kind"], name].append((command["flops"], command["bytes_read"] + command["bytes_written"], command["executions"]))
    total = lambda rows, column: sum(row[column] * row[2] for row in rows) / sum(row[2] for row in rows)
    return {key: (total(rows, 0), total(rows, 1)) for key, rows in found.items()}


def rates(work, kind, name, us):
    """", 12.3 GFLOP/s, 45.6 GB/s" of a line, if the report has it."""
    plain = name.split(" + ")[0].removesuffix(" added").removesuffix(" tf32")  # a product is named with what it does besides
    if (kind, plain) not in work or us == 0:
        return ""
    flops, moved = work[kind, plain]
    return f", {flops / us / 1e3:.1f} GFLOP/s, {moved / us / 1e3:.1f} GB/s"


def main():
    reports = [argument.removeprefix("--report=") for argument in sys.argv[1:] if argument.startswith("--report=")]
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    if not arguments or len(reports) + len(arguments) != len(sys.argv) - 1:
        sys.exit("error: usage: where.py TRACE.json [ENTRY] [LINES] [--report=REPORT.json]")
    entry = arguments[1] if len(arguments) > 1 else "train_step"
    lines = int(arguments[2]) if len(arguments) > 2 else 12
    with open(arguments[0], encoding="utf-8") as file:
        found, runs = durations(json.load(file), entry)
    if not found:
        sys.exit(f"error: {arguments[0]} holds no command of {entry}")
    work = {}
    if reports:
        with open(reports[-1], encoding="utf-8") as file:
            work = work_of(json.load(file), entry)
    rows = sorted(((len(us) / runs * statistics.median(us), len(us) / runs, *key) for key, us in found.items()), reverse=True)
    total, kinds = sum(row[0] for row in rows), collections.Counter()
    for us, _, kind, _ in rows:
        kinds[kind] += us
    print(f"{total:.1f} µs in {sum(row[1] for row in rows):.0f} commands: " + ", ".join(f"{kind} {100 * us / total:.0f}%" for kind, us in kinds.most_common()))
    for us, times, kind, name in rows[:lines]:
        print(f"{us:10.1f} µs {100 * us / total:5.1f}%  {times:3.0f} × {name}" + rates(work, kind, name, us / times))


main()
