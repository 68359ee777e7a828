"""A loop over time, trained: Inputs/rnn.mlir against reference_rnn.py to 1e-12 in f64 and 1e-5 in f32; the arena used to its
last byte. A wider loop has the same bits with any number of threads. A longer loop is no larger plan."""

import json
import os
import unittest

from gpuc_tools import HERE, ToolTest
from tensor_files import uniform, write_npy, write_safetensors

TOLERANCE = {"f32": 1e-5, "f64": 1e-12}

with open(os.path.join(HERE, "reference_rnn.json"), encoding="utf-8") as kept:
    REFERENCE = json.load(kept)


class Rnn(ToolTest):
    def plan(self, dtype, *flags):
        with open(os.path.join(HERE, "Inputs", "rnn.mlir"), encoding="utf-8") as file:
            model = self.write("rnn.mlir", file.read().replace("ELEMENT", dtype))
        self.gpuc("gpuc-compile", model, "-o", self.path("rnn.plan"), *flags)
        return self.path("rnn.plan")

    def flags(self, dtype):
        numbers = lambda how: uniform(how["shape"], how["stream"], how["scale"])
        for name in ("x", "y"):
            write_npy(self.path(name + ".npy"), dtype, REFERENCE[name]["shape"], numbers(REFERENCE[name]))
        write_safetensors(self.path("first.safetensors"), dtype,
                          {name: (how["shape"], numbers(how)) for name, how in REFERENCE["variables"].items()})
        return [f"--data=npy:x={self.path('x.npy')},y={self.path('y.npy')}", "--steps=20", "--no-shuffle",
                "--variables=" + self.path("first.safetensors")]

    def check(self, dtype):
        self.gpuc("gpuc-train", self.plan(dtype), *self.flags(dtype), "--metrics=" + self.path("metrics.jsonl"),
                  "--log-every=0")
        losses = [event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")]
        self.assertEqual(len(losses), 20)
        for step, (ours, theirs) in enumerate(zip(losses, REFERENCE["losses"]), 1):
            self.assertLessEqual(abs(ours - theirs), TOLERANCE[dtype] * abs(theirs),
                                 f"step {step}: gpuc {ours!r}, NumPy {theirs!r}")

    def test_f64(self):
        self.check("f64")

    def test_f32(self):
        self.check("f32")

    def test_threads(self):
        # Inputs/rnn.mlir is too narrow for a step of its loop to be cut among threads.
        plan = self.compile_model("rnn-classifier", "cell=lstm", "steps=5", "width=8", "hidden=48")
        flags = ["--data=synthetic:size=640", "--steps=20"]
        bits = {self.trained_bits(plan, *flags, f"--threads={threads}") for threads in (1, 2, 3)}
        self.assertEqual(len(bits), 1)
        self.assertNotIn(self.trained_bits(plan, *flags, "--seed=8"), bits)

    def test_memory(self):
        report = self.path("report.json")
        plan = self.plan("f64", "--report=" + report)
        with open(report, encoding="utf-8") as file:
            peak = json.load(file)["peak_bytes"]
        run = json.loads(self.gpuc("gpuc-run", plan, "--entry=train_step", "--json=-", "--repeat=5", "--check-memory"))
        self.assertEqual((run["arena_bytes"], run["touched_bytes"], run["allocations_per_step"]), (peak, peak, 0))

    def test_steps_are_not_unrolled(self):
        def counts(length):
            report = self.path(f"{length}.json")
            self.compile_model("lstm-generator", f"length={length}", flags=["--report=" + report])
            with open(report, encoding="utf-8") as file:
                numbers = json.load(file)
            return numbers["kernels"], numbers["commands"]
        self.assertEqual(counts(32), counts(120))
        self.assertEqual(counts(128), counts(1000))  # which go by chunks


if __name__ == "__main__":
    unittest.main()
