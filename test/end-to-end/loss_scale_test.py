"""The loss scale's path over 10,000 steps with injected infinities is that of PyTorch's GradScaler, written down here once
more, step for step; and a step that is skipped leaves no trace: the run without the bad batches ends in the same bits."""

import math
import struct
import unittest

from gpuc_tools import ToolTest, sha256
from tensor_files import hashed, read_safetensors, uniform, write_npy

BATCH, IN, OUT = 4, 3, 2

# A linear layer and a batch norm, whose running statistics must not see what is skipped either.
MODEL = """
module @tiny {
  gpuc.variable @fc.weight : tensor<2x3xf32> init uniform(bound = 0.5)
  gpuc.variable @bn.weight : tensor<2xf32> init ones
  gpuc.variable @bn.running_mean kind statistic : tensor<2xf32> init zeros
  gpuc.variable @bn.running_var kind statistic : tensor<2xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}, %y: tensor<?x2xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @fc.weight : tensor<2x3xf32>
    %g = gpuc.read @bn.weight : tensor<2xf32>
    %zero = gpuc.constant 0.0 : tensor<2xf32>
    %m = gpuc.read @bn.running_mean : tensor<2xf32>
    %v = gpuc.read @bn.running_var : tensor<2xf32>
    %0 = gpuc.matmul %x, transpose %w : (tensor<?x3xf32>, tensor<2x3xf32>) -> tensor<?x2xf32>
    %1, %nm, %nv, %mu, %r = gpuc.batch_norm %0 running %m, %v weight %g bias %zero
        : (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
        -> (tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
    gpuc.assign @bn.running_mean, %nm : tensor<2xf32>
    gpuc.assign @bn.running_var, %nv : tensor<2xf32>
    %sum, %count = gpuc.mse %1, %y : (tensor<?x2xf32>, tensor<?x2xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = adam(lr = 1.0e-3) }
}
"""

# The loss is x · a + z · b: one gradient is x, the other z.
TWO = """
module @two {
  gpuc.variable @a : tensor<1x1xf32> init ones
  gpuc.variable @b : tensor<1x1xf32> init ones
  func.func @loss(%x: tensor<?x1xf32> {gpuc.name = "x"}, %z: tensor<?x1xf32> {gpuc.name = "z"}) -> (tensor<f32>, tensor<f32>) {
    %a = gpuc.read @a : tensor<1x1xf32>
    %b = gpuc.read @b : tensor<1x1xf32>
    %0 = gpuc.matmul %x, %a : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %1 = gpuc.matmul %z, %b : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %2 = gpuc.add %0, %1 : tensor<?x1xf32>
    %sum = gpuc.sum %2 dims [0, 1] : (tensor<?x1xf32>) -> tensor<f32>
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 1, optimizer = sgd(lr = 0.125), loss_scale = static(scale = 4) }
}
"""

# What may differ between a run with bad batches and one without: they count steps, and move the scale.
OF_STEPS = {"step", "loss_scale", "growth_tracker"}


def single(number):
    """Rounded to f32; too large becomes infinite."""
    try:
        return struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.inf


# Of four rows one has a gradient, 100 times what flows back from its loss.
LARGE = """
module @large {
  gpuc.variable @a : tensor<1x1xf32> init ones
  func.func @loss(%x: tensor<?x1xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %a = gpuc.read @a : tensor<1x1xf32>
    %0 = gpuc.matmul %x, %a : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %y = gpuc.constant 0.0 : tensor<?x1xf32>
    %sum, %count = gpuc.l1 %0, %y : (tensor<?x1xf32>, tensor<?x1xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, precision = fp16, optimizer = sgd(lr = 0.125), loss_scale = static(scale = 1024) }
}
"""


class GradScaler:
    """torch.cuda.amp.GradScaler.update(): _amp_update_scale_ of aten/src/ATen/native/cuda/AmpKernels.cu; and a floor."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, min_scale=1.0):
        self.scale, self.tracker = single(init_scale), 0
        self.growth_factor, self.backoff_factor = growth_factor, backoff_factor
        self.growth_interval, self.min_scale = growth_interval, min_scale

    def update(self, found_inf):
        if found_inf:
            self.scale, self.tracker = max(single(self.scale * self.backoff_factor), self.min_scale), 0
            return
        self.tracker += 1
        if self.tracker == self.growth_interval:
            grown = single(self.scale * self.growth_factor)
            self.scale = grown if math.isfinite(grown) else self.scale
            self.tracker = 0


class LossScaleTest(ToolTest):
    def train(self, name, bad, keep_bad=True, scale=1.0, flags=("--loss-scale=dynamic",), model=MODEL):
        """One step for each element of `bad`; those that hold have an infinity or a NaN in their batch, or are left out."""
        x, y = [], []
        width = BATCH * IN
        numbers, targets = uniform([len(bad) * width], 7, scale), uniform([len(bad) * BATCH * OUT], 8, scale)
        for step, broken in enumerate(bad):
            if broken and not keep_bad:
                continue
            rows = numbers[step * width:(step + 1) * width]
            if broken:
                rows[step % width] = (math.inf, -math.inf, math.nan)[step % 3]
            x += rows
            y += targets[step * BATCH * OUT:(step + 1) * BATCH * OUT]
        write_npy(self.path("x.npy"), "f32", [len(x) // IN, IN], x)
        write_npy(self.path("y.npy"), "f32", [len(y) // OUT, OUT], y)
        plan = self.path("tiny.plan")
        self.gpuc("gpuc-compile", self.write("tiny.mlir", model), "-o", plan, *flags)
        self.gpuc("gpuc-train", plan, f"--data=npy:x={self.path('x.npy')},y={self.path('y.npy')}", "--no-shuffle",
                  f"--steps={len(x) // width}", "--log-every=0", "--seed=3", f"--metrics={self.path(name + '.jsonl')}",
                  f"--save-variables={self.path(name + '.safetensors')}")
        return self.metrics(self.path(name + ".jsonl"), "step"), read_safetensors(self.path(name + ".safetensors"))

    def compare(self, bad, steps, variables, scaler):
        self.assertEqual(len(steps), len(bad))
        for event, broken in zip(steps, bad):
            self.assertEqual((single(event["loss_scale"]), event["skipped"]), (scaler.scale, broken), event)
            scaler.update(broken)
        self.assertEqual(variables["loss_scale"], [scaler.scale])
        self.assertEqual(variables["growth_tracker"], [scaler.tracker])
        self.assertEqual(variables["updates"], [len(bad) - sum(bad)])
        self.assertEqual(variables["step"], [len(bad)])

    def test_default_over_10000_steps(self):
        """Rare enough that the scale grows: one step in 2,500 or so."""
        bad = [h % 2500 == 0 for h in hashed(10000, 27)]
        self.assertGreater(sum(bad), 1)
        steps, variables = self.train("default", bad)
        self.compare(bad, steps, variables, GradScaler())
        self.assertGreater(max(event["loss_scale"] for event in steps), 65536)

    def test_lively_over_10000_steps(self):
        """Many of both: one step in 16 is bad, and 8 good ones raise the scale, by an odd factor that must round."""
        bad = [h % 16 == 0 for h in hashed(10000, 22)]
        flags = ["--loss-scale=dynamic:init_scale=1000,growth_factor=1.3,backoff_factor=0.7,growth_interval=8,min_scale=3"]
        steps, variables = self.train("lively", bad, flags=flags)
        self.compare(bad, steps, variables, GradScaler(1000, 1.3, 0.7, 8, 3))

    def test_the_scale_is_of_the_batchs_mean(self):
        """A microbatch's own mean would flow back as 1024, and 1024 * 100 is more than f16 holds; a quarter of it is not."""
        write_npy(self.path("x.npy"), "f32", [4, 1], [100.0, 0.0, 0.0, 0.0])
        for rows, microbatches in ((4, 1), (2, 2), (1, 4)):
            plan = self.path("large.plan")
            self.gpuc("gpuc-compile", self.write("large.mlir", LARGE), "-o", plan, f"--batch={rows}", f"--accumulate={microbatches}")
            self.gpuc("gpuc-train", plan, f"--data=npy:x={self.path('x.npy')}", "--no-shuffle", "--steps=1", "--log-every=0",
                      f"--metrics={self.path('large.jsonl')}", f"--save-variables={self.path('large.safetensors')}")
            event = self.metrics(self.path("large.jsonl"), "step")[0]
            self.assertEqual((event["skipped"], event["grad_norm"]), (False, 25.0), microbatches)
            self.assertEqual(read_safetensors(self.path("large.safetensors"))["a"], [1 - 0.125 * 25], microbatches)

    def test_floor(self):
        bad = [h % 3 != 0 for h in hashed(200, 23)]
        steps, variables = self.train("floor", bad, flags=["--loss-scale=dynamic:init_scale=16"])
        self.compare(bad, steps, variables, GradScaler(16))
        self.assertEqual(min(event["loss_scale"] for event in steps), 1)

    def test_no_growth_to_infinity(self):
        """Of zeros all gradients are 0, however large the scale."""
        bad = [False] * 20
        steps, variables = self.train("large", bad, scale=0.0,
                                      flags=["--loss-scale=dynamic:init_scale=1e37,growth_interval=2"])
        self.compare(bad, steps, variables, GradScaler(1e37, growth_interval=2))
        self.assertGreater(steps[-1]["loss_scale"], 1e38)

    def test_a_skipped_step_leaves_no_trace(self):
        """Weights, running statistics, moments, the place in the schedule: in the same bits without the bad batches.
        (Scales are powers of two, so that they change no bit of a gradient.)"""
        bad = [h % 10 == 0 for h in hashed(500, 24)]
        flags = ["--loss-scale=dynamic", "--schedule=linear:start_factor=0.1,total_iters=400"]
        steps, skipping = self.train("skipping", bad, flags=flags)
        good, never = self.train("never", bad, keep_bad=False, flags=flags)
        self.assertGreater(len({event["lr"] for event in steps}), 300)
        self.assertEqual(len(good), len(bad) - sum(bad))
        self.assertEqual(set(skipping), set(never))
        self.assertLess({"fc.weight", "fc.weight/exp_avg", "bn.running_mean", "bn.running_var", "updates"}, set(never))
        for name in set(never) - OF_STEPS:
            self.assertEqual(skipping[name], never[name], name)
        for ours, theirs in zip([event for event in steps if not event["skipped"]], good):
            self.assertEqual([ours[key] for key in ("loss", "lr", "grad_norm")],
                             [theirs[key] for key in ("loss", "lr", "grad_norm")])

    def test_one_gradient_among_others(self):
        """Whichever it is that is not finite, no variable changes: of four steps the first and the last are made."""
        write_npy(self.path("x.npy"), "f32", [4, 1], [1.0, math.inf, 1.0, 1.0])
        write_npy(self.path("z.npy"), "f32", [4, 1], [2.0, 2.0, math.nan, 2.0])
        self.gpuc("gpuc-compile", self.write("two.mlir", TWO), "-o", "two.plan")
        self.gpuc("gpuc-train", "two.plan", "--data=npy:x=x.npy,z=z.npy", "--no-shuffle", "--log-every=0",
                  "--metrics=metrics.jsonl", "--save-variables=last.safetensors")
        self.assertEqual([event["skipped"] for event in self.metrics(self.path("metrics.jsonl"), "step")],
                         [False, True, True, False])
        last = read_safetensors(self.path("last.safetensors"))
        self.assertEqual((last["a"], last["b"], last["updates"]), ([1 - 2 * 0.125], [1 - 2 * 0.25], [2]))

    def test_static(self):
        """One scale for ever, and bad steps are skipped all the same."""
        bad = [h % 5 == 0 for h in hashed(50, 25)]
        steps, variables = self.train("static", bad, flags=["--loss-scale=static:scale=1024"])
        self.assertEqual([(event["loss_scale"], event["skipped"]) for event in steps], [(1024.0, broken) for broken in bad])
        self.assertEqual(variables["updates"], [len(bad) - sum(bad)])
        self.assertTrue(all(map(math.isfinite, variables["fc.weight"])))

    def test_a_power_of_two_changes_no_bit(self):
        """What is multiplied on the way in is divided out again."""
        bad = [False] * 100
        scaled, unscaled = self.train("scaled", bad)[1], self.train("unscaled", bad, flags=[])[1]
        for name in set(unscaled):
            self.assertEqual(scaled[name], unscaled[name], name)

    def test_microbatches(self):
        """The scale goes with each microbatch; one infinity in one of them skips the whole step."""
        bad = [h % 4 == 0 for h in hashed(64, 26)]
        model = MODEL.replace("batch = 4", "batch = 2, accumulate = 2")
        steps, variables = self.train("micro", bad, model=model)
        self.compare(bad, steps, variables, GradScaler())

    def test_weights_go_from_plan_to_plan(self):
        """One without a scale passes over what it has no use for; one with it begins to count where the other stopped."""
        bad = [False] * 8
        for flags, others in ((["--loss-scale=dynamic"], []), ([], ["--loss-scale=dynamic"])):
            self.train("first", bad, flags=flags)
            self.gpuc("gpuc-compile", self.path("tiny.mlir"), "-o", self.path("other.plan"), *others)
            self.gpuc("gpuc-train", self.path("other.plan"), f"--data=npy:x={self.path('x.npy')},y={self.path('y.npy')}",
                      "--steps=3", "--log-every=0", f"--variables={self.path('first.safetensors')}",
                      f"--save-variables={self.path('second.safetensors')}")
            variables = read_safetensors(self.path("second.safetensors"))
            self.assertEqual(variables["step"], [8 + 3])
            self.assertEqual(variables.get("updates"), [8 + 3] if others else None)

    def test_resumed(self):
        """Scale, growth tracker and count of updates are part of a checkpoint: the bits are those of a run that never
        stopped, though it stops where the scale has just fallen."""
        bad = [h % 5 == 0 for h in hashed(40, 28)]
        stop = max(step for step in range(30) if bad[step]) + 1
        flags = ["--loss-scale=dynamic:growth_interval=4"]
        whole = self.train("whole", bad, flags=flags)[0]
        for steps, resume in ((stop, []), (len(bad), ["--resume"])):
            said = self.gpuc("gpuc-train", self.path("tiny.plan"),
                             f"--data=npy:x={self.path('x.npy')},y={self.path('y.npy')}", "--no-shuffle",
                             f"--steps={steps}", "--log-every=0", "--seed=3", *resume,
                             f"--checkpoint-dir={self.path('checkpoints')}", f"--metrics={self.path('parts.jsonl')}",
                             f"--save-variables={self.path('parts.safetensors')}")
        self.assertIn(f"resuming after step {stop} ", said)
        self.assertEqual(sha256(self.path("parts.safetensors")), sha256(self.path("whole.safetensors")))
        parts = self.metrics(self.path("parts.jsonl"), "step")
        for key in ("loss_scale", "skipped", "lr", "loss"):
            self.assertEqual([event[key] for event in parts], [event[key] for event in whole], key)
        self.assertNotEqual(parts[stop]["loss_scale"], 65536)

    def test_malformed(self):
        model = self.write("tiny.mlir", MODEL)
        for flag, message in (("--loss-scale=dinamic", "error: --loss-scale: unknown loss scale 'dinamic': the nearest is 'dynamic'"),
                              ("--loss-scale=dynamic:grow=2", "loss scale dynamic has no key 'grow': the nearest is"),
                              ("--loss-scale=dynamic:backoff_factor=1", "backoff_factor must be above 0 and below 1, but is 1"),
                              ("--loss-scale=dynamic:growth_factor=1", "growth_factor must be above 1, but is 1"),
                              ("--loss-scale=dynamic:growth_interval=0.5", "growth_interval must be a whole number of steps from 1 to 2147483647, but is 0.5"),
                              ("--loss-scale=dynamic:min_scale=1e6", "min_scale must not be above init_scale, but they are 1e+06 and 65536"),
                              ("--loss-scale=static", "loss scale static needs a value for 'scale'"),
                              ("--loss-scale=static:scale=1e39", "scale must be above 0, and within f32, but is 1e+39"),
                              ("--precision=fp8", "error: --precision: precision fp8: plans hold no products of 8 bits"),
                              ("--precision=bf16:f32=3", "precision: f32 lists layers and ops")):
            result = self.run_tool("gpuc-compile", model, "-o", self.path("no.plan"), flag)
            self.assertEqual(result.returncode, 2, flag + result.stderr)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
