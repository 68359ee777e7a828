"""A model with a batch norm trains as PyTorch's does (batch_norm_reference.py), to 1e-12 in f64: losses, weights, running
statistics. They change in training alone."""

import json
import os
import shutil
import unittest

from gpuc_tools import HERE, ToolTest, sha256
from tensor_files import hashed, read_safetensors, uniform, write_npy, write_safetensors

ROWS = 24

with open(os.path.join(HERE, "batch_norm.json"), encoding="utf-8") as reference:
    EXPECTED = json.load(reference)


class BatchNorm(ToolTest):
    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(HERE, "Inputs", "batch_norm.mlir"), self.folder)
        self.gpuc("gpuc-compile", "batch_norm.mlir", "-o", "batch_norm.plan")
        write_safetensors(self.path("first.safetensors"), "f64", {
            "bn.weight": ([3], [1.0] * 3), "bn.bias": ([3], [0.0] * 3), "bn.running_mean": ([3], [0.0] * 3),
            "bn.running_var": ([3], [1.0] * 3), "bn.num_batches_tracked": ([], [0], "i64"),
            "fc.weight": ([5, 12], uniform([5, 12], 1, 0.5))})
        write_npy(self.path("x.npy"), "f64", [ROWS, 3, 4], uniform([ROWS, 3, 4], 100, 2.0))
        write_npy(self.path("labels.npy"), "i32", [ROWS], (h % 5 for h in hashed(ROWS, 101)))

    def compare(self, ours, theirs, what):
        self.assertEqual(len(ours), len(theirs), what)
        for our, their in zip(ours, theirs):
            self.assertLessEqual(abs(our - their), 1e-12 * max(1, abs(their)), what)

    def test_training_is_pytorchs(self):
        data = "npy:x=x.npy,labels=labels.npy"
        self.gpuc("gpuc-train", "batch_norm.plan", "--data=" + data, "--eval-data=" + data, "--steps=6", "--no-shuffle",
                  "--variables=first.safetensors", "--save-variables=trained.safetensors",
                  "--metrics=metrics.jsonl", "--log-every=0")
        self.compare([event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")],
                     EXPECTED["losses"], "losses")
        # Evaluated after each epoch, by the running statistics, which the last evaluation leaves as they are.
        self.compare([self.metrics(self.path("metrics.jsonl"), "eval")[-1]["loss"]], [EXPECTED["eval_loss"]],
                     "eval loss")
        trained = read_safetensors(self.path("trained.safetensors"))
        for name, values in EXPECTED["variables"].items():
            self.compare(trained[name], values, name)
        self.assertEqual(trained["bn.num_batches_tracked"], [6])

    def test_statistics_that_a_file_lacks_are_named(self):
        first = read_safetensors(self.path("first.safetensors"))
        shapes = {"bn.weight": [3], "bn.bias": [3], "fc.weight": [5, 12]}
        write_safetensors(self.path("weights.safetensors"), "f64", {name: (shape, first[name]) for name, shape in shapes.items()})
        for command in (["gpuc-run", "batch_norm.plan", "--entry=predict"],
                        ["gpuc-train", "batch_norm.plan", "--data=npy:x=x.npy,labels=labels.npy", "--steps=1", "--log-every=0"]):
            for file, expected in (("first.safetensors", ""), (
                    "weights.safetensors", "warning: weights.safetensors does not hold bn.running_mean, "
                    "bn.running_var, bn.num_batches_tracked: begun as init makes them\n")):
                result = self.run_tool(*command, "--variables=" + file)
                self.assertEqual((result.returncode, result.stderr), (0, expected))

    def test_nothing_but_training_changes_statistics(self):
        # Without --variables they are initialised first.
        for entry, repeat in (("predict", 1), ("eval_step", 3)):
            self.gpuc("gpuc-run", "batch_norm.plan", "--entry=" + entry, f"--repeat={repeat}",
                      f"--save-variables={entry}.safetensors")
        self.assertEqual(sha256(self.path("predict.safetensors")), sha256(self.path("eval_step.safetensors")))
        kept = read_safetensors(self.path("eval_step.safetensors"))
        self.assertEqual([kept["bn.num_batches_tracked"], kept["bn.running_mean"], kept["bn.running_var"]],
                         [[0], [0.0] * 3, [1.0] * 3])


if __name__ == "__main__":
    unittest.main()
