#!/usr/bin/env python3
"""How long gpuc-compile takes for the train steps of GPT-2 124M, of one twice as deep, and of ResNet-50: with an empty
cache of compiled kernels, and with one that holds them all. The models take turns, so that a slow moment of the machine
falls on all of them; what counts is the median of the rounds. CPU time is that of all threads.
"""

import argparse
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {  # name: what gpuc-model is asked for
    "gpt2 124M": ["gpt2", "size=124M"],
    "gpt2 124M, 24 layers": ["gpt2", "size=124M", "layers=24"],
    "resnet50": ["resnet50"],
}
BIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin")


def compile_once(options, folder, model, cache):
    """Seconds on the clock, and of CPU."""
    command = [os.path.join(options.bin, "gpuc-compile"), model, "-o", os.path.join(folder, "out.plan"),
               "--target=" + options.target, "--cache-dir=" + cache, f"--threads={options.threads}"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(options, folder):
    """(wall, CPU) of each round, by model and state of the cache."""
    times = {}
    paths = {name: os.path.join(folder, f"{number}.mlir") for number, name in enumerate(MODELS)}
    for name, keys in MODELS.items():
        subprocess.run([os.path.join(options.bin, "gpuc-model"), *keys, "-o", paths[name]], check=True)
    for _ in range(options.rounds):
        for name, path in paths.items():
            cache = os.path.join(folder, "cache")
            shutil.rmtree(cache, ignore_errors=True)
            for state in ("cold", "warm"):
                times.setdefault((name, state), []).append(compile_once(options, folder, path, cache))
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", default=BIN, help="where gpuc's tools are")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--target", default="host", help="as gpuc-compile takes it")
    parser.add_argument("--threads", type=int, default=0, help="of gpuc-compile; 0 is one a core")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as folder:
        times = measure(options, folder)
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, medians of {options.rounds} rounds")
    print(f"{'model':24}{'cache':8}{'wall s':>8}{'CPU s':>8}")
    for (name, state), rounds in times.items():
        wall, cpu = (statistics.median(column) for column in zip(*rounds))
        print(f"{name:24}{state:8}{wall:8.2f}{cpu:8.2f}")
    depth, single = (statistics.median(cpu for _, cpu in times[name, "cold"]) for name in list(MODELS)[1::-1])
    print(f"twice the layers take {depth / single:.2f} times the CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
