"""The logits of a language model are never stored whole: what gpt2 trains and evaluates by holds a chunk of their rows at
a time, with the same losses as if they were stored, and the same bits with any number of threads."""

import math
import re
import unittest

from gpuc_tools import ToolTest
from tensor_files import hashed

# 5 · 64 rows of 1,500 classes: two chunks of 160 rows.
BATCH, LENGTH, CLASSES = 5, 64, 1500
MODEL = ["gpt2", "layers=1", "heads=2", "width=16", f"length={LENGTH}", f"vocabulary={CLASSES}", f"batch={BATCH}",
         "optimizer=sgd:lr=0.5"]
STEPS = 12


class LinearLoss(ToolTest):
    def tokens(self):
        """Runs of tokens for some steps, as uint16."""
        values = [number % CLASSES for number in hashed(BATCH * LENGTH * 4 + 1, 7)]
        return "tokens:" + self.write("tokens.bin", b"".join(v.to_bytes(2, "little") for v in values))

    def model(self, *keys):
        return self.gpuc("gpuc-model", *MODEL, *keys)

    def compiled(self, name, text):
        self.write(name + ".mlir", text)
        self.gpuc("gpuc-compile", name + ".mlir", "-o", name + ".plan")
        return self.path(name + ".plan")

    def largest_of(self, program, classes):
        """The most rows that any buffer of a program has for each of the classes."""
        buffers = re.findall(r"plan\.buffer .* : tensor<((?:\d+x)+)\w+>", program)
        shapes = [list(map(int, extents.split("x")[:-1])) for extents in buffers]
        return max(math.prod(shape) // classes for shape in shapes if shape and shape[-1] == classes)

    def test_no_buffer_holds_all_logits(self):
        self.write("model.mlir", self.model())
        emitted = self.gpuc("gpuc-compile", "model.mlir", "--emit=plan")
        programs = dict(re.findall(r"\n  plan\.program @(\w+) [^\n]*\{\n(.*?)\n  \}", emitted, re.DOTALL))
        self.assertEqual(set(programs), {"init", "train_step", "eval_step", "predict"})
        for name in ("train_step", "eval_step"):
            self.assertEqual(self.largest_of(programs[name], CLASSES), BATCH * LENGTH // 2, name)
            # Loss, gradients and accuracy share the logits of a chunk.
            self.assertEqual(len(re.findall(rf"plan\.matmul .* n {CLASSES} ", programs[name])), 1, name)
        self.assertEqual(self.largest_of(programs["predict"], CLASSES), BATCH * LENGTH)  # they are what it is for

    def test_losses_are_those_of_stored_logits(self):
        chunked = self.model("dtype=f64")
        stored, changed = re.subn(r"(gpuc\.linear_\w+ .*? labels %\w+)", rf"\1 chunk {BATCH * LENGTH}", chunked)
        self.assertEqual(changed, 2)
        results = []
        for name, text in (("chunked", chunked), ("stored", stored)):
            plan = self.compiled(name, text)
            report = self.path(name + ".jsonl")
            data = self.tokens()
            self.gpuc("gpuc-train", plan, "--data=" + data, "--eval-data=" + data, f"--steps={STEPS}", "--log-every=0",
                      "--metrics=" + report)
            results.append((self.metrics(report, "step"), self.metrics(report, "eval")[-1]))
        (steps, evaluated), (expected, expected_evaluation) = results
        self.assertEqual(len(steps), STEPS)
        self.assertLess(steps[-1]["loss"], steps[0]["loss"] - 0.01)
        for ours, theirs in zip(steps, expected):
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-11 * theirs["loss"])
        self.assertAlmostEqual(evaluated["loss"], expected_evaluation["loss"], delta=1e-10)
        self.assertEqual(evaluated["accuracy"], expected_evaluation["accuracy"])

    def test_bits_do_not_depend_on_threads(self):
        plan = self.compiled("model", self.model())
        flags = ["--data=" + self.tokens(), f"--steps={STEPS}"]
        expected = self.trained_bits(plan, *flags, "--threads=1")
        for threads in (2, 3):
            self.assertEqual(self.trained_bits(plan, *flags, f"--threads={threads}"), expected, threads)
        self.assertNotEqual(self.trained_bits(plan, *flags, "--seed=8"), expected)


if __name__ == "__main__":
    unittest.main()
