"""--clip-norm and --clip-value do what PyTorch's clip_grad_norm_ and clip_grad_value_ do (clipping_reference.py), to 1e-12."""

import json
import os
import unittest

from gpuc_tools import HERE, ToolTest
from tensor_files import uniform, write_npy, write_safetensors

ROWS = 320

with open(os.path.join(HERE, "clipping.json"), encoding="utf-8") as reference:
    EXPECTED = json.load(reference)


class Clipping(ToolTest):
    def setUp(self):
        super().setUp()
        write_npy(self.path("x.npy"), "f64", [ROWS, 13], uniform([ROWS, 13], 100, 1.0))
        write_npy(self.path("y.npy"), "f64", [ROWS, 1], uniform([ROWS, 1], 101, 1.0))
        write_safetensors(self.path("first.safetensors"), "f64", {
            "linear.weight": ([1, 13], uniform([1, 13], 2, 0.25)), "linear.bias": ([1], uniform([1], 3, 0.25))})
        self.gpuc("gpuc-model", "linear-regression", "dtype=f64", "batch=32", "-o", "model.mlir")

    def check(self, case):
        self.gpuc("gpuc-compile", "model.mlir", f"--optimizer=sgd:lr={EXPECTED['rate']}", "-o", "model.plan", *case["flags"])
        self.gpuc("gpuc-train", "model.plan", "--data=npy:x=x.npy,y=y.npy", "--epochs=3", "--no-shuffle",
                  "--variables=first.safetensors", "--metrics=metrics.jsonl", "--log-every=0")
        events = self.metrics(self.path("metrics.jsonl"), "step")
        for field, key in (("loss", "losses"), ("grad_norm", "norms")):
            self.assertEqual(len(events), len(case[key]))
            for update, (event, theirs) in enumerate(zip(events, case[key])):
                self.assertLessEqual(abs(event[field] - theirs), 1e-12 * theirs, f"{field} of update {update}")

    def test_not_clipped(self):
        self.check(EXPECTED["cases"]["none"])

    def test_norm(self):
        self.check(EXPECTED["cases"]["norm"])

    def test_value(self):
        self.check(EXPECTED["cases"]["value"])

    def test_value_then_norm(self):
        self.check(EXPECTED["cases"]["value, then norm"])


if __name__ == "__main__":
    unittest.main()
