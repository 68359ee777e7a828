"""Updates that `--skip=outliers` leaves out are those that llm.c's OutlierDetector would, and they change nothing."""

import math
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors, uniform, write_npy, write_safetensors

FEATURES, BATCH, STEPS, WINDOW = 13, 4, 300, 32
RATE, DECAY, MOMENTUM = 0.01, 0.999, 0.9
LOSS_BOUND, NORM_BOUND = 4.5, 3.1
# Targets of the rows of these updates are so many times as large as all others'.
PLANTED = {10: 30.0, 60: 40.0, 61: 40.0, 120: 1.6, 170: 2.1, 200: 60.0, 230: math.nan, 299: 50.0}


class OutlierDetector:
    """llm.c's llmc/outlier_detector.h: running sums over the last values. NaN until there are enough."""

    def __init__(self, size):
        self.values, self.size, self.index = [], size, 0
        self.sum = self.sum_of_squares = 0.0

    def update(self, value):
        full = len(self.values) == self.size
        if full:
            old, self.values[self.index] = self.values[self.index], value
            self.sum -= old
            self.sum_of_squares -= old * old
            self.index = (self.index + 1) % self.size
        else:
            self.values.append(value)
        self.sum += value
        self.sum_of_squares += value * value
        if not full:
            return math.nan
        mean = self.sum / self.size
        deviation = math.sqrt(self.sum_of_squares / self.size - mean * mean)
        return (value - mean) / deviation if deviation else 0.0


class Reference:
    """Linear regression by SGD with momentum, in plain Python."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.weights, self.buffer = uniform([1, FEATURES], 2, 0.25) + uniform([1], 3, 0.25), None
        self.rate = RATE
        self.losses, self.norms = OutlierDetector(WINDOW), OutlierDetector(WINDOW)

    def step(self, update):
        """The loss, the rate, and whether the update is left out."""
        rows = range(update * BATCH, update * BATCH + BATCH)
        inputs = [self.x[row * FEATURES:(row + 1) * FEATURES] + [1.0] for row in rows]
        errors = [sum(w * v for w, v in zip(self.weights, inputs[i])) - self.y[row] for i, row in enumerate(rows)]
        loss = sum(e * e for e in errors) / BATCH
        gradient = [sum(2 * e * row[j] for e, row in zip(errors, inputs)) / BATCH for j in range(FEATURES + 1)]
        norm = math.sqrt(sum(g * g for g in gradient))
        if not math.isfinite(loss):
            return loss, self.rate, True
        # A comparison with NaN is false, as in llm.c, which asks for isfinite first.
        skipped = self.losses.update(loss) > LOSS_BOUND
        if self.norms.update(norm) > NORM_BOUND or skipped:
            return loss, self.rate, True
        self.buffer = [MOMENTUM * b + g for b, g in zip(self.buffer, gradient)] if self.buffer else gradient
        self.weights = [w - self.rate * b for w, b in zip(self.weights, self.buffer)]
        rate, self.rate = self.rate, self.rate * DECAY
        return loss, rate, False


class Outliers(ToolTest):
    def setUp(self):
        super().setUp()
        rows = STEPS * BATCH
        self.x = uniform([rows, FEATURES], 100, 1.0)
        self.y = [value * PLANTED.get(row // BATCH, 1.0) for row, value in enumerate(uniform([rows, 1], 101, 1.0))]
        write_npy(self.path("x.npy"), "f64", [rows, FEATURES], self.x)
        write_npy(self.path("y.npy"), "f64", [rows, 1], self.y)
        write_safetensors(self.path("first.safetensors"), "f64", {
            "linear.weight": ([1, FEATURES], uniform([1, FEATURES], 2, 0.25)),
            "linear.bias": ([1], uniform([1], 3, 0.25))})
        self.gpuc("gpuc-model", "linear-regression", "dtype=f64", f"batch={BATCH}", "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan", f"--optimizer=sgd:lr={RATE},momentum={MOMENTUM}",
                  f"--schedule=exponential:gamma={DECAY}",
                  f"--skip=outliers:loss={LOSS_BOUND},grad_norm={NORM_BOUND},window={WINDOW}")

    def train(self, *flags):
        self.gpuc("gpuc-train", "model.plan", "--data=npy:x=x.npy,y=y.npy", "--no-shuffle", "--log-every=0",
                  "--variables=first.safetensors", "--metrics=metrics.jsonl", "--save-variables=trained.safetensors",
                  *flags)
        return self.metrics(self.path("metrics.jsonl"), "step")

    def compare(self, events):
        reference = Reference(self.x, self.y)
        steps = [reference.step(update) for update in range(STEPS)]
        skipped = [update for update in range(STEPS) if steps[update][2]]
        self.assertEqual([update for update in range(STEPS) if events[update]["skipped"]], skipped)
        # Not 10, when the window is not full, nor 120, which stands out too little; 61 for its norm alone, 170 for its
        # loss alone.
        self.assertEqual(skipped, [60, 61, 170, 200, 230, 299])
        for update, (loss, rate, _) in enumerate(steps):
            # The schedule waits for those that are left out.
            self.assertLessEqual(abs(events[update]["lr"] - rate), 1e-12 * rate, f"update {update}")
            if math.isfinite(loss):
                self.assertLessEqual(abs(events[update]["loss"] - loss), 1e-9 * loss, f"update {update}")
        trained = read_safetensors(self.path("trained.safetensors"))
        for ours, theirs in zip(trained["linear.weight"] + trained["linear.bias"], reference.weights):
            self.assertLessEqual(abs(ours - theirs), 1e-9 * max(1, abs(theirs)))
        # Those without a number are not held against others.
        self.assertEqual([trained[name] for name in ("step", "updates", "step/recorded")],
                         [[STEPS], [STEPS - len(skipped)], [STEPS - 1]])

    def test_as_llm_c(self):
        self.compare(self.train())

    def test_resumed(self):
        # Stopped within reach of the outliers at 60: the windows are in the checkpoint.
        self.train("--checkpoint-dir=checkpoints", "--steps=55")
        self.compare(self.train("--checkpoint-dir=checkpoints", "--resume"))


if __name__ == "__main__":
    unittest.main()
