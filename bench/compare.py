#!/usr/bin/env python3
"""Times one training step: gpuc, PyTorch (eager and compiled) and JAX side by side, in one run, on bench/cases.py.

With --real on bench/real_cases.py, beside the rate of products that is measured in the same rounds, and with everyone's memory.

All start from the same weights, take the same batch, and must compute the same losses before anything is timed. Then
they take turns, with one and with two threads. What counts is each one's better number of threads, by the median over
the rounds of the round's median. Use scripts/bench, which builds gpuc first.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import environment
import gpuc_side
import memory
import real_report
import report
from candidates import CandidateError, Worker, differing
from cases import CASES
from real_cases import PRODUCT, REAL_CASES

THREADS = (1, 2)
PEERS = {"torch-eager": ["torch_worker.py", "eager"], "torch-compiled": ["torch_worker.py", "compiled"], "jax": ["jax_worker.py"]}
LOSS_STEPS = 5
ROUND_SECONDS = 0.05


def start_workers(case, settings, folder, counts):
    """gpuc's first. All start at once, but are waited for one by one."""
    workers = []
    for threads in counts:
        def start(name, command, variables=None):
            workers.append(Worker(name, threads, command, os.path.join(folder, f"{name}-{threads}.log"), variables))
        start("gpuc", gpuc_side.command(case, settings.binaries, folder, threads))
        for name in settings.peers:
            if name not in case.peers:
                continue
            script, *form = PEERS[name]
            start(name, [settings.python, os.path.join(gpuc_side.HERE, "peers", script), folder, str(threads), *form],
                  environment.variables())
        for name, program in settings.also:
            start(name, [program, folder, str(threads)])
        for worker in workers:  # two numbers of threads after one another: what one compiled, the other finds
            if worker.facts is None:
                worker.start()
    return workers


def check_losses(workers, tolerance):
    """(gpuc's losses, worker → its largest relative difference)"""
    reference, differences = workers[0].ask("losses", LOSS_STEPS), {}
    for worker in workers:
        try:
            differences[worker] = differing(worker.ask("losses", LOSS_STEPS), reference, tolerance)
        except CandidateError as error:
            raise CandidateError(f"{worker.name} with {worker.threads} threads: {error}") from None
    return reference, differences


def summary(worker, rounds, difference):
    return {"name": worker.name, "threads": worker.threads, "us": statistics.median(rounds), "rounds_us": rounds,
            "version": worker.facts["version"], "form": worker.facts["form"], "refused_forms": worker.facts.get("refused", {}),
            "loss_difference": difference}


def take_turns(workers, settings):
    """worker → µs a step of each round"""
    times = {worker: [] for worker in workers}
    for turn in range(settings.rounds + 1):
        for worker in workers:
            chunks = worker.ask("round", ROUND_SECONDS)
            if turn > 0:
                times[worker].append(statistics.median(chunks))
            elif settings.nice:  # the first turn warms up, and starts whatever threads there are
                worker.prioritise(settings.nice)
    return times


def side_by_side(case, settings, folder, counts):
    """gpuc's losses, and the summaries of all candidates with these numbers of threads; last those of the product, if there is one."""
    workers, product = [], []
    try:
        workers = start_workers(case, settings, folder, counts)
        losses, differences = check_losses(workers, case.tolerance)
        if settings.real:
            product = start_product(settings, folder, counts)
        times = take_turns([*workers, *product], settings)
    finally:
        for worker in [*workers, *product]:
            worker.close()
    return losses, [summary(worker, times[worker], differences.get(worker)) for worker in [*workers, *product]]


def compare(case, settings):
    """One cell's result; see bench/README.md for its fields."""
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as folder:
        gpuc_side.prepare(case, settings.binaries, folder)
        return report.cell(case, *side_by_side(case, settings, folder, THREADS))


def start_product(settings, folder, counts):
    """What tells the rate of products: one worker for each number of threads."""
    folder = os.path.join(folder, PRODUCT.name)
    if not os.path.exists(folder):
        os.mkdir(folder)
        gpuc_side.prepare(PRODUCT, settings.binaries, folder)
    workers = [Worker(PRODUCT.name, threads, gpuc_side.command(PRODUCT, settings.binaries, folder, threads, "predict"),
                      os.path.join(folder, f"{threads}.log")) for threads in counts]
    for worker in workers:
        worker.start()
    return workers


def peak_of(peer, form, settings, folder):
    try:
        return memory.peer_bytes(settings.python, folder, peer, form)
    except subprocess.CalledProcessError as error:
        raise CandidateError(f"the memory of {peer}, {form}: its process ended with {error.returncode}") from None


def compare_real(case, settings):
    """The same for --real. One number of threads after the other, since all candidates' memory would not fit at once."""
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as folder:
        gpuc_side.prepare(case, settings.binaries, folder)
        candidates = []
        for threads in THREADS:
            losses, summaries = side_by_side(case, settings, folder, [threads])
            candidates += summaries
        peaks = {}
        for it in candidates:
            key = it["name"], it["form"]
            if it["name"] in case.peers and key not in peaks:
                peaks[key] = peak_of(*key, settings, folder)
            it["peak_bytes"] = peaks.get(key)
        return real_report.cell(case, losses, candidates, gpuc_side.nominal_flops(folder), gpuc_side.arena_bytes(folder))


def named(kind, known, text, elsewhere=None):
    """The items of a list that was given as a flag; refuses those that are unknown. `elsewhere`: a way to others → their names."""
    elsewhere = elsewhere or {}
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            cure = next((f"{how} has it" for how, others in elsewhere.items() if name in others), f"there are {', '.join(known)}")
            print(f"error: no {kind} '{name}': {cure}", file=sys.stderr)
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
    parser.add_argument("--real", action="store_true", help="models at sizes that people train, with their memory")
    parser.add_argument("--cases", metavar="NAME,…",
                        help=f"default: {','.join(it.name for it in CASES)}, with --real {','.join(it.name for it in REAL_CASES)}")
    parser.add_argument("--peers", metavar="NAME,…", default=",".join(PEERS), help="default: %(default)s; empty: gpuc alone")
    parser.add_argument("--rounds", metavar="N", type=at_least_one, default=7, help="default: %(default)s, after one that warms up")
    parser.add_argument("--nice", metavar="N", type=int, default=0,
                        help="priority of all candidates alike in the rounds, as nice has it: -15 where others compute too (as root)")
    parser.add_argument("--binaries", metavar="DIR", default="build/bin", help="where gpuc's tools lie (default: %(default)s)")
    parser.add_argument("--check-flags", action="store_true", help=argparse.SUPPRESS)  # scripts/bench asks first, then builds
    parser.add_argument("--also", metavar="NAME=PROGRAM", type=also, action="append", default=[],
                        help="one more candidate: a program that is started as PROGRAM FOLDER THREADS and answers as bench/README.md says")
    settings = parser.parse_args(arguments)
    known = REAL_CASES if settings.real else CASES
    if settings.cases is not None:
        others = ("scripts/bench without --real", CASES) if settings.real else ("scripts/bench --real", REAL_CASES)
        names = named("case", [case.name for case in known], settings.cases, {others[0]: [case.name for case in others[1]]})
        known = [case for case in known if case.name in names]
    settings.cases = known
    settings.peers = named("peer", list(PEERS), settings.peers)
    return settings


def main():
    settings = read_flags(sys.argv[1:])
    if settings.check_flags:
        return
    run = (real_report.RealRun if settings.real else report.Run)(settings)
    os.makedirs(run.folder, exist_ok=True)
    try:
        settings.python = environment.prepare() if settings.peers else None
    except environment.SetupError as error:
        sys.exit(f"error: {error}")
    for case in settings.cases:
        begin = time.monotonic()
        try:
            run.add((compare_real if settings.real else compare)(case, settings))
        except CandidateError as error:
            run.fail(case, str(error))
        run.write()  # after each cell: a run that is stopped leaves what it has
        print(run.line(), f"  ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"wrote table.md, results.json and plot.svg to {run.folder}")
    if run.failures:
        sys.exit("error: " + "; ".join(f"{name}: {reason}" for name, reason in run.failures.items()))


if __name__ == "__main__":
    main()
