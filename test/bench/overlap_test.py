"""bench/overlap.py on a model of 51 kB: what it says of exchanges is what they take over the link that it is told."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench", "overlap.py")
# All gradients, the loss and the count; parts of a bucket begin at multiples of 64 bytes.
LEAST, MOST = 4 * (784 * 16 + 16 + 16 * 10 + 10 + 2), 4 * (784 * 16 + 16 + 16 * 10 + 10 + 2) + 4 * 64


class OverlapTest(unittest.TestCase):
    def measure(self, bandwidth, latency):
        with tempfile.TemporaryDirectory(prefix="gpuc-bench-test-") as folder:
            path = os.path.join(folder, "found.json")
            done = subprocess.run([sys.executable, "-B", BENCH, bandwidth, "--model=mlp hidden=16 batch=8", f"--latency={latency}", "--rounds=1",
                                   "--json=" + path], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"| {bandwidth} | ", done.stdout)
            with open(path, encoding="utf-8") as file:
                (row,) = json.load(file)
        return row

    def test_a_slow_link(self):
        row = self.measure("1MB", latency=0)
        self.assertTrue(LEAST <= 1e3 * row["exchange"] <= MOST, row)
        for name in "chosen", "fixed", "turn":
            self.assertGreaterEqual(row[name], 0.99 * row["exchange"], name)
        self.assertLess(row["alone"], row["exchange"])
        self.assertEqual(row["ratio"], row["chosen"] / max(row["alone"] + row["last"], row["exchange"]))

    def test_late_messages(self):
        row = self.measure("1GB", latency=5000)
        # Two messages of five milliseconds for each exchange.
        exchanges = len(row["buckets_mb"])
        self.assertTrue(LEAST - 1 < 1e6 * (row["exchange"] - 10 * exchanges) < MOST + 1, row)
        self.assertGreaterEqual(row["chosen"], 0.99 * row["exchange"])


unittest.main()
