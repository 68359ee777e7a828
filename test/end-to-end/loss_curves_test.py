"""20 losses of gpuc's models equal those of an independent NumPy script, reference_losses.py: to 1e-5 in f32 and to
1e-12 in f64, relative."""

import json
import os
import unittest

from gpuc_tools import HERE, ToolTest
from tensor_files import hashed, uniform, write_npy, write_safetensors

TOLERANCE = {"f32": 1e-5, "f64": 1e-12}
CLASSES = 10

with open(os.path.join(HERE, "reference_losses.json"), encoding="utf-8") as reference:
    CASES = json.load(reference)["cases"]


class LossCurves(ToolTest):
    def check(self, name, dtype):
        case = CASES[name]
        plan = self.compile_model(*case["model"], "dtype=" + dtype, flags=["--optimizer=" + case["optimizer"]])
        write_safetensors(self.path("first.safetensors"), dtype,
                          {variable: (how["shape"], uniform(**how)) for variable, how in case["variables"].items()})
        self.gpuc("gpuc-train", plan, "--data=" + self.data(case, dtype), "--steps=20", "--no-shuffle",
                  "--last-batch=pad", "--variables=" + self.path("first.safetensors"),
                  "--metrics=" + self.path("metrics.jsonl"), "--log-every=0")
        losses = [event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")]
        self.compare(losses, case["losses"], TOLERANCE[dtype])

    def compare(self, losses, expected, tolerance):
        self.assertEqual(len(losses), 20)
        worst = max(abs(ours - theirs) / abs(theirs) for ours, theirs in zip(losses, expected))
        print(f"{self._testMethodName}: {worst:.2g} of {tolerance:g}", flush=True)
        for step, (ours, theirs) in enumerate(zip(losses, expected), 1):
            self.assertLessEqual(abs(ours - theirs), tolerance * abs(theirs),
                                 f"step {step}: gpuc {ours!r}, NumPy {theirs!r}")

    def data(self, case, dtype):
        rows = case["rows"]
        if case["model"][0] == "linear-regression":
            write_npy(self.path("x.npy"), dtype, [rows, 13], uniform([rows, 13], 100, 1.0))
            write_npy(self.path("y.npy"), dtype, [rows, 1], uniform([rows, 1], 101, 1.0))
            return f"npy:x={self.path('x.npy')},y={self.path('y.npy')}"
        if case["x"] == "pixels":
            write_npy(self.path("x.npy"), "ui8", [rows, 28, 28], (h >> 24 for h in hashed(rows * 784, 100)))
        else:
            write_npy(self.path("x.npy"), dtype, [rows, 784], uniform([rows, 784], 100, 1.0))
        write_npy(self.path("labels.npy"), "i32", [rows], (h % CLASSES for h in hashed(rows, 101)))
        return f"npy:x={self.path('x.npy')},labels={self.path('labels.npy')}"


def add_cases():
    for name in CASES:
        for dtype in TOLERANCE:
            method = "test_" + name.replace(", ", "_").replace(" ", "_").replace("-", "_") + "_" + dtype
            setattr(LossCurves, method, lambda self, n=name, d=dtype: self.check(n, d))


add_cases()

if __name__ == "__main__":
    unittest.main()
