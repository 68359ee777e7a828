"""Streams that come late, at random, train to the same bits: events alone order them. GPUC_ROUNDS is how often each plan runs."""

import os
import unittest

from gpuc_tools import ToolTest
from small_zoo import MODELS

ROUNDS = int(os.environ.get("GPUC_ROUNDS", 10))


class Delays(ToolTest):
    def check(self, model, keys):
        plan = self.compile_beside(model, [key for key in keys if not key.startswith("batch")] + ["batch=2"], [], bucket_bytes=4096)
        flags = ["--data=synthetic:size=12", "--steps=2", "--seed=3", "--threads=1", "--ranks=2"]
        undisturbed = self.trained_bits(plan, *flags)
        for seed in range(ROUNDS):
            with self.subTest(model=model, seed=seed):
                self.assertEqual(self.trained_bits(plan, *flags, f"--delay-commands={seed}"), undisturbed)

    def test_gpt2(self):
        self.check("gpt2", MODELS["gpt2"][0])

    def test_resnet18(self):
        self.check("resnet18", ["size=32", "width=4", "classes=4"])


if __name__ == "__main__":
    unittest.main()
