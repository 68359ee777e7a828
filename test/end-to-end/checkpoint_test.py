"""Each model of the zoo trains to the same bits whatever is computed again (--checkpoint), dropout on, with 1, 2 and 3
threads, by itself and in parts; its arena is as long as the report says, with no gap. Where there is much to free, much is
freed, for the operations that the report counts."""

import json
import unittest

from gpuc_tools import ToolTest, sha256
from small_zoo import MODELS

STEPS = 4
POLICIES = ("sqrt", "full", "save=matmul,conv2d,attention", "blocks=*")
FLAGS = ([], ["--precision=bf16"], ["--accumulate=4", "--clip-norm=1"])  # for all policies; for `full`
# Of the activations' bytes at the peak at most so many are left, for at most so many more operations.
FREED = {"convnet": ("full", 0.6, 0.05), "resnet50": ("full", 0.5, 0.4), "gpt2": ("sqrt", 0.8, 0.35)}


class Checkpoint(ToolTest):
    def compiled(self, policy, model, keys, flags):
        report = self.path("report.json")
        plan = self.compile_model(model, *keys, flags=["--report=" + report, "--checkpoint=" + policy, *flags])
        with open(report, encoding="utf-8") as file:
            return plan, json.load(file)

    def trained(self, plan, threads):
        """SHA-256 of all variables, and the arena's bytes."""
        variables = self.path("trained.safetensors")
        ran = json.loads(self.gpuc("gpuc-run", plan, "--entry=train_step", f"--repeat={STEPS}", f"--threads={threads}",
                                   "--save-variables=" + variables, "--check-memory", "--json=-"))
        return sha256(variables), ran["arena_bytes"]

    def check(self, model, keys, flags):
        plan, kept = self.compiled("none", model, keys, flags)
        self.assertEqual(kept["recompute_flops"], 0)
        self.assertEqual({residual["state"] for residual in kept["residuals"]} - {"kept"}, set())
        expected, _ = self.trained(plan, 1)
        for policy in POLICIES if not flags else ["full"]:
            with self.subTest(model=model, keys=keys, flags=flags, policy=policy):
                plan, report = self.compiled(policy, model, keys, flags)
                self.assertLessEqual(report["peak_bytes"], 1.01 * report["lower_bound_bytes"])
                again = [residual for residual in report["residuals"] if residual["state"] == "recomputed"]
                self.assertEqual(bool(again), report["recompute_flops"] > 0)
                self.assertEqual(report["flops"] - report["recompute_flops"], kept["flops"])
                for threads in (1, 2, 3) if not flags else [2]:
                    self.assertEqual(self.trained(plan, threads), (expected, report["peak_bytes"]))
                if FREED.get(model, [None])[0] == policy and not flags and "lora=4" not in keys:
                    _, left, more = FREED[model]
                    self.assertLessEqual(report["by_category"]["activation"], left * kept["by_category"]["activation"])
                    self.assertLessEqual(report["recompute_flops"], more * kept["flops"])

    def test_blocks_of_a_transformer(self):
        """What its blocks read of one another is kept; the larger ones that layers within them are, the less."""
        keys = ["layers=6", "heads=2", "width=32", "length=64", "vocabulary=50", "dropout=0.1", "batch=8"]
        plan, kept = self.compiled("none", "gpt2", keys, [])
        expected, _ = self.trained(plan, 1)
        for policy in ("blocks=transformer.h.*", "blocks=transformer.h.*.attn,transformer.h.*.mlp"):
            plan, report = self.compiled(policy, "gpt2", keys, [])
            self.assertEqual(self.trained(plan, 2), (expected, report["peak_bytes"]))
            self.assertLess(report["by_category"]["activation"], 0.8 * kept["by_category"]["activation"], policy)
            self.assertGreater(report["recompute_flops"], 0)

    def test_every_model(self):
        listed = [line.split(":")[0] for line in self.gpuc("gpuc-model", "--list").splitlines() if line[0] != " "]
        self.assertEqual(set(listed), set(MODELS), "each model of gpuc-model has sizes here")
        for model in listed:
            for keys in MODELS[model]:
                for flags in FLAGS:
                    self.check(model, keys, flags)

    def test_ranks_one_after_the_other(self):
        """Loops over microbatches stand in one over ranks then."""
        keys, flags = ["hidden=24,24,24", "batch=16"], ["--emulate-ranks=2", "--accumulate=2"]
        plan, kept = self.compiled("none", "mlp", keys, flags)
        expected, _ = self.trained(plan, 1)
        plan, report = self.compiled("full", "mlp", keys, flags)
        self.assertGreater(report["recompute_flops"], 0)
        self.assertEqual(report["flops"] - report["recompute_flops"], kept["flops"])
        self.assertEqual(self.trained(plan, 2), (expected, report["peak_bytes"]))

    def test_a_policy_that_frees_nothing_says_so(self):
        self.gpuc("gpuc-model", "mlp", "-o", self.path("mlp.mlir"))
        compiled = self.run_tool("gpuc-compile", self.path("mlp.mlir"), "--checkpoint=full")
        self.assertEqual(compiled.returncode, 0)
        self.assertRegex(compiled.stderr, r"^warning: --checkpoint=full frees nothing here: (\d+) bytes, and \1 if everything "
                                          r"is kept, which is faster: leave it out\n$")


if __name__ == "__main__":
    unittest.main()
