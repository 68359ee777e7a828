"""Ranks that share out what they train, weights and the optimizer's state, train the same: to the bit where each element is updated by
itself, and what is saved is whole. GPUC_ALL_PLANS=1: the whole zoo, and more recipes."""

import json
import os
import random
import unittest

from rank_tools import RankTest
from small_zoo import MODELS

ALL = "GPUC_ALL_PLANS" in os.environ
# A linear regression has nothing that could be shared out.
ZOO = [model for model in MODELS if model != "linear-regression"] if ALL else ("mlp", "gpt2", "resnet18")
RECIPES = [["--accumulate=2"], ["--precision=bf16", "--ema=ema:decay=0.9"], ["--optimizer=muon"]]
MORE_RECIPES = [["--ema=ema:decay=0.9"], ["--precision=bf16"], ["--checkpoint=full"], ["--optimizer=adafactor"], ["--optimizer=lion"],
                ["--optimizer=sgd:lr=0.1,momentum=0.9"]]


# Optimizer, ranks, more flags.
OWNERS = [("muon", 2, ["--ema=ema:decay=0.9"]), ("muon", 4, []), ("adafactor", 3, []), ("adafactor", 4, ["--accumulate=2"]),
          ("muon", 4, ["--precision=bf16", "--accumulate=2"]), ("adafactor", 2, ["--checkpoint=full", "--ema=ema:decay=0.9"])]

OPTIMIZERS = ["sgd:lr=0.05,momentum=0.9", "adam:lr=0.01", "adamw:lr=0.01,weight_decay=0.1", "rmsprop:lr=0.01", "adagrad:lr=0.01", "lion:lr=0.001",
              "adafactor:lr=0.01", "muon:lr=0.01", "nadam:lr=0.01"]


def drawn(number):
    """The model, ranks, microbatches of each, rows of one, flags of ranks, flags of all. In a transformer the gradient of a key's bias is
    what rounding leaves of 0, of which lion and adafactor take the sign."""
    draw = random.Random(number)
    model, ranks, rows = ("resnet18", "mlp", "lstm-generator", "convnet")[number % 4], draw.randint(2, 5), draw.randint(2, 4)
    if model == "resnet18":  # microbatches are normalised one by one
        count, own = 1, ["--sync-batch-norm"]
    else:
        count = draw.randint(1, 3)
        own = [f"--accumulate={count}"]
    shard = draw.choice(["optimizer", "gradients"]) if count > 1 else "optimizer"
    own += [f"--shard={shard}", f"--world-size={ranks}"] + draw.choice([[], ["--bucket-size=1KB"], ["--bucket-size=1GB"], ["--checkpoint=full"]])
    both = ["--optimizer=" + OPTIMIZERS[(number // 4 + 6) % len(OPTIMIZERS)]]
    for flag in "--clip-norm=0.1", "--clip-value=0.05", "--ema=ema:decay=0.9", "--skip=outliers:grad_norm=6":
        both += [flag] * draw.randint(0, 1)
    return model, ranks, count, rows, own, both


def keys_of(model, batch):
    return [key for key in MODELS[model][0] if not key.startswith("batch")] + [f"batch={batch}"]


class Sharding(RankTest):
    def compile_shards(self, model, keys, ranks, *flags, shard="optimizer"):
        return self.compile_model(model, *keys, flags=["--data-parallel", f"--shard={shard}", f"--world-size={ranks}", *flags])

    def check_bits(self, ranks, model, *flags, shard="optimizer", tolerance=0.0, started=()):
        """Those of ranks that each have all; what is computed of all gradients together, as their norm is, is rounded otherwise."""
        with self.subTest(model=model, ranks=ranks, flags=flags, shard=shard):
            keys = keys_of(model, 3)
            whole = self.variables(self.compile_model(model, *keys, flags=["--data-parallel", *flags]), f"--ranks={ranks}")
            shared = self.variables(self.compile_shards(model, keys, ranks, *flags, shard=shard), f"--ranks={ranks}", *started)
            self.assertEqual(set(whole), set(shared))
            for name, values in whole.items():
                for ours, theirs in zip(shared[name], values, strict=True):
                    self.assertLessEqual(abs(ours - theirs), tolerance * max(1, abs(theirs)), name)

    def test_bits_of_ranks_that_each_have_all(self):
        for place, model in enumerate(ZOO):
            self.check_bits(2 + place % 3, model)

    def test_bits_whatever_the_recipe_is(self):
        for flags in RECIPES + (MORE_RECIPES if ALL else []):
            self.check_bits(3, "gpt2", *flags)
        self.check_bits(2, "mlp", "--precision=fp16", "--accumulate=2")
        self.check_bits(2, "gpt2", shard="gradients")
        self.check_bits(5, "mlp")

    def test_whatever_the_buckets_are(self):
        """Each tensor by itself, several in one exchange, all in one."""
        keys = keys_of("gpt2", 3)
        for shard, more in (("gradients", ["--accumulate=2"]), ("optimizer", []))[:2 if ALL else 1]:
            found = {}
            for size in ("1KB", "20KB", "1GB"):
                report = self.path("report.json")
                plan = self.compile_shards("gpt2", keys, 2, f"--bucket-size={size}", "--report=" + report, *more, shard=shard)
                with open(report, encoding="utf-8") as file:
                    exchanges = json.load(file)["all_reduce_buckets"]
                found[exchanges] = self.variables(plan, "--ranks=2")
            self.assertEqual(len(found), 3, "of each size there are other buckets")
            self.assertEqual(sorted(found), list(reversed(found)), "the larger they are, the fewer")
            one, *others = found.values()
            for other in others:
                self.check_same(other, one)

    def test_beside_the_backward_pass(self):
        """On a stream of its own each weight is gathered before it is needed, behind what the last step has written."""
        keys, flags = keys_of("gpt2", 3), ["--shard=optimizer", "--world-size=2"]
        for more in ([], ["--accumulate=2"], ["--clip-norm=0.1"]):
            with self.subTest(flags=more):
                beside = self.variables(self.compile_beside("gpt2", keys, [*flags, *more], 4096), "--ranks=2", "--delay-commands=5")
                self.check_same(self.variables(self.compile_shards("gpt2", keys, 2, *more), "--ranks=2"), beside)

    def test_to_rounding(self):
        self.check_bits(3, "gpt2", "--clip-norm=0.1", tolerance=1e-5)
        self.check_bits(2, "lstm-generator", "--accumulate=3", shard="gradients", tolerance=1e-5)
        self.check_bits(2, "gpt2", "--accumulate=2", "--clip-norm=0.1", "--ema=ema:decay=0.9", shard="gradients", tolerance=1e-5)

    def test_the_whole_batch_whatever_is_combined(self):
        """In f64, of one rank that has all rows of the batch."""
        for number in range(32 if ALL else 4):
            model, ranks, count, rows, own, both = drawn(number)
            with self.subTest(number=number, model=model, ranks=ranks, rows=rows, own=own, both=both):
                batch, keys = ranks * count * rows, keys_of(model, rows)[:-1] + ["dtype=f64"]
                whole = self.variables(self.compile_model(model, *keys, f"batch={batch}", flags=both), steps=3, samples=2 * batch)
                plan = self.compile_model(model, *keys, f"batch={rows}", flags=["--data-parallel", *own, *both])
                shared = self.variables(plan, f"--ranks={ranks}", steps=3, samples=2 * batch)
                self.assertEqual(set(whole), set(shared))
                for name, values in whole.items():
                    for ours, theirs in zip(shared[name], values, strict=True):
                        self.assertLessEqual(abs(ours - theirs), 1e-10 * max(1, abs(theirs)), name)

    def test_memory_falls_with_the_number_of_ranks(self):
        """Of what is kept from step to step each rank has its share, and the arena is as long as the report says."""
        kept = {}
        for ranks in (1, 2, 4):
            report = self.path("report.json")
            flags = ["--data-parallel", "--report=" + report]
            if ranks > 1:
                flags += ["--shard=optimizer", f"--world-size={ranks}"]
            self.compile_model("mlp", "hidden=512,512", "batch=8", flags=flags)
            with open(report, encoding="utf-8") as file:
                kept[ranks] = json.load(file)
        state = [kept[ranks]["by_category"]["optimizer"] for ranks in (1, 2, 4)]
        self.assertAlmostEqual(state[1] / state[0], 1 / 2, places=2)
        self.assertAlmostEqual(state[2] / state[0], 1 / 4, places=2)
        self.assertLess(kept[4]["peak_bytes"], kept[2]["peak_bytes"])
        self.assertLess(kept[2]["peak_bytes"], kept[1]["peak_bytes"])

    def test_owners(self):
        """What an optimizer updates as a whole is one rank's: to the bits of ranks that each have all, with all of their names."""
        for optimizer, ranks, more in OWNERS if ALL else OWNERS[:3]:
            self.check_bits(ranks, "gpt2", "--optimizer=" + optimizer, *more)
        # Of a key's bias the gradient is what rounding leaves of 0, by which AdamW divides.
        self.check_bits(2, "gpt2", "--optimizer=muon", "--accumulate=2", shard="gradients", tolerance=1e-4)
        self.check_bits(2, "gpt2", "--optimizer=muon", "--clip-norm=0.1", tolerance=1e-5)

    def test_owners_keep_all_that_is_kept(self):
        """gpt2 has four blocks, whose weights four ranks own, one each; of two embeddings none are alike. Among eight ranks half of them
        have none; nine share each out by runs."""
        model, found = self.path("model.mlir"), {}
        self.gpuc("gpuc-model", "gpt2", *keys_of("gpt2", 3), "-o", model)
        for optimizer in ("muon", "adafactor"):
            for ranks in (4, 8, 9):
                report = self.path("report.json")
                self.gpuc("gpuc-compile", model, "-o", self.path("x.plan"), "--data-parallel", "--shard=optimizer",
                          f"--world-size={ranks}", "--optimizer=" + optimizer, "--report=" + report)
                with open(report, encoding="utf-8") as file:
                    found[optimizer, ranks] = json.load(file)
        for optimizer, state in (("muon", ("momentum_buffer",)), ("adafactor", ("row_var", "col_var"))):
            for ranks in (4, 8):
                shares = found[optimizer, ranks]["shares"]
                for block in range(4):
                    self.assertIn(f"transformer.h.{block}.mlp.c_fc.weight", shares["owned"])
                    for slot in state:
                        self.assertIn(f"transformer.h.{block}.mlp.c_fc.weight/{slot}", shares["owned"])
            shares = found[optimizer, 9]["shares"]
            self.assertEqual(shares["ranks"], 9)
            self.assertIn("transformer.h.0.mlp.c_fc.weight", shares["by_runs"])
        self.assertIn("transformer.h.0.mlp.c_fc.weight/momentum_buffer", found["muon", 9]["shares"]["updated_by_all"])
        self.assertIn("transformer.h.0.mlp.c_fc.weight/row_var", found["adafactor", 9]["shares"]["whole"])

    def test_files_are_whole(self):
        self.check_files("mlp", ["hidden=16"])

    def test_files_of_owners_are_whole(self):
        self.check_files("mlp", ["hidden=24,24,24,24,24,24,24", "optimizer=muon:lr=0.001"])

    def check_files(self, model, keys):
        """Checkpoints of one number of ranks go on with another, and without shares."""
        folder = self.path("checkpoints")
        plans = [(self.compile_shards(model, [*keys, "batch=4"], 4), ["--ranks=4"]),
                 (self.compile_shards(model, [*keys, "batch=8"], 2), ["--ranks=2", "--resume"]),
                 (self.compile_model(model, *keys, "batch=16"), ["--resume"])]
        whole = self.compile_model(model, *keys, "batch=16")
        alone = self.variables(whole, steps=9)
        for (plan, flags), steps in zip(plans, (3, 6, 9)):
            resumed = self.variables(plan, "--checkpoint-dir=" + folder, "--checkpoint-every=3", *flags, steps=steps)
        self.assertEqual(set(alone), set(resumed))
        for name, values in alone.items():
            for ours, theirs in zip(resumed[name], values, strict=True):
                self.assertAlmostEqual(ours, theirs, places=5, msg=name)

    def test_evaluation(self):
        found = []
        for plan in (self.compile_model("mlp", "hidden=16", "batch=7", flags=["--data-parallel"]),
                     self.compile_shards("mlp", ["hidden=16", "batch=7"], 3)):
            metrics = self.path("metrics.jsonl")
            self.gpuc("gpuc-train", plan, "--ranks=3", "--data=synthetic:size=84", "--eval-data=synthetic:size=50,seed=5", "--steps=4",
                      "--seed=3", "--metrics=" + metrics)
            found.append(self.metrics(metrics, "eval"))
            os.remove(metrics)
        self.assertEqual(*found)

    def test_bad_input(self):
        plan = self.compile_shards("mlp", ["hidden=16", "batch=8"], 4)
        train = ["gpuc-train", plan, "--data=synthetic:size=64"]
        for command, is_or_are in ((["gpuc-run", plan, "--entry=init"], "is 1"), ([*train, "--ranks=2"], "are 2"), (train, "is 1")):
            done = self.run_tool(*command)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"the plan shares variables out among 4 ranks, and there {is_or_are}: start 4 (gpuc-train --ranks=4), or "
                          f"compile it with --world-size={is_or_are[-1]}", done.stderr)
        model = self.path("model.mlir")
        self.gpuc("gpuc-model", "mlp", "-o", model)
        done = self.run_tool("gpuc-compile", model, "-o", self.path("y.plan"), "--data-parallel", "--shard=gradients", "--world-size=2")
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: ", done.stderr)
        self.assertIn("shards gradients, which without microbatches is what optimizer does: give accumulate", done.stderr)
        for flags, reason in ((["--data-parallel", "--shard=optimizer"], "give world_size"),
                              (["--shard=optimizer", "--world-size=2"], "give data_parallel"),
                              (["--data-parallel", "--world-size=2"], "nothing to shard"),
                              (["--data-parallel", "--shard=weights", "--world-size=2"], "there are optimizer and gradients"),
                              (["--data-parallel", "--shard=optimizer", "--world-size=0"], "at least 1"),
                              (["--data-parallel", "--shard=optimizer", "--world-size=100000"], "no variable has 64 bytes")):
            done = self.run_tool("gpuc-compile", model, "-o", self.path("x.plan"), *flags)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn(reason, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertFalse(os.path.exists(self.path("x.plan")))


if __name__ == "__main__":
    unittest.main()
