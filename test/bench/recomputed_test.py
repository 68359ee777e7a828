"""bench/recomputed.py on a small gpt2: its plans are those of the budgets, or the least one, and its verdict is about them."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench", "recomputed.py")
sys.path.insert(0, os.path.dirname(BENCH))
import recomputed

MODEL = "gpt2:layers=2,heads=2,width=32,length=32,vocabulary=65,batch=4"


class RecomputedTest(unittest.TestCase):
    def measure(self, *arguments):
        with tempfile.TemporaryDirectory(prefix="gpuc-bench-test-") as folder:
            path = os.path.join(folder, "found.json")
            done = subprocess.run([sys.executable, "-B", BENCH, *arguments, "--rounds=1", "--json=" + path],
                                  capture_output=True, text=True, timeout=300)
            if done.returncode:
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                return done.stderr
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def test_budgets_of_a_model(self):
        rows = self.measure(MODEL)
        self.assertEqual([row["share"] for row in rows], [0.75, 0.5, 0.35])
        peaks = [row["peak_bytes"] for row in rows]
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        self.assertLess(peaks[-1], peaks[0])
        for row in rows:
            self.assertGreaterEqual(row["predicted"], 0)
            self.assertGreater(row["kept_us"], 0)
        self.assertLess(rows[0]["predicted"], 0.5)
        self.assertGreater(rows[-1]["predicted"], 0)

    def test_as_predicted(self):
        for predicted, measured, verdict in ((0.01, 0.039, True), (0.01, 0.041, False), (0.3, 0.39, True), (0.3, 0.41, False), (0.3, 0.19, False)):
            self.assertEqual(recomputed.is_as_predicted({"predicted": predicted, "measured": measured}), verdict)

    def test_a_model_that_there_is_not(self):
        said = self.measure("lenet9")
        self.assertRegex(said, r"^error: .*lenet9")
        self.assertEqual(said.count("\n"), 1)


unittest.main()
