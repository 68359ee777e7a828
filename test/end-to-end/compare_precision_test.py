"""examples/compare-precision/compare.py trains in each precision, and passes on what a tool complains of."""

import os
import re
import subprocess
import sys
import unittest

from gpuc_tools import BIN, HERE, ToolTest

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

    def test_complaints(self):
        result = self.compare("mpl", "--data=synthetic:size=256")
        self.assertEqual(result.returncode, 2)
        self.assertIn("the nearest is 'mlp'", result.stderr)


if __name__ == "__main__":
    unittest.main()
