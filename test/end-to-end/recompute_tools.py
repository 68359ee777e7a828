"""What the tests of recomputation share: whether plans need no more memory than they have to, and train to the same bits."""

import json
import os

from gpuc_tools import ToolTest, sha256
from plan_memory import least_bytes

# Every combination, where there is time; else those that differ most.
ALL = "GPUC_ALL_PLANS" in os.environ
PRECISION, PARTS = ["--precision=bf16"], ["--accumulate=4", "--clip-norm=1"]
COMBINATIONS = ([], PRECISION, PARTS, PRECISION + PARTS)
STEPS = 20
CLOCK = {"samples_per_s", "data_us", "compute_us"}  # of a step's metrics: what depends on it


class RecomputeTest(ToolTest):
    timeout_s = 3000 if ALL else ToolTest.timeout_s
    steps = STEPS

    def check_memory(self, plan, report):
        """The arena is as long as the report says, and at most 1.01 times what the buffers of the plan file need. Gives the ratio."""
        facts = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
        self.assertEqual(facts["arena_bytes"], report["peak_bytes"])
        least = least_bytes(facts)
        self.assertLessEqual(least, report["peak_bytes"])
        self.assertLessEqual(report["peak_bytes"], 1.01 * least, f"{report['lower_bound_bytes']} says the report")
        return report["peak_bytes"] / least

    def arena(self, plan, steps=2):
        """The bytes that a run has allocated, in which it reads no byte that is dead."""
        return json.loads(self.gpuc("gpuc-run", plan, "--entry=train_step", f"--repeat={steps}", "--threads=2", "--check-memory",
                                    "--json=-"))["arena_bytes"]

    def trained(self, plan, threads):
        """What each step of training says, and SHA-256 of all variables at its end."""
        facts = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
        metrics, variables = self.path("steps.jsonl"), self.path("trained.safetensors")
        self.gpuc("gpuc-train", plan, f"--data=synthetic:size={2 * facts['global_batch']}", f"--steps={self.steps}", "--seed=3",
                  f"--threads={threads}", "--log-every=0", "--metrics=" + metrics, "--save-variables=" + variables)
        steps = [{key: value for key, value in step.items() if key not in CLOCK} for step in self.metrics(metrics, "step")]
        os.remove(metrics)
        self.assertEqual([step["step"] for step in steps], list(range(1, self.steps + 1)))
        self.assertTrue(all(step["loss"] is not None for step in steps), "losses are numbers")
        return steps, sha256(variables)
