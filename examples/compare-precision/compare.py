#!/usr/bin/env python3
r"""Trains one model in several precisions from the same weights, and says what each costs and where it ends.

    examples/compare-precision/compare.py "convnet in_channels=1" --data=idx:/usr/share/datasets/fashion-mnist/train \
        --eval-data=idx:/usr/share/datasets/fashion-mnist/t10k
    examples/compare-precision/compare.py "gpt2 size=nano" --data=text:letters.txt --steps=500 --plot=losses.svg

On CPUs without 16-bit arithmetic, f32 is fastest: 16 bits then save memory alone. The plot needs matplotlib (Debian:
python3-matplotlib)."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

BUILD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "build", "bin")


def run(tool, *arguments):
    """A tool of the path, else of the build folder; what it complains of ends this program, in its own words."""
    path = shutil.which(tool) or shutil.which(tool, path=BUILD)
    if not path:
        sys.exit(f"error: {tool} is neither on the path nor in build/bin: run scripts/build")
    done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


def train(model, precision, options, folder):
    """What a run in this precision costs, and its losses."""
    plan, report, metrics = (os.path.join(folder, precision + end) for end in (".plan", ".json", ".jsonl"))
    run("gpuc-compile", model, "-o", plan, "--precision=" + precision, "--report=" + report, f"--seed={options.seed}")
    evaluation = ["--eval-data=" + options.eval_data] if options.eval_data else []
    run("gpuc-train", plan, "--data=" + options.data, f"--steps={options.steps}", "--log-every=0", "--metrics=" + metrics,
        *evaluation)
    with open(report, encoding="utf-8") as file:
        peak = json.load(file)["peak_bytes"]
    with open(metrics, encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    steps = [event for event in events if event["event"] == "step"]
    evaluated = [event["loss"] for event in events if event["event"] == "eval"]
    losses = [step["loss"] for step in steps]
    last = [loss for loss in losses[-max(1, len(losses) // 10):] if loss is not None]
    return {"precision": precision, "step_ms": statistics.median(step["compute_us"] for step in steps) / 1000,
            "peak_mb": peak / 1e6, "loss": statistics.mean(last) if last else float("nan"),
            "evaluated": evaluated[-1] if evaluated else None, "skipped": sum(step["skipped"] for step in steps),
            "losses": losses}


def print_table(results):
    evaluated = any(result["evaluated"] is not None for result in results)
    print(f"{'precision':<10}{'step':>11}{'memory':>12}{'last losses':>13}{'evaluated' if evaluated else '':>{12 * evaluated}}"
          f"{'skipped':>9}")
    for result in results:
        loss = "" if not evaluated else f"{result['evaluated']:>12.4f}" if result["evaluated"] is not None else f"{'-':>12}"
        print(f"{result['precision']:<10}{result['step_ms']:>8.2f} ms{result['peak_mb']:>9.2f} MB"
              f"{result['loss']:>13.4f}{loss}{result['skipped']:>9}")


def plot(results, file):
    try:
        import matplotlib
    except ImportError:
        sys.exit("error: --plot needs matplotlib, which is not installed (Debian: python3-matplotlib)")
    matplotlib.use("Agg")
    from matplotlib import pyplot
    for result in results:
        pyplot.plot(range(1, len(result["losses"]) + 1), result["losses"], label=result["precision"])
    pyplot.xlabel("step")
    pyplot.ylabel("loss")
    pyplot.legend()
    pyplot.savefig(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="NAME [key=value …], as gpuc-model takes them")
    parser.add_argument("--data", required=True, help="as gpuc-train takes it")
    parser.add_argument("--eval-data", help="what each run is evaluated on at its end: less noisy than the last losses")
    parser.add_argument("--steps", type=int, default=500, help="updates (default: 500)")
    parser.add_argument("--seed", type=int, default=0, help="of weights, dropout and the order of samples")
    parser.add_argument("--precisions", default="f32,bf16,fp16", help="as gpuc-compile takes them")
    parser.add_argument("--plot", metavar="FILE", help="losses by step: .svg, .png or .pdf")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.mlir")
        run("gpuc-model", *options.model.split(), "-o", model)
        results = [train(model, precision, options, folder) for precision in options.precisions.split(",")]
    print_table(results)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
