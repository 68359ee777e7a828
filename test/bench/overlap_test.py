"""bench/overlap.py on a model of 51 kB: what it says of exchanges is what they take over the link that it is told."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench", "overlap.py")
sys.path.insert(0, os.path.dirname(BENCH))
import overlap
# All gradients, the loss and the count; parts of a bucket begin at multiples of 64 bytes.
WIDTHS = [784, 16, 16, 16, 16, 10]
LEAST = 4 * (sum(rows * columns + columns for rows, columns in zip(WIDTHS, WIDTHS[1:])) + 2)
MOST = LEAST + 64 * 2 * len(WIDTHS)


class OverlapTest(unittest.TestCase):
    def measure(self, bandwidth, latency):
        with tempfile.TemporaryDirectory(prefix="gpuc-bench-test-") as folder:
            path = os.path.join(folder, "found.json")
            done = subprocess.run([sys.executable, "-B", BENCH, bandwidth, "--model=mlp hidden=16,16,16,16 batch=8", f"--latency={latency}", "--rounds=1",
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
        self.assertTrue(0 < row["first"] < row["alone"], row)
        self.assertTrue(0 < row["with_first"] <= row["ratio"], row)

    def test_the_first_gradients_are_there(self):
        def event(stream, begin, name="matmul", entry="train_step"):
            return {"tid": stream, "ts": begin, "name": name, "args": {"entry": entry}}
        # A step of 10 ms: two commands that compute, the loss's sum behind 1 ms and the first gradients' behind 4, or 5 in the last one.
        trace = [event(0, 0, entry="init")]
        for step, late in enumerate((9000, 9000, 4000, 4000, 5000)):
            begin = 100 + 10000 * step
            trace += [event(0, begin), event(1, begin + 1000, "all_reduce"), event(0, begin + 1500), event(1, begin + late, "all_reduce")]
        self.assertEqual(overlap.first_gradient(trace, [4, 400], 5), 4)
        with self.assertRaises(SystemExit):
            overlap.first_gradient(trace, [4, 400, 400], 5)

    def test_bytes_are_those_of_the_training_step(self):
        text = """plan.program @predict { %0 = plan.buffer "x" : tensor<7xf32> }
            plan.program @train_step { %0 = plan.buffer "bucket0" : tensor<100xf32>  gradient at 0x0
              %1 = plan.buffer "fc.weight" : tensor<4x5xf32>  %2 = plan.buffer "loss" : tensor<f32>
              plan.all_reduce %2 -> %2 : f32  plan.all_reduce %0 -> %0 : f32  plan.all_reduce %1 -> %1 : f32 }
            plan.program @init { %0 = plan.buffer "y" : tensor<9xf32> }"""
        self.assertEqual(overlap.summed_bytes(text), [4, 400, 80])

    def test_late_messages(self):
        row = self.measure("1GB", latency=5000)
        # Two messages of five milliseconds for each exchange.
        exchanges = len(row["buckets_mb"])
        self.assertTrue(LEAST - 1 < 1e6 * (row["exchange"] - 10 * exchanges) < MOST + 1, row)
        self.assertGreaterEqual(row["chosen"], 0.99 * row["exchange"])


unittest.main()
