"""bench/conv_methods.py on times that are made up: what it says of a choice, and that what it draws can be timed."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench")
sys.path.insert(0, BENCH)

import conv_methods  # noqa: E402


def shape(chosen, pointwise=False, **methods):
    return {
        "shape": chosen,
        "chosen": chosen,
        "pointwise": pointwise,
        "methods": {method: {"us": [us, us / 2], "work": [0] * 7 + [4]} for method, us in methods.items()},
    }


class ConvMethodsTest(unittest.TestCase):
    def test_what_it_draws_has_windows_and_is_the_seeds(self):
        lines = conv_methods.drawn_shapes(200, 3)
        self.assertEqual(lines, conv_methods.drawn_shapes(200, 3))
        self.assertNotEqual(lines, conv_methods.drawn_shapes(200, 4))
        for line in lines:
            numbers = list(map(int, line.split()))
            self.assertEqual(len(numbers), 16)
            for axis in (0, 1):
                extent, kernel, _, padding, dilation = numbers[6 + axis :: 2][:5]
                self.assertGreater(extent + 2 * padding, (kernel - 1) * dilation)

    def test_what_a_choice_loses(self):
        shapes = [
            shape("patches", patches=100, by_rows=80),
            shape("by_rows", patches=100, by_rows=80),
            shape("depthwise", depthwise=100, by_images=10),
        ]
        losses = conv_methods.losses_of(shapes)
        self.assertEqual([(loss, quickest) for loss, quickest, _ in losses], [(1.25, "by_rows"), (1.0, "by_rows")])

    def test_it_reads_what_was_timed(self):
        with tempfile.TemporaryDirectory() as folder:
            times = os.path.join(folder, "times")
            with open(times, "w", encoding="utf-8") as file:
                file.write(json.dumps(shape("patches", patches=144, by_rows=100)) + "\n" + json.dumps(shape("by_rows", by_rows=7)) + "\n")
            done = subprocess.run(
                [sys.executable, "-B", os.path.join(BENCH, "conv_methods.py"), f"--times={times}"], capture_output=True, text=True, check=False
            )
        self.assertEqual(done.stderr, f"from {times}, timed before\n")
        self.assertIn("2 shapes: 1.2000 times the quickest (geometric mean); 1 above 1.1, 1 above 1.3, 0 above 1.5", done.stdout)

    def test_files_that_it_cannot_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "file")
            self.assertRefused([f"--shape-file={path}"], f"cannot read {path}")
            with open(path, "w", encoding="utf-8") as file:
                file.write("no times\n")
            self.assertRefused([f"--times={path}"], f"{path} has no times")
            with open(path, "w", encoding="utf-8") as file:
                file.write("")
            self.assertRefused([f"--times={path}"], "none of these shapes")
        self.assertRefused(["--shapes=0"], "--shapes=0")

    def assertRefused(self, flags, words):
        command = [sys.executable, "-B", os.path.join(BENCH, "conv_methods.py"), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: ", done.stderr.splitlines()[-1])
        self.assertIn(words, done.stderr.splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
