"""A plan compiled with --check-numerics names the op, layer and line that made the first NaN or infinity, wherever it is
planted; it says nothing of models that are in order, and changes none of their bits."""

import contextlib
import os
import unittest

from gpuc_tools import ToolTest, sha256
from tensor_files import read_npy_bytes, uniform, write_npy
from zoo_cases import CASES

BATCH = 4

# Two layers, with room for a plant in the second; %two is there for what needs a constant.
MODEL = """module @planted {
  gpuc.variable @body.weight : tensor<3x3xf32> init uniform(bound = 0.5)
  gpuc.variable @head.weight : tensor<3xf32> init ones
  func.func @loss(%x: tensor<?x3xf32> {gpuc.name = "x"}, %y: tensor<?x3xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @body.weight : tensor<3x3xf32>
    %h = gpuc.matmul %x, transpose %w : (tensor<?x3xf32>, tensor<3x3xf32>) -> tensor<?x3xf32> loc("body")
    %v = gpuc.read @head.weight : tensor<3xf32>
    %vs = gpuc.broadcast %v dims [1] : tensor<3xf32> to tensor<?x3xf32> loc("head")
    %s = gpuc.mul %h, %vs : tensor<?x3xf32> loc("head")
    PLANT
    %sum, %count = gpuc.mse %out, %y : (tensor<?x3xf32>, tensor<?x3xf32>) -> (tensor<f32>, tensor<f32>) loc("loss")
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 1.0e-3) }
}
"""
SOUND = "%out = gpuc.tanh %s : tensor<?x3xf32>"


def line_of(text, part):
    """LINE:COLUMN of the name of the op in `part`."""
    for number, line in enumerate(text.splitlines(), 1):
        if part in line:
            return f"{number}:{line.index('gpuc.', line.index(part)) + 1}"
    raise AssertionError(f"no line has {part}")


class CheckNumericsTest(ToolTest):
    def batch(self, steps=3, x=None):
        shape = [steps * BATCH, 3]
        write_npy(self.path("x.npy"), "f32", shape, x or uniform(shape, 5, 1.0))
        write_npy(self.path("y.npy"), "f32", shape, uniform(shape, 6, 1.0))

    def compile(self, plant, *flags, model=MODEL):
        text = model.replace("PLANT", plant)
        self.write("planted.mlir", text)
        self.gpuc("gpuc-compile", "planted.mlir", "-o", "planted.plan", "--check-numerics", *flags)
        return text

    def train(self, *flags):
        # Of another run's metrics a warning would say that they are replaced.
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.path("metrics.jsonl"))
        return self.run_tool("gpuc-train", "planted.plan", "--data=npy:x=x.npy,y=y.npy", "--no-shuffle", "--log-every=0",
                             "--metrics=metrics.jsonl", *flags)

    def assert_named(self, result, name, count="[0-9]+"):
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertRegex(result.stderr, f"^error: step [0-9]+: {name} made {count} value(s that are| that is) NaN or infinite; "
                                        "before it all were finite\n$")

    def test_forward(self):
        """A hundred sums of -1 and 1: log of 0 in some, of negative numbers in others, in step 2 alone."""
        x = uniform([3 * BATCH, 3], 5, 1.0)
        x[BATCH * 3:BATCH * 3 + 3] = [0.0, 0.0, 0.0]  # the first row of step 2
        self.batch(x=x)
        text = self.compile('%a = gpuc.abs %s : tensor<?x3xf32> loc("head")\n'
                            '    %out = gpuc.log %a : tensor<?x3xf32> loc("head")')
        result = self.train()
        self.assert_named(result, rf"log in layer 'head' \(planted.mlir:{line_of(text, 'gpuc.log')}\)", "3")
        self.assertIn("step 2:", result.stderr)
        self.assertRegex(result.stdout, "by where they were made:\n +[0-9]+  'head'\n")
        # Metrics have the step that broke, as without the check.
        self.assertEqual(len(self.metrics(self.path("metrics.jsonl"), "step")), 2)

    def test_without_a_layer(self):
        """0 · ∞: what is not named has its line."""
        self.batch()
        text = self.compile("%zero = gpuc.sub %s, %s : tensor<?x3xf32>\n"
                            "    %one = gpuc.exp %zero : tensor<?x3xf32>\n"
                            "    %inf = gpuc.div %one, %zero : tensor<?x3xf32>\n"
                            "    %out = gpuc.mul %zero, %inf : tensor<?x3xf32>")
        self.assert_named(self.train(), rf"div \(planted.mlir:{line_of(text, 'gpuc.div')}\)", "12")

    def test_backward_only(self):
        """sqrt(0) is 0, and its derivative infinite."""
        self.batch()
        text = self.compile("%zero = gpuc.sub %s, %s : tensor<?x3xf32>\n"
                            '    %out = gpuc.sqrt %zero : tensor<?x3xf32> loc("root")')
        self.assert_named(self.train(), rf"[a-z]+ in the backward pass of layer 'root' "
                                        rf"\(planted.mlir:{line_of(text, 'gpuc.sqrt')}\)", "12")

    def test_input(self):
        x = uniform([3 * BATCH, 3], 5, 1.0)
        x[2 * BATCH * 3] = float("nan")
        self.batch(x=x)
        self.compile(SOUND)
        result = self.train()
        self.assertEqual((result.returncode, result.stderr), (1, "error: step 3: input 'x' holds 1 value that is NaN or infinite\n"))

    def test_run(self):
        """gpuc-run says it too."""
        self.batch(steps=1)
        text = self.compile('%out = gpuc.log %s : tensor<?x3xf32> loc("head")')
        result = self.run_tool("gpuc-run", "planted.plan", "--entry=train_step", "--input", "x=x.npy", "--input", "y=y.npy")
        self.assert_named(result, rf"log in layer 'head' \(planted.mlir:{line_of(text, 'gpuc.log')}\)")

    def test_variable(self):
        self.batch()
        self.compile("%zero = gpuc.sub %s, %s : tensor<?x3xf32>\n    %out = gpuc.add %zero, %s : tensor<?x3xf32>",
                     model=MODEL.replace("init ones", "init constant(value = inf)"))
        result = self.train()
        self.assertEqual((result.returncode, result.stderr),
                         (1, "error: step 1: variable 'head.weight' holds 3 values that are NaN or infinite\n"))

    SCAN = """%out = gpuc.scan count 5 carry(%s) batch_first : (tensor<?x3xf32>) -> tensor<?x3xf32> {
    ^bb0(%carried: tensor<?x3xf32>):
      %square = gpuc.mul %carried, %carried : tensor<?x3xf32> loc("cell")
      %next = gpuc.OP %square : tensor<?x3xf32> loc("cell")
      gpuc.yield %next : tensor<?x3xf32>
    } loc("loop")"""

    def test_scan(self):
        """exp(exp(…)²) overflows in some iteration; those after it are not to blame."""
        self.batch()
        text = self.compile(self.SCAN.replace("OP", "exp"))
        self.assert_named(self.train(), rf"(exp|mul) in layer 'cell' \(planted.mlir:"
                                        rf"({line_of(text, 'gpuc.exp')}|{line_of(text, '%square =')})\)")
        self.compile(self.SCAN.replace("OP", "tanh"))
        self.assertEqual(self.train().returncode, 0)

    def test_microbatches(self):
        x = uniform([4 * BATCH, 3], 5, 1.0)
        x[3 * BATCH * 3:3 * BATCH * 3 + 3] = [0.0, 0.0, 0.0]  # in the last microbatch of the only step
        self.batch(steps=4, x=x)
        text = self.compile('%a = gpuc.abs %s : tensor<?x3xf32> loc("head")\n'
                            '    %out = gpuc.log %a : tensor<?x3xf32> loc("head")', "--accumulate=4")
        self.assert_named(self.train(), rf"log in layer 'head' \(planted.mlir:{line_of(text, 'gpuc.log')}\)", "3")

    def test_slices(self):
        """The loop's 16 rows are two slices, and the second one has a row of zeros, which have no logarithm."""
        x = uniform([16, 3], 5, 1.0)
        x[12 * 3:13 * 3] = [0.0, 0.0, 0.0]
        self.batch(steps=4, x=x)
        plant = self.SCAN.replace("OP", "tanh").replace("%out", "%last").replace("count 5", "count 16") + """
    %a = gpuc.abs %last : tensor<?x3xf32> loc("head")
    %out = gpuc.log %a : tensor<?x3xf32> loc("head")"""
        text = self.compile(plant, "--batch=16", "--target=host", "--emit=plan")
        with open(self.path("planted.plan"), encoding="utf-8") as file:
            self.assertIn("plan.parallel 2 {", file.read())
        self.compile(plant, "--batch=16", "--target=host")
        self.assert_named(self.train(), rf"log in layer 'head' \(planted.mlir:{line_of(text, 'gpuc.log')}\)")

    def test_overflow_of_a_gradient_in_microbatches(self):
        """A product that is added to the sum of microbatches in place overflows; all before it is finite."""
        self.batch(steps=4, x=[1e25] * (4 * BATCH * 3))
        text = self.compile('%small = gpuc.constant 1.0e-20 : tensor<?x3xf32>\n    %large = gpuc.constant 1.0e34 : tensor<?x3xf32>\n'
                            '    %t = gpuc.mul %s, %small : tensor<?x3xf32>\n'
                            '    %out = gpuc.scale_gradient %t, %large : tensor<?x3xf32>', "--accumulate=4",
                            model=MODEL.replace("bound = 0.5", "bound = 1.0e-9"))
        self.assert_named(self.train(), r"matmul in the backward pass of layer 'body' "
                                        rf"\(planted.mlir:{line_of(text, 'gpuc.matmul')}\)")

    def test_what_is_left_out_harms_nobody(self):
        """log of all numbers, of which a select takes those of positive ones; in the backward pass too."""
        self.batch()
        plant = ("%zero = gpuc.constant 0.0 : tensor<?x3xf32>\n"
                 "    %taken = gpuc.compare WHERE %s, %zero : tensor<?x3xf32>\n"
                 "    %l = gpuc.log %s : tensor<?x3xf32>\n"
                 "    %out = gpuc.select %taken, %l, %s : tensor<?x3xi1>, tensor<?x3xf32>")
        self.compile(plant.replace("WHERE", "gt"))
        result = self.train()
        self.assertEqual(result.returncode, 0, result.stderr)
        # Taken where the number is negative, it is to blame.
        text = self.compile(plant.replace("WHERE", "lt"))
        self.assert_named(self.train(), rf"log \(planted.mlir:{line_of(text, 'gpuc.log')}\)")

    def test_scaled_gradients_that_are_skipped(self):
        """Gradients of a loss that is scaled too much: those steps are counted, by layer, and the scale comes down."""
        self.batch(steps=20)
        write_npy(self.path("y.npy"), "f32", [20 * BATCH, 3], uniform([20 * BATCH, 3], 6, 8.0))
        self.compile(SOUND, "--loss-scale=dynamic:init_scale=3e38")
        result = self.train()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "\nNaN or infinite, by where they were made:\n +[1-9][0-9]*  ")
        steps = self.metrics(self.path("metrics.jsonl"), "step")
        # It comes down to where most gradients are below f32's largest number, not all.
        self.assertEqual({event["skipped"] for event in steps if event["loss_scale"] == steps[0]["loss_scale"]}, {True})
        self.assertIn(False, [event["skipped"] for event in steps])

    def test_forward_pass_of_a_scaled_loss(self):
        """What the forward pass makes no scale can mend: it is named though the update is skipped. Step 1 is skipped for
        its gradients, those of log near 0 times 65536, and only counted."""
        x = uniform([8 * BATCH, 3], 5, 1.0)
        x[BATCH * 3:BATCH * 3 + 3] = [0.0, 0.0, 0.0]  # the first row of step 2
        self.batch(steps=8, x=x)
        plant = '%a = gpuc.abs %s : tensor<?x3xf32> loc("head")\n    %out = gpuc.log %a : tensor<?x3xf32> loc("head")'
        for flags in (["--precision=fp16"], ["--precision=fp16", "--optimizer=muon"], ["--loss-scale=dynamic:init_scale=1e38"]):
            with self.subTest(flags):
                text = self.compile(plant, *flags)
                result = self.train()
                self.assert_named(result, rf"log in layer 'head' \(planted.mlir:{line_of(text, 'gpuc.log')}\)", "3")
                self.assertIn("step 2:", result.stderr)
                self.assertRegex(result.stdout, f"by where they were made:\n +[1-9][0-9]*  '(body|head)'\n")
                self.assertEqual([event["skipped"] for event in self.metrics(self.path("metrics.jsonl"), "step")], [True, True])

    def test_inputs_of_a_scaled_loss(self):
        x = uniform([3 * BATCH, 3], 5, 1.0)
        x[2 * BATCH * 3] = float("nan")
        self.batch(x=x)
        for flags, code in (([], 1), (["--skip=outliers:loss=3,window=16"], 0)):
            self.compile(SOUND, "--precision=fp16", *flags)
            result = self.train()
            self.assertEqual(result.returncode, code, result.stderr)
            self.assertIn("input 'x'" + (" holds 1 value" if code else ""), result.stderr if code else result.stdout)

    def test_f16_that_overflows(self):
        """Gradients of large targets, times 65536, are more than f16 holds: counted until the scale has come down.
        Activations that are too large for it are named."""
        self.batch(steps=20)
        write_npy(self.path("y.npy"), "f32", [20 * BATCH, 3], uniform([20 * BATCH, 3], 6, 8.0))
        self.compile(SOUND, "--precision=fp16")
        result = self.train()
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, "\nNaN or infinite, by where they were made:\n +[1-9][0-9]*  'body'\n$")
        events = self.metrics(self.path("metrics.jsonl"), "step")
        self.assertEqual((events[0]["skipped"], events[-1]["skipped"]), (True, False))
        self.assertLess(events[-1]["loss_scale"], 65536)
        text = self.compile("%large = gpuc.constant 6.0e4 : tensor<?x3xf32>\n"
                            '    %h2 = gpuc.mul %h, %large : tensor<?x3xf32> loc("large")\n'
                            '    %h3 = gpuc.add %h2, %h2 : tensor<?x3xf32> loc("twice")\n'
                            "    %out = gpuc.tanh %h3 : tensor<?x3xf32>", "--precision=fp16")
        self.assert_named(self.train(), rf"add in layer 'twice' \(planted.mlir:{line_of(text, '%h3 =')}\)")

    def test_optimizers(self):
        """What an update makes of finite gradients is its own, in whichever way it computes."""
        self.batch()
        for optimizer, op, variable in (("lion:lr=1e30,weight_decay=1e30", "lion", "body.weight"),
                                        ("muon:lr=1e30,weight_decay=1e30", "muon", "body.weight"),
                                        ("muon:adam_lr=3e38", "adam", "head.weight"),
                                        ("adafactor:lr=1e30,weight_decay=1e30", "adafactor", "body.weight"),
                                        ("adamw:lr=1e30,weight_decay=1e30", "adam", "body.weight")):
            for flags in ([], ["--precision=fp16"], ["--accumulate=3"]):
                with self.subTest(optimizer, flags=flags):
                    self.compile(SOUND, "--optimizer=" + optimizer, *flags)
                    self.assert_named(self.train(), f"{op}_update in layer '{variable}'", 9 if variable == "body.weight" else 3)

    def test_backward_pass_before_an_optimizer(self):
        self.batch()
        for optimizer in ("lion", "muon", "adafactor"):
            with self.subTest(optimizer):
                text = self.compile("%zero = gpuc.sub %s, %s : tensor<?x3xf32>\n"
                                    '    %out = gpuc.sqrt %zero : tensor<?x3xf32> loc("root")', "--optimizer=" + optimizer)
                self.assert_named(self.train(), rf"[a-z]+ in the backward pass of layer 'root' "
                                                rf"\(planted.mlir:{line_of(text, 'gpuc.sqrt')}\)", "12")

    def test_outliers_that_are_skipped(self):
        """A step whose update is left out is counted, by layer, and is no error."""
        x = uniform([40 * BATCH, 3], 5, 1.0)
        x[33 * BATCH * 3] = 1e38
        self.batch(steps=40, x=x)
        self.compile('%sq = gpuc.mul %s, %s : tensor<?x3xf32> loc("head")\n    %out = gpuc.mul %sq, %sq : tensor<?x3xf32> loc("head")',
                     "--skip=outliers:loss=3,window=16")
        result = self.train()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, "NaN or infinite, by where they were made:\n +[1-9][0-9]*  'head'\n")
        events = self.metrics(self.path("metrics.jsonl"), "step")
        self.assertEqual([event["step"] for event in events if event["loss"] is None], [34])
        self.assertTrue(events[33]["skipped"])

    ATTENTION = """module @masked {
  gpuc.variable @w : tensor<8x8xf32> init uniform(bound = 0.5)
  func.func @loss(%x: tensor<?x6x8xf32> {gpuc.name = "x"}, %mask: tensor<?x6xf32> {gpuc.name = "mask"},
                  %y: tensor<?x6x8xf32> {gpuc.name = "y"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %p = gpuc.matmul %x, transpose %w : (tensor<?x6x8xf32>, tensor<8x8xf32>) -> tensor<?x6x8xf32> loc("project")
    %q = gpuc.reshape %p : tensor<?x6x8xf32> to tensor<?x1x6x8xf32>
    %m = gpuc.reshape %mask : tensor<?x6xf32> to tensor<?x1x1x6xf32>
    %o, %lse = gpuc.attention %q, %q, %q mask %m CAUSAL
        : (tensor<?x1x6x8xf32>, tensor<?x1x6x8xf32>, tensor<?x1x6x8xf32>, tensor<?x1x1x6xf32>)
        -> (tensor<?x1x6x8xf32>, tensor<?x1x6xf32>) loc("attention")
    %ninf = gpuc.constant -inf : tensor<?x6x6xf32>
    %zeros = gpuc.constant 0.0 : tensor<?x6x6xf32>
    %i = gpuc.iota dim 1 : tensor<?x6x6xi64>
    %j = gpuc.iota dim 2 : tensor<?x6x6xi64>
    %seen = gpuc.compare ge %i, %j : tensor<?x6x6xi64>
    %additive = gpuc.select %seen, %zeros, %ninf : tensor<?x6x6xi1>, tensor<?x6x6xf32>
    %raw = gpuc.matmul %p, transpose %p : (tensor<?x6x8xf32>, tensor<?x6x8xf32>) -> tensor<?x6x6xf32>
    %scores = gpuc.add %raw, %additive : tensor<?x6x6xf32>
    %soft = gpuc.softmax %scores dim 2 : tensor<?x6x6xf32>
    %o2 = gpuc.matmul %soft, %p : (tensor<?x6x6xf32>, tensor<?x6x8xf32>) -> tensor<?x6x8xf32>
    %o1 = gpuc.reshape %o : tensor<?x1x6x8xf32> to tensor<?x6x8xf32>
    %out = gpuc.add %o1, %o2 : tensor<?x6x8xf32>
    %sum, %count = gpuc.mse %out, %y : (tensor<?x6x8xf32>, tensor<?x6x8xf32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 1.0e-3) }
}
"""

    def test_masks_are_no_error(self):
        """-∞ of constants, and of an input that attention takes as its mask; in one row nothing is seen."""
        write_npy(self.path("x.npy"), "f32", [BATCH, 6, 8], uniform([BATCH, 6, 8], 5, 1.0))
        write_npy(self.path("y.npy"), "f32", [BATCH, 6, 8], uniform([BATCH, 6, 8], 6, 1.0))
        hidden = [6, 2, 1, 0]  # keys that are hidden, at the end of each sample
        inputs = ["--input", "x=x.npy", "--input", "y=y.npy", "--input", "mask=mask.npy"]
        for value, code in ((-float("inf"), 0), (float("nan"), 1)):
            mask = [value if key >= 6 - count else 0.0 for count in hidden for key in range(6)]
            write_npy(self.path("mask.npy"), "f32", [BATCH, 6], mask)
            for causal in ("", "causal"):
                self.compile("", model=self.ATTENTION.replace("CAUSAL", causal))
                result = self.run_tool("gpuc-run", "planted.plan", "--entry=train_step", *inputs)
                self.assertEqual(result.returncode, code, result.stderr)
                if code:
                    self.assertIn("input 'mask' holds 9 values", result.stderr)

    def test_zoo(self):
        """Models that are in order: nothing is said, and no bit differs; nor does a step allocate."""
        cases = [(name, []) for name in CASES] + [(name, ["--accumulate=3"]) for name in ("mlp-rows", "gpt2")]
        for name, microbatches in cases:
            with self.subTest(name, microbatches=microbatches):
                case = CASES[name]
                keys = [f"{key}={value}" for key, value in case["keys"].items()]
                model = self.path(name + ".mlir")
                self.gpuc("gpuc-model", case.get("model", name), *keys, "-o", model)
                outputs = []
                for flags in ([], ["--check-numerics"]):
                    self.gpuc("gpuc-compile", model, "-o", "zoo.plan", "-O1", *microbatches, *flags)
                    report = self.gpuc("gpuc-run", "zoo.plan", "--entry=train_step", "--repeat=3", "--seed=3",
                                       f"--output-dir={self.path(name + ''.join(flags))}", "--save-variables=" + self.path("v"))
                    self.assertIn("allocated  0 times", report)
                    outputs.append((sha256(self.path("v")), self.results(name + "".join(flags))))
                counts = outputs[1][1].pop("nonfinite.npy")
                self.assertGreater(len(counts), 4 * 5)
                self.assertEqual(set(counts), {0})
                self.assertEqual(outputs[0], outputs[1])

    def results(self, folder):
        return {name: read_npy_bytes(os.path.join(self.path(folder), name)) for name in os.listdir(self.path(folder))}


if __name__ == "__main__":
    unittest.main()
