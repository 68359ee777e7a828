"""The zoo at its default sizes, for the host and for CUDA, in f32 and bf16, by itself and in parts: with policies, and within 75, 50 and
35% of the activations, arenas are within 1% of what the buffers of the plan file need. For the host, in f32, the steps say the same and
leave the same weights as with everything kept, with an arena as long as predicted. Prints a line for each plan.

GPUC_MODELS=mlp,gpt2 names a few."""

import json
import os
import re
import unittest

from recompute_tools import COMBINATIONS, RecomputeTest
from small_zoo import MODELS

TARGETS = ("host", "cuda:sm_90")
WISHES = ("--checkpoint=none", "--checkpoint=sqrt", "--checkpoint=full", 0.75, 0.5, 0.35)
RUN = ("--checkpoint=full", 0.5)  # of the host's plans in f32, by itself


class Defaults(RecomputeTest):
    timeout_s = 3000
    steps = 2  # of some models one takes many seconds

    def compiled(self, wish, *flags):
        """The report; of a budget that nothing fits, that of the least that there is."""
        plan, report = self.path("model.plan"), self.path("report.json")
        command = [self.path("model.mlir"), "-o", plan, "--report=" + report, *flags]
        done = self.run_tool("gpuc-compile", *command, wish)
        least = re.search(r"give at least (--memory-budget=\d+)", done.stderr)
        if done.returncode and least:
            done = self.run_tool("gpuc-compile", *command, least[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(report, encoding="utf-8") as file:
            return plan, json.load(file), bool(least)

    def check(self, name, target, flags):
        kept = bits = None
        for wish in WISHES:
            with self.subTest(model=name, target=target, flags=flags, wish=wish):
                budget = f"--memory-budget={kept['peak_bytes'] - round((1 - wish) * kept['by_category']['activation'])}" \
                    if isinstance(wish, float) else None
                plan, report, is_least = self.compiled(budget or wish, "--target=" + target, *flags)
                kept = kept or report
                ratio = self.check_memory(plan, report)
                extra = report["predicted_step_us"] / kept["predicted_step_us"] - 1
                if target == "host" and not flags and wish in (WISHES[0], *RUN):
                    self.assertEqual(self.arena(plan, steps=1), report["peak_bytes"])
                    trained = self.trained(plan, 2)
                    bits = bits or trained
                    self.assertEqual(trained, bits)
                print(name, target, *flags, f"{wish:.0%}" if budget else wish, f"{report['peak_bytes']} bytes, {ratio:.4f} of the bound,",
                      f"{extra:+.1%} time", "(the least)" if is_least else "", flush=True)

    def test_every_model(self):
        for name in os.environ.get("GPUC_MODELS", ",".join(MODELS)).split(","):
            self.gpuc("gpuc-model", name, "-o", self.path("model.mlir"))
            for target in TARGETS:
                for flags in COMBINATIONS:
                    self.check(name, target, flags)


if __name__ == "__main__":
    unittest.main()
