"""Runs examples/python; by torch_test.py with a Python that has torch, and whatever an example imports beside it."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import unittest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples/python"


class Examples(unittest.TestCase):
    def output(self, name, *arguments, needs=None):
        if needs and importlib.util.find_spec(needs) is None:
            self.skipTest(f"no {needs} in {sys.executable}")
        run = subprocess.run([sys.executable, "-B", str(EXAMPLES / f"{name}.py"), *arguments], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout

    def number(self, text, output):
        return float(re.search(text + r" (\d+\.\d+)", output)[1])

    def test_each_has_a_test(self):
        self.assertEqual({path.stem for path in EXAMPLES.glob("*.py")}, {"plain_loop", "hugging_face", "lightning_module"})

    def test_plain_loop(self):
        output = self.output("plain_loop")
        self.assertGreater(self.number("accuracy", output), 0.8)
        self.assertRegex(output, r"known before the first step: \d+ bytes")

    def test_hugging_face(self):
        output = self.output("hugging_face", "--text", os.__file__, "--epochs", "2", needs="transformers")
        self.assertLess(self.number("epoch 2: loss", output), self.number("epoch 1: loss", output) - 0.2)

    def test_lightning_module(self):
        self.assertLess(self.number("validation loss", self.output("lightning_module", needs="lightning")), 0.4)


if __name__ == "__main__":
    unittest.main()
