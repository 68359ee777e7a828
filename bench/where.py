#!/usr/bin/env python3
"""Where a step's time goes: sums up the commands of a trace.

    gpuc-run PLAN --entry=train_step --repeat=200 --profile=trace.json && bench/where.py trace.json [ENTRY] [LINES]

Commands of the same name are one line: the median of one, times how often it comes in a run of the entry. A median,
because a machine that does other work too stretches a few of them a lot. Taking times costs about 60 ns a command.
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


def main():
    if len(sys.argv) < 2:
        sys.exit("error: usage: where.py TRACE.json [ENTRY] [LINES]")
    entry = sys.argv[2] if len(sys.argv) > 2 else "train_step"
    lines = int(sys.argv[3]) if len(sys.argv) > 3 else 12
    with open(sys.argv[1], encoding="utf-8") as file:
        found, runs = durations(json.load(file), entry)
    if not found:
        sys.exit(f"error: {sys.argv[1]} holds no command of {entry}")
    rows = sorted(((len(us) / runs * statistics.median(us), len(us) / runs, *key) for key, us in found.items()), reverse=True)
    total, kinds = sum(row[0] for row in rows), collections.Counter()
    for us, _, kind, _ in rows:
        kinds[kind] += us
    print(f"{total:.1f} µs in {sum(row[1] for row in rows):.0f} commands: " + ", ".join(f"{kind} {100 * us / total:.0f}%" for kind, us in kinds.most_common()))
    for us, times, _, name in rows[:lines]:
        print(f"{us:10.1f} µs {100 * us / total:5.1f}%  {times:3.0f} × {name}")


main()
