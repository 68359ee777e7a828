#!/usr/bin/env python3
"""Two ranks of this machine, one thread each: gpuc beside PyTorch's DistributedDataParallel and JAX on several processes, both over gloo.

    bench/data_parallel.py [FOLDER] [--cases=NAME,…] [--ranks=2] [--rounds=7] [--peers=ddp,jax] [--peer=PROGRAM]

All start from the same weights and train on the same batch, each rank on its rows, and must compute the same losses, within 1e-5,
before anything is timed. Then they take turns: a round is 0.3 s of steps, a number the median of the rounds, after one that warms
up. A peer is timed in the quickest of the forms that bench/peers/torch_ranks.py and jax_ranks.py know, and left out where it does not have
the model. With --peer another program, started as PROGRAM FOLDER RANKS, answers in place of all peers; --peers= is gpuc alone.
"""

import argparse
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

import environment
import gpuc_side
import report
from candidates import CandidateError, Worker, differing
from cases import SGD, Case, gpt, lenet, lstm, mlp

LOSS_STEPS = 5
ROUND_SECONDS = 0.3
TITLES = {"ddp": "DistributedDataParallel", "jax": "JAX"}
PROGRAMS = {"ddp": "torch_ranks.py", "jax": "jax_ranks.py"}


@dataclasses.dataclass(frozen=True)
class Cell(Case):
    """`batch` rows in all, which ranks share."""
    peers: tuple = tuple(TITLES)
    sync_batch_norm: bool = False


def cell(case, **more):
    fields = {field.name: getattr(case, field.name) for field in dataclasses.fields(Case) if field.name != "peers"}
    return Cell(**fields, **more)


def resnet(name, sync, size=64, width=16, batch=16):
    """Of so many relus some have an input that rounding takes to the other side of 0. In f64, with weights that differ by 1e-6, the first
    step's gradient of a norm's weight is 2% another one, and at a rate of 0.001 the third loss is 1e-4 off: which of two such losses an f32
    step gives hangs on the order of its sums. At this rate no loss is more than 3e-6 off, while the five fall by 1%."""
    title = f"ResNet-18 width {width}, {size} x {size}, batch {batch}{', synchronised norms' if sync else ''}, SGD"
    return Cell(name, title, {"kind": "resnet18"}, ["resnet18", f"size={size}", f"width={width}", "classes=10"],
                {**SGD, "lr": 3e-5}, {"x": ("u8", [batch, 3, size, size], 256), "labels": ("i32", [batch], 10)}, 1, peers=("ddp",),
                sync_batch_norm=sync)


CELLS = [
    resnet("resnet", sync=False),
    resnet("resnet-sync", sync=True),
    cell(mlp("mlp-small", [784, 128, 128, 10], 32, 1)),
    cell(dataclasses.replace(lstm(32, 1), name="lstm")),
    cell(dataclasses.replace(lenet(64, 1), name="lenet")),
    cell(mlp("mlp-large", [1024, 1024, 1024, 10], 64, 1)),
    cell(dataclasses.replace(gpt(4, 128, 64, 16, 1), name="gpt")),
]


def prepare(case, binaries, folder, ranks):
    """The plan, the first weights, and the batch, whole and for each rank."""
    tool, source = lambda name: os.path.join(binaries, name), os.path.join(folder, "model.mlir")
    if case.source[0].endswith(".mlir"):
        source = os.path.join(gpuc_side.HERE, "models", case.source[0])
    else:
        gpuc_side.call(tool("gpuc-model"), *case.source, "-o", source)
    flags = ["--sync-batch-norm"] if case.sync_batch_norm else []
    gpuc_side.call(tool("gpuc-compile"), source, "-o", os.path.join(folder, "step.plan"), "--data-parallel", f"--batch={case.batch // ranks}",
                   f"--optimizer={case.optimizer_spec}", *flags)
    gpuc_side.call(tool("gpuc-run"), os.path.join(folder, "step.plan"), "--entry=init",
                   "--save-variables=" + os.path.join(folder, "weights.safetensors"))
    numbers = random.Random(0)
    for name, (dtype, shape, below) in case.inputs.items():
        values = [numbers.random() if dtype == "f32" else numbers.randrange(below) for _ in range(math.prod(shape))]
        share, part = len(values) // ranks, [shape[0] // ranks, *shape[1:]]
        gpuc_side.write_npy(os.path.join(folder, name + ".npy"), dtype, shape, values)
        for rank in range(ranks):
            gpuc_side.write_npy(os.path.join(folder, f"{name}.{rank}.npy"), dtype, part, values[rank * share:(rank + 1) * share])
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(case), file)


def start(case, settings, folder):
    """gpuc's ranks, which come first, and those of each peer that has the model."""
    inputs = [f"{name}={os.path.join(folder, name)}" for name in case.inputs]
    commands = {"gpuc": ([os.path.join(settings.binaries, "bench-ranks"), os.path.join(folder, "step.plan"),
                          os.path.join(folder, "weights.safetensors"), str(settings.ranks), *inputs], None)}
    for name, command in settings.peers.items():
        if name in case.peers:
            commands[name] = [*command, folder, str(settings.ranks)], environment.variables()
    workers = []
    for name, (command, variables) in commands.items():
        workers.append(Worker(name, 1, command, os.path.join(folder, name + ".log"), variables))
        workers[-1].start()
    return workers


def compare(case, settings):
    workers = []
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as folder:
        try:
            prepare(case, settings.binaries, folder, settings.ranks)
            workers = start(case, settings, folder)
            reference = workers[0].ask("losses", LOSS_STEPS)
            differences = [differing(worker.ask("losses", LOSS_STEPS), reference, case.tolerance) for worker in workers[1:]]
            counts = [max(4, math.ceil(1e6 * ROUND_SECONDS / worker.ask("steps", 8))) for worker in workers]
            times = [[] for _ in workers]
            for turn in range(settings.rounds + 1):
                for worker, count, found in zip(workers, counts, times):
                    microseconds = worker.ask("steps", count)
                    if turn > 0:
                        found.append(microseconds)
        finally:
            for worker in workers:
                worker.close()
    own, *others = [statistics.median(found) for found in times]
    peers = {worker.name: {"us": median, "ratio": median / own, "loss_difference": difference, "form": worker.facts["form"],
                           "refused_forms": worker.facts["refused"], "version": worker.facts["version"], "rounds_us": found}
             for worker, median, difference, found in zip(workers[1:], others, differences, times[1:])}
    return {"case": case.name, "title": case.title, "losses": reference, "gpuc_us": own, "gpuc_rounds_us": times[0], "peers": peers}


def table(facts, results, failures):
    names = [name for name in TITLES if any(name in it["peers"] for it in results)]
    lines = [f"| one step of {facts['ranks']} ranks | gpuc, µs |" + "".join(f" {TITLES[name]}, µs | its form | ratio |" for name in names),
             "| --- | ---: |" + " ---: | --- | ---: |" * len(names)]
    for it in results:
        line = f"| {it['title']} | {it['gpuc_us']:,.0f} |"
        for peer in (it["peers"].get(name) for name in names):
            line += f" {peer['us']:,.0f} | {peer['form']} | **{peer['ratio']:.2f}** |" if peer else " | | |"
        lines.append(line)
    lines += [f"| {name} | no number: {reason} |" + " | | |" * len(names) for name, reason in failures.items()]
    compared = [peer for it in results for peer in it["peers"].values()]
    worst = max((peer["loss_difference"] for peer in compared), default=0)
    versions = ", ".join(dict.fromkeys(peer["version"] for peer in compared))
    lines += ["", f"- {facts['cpu']}, {facts['cores']} cores · {facts['gpuc']} · {versions + ', gloo' if versions else 'no peer'} · {facts['date']}",
              f"- One thread a rank; medians of {facts['rounds']} interleaved rounds. Load average {facts['load_at_start']:.1f} at the start, "
              f"{facts['load_at_end']:.1f} at the end, of which the ranks are {facts['ranks']}.",
              f"- Over {LOSS_STEPS} steps the losses were at most {worst:.1e} apart, relative to gpuc's."]
    return "\n".join(lines) + "\n"


def write(folder, facts, results, failures):
    os.makedirs(folder, exist_ok=True)
    everything = json.dumps({**facts, "results": results, "failures": failures}, indent=1) + "\n"
    for name, content in (("table.md", table(facts, results, failures)), ("results.json", everything)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


def read_flags():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("folder", nargs="?", help="for table.md and results.json (default: print the table)")
    parser.add_argument("--cases", default=",".join(case.name for case in CELLS))
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--peers", default=",".join(TITLES), help="empty: gpuc alone")
    parser.add_argument("--peer", help="a program that answers in place of all peers")
    parser.add_argument("--binaries", default=os.path.join(gpuc_side.HERE, "..", "build", "bin"))
    settings = parser.parse_args()
    known = {case.name: case for case in CELLS}
    settings.cases = known_names(parser, "case", settings.cases, known)
    settings.peers = known_names(parser, "peer", settings.peers, {name: name for name in TITLES}) if settings.peers else []
    if settings.peer is not None and not settings.peer.split():
        parser.error("--peer names no program: --peers= is gpuc alone")
    return settings


def known_names(parser, what, names, known):
    unknown = [name for name in names.split(",") if name not in known]
    if unknown:
        parser.error(f"no {what} '{unknown[0]}': there are {', '.join(known)}")
    return [known[name] for name in names.split(",")]


def commands_of(settings):
    """Peer → what starts it."""
    if settings.peer is not None:
        return {"ddp": settings.peer.split()}
    python = environment.prepare() if settings.peers else None
    return {name: [python, os.path.join(gpuc_side.HERE, "peers", PROGRAMS[name])] for name in settings.peers}


def main():
    settings = read_flags()
    settings.peers = commands_of(settings)
    version = subprocess.run([os.path.join(settings.binaries, "gpuc-run"), "--version"], capture_output=True, text=True).stdout.strip()
    facts = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cpu": report.processor(), "cores": os.cpu_count(), "gpuc": version,
             "ranks": settings.ranks, "rounds": settings.rounds, "load_at_start": os.getloadavg()[0]}
    results, failures = [], {}
    for case in settings.cases:
        try:
            results.append(compare(case, settings))
            ratios = [f"{peer['ratio']:.2f} times {name}" for name, peer in results[-1]["peers"].items()]
            print(f"{case.name}: {results[-1]['gpuc_us']:,.0f} µs" + "".join(", " + ratio for ratio in ratios), flush=True)
        except CandidateError as error:
            failures[case.name] = str(error)
            print(f"{case.name}: {error}", flush=True)
        facts["load_at_end"] = os.getloadavg()[0]
        if settings.folder:  # after each cell: a run that is stopped leaves what it has
            write(settings.folder, facts, results, failures)
    print(table(facts, results, failures))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
