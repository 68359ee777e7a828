"""One of four ranks is killed, or stopped, at a random step: the others name it and end in time, and two ranks of the same global batch go
on from the last checkpoint as if nothing had happened. GPUC_ROUNDS is how often one is killed; a fourth as often one is stopped."""

import os
import random
import re
import shutil
import signal
import time
import unittest

from rank_tools import RankTest

ROUNDS = int(os.environ.get("GPUC_ROUNDS", "4"))
BATCH = 16
MODELS = {
    "mlp": ["hidden=24,24", "dropout=0.2"],
    "convnet": ["size=16"],
    "gpt2": ["layers=2", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1"],
    "lstm-generator": ["embedding=8", "hidden=16", "length=8", "dropout=0.2"],
}
# At which what the optimizer keeps makes a difference.
RATE = "--optimizer=adamw:lr=0.01"
# Not a divisor of the 12 steps of an epoch: checkpoints stand anywhere in it.
OFTEN = 7
MORE = 30  # steps that are trained behind the checkpoint
# A stopped rank counts as lost after five seconds, and what has not ended five seconds later is killed; and there is much else to do here.
LIMIT_S = 20


class LostRanks(RankTest):
    def setUp(self):
        super().setUp()
        self.plans = {}
        self.curves = {}

    def plan(self, model, ranks):
        if (model, ranks) not in self.plans:
            keys = [*MODELS[model], f"batch={BATCH // ranks}"]
            self.plans[model, ranks] = self.compile_model(model, *keys, flags=["--data-parallel", RATE])
        return self.plans[model, ranks]

    def train_losses(self, metrics):
        return {step["step"]: step["loss"] for step in self.metrics(metrics, "step")}

    def uninterrupted(self, model, steps):
        """step → the loss of four ranks to whom nothing happens."""
        if len(self.curves.get(model, ())) < steps:
            metrics = self.path("uninterrupted.jsonl")
            self.finish(self.train(self.plan(model, 4), self.path("uninterrupted"), "--ranks=4", f"--steps={steps}",
                                   "--metrics=" + metrics, log_every=1))
            self.curves[model] = self.train_losses(metrics)
            shutil.rmtree(self.path("uninterrupted"))
            os.remove(metrics)
        return self.curves[model]

    def finish(self, process):
        _, errors = process.communicate(timeout=self.timeout_s)
        self.assertEqual((process.returncode, errors), (0, ""))

    def lose(self, model, lost, how, step, more):
        """Rank `lost` gets a signal some seconds behind a step. The losses up to then, and the step of the last checkpoint."""
        metrics, folder = self.path("lost.jsonl"), self.path("checkpoints")
        process = self.train(self.plan(model, 4), folder, "--ranks=4", "--steps=1000000", "--metrics=" + metrics, log_every=1,
                             checkpoint_every=OFTEN)
        ranks = self.children(process, 4)
        self.wait_for_lines(metrics, step)
        time.sleep(more)
        os.kill(ranks[lost], how)
        start = time.monotonic()
        _, errors = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - start, LIMIT_S)
        self.assertEqual(process.returncode, 1)
        for rank in ranks:
            self.assertRaises(ProcessLookupError, os.kill, rank, 0)
        why = re.escape("is stopped" if how == signal.SIGSTOP else "was ended by signal 9 (Killed)")
        self.assertRegex(errors, rf"^error: rank {lost} {why}\n")
        named = re.findall(rf"^error: step \d+: rank (\d) waits in collective \d+, but rank {lost} {why}$", errors, re.MULTILINE)
        self.assertEqual(named, [str(rank) for rank in range(4) if rank != lost], errors)
        with open(os.path.join(folder, "latest"), encoding="utf-8") as file:
            return self.train_losses(metrics), int(re.search(r"\d+", file.read())[0])

    def wait_for_lines(self, path, count):
        for _ in range(30000):
            if os.path.exists(path):
                with open(path, "rb") as file:
                    if file.read().count(b"\n") >= count:
                        return
            time.sleep(0.001)
        self.fail(f"{path} has never had {count} lines")

    def check(self, model, lost, how, step, more):
        before, checkpoint = self.lose(model, lost, how, step, more)
        metrics, folder, last = self.path("resumed.jsonl"), self.path("checkpoints"), checkpoint + MORE
        self.finish(self.train(self.plan(model, 2), folder, "--ranks=2", "--resume", f"--steps={last}", "--metrics=" + metrics,
                               log_every=1))
        resumed, expected = self.train_losses(metrics), self.uninterrupted(model, max(last, *before))
        for file in ("lost.jsonl", "resumed.jsonl"):
            os.remove(self.path(file))
        shutil.rmtree(folder)
        self.assertEqual(list(resumed), list(range(checkpoint + 1, last + 1)))
        self.assertEqual(before, {step: expected[step] for step in before})
        furthest = max(abs(loss - expected[step]) for step, loss in resumed.items())
        print(f"{model}: rank {lost} gets {how.name} behind step {max(before)}, two ranks go on behind {checkpoint}: losses of {MORE} steps "
              f"differ by {furthest:.1e} at most", flush=True)
        self.assertLess(furthest, 1e-5)

    def test_two_ranks_go_on_where_one_of_four_was_lost(self):
        for number in range(ROUNDS + ROUNDS // 4):
            how = signal.SIGKILL if number < ROUNDS else signal.SIGSTOP
            model, drawn = list(MODELS)[number % len(MODELS)], random.Random(number)
            with self.subTest(model=model, round=number):
                self.check(model, drawn.randrange(4), how, drawn.randrange(20, 200), drawn.uniform(0, 0.02))


if __name__ == "__main__":
    unittest.main()
