#!/usr/bin/env python3
"""Two ranks of this machine, one thread each: gpuc beside PyTorch's DistributedDataParallel over gloo.

    bench/data_parallel.py [FOLDER] [--cases=NAME,…] [--ranks=2] [--rounds=7] [--peer=PROGRAM]

Both start from the same weights and train on the same batch, each rank on its rows, and must compute the same losses, within 1e-5 or what the
cell says, before anything is timed. Then they take turns: a round is 0.3 s of steps, a number the median of the rounds, after one that warms up. PyTorch is
timed in the quickest of the forms that bench/peers/torch_ranks.py knows. With --peer another program, started as PROGRAM FOLDER RANKS,
answers as that does in its place; --peer= is gpuc alone.
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


@dataclasses.dataclass(frozen=True)
class Cell(Case):
    """`batch` rows in all, which ranks share."""
    sync_batch_norm: bool = False


def cell(case, **more):
    return Cell(**{field.name: getattr(case, field.name) for field in dataclasses.fields(Case)}, **more)


def resnet(name, sync, size=64, width=16, batch=16):
    """With small images a norm of one rank's rows is over few elements, and a learning rate of 0.01 grows what rounding differs by. Where
    norms are synchronised, losses are within 1e-5 for four steps, and 1.6e-4 apart at the fifth."""
    title = f"ResNet-18 width {width}, {size} x {size}, batch {batch}{', synchronised norms' if sync else ''}, SGD"
    return Cell(name, title, {"kind": "resnet18"}, ["resnet18", f"size={size}", f"width={width}", "classes=10"],
                {**SGD, "lr": 0.001}, {"x": ("u8", [batch, 3, size, size], 256), "labels": ("i32", [batch], 10)}, 1, sync_batch_norm=sync,
                tolerance=1e-3 if sync else 1e-5)


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
    inputs = [f"{name}={os.path.join(folder, name)}" for name in case.inputs]
    commands = {"gpuc": ([os.path.join(settings.binaries, "bench-ranks"), os.path.join(folder, "step.plan"),
                          os.path.join(folder, "weights.safetensors"), str(settings.ranks), *inputs], None)}
    if settings.peer:
        commands["ddp"] = [*settings.peer, folder, str(settings.ranks)], environment.variables()
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
    medians = [statistics.median(found) for found in times]
    result = {"case": case.name, "title": case.title, "losses": reference, "gpuc_us": medians[0], "gpuc_rounds_us": times[0]}
    if len(workers) == 1:
        return result
    peer = workers[1].facts
    return {**result, "loss_difference": differences[0], "ddp_us": medians[1], "ratio": medians[1] / medians[0], "form": peer["form"],
            "refused_forms": peer["refused"], "version": peer["version"], "ddp_rounds_us": times[1]}


def table(facts, results, failures):
    lines = [f"| one step of {facts['ranks']} ranks | gpuc, µs | DistributedDataParallel, µs | its form | ratio |", "| --- | ---: | ---: | --- | ---: |"]
    compared = [it for it in results if "ratio" in it]
    lines += [f"| {it['title']} | {it['gpuc_us']:,.0f} | {it['ddp_us']:,.0f} | {it['form']} | **{it['ratio']:.2f}** |" for it in compared]
    lines += [f"| {it['title']} | {it['gpuc_us']:,.0f} | | | |" for it in results if it not in compared]
    lines += [f"| {name} | no number: {reason} | | | |" for name, reason in failures.items()]
    worst = max((it["loss_difference"] for it in compared), default=0)
    peer = f"{compared[0]['version']}, gloo" if compared else "no peer"
    lines += ["", f"- {facts['cpu']}, {facts['cores']} cores · {facts['gpuc']} · {peer} · {facts['date']}",
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
    parser.add_argument("--peer", help="instead of PyTorch; empty: gpuc alone")
    parser.add_argument("--binaries", default=os.path.join(gpuc_side.HERE, "..", "build", "bin"))
    settings = parser.parse_args()
    known = {case.name: case for case in CELLS}
    unknown = [name for name in settings.cases.split(",") if name not in known]
    if unknown:
        parser.error(f"no case '{unknown[0]}': there are {', '.join(known)}")
    settings.cases = [known[name] for name in settings.cases.split(",")]
    settings.peer = settings.peer.split() if settings.peer is not None else None
    return settings


def torch_peer():
    return [environment.prepare(), os.path.join(gpuc_side.HERE, "peers", "torch_ranks.py")]


def main():
    settings = read_flags()
    if settings.peer is None:
        settings.peer = torch_peer()
    version = subprocess.run([os.path.join(settings.binaries, "gpuc-run"), "--version"], capture_output=True, text=True).stdout.strip()
    facts = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "cpu": report.processor(), "cores": os.cpu_count(), "gpuc": version,
             "ranks": settings.ranks, "rounds": settings.rounds, "load_at_start": os.getloadavg()[0]}
    results, failures = [], {}
    for case in settings.cases:
        try:
            results.append(compare(case, settings))
            print(f"{case.name}: " + (f"{results[-1]['ratio']:.2f}" if settings.peer else f"{results[-1]['gpuc_us']:,.0f} µs"), flush=True)
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
