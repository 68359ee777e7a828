"""Ranks and one rank that emulates them have the same bits, whatever is combined, and whoever is killed: draws of many flags at once.
GPUC_ALL_PLANS=1: more."""

import json
import os
import random
import re
import signal
import time
import unittest

from rank_tools import FEED, RankTest
from small_zoo import MODELS

DRAWS, KILLS = (60, 60) if "GPUC_ALL_PLANS" in os.environ else (5, 2)
NAMES = ["mlp", "convnet", "rnn-classifier", "lstm-generator", "transformer", "gpt2", "resnet18"]
OPTIMIZERS = ["sgd:lr=0.05,momentum=0.9,nesterov=true", "adam:lr=0.01,amsgrad=true", "adamw:lr=0.01,weight_decay=0.1", "rmsprop:lr=0.003,momentum=0.9",
              "rmsprop:lr=0.003,centered=true", "adagrad:lr=0.01", "lion:lr=0.001", "adafactor:lr=0.01", "muon:lr=0.01"]
# Of which the norm of all gradients is an operand: among shares it is a sum in another order.
BY_NORM = ["--clip-norm=0.1", "--skip=outliers:grad_norm=0.5,window=2"]
UPDATES = [*BY_NORM, "--clip-value=0.01", "--ema=ema:decay=0.9", "--schedule=linear:total_iters=4,start_factor=0.3"]
PRECISIONS = [[], ["--precision=bf16"], ["--precision=fp16"],
              ["--precision=fp16", "--loss-scale=dynamic:init_scale=4294967296,growth_interval=2"]]  # whose first steps are skipped
LINKS = [[], ["--bucket-size=1"], ["--bucket-size=20KB"], ["--link=ethernet"], ["--link=ethernet:bandwidth=20MB,latency=1"],
         ["--link=infiniband:bandwidth=100MB,latency=500", "--bucket-size=1KB"]]


class Draw:
    """`both`: flags of all plans, `own` those of the ranks' alone, `train` those of gpuc-train."""

    def __init__(self, number):
        draw = random.Random(number)
        self.model = NAMES[number % len(NAMES)]
        keys = [key for key in MODELS[self.model][0] if not key.startswith("batch")]
        self.ranks, self.rows, self.count = draw.randint(2, 5), draw.randint(1, 5), draw.choice([1, 1, 2, 3])
        if self.model == "resnet18":  # whose last norms have as many elements of a channel as rows
            self.rows = draw.randint(2, 5)
        self.keys = [*keys, f"batch={self.rows}"] + draw.choice([[], [], ["dtype=f64"]])
        self.both = ["--optimizer=" + draw.choice(OPTIMIZERS)] + [flag for flag in UPDATES if draw.random() < 0.25]
        if "dtype=f64" not in self.keys:
            self.both += draw.choice(PRECISIONS)
        if self.count > 1:
            self.both += [f"--accumulate={self.count}"]
        self.own = draw.choice(LINKS) + draw.choice([[], ["--checkpoint=full"], ["--checkpoint=sqrt"]])
        self.has_budget = "--checkpoint" not in str(self.own) and draw.random() < 0.5
        rows = self.ranks * self.count * self.rows
        self.samples, self.train = 3 * rows, []
        if draw.random() < 0.4:
            self.samples, self.train = self.samples - draw.randint(1, rows), ["--last-batch=pad"]
        self.shard = draw.choice(["optimizer", "gradients"] if self.count == 1 else ["optimizer"])
        if any(flag in self.both for flag in BY_NORM):
            self.shard = None
        self.ranks_begin, self.delays = draw.random() < 0.5, draw.choice([[], ["--delay-commands=7"]])
        self.every, self.lost, self.later = draw.randint(1, 4), draw.randrange(self.ranks), draw.uniform(0, 0.2)  # of who is killed


class CombinedRanks(RankTest):
    def compiled(self, draw, name, *flags):
        plan = self.path(name + ".plan")
        os.rename(self.compile_model(draw.model, *draw.keys, flags=[*draw.both, *flags]), plan)
        return plan

    def trained(self, draw, plan, *flags, steps=5):
        return self.variables(plan, *draw.train, *flags, steps=steps, samples=draw.samples)

    def ranks_of(self, draw):
        """Their plan, in 0.9 of the memory that it would take, where that is possible."""
        flags = ["--data-parallel", *draw.own]
        if not draw.has_budget:
            return self.compiled(draw, "ranks", *flags)
        report, model = self.path("report.json"), self.path("model.mlir")
        self.compiled(draw, "ranks", *flags, "--report=" + report)
        with open(report, encoding="utf-8") as file:
            flags.append(f"--memory-budget={json.load(file)['peak_bytes'] * 9 // 10}")
        self.gpuc("gpuc-model", draw.model, *draw.keys, "-o", model)
        done = self.run_tool("gpuc-compile", model, "-o", self.path("ranks.plan"), *draw.both, *flags)
        self.assertTrue(done.returncode == 0 or "--memory-budget" in done.stderr, done.stderr)
        return self.path("ranks.plan")

    def check(self, number):
        draw = Draw(number)
        ranks, alone = self.ranks_of(draw), self.compiled(draw, "alone", f"--emulate-ranks={draw.ranks}")
        started = f"--ranks={draw.ranks}"
        expected = self.trained(draw, alone)
        self.check_same(self.trained(draw, ranks, started, *draw.delays), expected)

        folder, runs = self.path(f"checkpoints-{number}"), [(ranks, [started]), (alone, [])]
        first, second = runs if draw.ranks_begin else reversed(runs)
        self.trained(draw, first[0], *first[1], "--checkpoint-dir=" + folder, "--checkpoint-every=1", steps=2)
        self.check_same(self.trained(draw, second[0], *second[1], "--checkpoint-dir=" + folder, "--resume"), expected)

        if draw.shard:
            shared = self.compiled(draw, "shared", "--data-parallel", f"--shard={draw.shard}", f"--world-size={draw.ranks}", *draw.own)
            self.check_same(self.trained(draw, shared, started, *draw.delays), expected)

    def kill(self, draw, plan, folder):
        """One of its ranks, somewhere behind the first checkpoint; gives the step of the last one."""
        process = self.train(plan, folder, f"--ranks={draw.ranks}", "--steps=1000000", *draw.train, *draw.delays, checkpoint_every=draw.every)
        ranks = self.children(process, draw.ranks)
        while not os.path.exists(os.path.join(folder, "latest")):
            self.assertIsNone(process.poll())
            time.sleep(0.001)
        time.sleep(draw.later)
        os.kill(ranks[draw.lost], signal.SIGKILL)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        with open(os.path.join(folder, "latest"), encoding="utf-8") as file:
            return int(re.search(r"\d+", file.read())[0])

    def check_killed(self, number):
        draw = Draw(number)
        plans = {"ranks": self.ranks_of(draw), "alone": self.compiled(draw, "alone", f"--emulate-ranks={draw.ranks}")}
        if draw.shard:
            plans["shared"] = self.compiled(draw, "shared", "--data-parallel", f"--shard={draw.shard}", f"--world-size={draw.ranks}", *draw.own)
        folder, killed = self.path(f"killed-{number}"), "shared" if draw.shard and draw.ranks_begin else "ranks"
        steps = self.kill(draw, plans[killed], folder) + 3
        flags = [*draw.train, "--checkpoint-dir=" + folder, "--resume", f"--ranks={draw.ranks}"]
        found = self.variables(plans[killed], *flags, steps=steps, samples=FEED)
        self.check_same(found, self.variables(plans["alone"], *draw.train, steps=steps, samples=FEED))

    def test_bits_of_what_was_killed(self):
        for number in range(KILLS):
            with self.subTest(number=number, **vars(Draw(number))):
                self.check_killed(number)

    def test_bits(self):
        for number in range(DRAWS):
            with self.subTest(number=number, **vars(Draw(number))):
                self.check(number)


if __name__ == "__main__":
    unittest.main()
