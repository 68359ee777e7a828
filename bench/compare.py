#!/usr/bin/env python3
"""Times one training step: gpuc, PyTorch (eager and compiled) and JAX side by side, in one run, on bench/cases.py.

All start from the same weights, take the same batch, and must compute the same losses before anything is timed. Then
they take turns, with one and with two threads. What counts is each one's better number of threads, by the median over
the rounds of the round's median. Use scripts/bench, which builds gpuc first.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time

import environment
import gpuc_side
import report
from candidates import CandidateError, Worker, differing
from cases import CASES

THREADS = (1, 2)
PEERS = {"torch-eager": ["torch_worker.py", "eager"], "torch-compiled": ["torch_worker.py", "compiled"], "jax": ["jax_worker.py"]}
LOSS_STEPS = 5
LOSS_TOLERANCE = 1e-5  # relative, of each loss: f32 sums of other orders, through five updates
ROUND_SECONDS = 0.05


def start_workers(case, settings, folder):
    """gpuc's first. All start at once, but are waited for one by one."""
    workers = []
    for threads in THREADS:
        def start(name, command, variables=None):
            workers.append(Worker(name, threads, command, os.path.join(folder, f"{name}-{threads}.log"), variables))
        start("gpuc", gpuc_side.command(case, settings.binaries, folder, threads))
        for name in settings.peers:
            script, *form = PEERS[name]
            start(name, [settings.python, os.path.join(gpuc_side.HERE, "peers", script), folder, str(threads), *form],
                  environment.variables())
        for name, program in settings.also:
            start(name, [program, folder, str(threads)])
        for worker in workers:  # two numbers of threads after one another: what one compiled, the other finds
            if worker.facts is None:
                worker.start()
    return workers


def check_losses(workers):
    """(gpuc's losses, worker → its largest relative difference)"""
    reference, differences = workers[0].ask("losses", LOSS_STEPS), {}
    for worker in workers:
        try:
            differences[worker] = differing(worker.ask("losses", LOSS_STEPS), reference, LOSS_TOLERANCE)
        except CandidateError as error:
            raise CandidateError(f"{worker.name} with {worker.threads} threads: {error}") from None
    return reference, differences


def summary(worker, rounds, difference):
    return {"name": worker.name, "threads": worker.threads, "us": statistics.median(rounds), "rounds_us": rounds,
            "version": worker.facts["version"], "form": worker.facts["form"], "refused_forms": worker.facts.get("refused", {}),
            "loss_difference": difference}


def compare(case, settings):
    """One cell's result; see bench/README.md for its fields."""
    workers = []
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as folder:
        try:
            gpuc_side.prepare(case, settings.binaries, folder)
            workers = start_workers(case, settings, folder)
            losses, differences = check_losses(workers)
            times = {worker: [] for worker in workers}
            for turn in range(settings.rounds + 1):
                for worker in workers:
                    chunks = worker.ask("round", ROUND_SECONDS)
                    if turn > 0:
                        times[worker].append(statistics.median(chunks))
                    elif settings.nice:  # the first turn warms up, and starts whatever threads there are
                        worker.prioritise(settings.nice)
        finally:
            for worker in workers:
                worker.close()
    return report.cell(case, losses, [summary(worker, times[worker], differences[worker]) for worker in workers])


def named(kind, known, text):
    """The items of a list that was given as a flag; refuses those that are unknown."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            print(f"error: no {kind} '{name}': there are {', '.join(known)}", file=sys.stderr)
            sys.exit(2)
    return names


def at_least_one(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1 on")
    return int(text)


def also(text):
    name, separator, program = text.partition("=")
    if not (name and separator and program):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=PROGRAM")
    return name, program


class Parser(argparse.ArgumentParser):
    def error(self, message):
        print("error: " + message.removeprefix("argument "), file=sys.stderr)
        sys.exit(2)


def read_flags(arguments):
    parser = Parser(prog="scripts/bench", description=__doc__.split("\n\n")[0], allow_abbrev=False)
    parser.add_argument("folder", nargs="?", help="for table.md, results.json and plot.svg (default: bench/results/DATE-CPU)")
    parser.add_argument("--cases", metavar="NAME,…", default=",".join(case.name for case in CASES), help="default: %(default)s")
    parser.add_argument("--peers", metavar="NAME,…", default=",".join(PEERS), help="default: %(default)s; empty: gpuc alone")
    parser.add_argument("--rounds", metavar="N", type=at_least_one, default=7, help="default: %(default)s, after one that warms up")
    parser.add_argument("--nice", metavar="N", type=int, default=0,
                        help="priority of all candidates alike in the rounds, as nice has it: -15 where others compute too (as root)")
    parser.add_argument("--binaries", metavar="DIR", default="build/bin", help="where gpuc's tools lie (default: %(default)s)")
    parser.add_argument("--check-flags", action="store_true", help=argparse.SUPPRESS)  # scripts/bench asks first, then builds
    parser.add_argument("--also", metavar="NAME=PROGRAM", type=also, action="append", default=[],
                        help="one more candidate: a program that is started as PROGRAM FOLDER THREADS and answers as bench/README.md says")
    settings = parser.parse_args(arguments)
    cases = named("case", [case.name for case in CASES], settings.cases)
    settings.cases = [case for case in CASES if case.name in cases]
    settings.peers = named("peer", list(PEERS), settings.peers)
    return settings


def main():
    settings = read_flags(sys.argv[1:])
    if settings.check_flags:
        return
    run = report.Run(settings)
    os.makedirs(run.folder, exist_ok=True)
    try:
        settings.python = environment.prepare() if settings.peers else None
    except environment.SetupError as error:
        sys.exit(f"error: {error}")
    for case in settings.cases:
        begin = time.monotonic()
        try:
            run.add(compare(case, settings))
        except CandidateError as error:
            run.fail(case, str(error))
        run.write()  # after each cell: a run that is stopped leaves what it has
        print(run.line(), f"  ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"wrote table.md, results.json and plot.svg to {run.folder}")
    if run.failures:
        sys.exit("error: " + "; ".join(f"{name}: {reason}" for name, reason in run.failures.items()))


if __name__ == "__main__":
    main()
