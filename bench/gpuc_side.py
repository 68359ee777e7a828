"""A cell's files, made by gpuc's own tools: the plan, the first weights (gpuc's `init`), and a batch for everyone."""

import array
import dataclasses
import json
import math
import os
import random
import struct
import subprocess

from candidates import CandidateError

PRODUCTS = ("matmul", "conv", "attention", "attention_gradient")
HERE = os.path.dirname(os.path.abspath(__file__))


def call(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise CandidateError(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        raise CandidateError(f"{os.path.basename(command[0])}: {done.stderr.strip().splitlines()[-1:]}")


def write_npy(path, dtype, shape, values):
    code, descr = {"f32": ("f", "<f4"), "i32": ("i", "<i4"), "u8": ("B", "|u1")}[dtype]
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(array.array(code, values).tobytes())


def prepare(case, binaries, folder):
    """Writes step.plan, report.json, weights.safetensors, case.json and an .npy file for each input into `folder`."""
    tool, plan = lambda name: os.path.join(binaries, name), os.path.join(folder, "step.plan")
    source = os.path.join(folder, "model.mlir")
    if case.source[0].endswith(".mlir"):
        source = os.path.join(HERE, "models", case.source[0])
    elif case.source[0] == "bench-models":
        call(tool("bench-models"), *case.source[1:], "-o", source)
    else:
        call(tool("gpuc-model"), *case.source, "-o", source)
    call(tool("gpuc-compile"), source, "-o", plan, "--target=host", f"--batch={case.batch}",
         *([f"--optimizer={case.optimizer_spec}"] if case.optimizer else []), "--report=" + os.path.join(folder, "report.json"))
    call(tool("gpuc-run"), plan, "--entry=init", "--save-variables=" + os.path.join(folder, "weights.safetensors"))
    numbers = random.Random(0)
    for name, (dtype, shape, below) in case.inputs.items():
        draw = numbers.random if dtype == "f32" else lambda below=below: numbers.randrange(below)
        write_npy(os.path.join(folder, name + ".npy"), dtype, shape, (draw() for _ in range(case.elements[name])))
    with open(os.path.join(folder, "case.json"), "w", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(case), file)


def nominal_flops(folder, entry="train_step"):
    """Of products, convolutions and attention of one run of the entry, those on padding among them."""
    def flops(command):  # of a product without what follows it, such as the weight's update
        return 2 * math.prod(map(int, command["shape"].split("x"))) if command["kind"] == "matmul" else command["flops"]
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        work = json.load(file)["work"]
    return sum(flops(it) * it["executions"] for it in work if it["entry"] == entry and it["kind"] in PRODUCTS)


def arena_bytes(folder):
    """The report's peak_bytes: what the runtime allocates, to the byte."""
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        return json.load(file)["peak_bytes"]


def command(case, binaries, folder, threads, entry="train_step"):
    inputs = [f"{name}={os.path.join(folder, name)}.npy" for name in case.inputs]
    return [os.path.join(binaries, "bench-step"), os.path.join(folder, "step.plan"), entry,
            os.path.join(folder, "weights.safetensors"), str(threads), *inputs]
