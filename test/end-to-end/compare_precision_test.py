"""examples/compare-precision/compare.py trains in each precision, and passes on what a tool complains of."""

import os
import re
import subprocess
import sys
import unittest

from gpuc_tools import BIN, HERE, ToolTest
from tensor_files import hashed, uniform, write_npy

SCRIPT = os.path.join(HERE, "..", "..", "examples", "compare-precision", "compare.py")


class ComparePrecision(ToolTest):
    def compare(self, *arguments):
        tools = {**os.environ, "PATH": BIN + os.pathsep + os.environ["PATH"]}
        return subprocess.run([sys.executable, "-B", SCRIPT, *arguments], env=tools, capture_output=True, text=True,
                              timeout=self.timeout_s)

    def test_table(self):
        result = self.compare("mlp hidden=16", "--data=synthetic:size=256", "--steps=8")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = dict(re.findall(r"^(f32|bf16|fp16)\s.*?([\d.]+)\s+\d+$", result.stdout, re.MULTILINE))
        self.assertEqual(list(rows), ["f32", "bf16", "fp16"], result.stdout)
        for precision, loss in rows.items():
            self.assertAlmostEqual(float(loss), float(rows["f32"]), delta=0.05, msg=precision)
        self.assertNotIn("evaluated", result.stdout)

    def test_evaluation(self):
        """Of two classes that tell themselves apart, what is evaluated is learned: nothing of it is trained on."""
        for name, rows, stream in (("data", 256, 1), ("held", 64, 2)):
            labels = [h % 2 for h in hashed(rows, stream)]
            write_npy(self.path(name + "-x.npy"), "f32", [rows, 4],
                      (label + noise for label, *row in zip(labels, *[iter(uniform([rows, 4], 10 + stream, 0.25))] * 4)
                       for noise in row))
            write_npy(self.path(name + "-labels.npy"), "i32", [rows], labels)
        result = self.compare("mlp hidden=8 input=4 classes=2 pixels=false batch=16", "--steps=200",
                              *(f"--{flag}=npy:x={self.path(name)}-x.npy,labels={self.path(name)}-labels.npy"
                                for flag, name in (("data", "data"), ("eval-data", "held"))))
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = dict(re.findall(r"^(f32|bf16|fp16)\s.* MB +[\d.]+ +([\d.]+) +\d+$", result.stdout, re.MULTILINE))
        self.assertEqual(list(rows), ["f32", "bf16", "fp16"], result.stdout)
        self.assertIn("evaluated", result.stdout)
        for loss in rows.values():
            self.assertLess(float(loss), 0.35, result.stdout)

    def test_complaints(self):
        result = self.compare("mpl", "--data=synthetic:size=256")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the nearest is 'mlp'", result.stderr)


if __name__ == "__main__":
    unittest.main()
