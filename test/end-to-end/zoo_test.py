"""Models of the zoo against PyTorch with the same weights and data: 20 losses in f64 to 1e-8, and the first gradient of each
parameter to 1e-9 of its norm in f64, 1e-4 in f32. zoo_reference.py wrote PyTorch's numbers, zoo_losses.json."""

import array
import json
import os
import unittest

import zoo_cases
from gpuc_tools import HERE, ToolTest
from tensor_files import read_safetensors, write_npy, write_safetensors

with open(os.path.join(HERE, "zoo_losses.json"), encoding="utf-8") as kept:
    REFERENCE = json.load(kept)


def to_f32(values):
    return list(array.array("f", values))


class Zoo(ToolTest):
    def train(self, name, dtype, optimizer, steps):
        """Losses, and the weights before and after."""
        case, shapes = zoo_cases.CASES[name], REFERENCE[name]["shapes"]
        keys = [f"{key}={value}" for key, value in case["keys"].items()]
        plan = self.compile_model(case.get("model", name), *keys, "dtype=" + dtype, "optimizer=" + optimizer)
        fields = []
        for field, (type_of_field, shape, values) in zoo_cases.data(case, dtype).items():
            write_npy(self.path(field + ".npy"), type_of_field, shape, values)
            fields.append(f"{field}={self.path(field + '.npy')}")
        first = zoo_cases.weights(shapes)
        write_safetensors(self.path("first.safetensors"), dtype,
                          {parameter: (shapes[parameter], values) for parameter, values in first.items()})
        self.gpuc("gpuc-train", plan, "--data=npy:" + ",".join(fields), f"--steps={steps}", "--no-shuffle",
                  "--log-every=0", "--variables=" + self.path("first.safetensors"),
                  "--metrics=" + self.path("metrics.jsonl"), "--save-variables=" + self.path("last.safetensors"))
        losses = [event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")]
        return losses, first, read_safetensors(self.path("last.safetensors"))

    def check_losses(self, name):
        lr = zoo_cases.CASES[name].get("lr", zoo_cases.LR)
        losses, _, _ = self.train(name, "f64", f"sgd:lr={lr},momentum={zoo_cases.MOMENTUM}", 20)
        self.assertEqual(len(losses), 20)
        for step, (ours, theirs) in enumerate(zip(losses, REFERENCE[name]["losses"]), 1):
            self.assertLessEqual(abs(ours - theirs), 1e-8 * abs(theirs), f"step {step}: gpuc {ours!r}, PyTorch {theirs!r}")

    def check_gradients(self, name, dtype, tolerance):
        # With a learning rate of 1 a step of plain SGD takes the gradient off the weights.
        _, first, last = self.train(name, dtype, "sgd:lr=1", 1)
        for frozen in first.keys() - REFERENCE[name]["gradients"].keys():
            given = first[frozen] if dtype == "f64" else to_f32(first[frozen])
            self.assertEqual(given, last[frozen], frozen + " is frozen")
        for parameter, theirs in REFERENCE[name]["gradients"].items():
            gradient = [before - after for before, after in zip(first[parameter], last[parameter])]
            for ours, kept in zip(zoo_cases.projections(gradient), theirs):
                # Where PyTorch's gradient is zero but for rounding (a bias that softmax takes out), so is ours.
                self.assertLessEqual(abs(ours - kept), tolerance * max(theirs[0], 1e-3), f"{parameter}, {dtype}")

    def test_losses(self):
        for name in zoo_cases.CASES:
            with self.subTest(name):
                self.check_losses(name)

    def test_gradients(self):
        for name in zoo_cases.CASES:
            for dtype, tolerance in (("f64", 1e-9), ("f32", 1e-4)):
                with self.subTest(name, dtype=dtype):
                    self.check_gradients(name, dtype, tolerance)


if __name__ == "__main__":
    unittest.main()
