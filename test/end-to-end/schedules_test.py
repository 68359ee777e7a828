"""The learning rates of gpuc's schedules equal those of PyTorch's schedulers (schedule_reference.py) to 1e-12, update
after update; training uses them, also across a checkpoint."""

import json
import math
import os
import unittest

from gpuc_tools import HERE, ToolTest
from tensor_files import uniform, write_npy, write_safetensors

ROWS = 320

with open(os.path.join(HERE, "schedules.json"), encoding="utf-8") as reference:
    EXPECTED = json.load(reference)


class Schedules(ToolTest):
    def setUp(self):
        super().setUp()
        write_npy(self.path("x.npy"), "f64", [ROWS, 13], uniform([ROWS, 13], 100, 1.0))
        write_npy(self.path("y.npy"), "f64", [ROWS, 1], uniform([ROWS, 1], 101, 1.0))
        write_safetensors(self.path("first.safetensors"), "f64", {
            "linear.weight": ([1, 13], uniform([1, 13], 2, 0.25)), "linear.bias": ([1], uniform([1], 3, 0.25))})
        self.gpuc("gpuc-model", "linear-regression", "dtype=f64", "batch=32", "-o", "model.mlir")

    def train(self, schedule, *flags, steps=50):
        """The metrics of each update."""
        self.gpuc("gpuc-compile", "model.mlir", f"--optimizer=sgd:lr={EXPECTED['base']}", "-o", "model.plan",
                  *("--schedule=" + spec for spec in schedule))
        self.gpuc("gpuc-train", "model.plan", "--data=npy:x=x.npy,y=y.npy", f"--steps={steps}", "--no-shuffle",
                  "--variables=first.safetensors", "--metrics=metrics.jsonl", "--log-every=0", *flags)
        return self.metrics(self.path("metrics.jsonl"), "step")

    def compare(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for update, (our, their) in enumerate(zip(ours, theirs)):
            self.assertLessEqual(abs(our - their), 1e-12 * abs(their),
                                 f"update {update}: gpuc {our!r}, PyTorch {their!r}")

    def test_losses(self):
        case = EXPECTED["cases"][EXPECTED["losses_under"]]
        self.compare([event["loss"] for event in self.train(case["schedule"])], EXPECTED["losses"])

    def test_resumed(self):
        case = EXPECTED["cases"][EXPECTED["losses_under"]]
        self.train(case["schedule"], "--checkpoint-dir=checkpoints", steps=13)
        events = self.train(case["schedule"], "--checkpoint-dir=checkpoints", "--resume")
        self.compare([event["loss"] for event in events], EXPECTED["losses"])
        self.compare([event["lr"] for event in events], case["lr"])

    def rate_after(self, updates):
        """Of the update after so many."""
        write_safetensors(self.path("late.safetensors"), "f64", {
            "linear.weight": ([1, 13], [0.0] * 13), "linear.bias": ([1], [0.0]), "step": ([], [updates], "i64")})
        self.gpuc("gpuc-train", "model.plan", "--data=npy:x=x.npy,y=y.npy", "--steps=1", "--variables=late.safetensors",
                  "--metrics=metrics.jsonl", "--log-every=0")
        return self.metrics(self.path("metrics.jsonl"), "step")[0]["lr"]

    def test_restarts_of_long_training(self):
        # A cycle begins with the base rate and ends a hair above 0, however many there were.
        for first, growth in ((3, 2), (7, 3), (10, 10)):
            self.train([f"cosine_restarts:T_0={first},T_mult={growth}"], steps=1)
            length, begin = first, 0
            while begin + length < 2**40:
                begin += length
                last = (1 + math.cos(math.pi * (length - 1) / length)) / 2 * EXPECTED["base"]
                self.assertAlmostEqual(self.rate_after(begin - 1), last, delta=1e-12 * EXPECTED["base"])
                self.assertEqual(self.rate_after(begin), EXPECTED["base"])
                length *= growth

    def test_one_cycle_stays_at_its_last_rate(self):
        # 0.1 / 25 / 10^4; PyTorch raises.
        rates = [event["lr"] for event in self.train(["one_cycle:max_lr=0.1,total_steps=20"])]
        self.compare(rates[19:], [0.1 / 25 / 1e4] * 31)


def add_cases():
    for name, case in EXPECTED["cases"].items():
        def check(self, case=case):
            self.compare([event["lr"] for event in self.train(case["schedule"])], case["lr"])
        setattr(Schedules, "test_" + name.replace(", ", "_").replace(" ", "_").replace("-", "_"), check)


add_cases()

if __name__ == "__main__":
    unittest.main()
