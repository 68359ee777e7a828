"""Bytes that a training step takes in the cells of scripts/bench: gpuc's arena, what XLA says of JAX's program, what PyTorch has
allocated at its peak. Prints a table; each peer has the form that takes the least.

    bench/memory.py [--build=build] [--cases=lenet-b1,lstm-b16] [--compiled]
"""

import argparse
import json
import math
import os
import subprocess
import tempfile

import environment
import gpuc_side
from cases import CASES

HERE = os.path.dirname(os.path.abspath(__file__))
EAGER = ("torch.optim as it comes", "torch.optim fused")
COMPILED = ("whole step in one graph", "model compiled, torch.optim fused", "model and torch.optim compiled")


def answer(*command):
    """The last line that the command writes, which is JSON."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
                          env={**os.environ, **environment.variables()})
    return json.loads(done.stdout.splitlines()[-1])


def arena_bytes(binaries, folder):
    done = subprocess.run([os.path.join(binaries, "gpuc-run"), os.path.join(folder, "step.plan"), "--entry=train_step", "--repeat=1",
                           "--json=-"], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)["arena_bytes"]


def torch_form_bytes(python, folder, how, form):
    return answer(python, os.path.join(HERE, "peers", "torch_memory.py"), folder, "1", how, form)["bytes"]


def torch_bytes(python, folder, compiled):
    forms = [("eager", form) for form in EAGER] + [("compiled", form) for form in COMPILED if compiled]
    return min((torch_form_bytes(python, folder, how, form), form) for how, form in forms)


def jax_forms_bytes(python, folder):
    """form → bytes"""
    return answer(python, os.path.join(HERE, "peers", "jax_memory.py"), folder, "1")["bytes"]


def jax_bytes(python, folder):
    return min((size, form) for form, size in jax_forms_bytes(python, folder).items())


def peer_bytes(python, folder, peer, form):
    """Of one form of a peer that has a name as in cases.PEERS."""
    if peer == "jax":
        return jax_forms_bytes(python, folder)[form]
    return torch_form_bytes(python, folder, peer.removeprefix("torch-"), form)


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--cases", default=",".join(case.name for case in CASES))
    parser.add_argument("--compiled", action="store_true", help="torch.compile's forms too, which take minutes to make")
    options = parser.parse_args()
    binaries, python = os.path.join(options.build, "bin"), environment.prepare()
    print("| cell | gpuc | JAX | PyTorch | to JAX | to PyTorch | to the better |\n| --- | --- | --- | --- | --- | --- | --- |")
    ratios = []
    for case in CASES:
        if case.name not in options.cases.split(","):
            continue
        with tempfile.TemporaryDirectory() as folder:
            gpuc_side.prepare(case, binaries, folder)
            own, (jax, _), (torch, _) = arena_bytes(binaries, folder), jax_bytes(python, folder), \
                torch_bytes(python, folder, options.compiled)
        ratios.append((own / jax, own / torch, own / min(jax, torch)))
        kilobytes = " | ".join(f"{size / 1024:.0f}" for size in (own, jax, torch))
        print(f"| {case.name} | {kilobytes} | " + " | ".join(f"{ratio:.2f}" for ratio in ratios[-1]) + " |", flush=True)
    print("| geomean | | | | " + " | ".join(f"{mean(column):.2f}" for column in zip(*ratios)) + " |")


if __name__ == "__main__":
    main()
