#!/usr/bin/env python3
"""Times one training step of small MLPs: gpuc against PyTorch eager, side by side in one run.

Both get the same weights and the same batch, and must compute the same loss before anything is timed. Then they take
turns, with one and with two threads; what counts is the median over the rounds of each run's median step, and for each
side the better of its thread counts. Needs a build of gpuc and python3-torch (scripts/bench sees to both).
"""

import argparse
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time

# Debian's OpenBLAS takes recent Intel CPUs for old ones unless it is told; it must be told before torch is loaded.
if "avx512f" in open("/proc/cpuinfo").read():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SKYLAKEX")

import torch  # noqa: E402

CASES = [  # name, layer widths, batch
    ("MLP 8-8-8, batch 1", [8, 8, 8], 1),
    ("MLP 784-128-128-10, batch 1", [784, 128, 128, 10], 1),
    ("MLP 784-128-128-10, batch 32", [784, 128, 128, 10], 32),
    ("MLP 784-128-128-10, batch 256", [784, 128, 128, 10], 256),
]
TARGETS = {"MLP 8-8-8, batch 1": 20, "MLP 784-128-128-10, batch 1": 10, "MLP 784-128-128-10, batch 32": 3,
           "MLP 784-128-128-10, batch 256": 1.2}
LEARNING_RATE = 0.01


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def raw(tensor):
    return tensor.detach().numpy().tobytes()


class TorchSide:
    def __init__(self, widths, batch):
        torch.manual_seed(0)
        layers = []
        for fan_in, fan_out in zip(widths, widths[1:]):
            layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.ReLU()]
        self.model = torch.nn.Sequential(*layers[:-1])
        self.x = torch.rand(batch, widths[0])
        self.labels = torch.randint(widths[-1], (batch,))
        self.initial = [p.detach().clone() for p in self.model.parameters()]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=LEARNING_RATE)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(self.model(self.x), self.labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def first_loss(self):
        return float(torch.nn.functional.cross_entropy(self.model(self.x), self.labels))

    def median_step_us(self, threads, seconds):
        torch.set_num_threads(threads)
        for _ in range(10):
            self.step()
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 20:
            begin = time.perf_counter_ns()
            self.step()
            times.append(time.perf_counter_ns() - begin)
        return statistics.median(times) / 1000


class GpucSide:
    def __init__(self, binaries, folder, widths, batch, reference):
        self.run = os.path.join(binaries, "gpuc-run")
        self.folder = folder
        self.plan = os.path.join(folder, "mlp.plan")
        source = os.path.join(folder, "mlp.mlir")
        subprocess.run([os.path.join(binaries, "gpuc-model"), "mlp", f"input={widths[0]}", "pixels=false",
                        "hidden=" + ",".join(map(str, widths[1:-1])), f"classes={widths[-1]}", f"batch={batch}",
                        f"optimizer=sgd:lr={LEARNING_RATE}", "-o", source], check=True)
        subprocess.run([os.path.join(binaries, "gpuc-compile"), source, "-o", self.plan], check=True)
        self.arguments = self.write_inputs(reference)

    def write_inputs(self, reference):
        x, labels, weights = (os.path.join(self.folder, name) for name in ("x.npy", "labels.npy", "w.safetensors"))
        write_npy(x, "<f4", reference.x.shape, raw(reference.x))
        write_npy(labels, "<i4", reference.labels.shape, raw(reference.labels.to(torch.int32)))
        tensors = {}
        for index in range(len(reference.initial) // 2):
            for kind, tensor in zip(("weight", "bias"), reference.initial[2 * index:2 * index + 2]):
                tensors[f"fc{index + 1}.{kind}"] = ("F32", list(tensor.shape), raw(tensor))
        for counter in ("seed", "step"):
            tensors[counter] = ("I64", [], struct.pack("<q", 0))
        write_safetensors(weights, tensors)
        return ["--entry=train_step", "--input", f"x={x}", "--input", f"labels={labels}", f"--variables={weights}"]

    def call(self, *flags):
        subprocess.run([self.run, self.plan, *self.arguments, *flags], check=True, stdout=subprocess.DEVNULL)

    def first_loss(self):
        self.call(f"--output-dir={self.folder}")
        read = lambda name: struct.unpack("<f", open(os.path.join(self.folder, name + ".npy"), "rb").read()[-4:])[0]
        return read("loss_sum") / read("count")

    def median_step_us(self, threads, seconds, guess_us):
        report = os.path.join(self.folder, "run.json")
        self.call(f"--threads={threads}", "--warmup=20", f"--repeat={max(20, int(seconds * 1e6 / guess_us))}", f"--json={report}")
        return json.load(open(report))["step_us"]["median"]


def compare(case, binaries, rounds, seconds):
    name, widths, batch = case
    with tempfile.TemporaryDirectory() as folder:
        peer = TorchSide(widths, batch)
        ours = GpucSide(binaries, folder, widths, batch, peer)
        losses = ours.first_loss(), peer.first_loss()
        if abs(losses[0] - losses[1]) > 1e-5 * abs(losses[1]):
            sys.exit(f"error: {name}: gpuc's first loss is {losses[0]}, PyTorch's {losses[1]}")
        times = {(side, threads): [] for side in ("gpuc", "torch") for threads in (1, 2)}
        for _ in range(rounds):
            for threads in (1, 2):
                torch_us = peer.median_step_us(threads, seconds)
                times["torch", threads].append(torch_us)
                times["gpuc", threads].append(ours.median_step_us(threads, seconds, torch_us))
    medians = {key: statistics.median(values) for key, values in times.items()}
    best = {side: min(medians[side, 1], medians[side, 2]) for side in ("gpuc", "torch")}
    return {"case": name, "loss": losses[1], "us": {f"{side}, {threads} threads": value for (side, threads), value in medians.items()},
            "gpuc_us": best["gpuc"], "torch_us": best["torch"], "ratio": best["torch"] / best["gpuc"], "target": TARGETS[name]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binaries", default="build/bin", help="where gpuc's tools lie")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run in a round")
    parser.add_argument("--json", help="where to write the results")
    arguments = parser.parse_args()

    if not any(blas in open("/proc/self/maps").read() for blas in ("openblas", "mkl")):
        sys.exit("error: PyTorch runs on the reference BLAS, which is no peer: install libopenblas0-pthread")
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"{cpu}, {os.cpu_count()} cores · PyTorch {torch.__version__} · {arguments.rounds} rounds of {arguments.seconds} s\n")
    print(f"{'case':32} {'gpuc µs':>10} {'PyTorch µs':>11} {'ratio':>7} {'target':>7}")
    results = []
    for case in CASES:
        result = compare(case, arguments.binaries, arguments.rounds, arguments.seconds)
        results.append(result)
        print(f"{result['case']:32} {result['gpuc_us']:10.1f} {result['torch_us']:11.1f} {result['ratio']:7.2f} {result['target']:7.1f}", flush=True)
    if arguments.json:
        facts = {"date": time.strftime("%Y-%m-%d"), "cpu": cpu, "cores": os.cpu_count(), "torch": torch.__version__,
                 "system": platform.platform(), "rounds": arguments.rounds, "results": results}
        with open(arguments.json, "w") as file:
            json.dump(facts, file, indent=2)
            file.write("\n")


main()
