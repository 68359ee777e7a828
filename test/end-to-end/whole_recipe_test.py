"""Groups of variables and running means of the weights together with what else a recipe does: updates that are left out, by the
loss scale and as outliers; microbatches; clipping; a schedule; weights whose products are computed in 16 bits."""

import math
import unittest

from gpuc_tools import ToolTest
from loss_scale_test import MODEL, OF_STEPS, GradScaler, single
from outliers_test import OutlierDetector
from tensor_files import hashed, read_safetensors, uniform, write_npy, write_safetensors

ROWS, MICROBATCHES, FEATURES, STEPS = 3, 4, 5, 160
RATE, WARM_UP, DECAY, BETAS, EPS = 0.02, 100, 0.98, (0.8, 0.95), 1e-6
CLIP_VALUE, CLIP_NORM, WINDOW, LOSS_BOUND, NORM_BOUND = 3.0, 2.0, 32, 4.0, 4.0
# How many times as large the targets of these updates are as the others'.
PLANTED = {0: math.inf, 20: 9.0, 40: 30.0, 70: math.nan, 71: math.nan, 100: 25.0, 101: 40.0, 130: -math.inf, 158: 60.0}
NUMBERS = {  # of the groups: the weight is the optimizer's own, a bias has its group's decay though it is no matrix
    "linear.weight": {"lr": RATE, "weight_decay": 0.1},
    "linear.bias": {"lr": 0.005, "weight_decay": 0.3},
}
FLAGS = [
    f"--optimizer=adamw:lr={RATE},beta1={BETAS[0]},beta2={BETAS[1]},eps={EPS},weight_decay=0.1",
    "--group=match=*.bias,lr=0.005,weight_decay=0.3", f"--ema=ema:decay={DECAY}", f"--clip-value={CLIP_VALUE}",
    f"--clip-norm={CLIP_NORM}", f"--schedule=linear:start_factor=0.1,total_iters={WARM_UP}",
    "--loss-scale=dynamic:growth_interval=16",
    f"--skip=outliers:loss={LOSS_BOUND},grad_norm={NORM_BOUND},window={WINDOW}",
]


class Reference:
    """All of it for a linear regression, in plain Python: each batch whole, where gpuc takes microbatches."""

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.weights = {"linear.weight": uniform([1, FEATURES], 2, 0.25), "linear.bias": uniform([1], 3, 0.25)}
        self.means = {name: list(values) for name, values in self.weights.items()}
        self.moments = {name: [([0.0] * len(values)) for _ in BETAS] for name, values in self.weights.items()}
        self.scaler = GradScaler(growth_interval=16)
        self.losses, self.norms = OutlierDetector(WINDOW), OutlierDetector(WINDOW)
        self.updates = 0

    def gradients(self, step):
        """The mean loss, and its gradients by variable."""
        rows = range(step * ROWS * MICROBATCHES, (step + 1) * ROWS * MICROBATCHES)
        inputs = [self.x[row * FEATURES:(row + 1) * FEATURES] for row in rows]
        (bias,) = self.weights["linear.bias"]
        errors = [math.fsum([bias] + [w * v for w, v in zip(self.weights["linear.weight"], values)]) - self.y[row]
                  for row, values in zip(rows, inputs)]
        if not all(map(math.isfinite, errors)):
            return math.nan, {}
        count = len(errors)
        weight = [2 * math.fsum(e * values[i] for e, values in zip(errors, inputs)) / count for i in range(FEATURES)]
        return math.fsum(e * e for e in errors) / count, {"linear.weight": weight, "linear.bias": [2 * math.fsum(errors) / count]}

    def step(self, number):
        """The loss, the gradient's norm, the scale, the rate, and whether the update is left out."""
        loss, gradients = self.gradients(number)
        rate, scale = RATE * (0.1 + 0.9 * min(self.updates, WARM_UP) / WARM_UP), self.scaler.scale
        self.scaler.update(not gradients)
        if not gradients:
            return loss, math.nan, scale, rate, True
        gradients = {name: [min(max(g, -CLIP_VALUE), CLIP_VALUE) for g in values] for name, values in gradients.items()}
        norm = math.sqrt(math.fsum(g * g for values in gradients.values() for g in values))
        skipped = self.losses.update(loss) > LOSS_BOUND
        skipped = self.norms.update(norm) > NORM_BOUND or skipped
        if not skipped:
            self.update(gradients, min(1.0, CLIP_NORM / (norm + 1e-6)), rate / RATE)
        return loss, norm, scale, rate, skipped

    def update(self, gradients, factor, schedule):
        self.updates += 1
        corrections = [1 - beta**self.updates for beta in BETAS]
        for name, weights in self.weights.items():
            rate, decay = NUMBERS[name]["lr"] * schedule, NUMBERS[name]["weight_decay"]
            first, second = self.moments[name]
            for i, gradient in enumerate(g * factor for g in gradients[name]):
                first[i] = BETAS[0] * first[i] + (1 - BETAS[0]) * gradient
                second[i] = BETAS[1] * second[i] + (1 - BETAS[1]) * gradient * gradient
                denominator = math.sqrt(second[i] / corrections[1]) + EPS
                weights[i] = weights[i] * (1 - rate * decay) - rate * first[i] / corrections[0] / denominator
                mean = self.means[name][i]
                self.means[name][i] = DECAY * mean + (1 - DECAY) * weights[i] if self.updates > 1 else weights[i]


class AgainstReference(ToolTest):
    def test_all_at_once(self):
        rows = STEPS * ROWS * MICROBATCHES
        x = uniform([rows, FEATURES], 100, 1.0)
        y = [value * PLANTED.get(row // (ROWS * MICROBATCHES), 1.0) for row, value in enumerate(uniform([rows], 101, 1.0))]
        for step, factor in PLANTED.items():
            if not math.isfinite(factor):  # in one microbatch alone, each time another one
                first = step * ROWS * MICROBATCHES
                for row in range(first, first + ROWS * MICROBATCHES):
                    y[row] = factor if row == first + step % (ROWS * MICROBATCHES) else 0.5
        write_npy(self.path("x.npy"), "f64", [rows, FEATURES], x)
        write_npy(self.path("y.npy"), "f64", [rows, 1], y)
        reference = Reference(x, y)
        write_safetensors(self.path("first.safetensors"), "f64", {
            "linear.weight": ([1, FEATURES], reference.weights["linear.weight"]),
            "linear.bias": ([1], reference.weights["linear.bias"])})
        plan = self.compile_model("linear-regression", f"in={FEATURES}", "dtype=f64", f"batch={ROWS}",
                                  flags=[f"--accumulate={MICROBATCHES}", *FLAGS])
        self.gpuc("gpuc-train", plan, "--data=npy:x=x.npy,y=y.npy", "--no-shuffle", "--log-every=0",
                  "--variables=first.safetensors", "--metrics=metrics.jsonl", "--save-variables=last.safetensors")
        expected = [reference.step(number) for number in range(STEPS)]
        self.compare(self.metrics(self.path("metrics.jsonl"), "step"), expected)
        self.compare_variables(read_safetensors(self.path("last.safetensors")), reference)

    def compare(self, events, expected):
        left_out = [number for number, (*_, skipped) in enumerate(expected) if skipped]
        self.assertEqual(left_out, sorted(set(PLANTED) - {20}))  # when the window is not full
        self.assertEqual([number for number, event in enumerate(events) if event["skipped"]], left_out)
        clipped = 0
        for number, (event, (loss, norm, scale, rate, _)) in enumerate(zip(events, expected)):
            self.assertEqual(event["loss_scale"], scale, f"step {number}")
            self.assertLessEqual(abs(event["lr"] - rate), 1e-15, f"step {number}")
            if math.isfinite(loss):
                self.assertLessEqual(abs(event["loss"] - loss), 1e-11 * loss, f"step {number}")
                self.assertLessEqual(abs(event["grad_norm"] - norm), 1e-11 * norm, f"step {number}")
                clipped += norm > CLIP_NORM
        self.assertGreater(clipped, 0)

    def compare_variables(self, last, reference):
        self.assertEqual([last[name] for name in ("step", "updates", "loss_scale")],
                         [[STEPS], [reference.updates], [reference.scaler.scale]])
        for name in reference.weights:
            for ours, theirs in ((last[name], reference.weights[name]), (last[name + "/ema"], reference.means[name]),
                                 (last[name + "/exp_avg"], reference.moments[name][0]),
                                 (last[name + "/exp_avg_sq"], reference.moments[name][1])):
                size = max(map(abs, theirs))
                self.assertEqual(len(ours), len(theirs))
                for our, their in zip(ours, theirs):
                    self.assertLessEqual(abs(our - their), 1e-11 * size, name)
            self.assertNotEqual(last[name], last[name + "/ema"])


DYNAMIC, GROUP, MEAN = "--loss-scale=dynamic", "--group=match=bn.*,lr=0.02", "--ema=ema:decay=0.99"
# What is trained with, and by what bad batches are found.
RECIPES = {
    "adamw": ["--optimizer=adamw:lr=0.01,weight_decay=0.1", DYNAMIC],
    "sgd": ["--optimizer=sgd:lr=0.05,momentum=0.9,nesterov=true", DYNAMIC, "--clip-norm=0.5"],
    "lion": ["--optimizer=lion:lr=0.003,weight_decay=0.1", DYNAMIC],
    "adafactor": ["--optimizer=adafactor:lr=0.05", DYNAMIC],
    "muon": ["--optimizer=muon:lr=0.01", DYNAMIC],
    "adagrad": ["--optimizer=adagrad:lr=0.05,lr_decay=0.1", DYNAMIC],
    "rmsprop": ["--optimizer=rmsprop:lr=0.003,momentum=0.8,centered=true", DYNAMIC],
    "bf16": ["--optimizer=adamw:lr=0.01", "--precision=bf16", DYNAMIC],
    # Gradients of f16 hang on the scale where they are too small for it.
    "fp16": ["--optimizer=adamw:lr=0.01", "--precision=fp16", "--loss-scale=static:scale=256"],
    "microbatches": ["--optimizer=adamw:lr=0.01", "--batch=2", "--accumulate=2", DYNAMIC],
    "microbatches in bf16": ["--optimizer=muon:lr=0.01", "--batch=2", "--accumulate=2", "--precision=bf16", DYNAMIC],
    "outliers": ["--optimizer=adamw:lr=0.01", "--skip=outliers:loss=6,grad_norm=6,window=64"],
    "outliers and a scale": ["--optimizer=lion:lr=0.003", "--skip=outliers:grad_norm=6,window=64", DYNAMIC],
    "schedule": ["--optimizer=adamw:lr=0.01", "--schedule=linear:start_factor=0.1,total_iters=100", DYNAMIC],
}


class NoTrace(ToolTest):
    """Where an update is left out nothing of it is left: the run without the bad batches ends in the same bits."""

    BATCH, IN, OUT, STEPS = 4, 3, 2, 120

    def train(self, flags, bad, keep_bad):
        x, y = [], []
        width, targets = self.BATCH * self.IN, self.BATCH * self.OUT
        numbers, results = uniform([len(bad) * width], 7, 1.0), uniform([len(bad) * targets], 8, 1.0)
        for step, broken in enumerate(bad):
            if broken and not keep_bad:
                continue
            rows = numbers[step * width:(step + 1) * width]
            if broken:
                rows[step % width] = (math.inf, -math.inf, math.nan)[step % 3]
            x += rows
            y += results[step * targets:(step + 1) * targets]
        write_npy(self.path("x.npy"), "f32", [len(x) // self.IN, self.IN], x)
        write_npy(self.path("y.npy"), "f32", [len(y) // self.OUT, self.OUT], y)
        held = 8 * self.BATCH
        write_npy(self.path("held-x.npy"), "f32", [held, self.IN], uniform([held, self.IN], 9, 1.0))
        write_npy(self.path("held-y.npy"), "f32", [held, self.OUT], uniform([held, self.OUT], 10, 1.0))
        self.gpuc("gpuc-compile", self.write("tiny.mlir", MODEL), "-o", "tiny.plan", GROUP, MEAN, *flags)
        self.gpuc("gpuc-train", "tiny.plan", "--data=npy:x=x.npy,y=y.npy", "--eval-data=npy:x=held-x.npy,y=held-y.npy",
                  f"--steps={len(x) // width}", "--no-shuffle", "--log-every=0", "--seed=3", "--metrics=metrics.jsonl",
                  "--save-variables=last.safetensors")
        metrics = self.path("metrics.jsonl")
        return (self.metrics(metrics, "step"), self.metrics(metrics, "eval")[-1]["loss"],
                read_safetensors(self.path("last.safetensors")))

    def check(self, flags, bad):
        steps, evaluated, skipping = self.train(flags, bad, keep_bad=True)
        good, never_evaluated, never = self.train(flags, bad, keep_bad=False)
        self.assertEqual([event["skipped"] for event in steps], bad)
        self.assertFalse(any(event["skipped"] for event in good))
        self.assertEqual(set(skipping), set(never))
        self.assertLess({"fc.weight", "fc.weight/ema", "bn.weight/ema", "bn.running_mean", "updates"}, set(never))
        for name in set(never) - OF_STEPS:
            self.assertEqual(skipping[name], never[name], name)
        self.assertEqual(evaluated, never_evaluated)
        for name in ("fc.weight", "bn.weight"):
            self.assertNotEqual(never[name], never[name + "/ema"])
            self.assertTrue(all(map(math.isfinite, never[name] + never[name + "/ema"])))

    def test_bad_batches(self):
        """The first step is one of them: means begin with the first update that is made, and decay so slowly that it shows."""
        bad = [h % 7 == 0 or step == 0 for step, h in enumerate(hashed(self.STEPS, 24))]
        self.assertGreater(sum(bad), 10)
        for name, flags in RECIPES.items():
            with self.subTest(name):
                self.check(flags, bad)


class Microbatches(ToolTest):
    """Four microbatches are the large batch, of each variable: means, moments and counters too."""

    KEYS = {
        "mlp": ["input=6", "hidden=5", "classes=3", "pixels=false", "dropout=0.3"],
        "gpt2": ["layers=2", "heads=2", "width=8", "length=6", "vocabulary=11", "dropout=0.2"],
    }
    # Of a gradient that is zero but for rounding Adam would make steps as large as any, were it not for eps.
    OPTIMIZERS = ["adamw:lr=0.01,eps=1e-3,weight_decay=0.1", "sgd:lr=0.1,momentum=0.9"]
    FLAGS = ["--ema=ema:decay=0.75", "--clip-norm=0.5", "--loss-scale=dynamic:growth_interval=2",
             "--skip=outliers:grad_norm=2.1,window=6", "--seed=7"]
    STEPS, ROWS, OUTLIER = 12, 2, 8

    def data(self, model):
        rows = self.STEPS * self.ROWS * MICROBATCHES
        if model == "mlp":
            x = uniform([rows, 6], 11, 1.0)
            planted = range(self.OUTLIER * len(x) // self.STEPS, (self.OUTLIER + 1) * len(x) // self.STEPS)
            write_npy(self.path("x.npy"), "f64", [rows, 6],
                      (value * 50 if place in planted else value for place, value in enumerate(x)))
            write_npy(self.path("labels.npy"), "i32", [rows], [h % 3 for h in hashed(rows, 12)])
        else:
            write_npy(self.path("x.npy"), "i32", [rows, 6], [h % 11 for h in hashed(rows * 6, 11)])
            write_npy(self.path("labels.npy"), "i32", [rows, 6], [h % 11 for h in hashed(rows * 6, 12)])
        return "--data=npy:x=x.npy,labels=labels.npy"

    def train(self, model, data, optimizer, *shape):
        group = "*.bias" if model == "gpt2" else "fc2.*"
        plan = self.compile_model(model, *self.KEYS[model], "dtype=f64", flags=[
            "--optimizer=" + optimizer, f"--group=match={group},lr=0.003,weight_decay=0.2", *self.FLAGS, *shape])
        self.gpuc("gpuc-train", plan, data, f"--steps={self.STEPS}", "--no-shuffle", "--log-every=0",
                  "--metrics=metrics.jsonl", "--save-variables=last.safetensors")
        return self.metrics(self.path("metrics.jsonl"), "step"), read_safetensors(self.path("last.safetensors"))

    def check(self, model, optimizer):
        data = self.data(model)
        steps, parts = self.train(model, data, optimizer, f"--batch={self.ROWS}", f"--accumulate={MICROBATCHES}")
        whole_steps, whole = self.train(model, data, optimizer, f"--batch={self.ROWS * MICROBATCHES}")
        for ours, theirs in zip(steps, whole_steps):
            self.assertEqual((ours["skipped"], ours["loss_scale"]), (theirs["skipped"], theirs["loss_scale"]))
        self.assert_near(parts, whole, 1e-12)
        if model == "mlp":
            self.assertEqual([number for number, event in enumerate(steps) if event["skipped"]], [self.OUTLIER])

    def test_equal_the_batch(self):
        for model in self.KEYS:
            for optimizer in self.OPTIMIZERS:
                with self.subTest(model, optimizer=optimizer):
                    self.check(model, optimizer)


# Two sums with a gradient of 1 for each weight: y = x · (a + b).
SLOPES = """
module @slopes {
  gpuc.variable @a : tensor<1x1xf32> init ones
  gpuc.variable @b : tensor<1x1xf32> init ones
  func.func @loss(%x: tensor<?x1xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %a = gpuc.read @a : tensor<1x1xf32>
    %b = gpuc.read @b : tensor<1x1xf32>
    %ya = gpuc.matmul %x, %a : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %yb = gpuc.matmul %x, %b : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %y = gpuc.add %ya, %yb : tensor<?x1xf32>
    %sum = gpuc.sum %y dims [0, 1] : (tensor<?x1xf32>) -> tensor<f32>
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 1, optimizer = sgd(lr = 2.44140625e-4) }
}
"""


class MasterWeights(ToolTest):
    def test_means_of_master_weights(self):
        """Updates of 2⁻¹² and of 2⁻¹¹, which a bf16 near 1 would lose, and means of the weights, in f32 as these. The
        fifth step, of x = ∞, is left out; predictions are made from means that are rounded to bf16."""
        updates, decay = 80, 15 / 16
        x = [1.0] * 4 + [math.inf] + [1.0] * (updates - 4)
        write_npy(self.path("x.npy"), "f32", [len(x), 1], x)
        write_npy(self.path("one.npy"), "f32", [1, 1], [1.0])
        self.gpuc("gpuc-compile", self.write("slopes.mlir", SLOPES), "-o", "slopes.plan", "--precision=bf16",
                  "--loss-scale=static:scale=4", "--group=match=b,lr=4.8828125e-4", f"--ema=ema:decay={decay}")
        self.gpuc("gpuc-train", "slopes.plan", "--data=npy:x=x.npy", "--eval-data=npy:x=one.npy", "--no-shuffle",
                  "--log-every=0", "--metrics=metrics.jsonl", "--save-variables=last.safetensors")
        last = read_safetensors(self.path("last.safetensors"))
        predicted = 0.0
        for name, rate in (("a", 2**-12), ("b", 2**-11)):
            mean = 1 - rate
            for update in range(2, updates + 1):
                mean = single(single(decay * mean) + single((1 - decay) * (1 - update * rate)))
            self.assertEqual(last[name], [1 - updates * rate])
            self.assertAlmostEqual(last[name + "/ema"][0], mean, delta=2**-22)
            # In bf16, whose steps are 2⁻⁸ here: not what the weight itself is rounded to.
            self.assertNotEqual(round(mean * 256), round(last[name][0] * 256))
            predicted += round(mean * 256) / 256
        evaluated = self.metrics(self.path("metrics.jsonl"), "eval")[-1]["loss"]
        self.assertEqual(evaluated, round(predicted * 128) / 128)


if __name__ == "__main__":
    unittest.main()
