"""Each model of the zoo trains to the same bits whatever is computed again (--checkpoint): losses and gradients' norms of 20 steps, and
weights, dropout on, with 1, 2 and 3 threads, in f32 and bf16, by itself and in parts. For the host and for CUDA its arena is as long as
the report says, and within 1% of what the buffers of the plan file need. Where there is much to free, much is freed, for the
operations that the report counts. With GPUC_ALL_PLANS: all combinations of these; else in bf16 and in parts each policy with another
number of threads."""

import json
import os
import unittest
from unittest import mock

from recompute_tools import ALL, COMBINATIONS, RecomputeTest
from small_zoo import MODELS

POLICIES = ("sqrt", "full", "save=matmul,conv2d,attention", "blocks=*")  # the latter two without flags
SLOW = {"transformer", "resnet18", "resnet50"}  # to compile: in bf16 and in parts only both at once, and not for CUDA
# Of the activations' bytes at the peak at most so many are left, for at most so many more operations.
FREED = {"resnet50": ("full", 0.5, 0.4), "gpt2": ("sqrt", 0.8, 0.35)}

def without_ptxas(path):
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if not os.path.exists(os.path.join(folder, "ptxas")))


class Checkpoint(RecomputeTest):
    def compiled(self, policy, model, keys, flags):
        report = self.path("report.json")
        plan = self.compile_model(model, *keys, flags=["--report=" + report, "--checkpoint=" + policy, *flags])
        with open(report, encoding="utf-8") as file:
            return plan, json.load(file)

    def check(self, model, keys, flags):
        plan, kept = self.compiled("none", model, keys, flags)
        self.assertEqual(kept["recompute_flops"], 0)
        self.assertEqual({residual["state"] for residual in kept["residuals"]} - {"kept"}, set())
        self.check_memory(plan, kept)
        expected = self.trained(plan, 1)
        for number, policy in enumerate(POLICIES[:2] if flags else POLICIES):
            with self.subTest(model=model, keys=keys, flags=flags, policy=policy):
                plan, report = self.compiled(policy, model, keys, flags)
                self.check_memory(plan, report)
                again = [residual for residual in report["residuals"] if residual["state"] == "recomputed"]
                self.assertEqual(bool(again), report["recompute_flops"] > 0)
                self.assertEqual(report["flops"] - report["recompute_flops"], kept["flops"])
                self.assertEqual(self.arena(plan), report["peak_bytes"])
                for threads in (1, 2, 3) if ALL or not flags else [2 + number]:
                    self.assertEqual(self.trained(plan, threads), expected)
                if FREED.get(model, [None])[0] == policy and not flags and "lora=4" not in keys:
                    _, left, more = FREED[model]
                    self.assertLessEqual(report["by_category"]["activation"], left * kept["by_category"]["activation"])
                    self.assertLessEqual(report["recompute_flops"], more * kept["flops"])

    @mock.patch.dict(os.environ, {"CUDA_HOME": "", "PATH": without_ptxas(os.environ["PATH"])})
    def check_cuda(self, model, keys, flags):
        """Memory alone: nothing runs what ptxas would make, which takes as long as all before it."""
        for policy in ("none", *POLICIES[:2]):
            with self.subTest(model=model, keys=keys, flags=flags, policy=policy, target="cuda"):
                self.check_memory(*self.compiled(policy, model, keys, ["--target=cuda:sm_90", *flags]))

    def test_blocks_of_a_transformer(self):
        """What its blocks read of one another is kept; the larger ones that layers within them are, the less."""
        keys = ["layers=6", "heads=2", "width=32", "length=64", "vocabulary=50", "dropout=0.1", "batch=8"]
        plan, kept = self.compiled("none", "gpt2", keys, [])
        expected = self.trained(plan, 1)
        for policy in ("blocks=transformer.h.*", "blocks=transformer.h.*.attn,transformer.h.*.mlp"):
            plan, report = self.compiled(policy, "gpt2", keys, [])
            self.assertEqual(self.trained(plan, 2), expected)
            self.assertEqual(self.arena(plan), report["peak_bytes"])
            self.assertLess(report["by_category"]["activation"], 0.8 * kept["by_category"]["activation"], policy)
            self.assertGreater(report["recompute_flops"], 0)

    def test_every_model(self):
        listed = [line.split(":")[0] for line in self.gpuc("gpuc-model", "--list").splitlines() if line[0] != " "]
        self.assertEqual(set(listed), set(MODELS), "each model of gpuc-model has sizes here")
        for model in listed:
            for keys in MODELS[model]:
                for flags in COMBINATIONS if ALL or model not in SLOW else (COMBINATIONS[0], COMBINATIONS[-1]):
                    self.check(model, keys, flags)
                for flags in COMBINATIONS if ALL else [] if model in SLOW else COMBINATIONS[:1]:
                    self.check_cuda(model, keys, flags)

    def test_ranks_one_after_the_other(self):
        """Loops over microbatches stand in one over ranks then."""
        keys, flags = ["hidden=24,24,24", "batch=16"], ["--emulate-ranks=2", "--accumulate=2"]
        plan, kept = self.compiled("none", "mlp", keys, flags)
        expected = self.trained(plan, 1)
        plan, report = self.compiled("full", "mlp", keys, flags)
        self.assertGreater(report["recompute_flops"], 0)
        self.assertEqual(report["flops"] - report["recompute_flops"], kept["flops"])
        self.assertEqual(self.trained(plan, 2), expected)
        self.assertEqual(self.arena(plan), report["peak_bytes"])

    def test_a_policy_that_frees_nothing_says_so(self):
        self.gpuc("gpuc-model", "mlp", "-o", self.path("mlp.mlir"))
        compiled = self.run_tool("gpuc-compile", self.path("mlp.mlir"), "--checkpoint=full")
        self.assertEqual(compiled.returncode, 0)
        self.assertRegex(compiled.stderr, r"^warning: --checkpoint=full frees nothing here: (\d+) bytes, and \1 if everything "
                                          r"is kept, which is faster: leave it out\n$")


if __name__ == "__main__":
    unittest.main()
