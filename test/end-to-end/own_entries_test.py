"""Functions that the recipe does not name are entries of the plan: in inference form, as predict is, with its precision and
its weights. What does not come along is named."""

import array
import json
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_npy_bytes, write_npy

MODEL = """module @own {
  gpuc.variable @w : tensor<3x4xf32> init uniform(bound = 0.5)
  gpuc.variable @mean kind statistic : tensor<3xf32> init zeros
  func.func private @body(%x: tensor<?x4xf32>) -> tensor<?x3xf32> {
    %w = gpuc.read @w : tensor<3x4xf32>
    %mean = gpuc.read @mean : tensor<3xf32>
    gpuc.assign @mean, %mean : tensor<3xf32>
    %h = gpuc.matmul %x, transpose %w : (tensor<?x4xf32>, tensor<3x4xf32>) -> tensor<?x3xf32>
    %d = gpuc.dropout %h p 0.5 id 1 : tensor<?x3xf32>
    return %d : tensor<?x3xf32>
  }
  func.func @predict(%x: tensor<?x4xf32> {gpuc.name = "x"}) -> (tensor<?x3xf32> {gpuc.name = "y"}) {
    %y = call @body(%x) : (tensor<?x4xf32>) -> tensor<?x3xf32>
    return %y : tensor<?x3xf32>
  }
  func.func @loss(%x: tensor<?x4xf32> {gpuc.name = "x"}, %y: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 3})
      -> (tensor<f32>, tensor<f32>) {
    %p = call @body(%x) : (tensor<?x4xf32>) -> tensor<?x3xf32>
    %s, %c = gpuc.cross_entropy %p, %y : (tensor<?x3xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    return %s, %c : tensor<f32>, tensor<f32>
  }
  OWN
  RECIPE
}
"""
RECIPE = "gpuc.recipe { loss = @loss, batch = 4, optimizer = adam(lr = 0.1), ema = ema(decay = 0.5) }"
AGAIN = """func.func @again(%x: tensor<?x4xf32> {gpuc.name = "x"}) -> (tensor<?x3xf32> {gpuc.name = "y"}) {
    %y = call @body(%x) : (tensor<?x4xf32>) -> tensor<?x3xf32>
    return %y : tensor<?x3xf32>
  }"""
SLOPE = """func.func @slope(%x: tensor<?x4xf32> {gpuc.name = "x"}, %y: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 3})
      -> (tensor<?x4xf32> {gpuc.name = "d"}) {
    %s, %c, %d = gpuc.gradient @loss(%x, %y) wrt arguments [0]
        : (tensor<?x4xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>, tensor<?x4xf32>)
    return %d : tensor<?x4xf32>
  }"""

# With the running statistics of @init, y = x / √2, so that @energy is Σx² / 2, its gradient x, and @loss 3/2 · Σx².
NORMED = """module @normed {
  gpuc.variable @w : tensor<3xf64> init ones
  gpuc.variable @mean kind statistic : tensor<3xf64> init zeros
  gpuc.variable @variance kind statistic : tensor<3xf64> init ones
  func.func private @energy(%x: tensor<?x3xf64>) -> tensor<f64> {
    %w = gpuc.read @w : tensor<3xf64>
    %m = gpuc.read @mean : tensor<3xf64>
    %v = gpuc.read @variance : tensor<3xf64>
    %y:5 = gpuc.batch_norm %x running %m, %v weight %w {eps = 1.0 : f64}
        : (tensor<?x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
        -> (tensor<?x3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
    gpuc.assign @mean, %y#1 : tensor<3xf64>
    gpuc.assign @variance, %y#2 : tensor<3xf64>
    %0 = gpuc.mul %y#0, %y#0 : tensor<?x3xf64>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<?x3xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
  func.func @predict(%x: tensor<?x3xf64> {gpuc.name = "x"})
      -> (tensor<f64> {gpuc.name = "energy"}, tensor<?x3xf64> {gpuc.name = "d"}) {
    %e, %d = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<?x3xf64>) -> (tensor<f64>, tensor<?x3xf64>)
    return %e, %d : tensor<f64>, tensor<?x3xf64>
  }
  func.func @slope(%x: tensor<?x3xf64> {gpuc.name = "x"}) -> (tensor<?x3xf64> {gpuc.name = "d"}) {
    %e, %d = gpuc.gradient @energy(%x) wrt arguments [0] : (tensor<?x3xf64>) -> (tensor<f64>, tensor<?x3xf64>)
    return %d : tensor<?x3xf64>
  }
  func.func @loss(%x: tensor<?x3xf64> {gpuc.name = "x"}) -> (tensor<f64>, tensor<f64>) {
    %e, %d = call @predict(%x) : (tensor<?x3xf64>) -> (tensor<f64>, tensor<?x3xf64>)
    %0 = gpuc.mul %d, %d : tensor<?x3xf64>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<?x3xf64>) -> tensor<f64>
    %2 = gpuc.add %e, %1 : tensor<f64>
    %count = gpuc.constant 1.0 : tensor<f64>
    return %2, %count : tensor<f64>, tensor<f64>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = sgd(lr = 0.0) }
}
"""


class OwnEntries(ToolTest):
    def compile(self, own, *flags, recipe=RECIPE):
        """Compiles the model with functions of its own; gives the entries' names and what is said on stderr."""
        self.write("own.mlir", MODEL.replace("OWN", own).replace("RECIPE", recipe))
        result = self.run_tool("gpuc-compile", "own.mlir", "-o", "own.plan", *flags)
        self.assertEqual(result.returncode, 0, result.stderr)
        return set(json.loads(self.gpuc("gpuc-inspect", "own.plan", "--json"))["entries"]), result.stderr

    def output(self, entry, name, *flags):
        self.gpuc("gpuc-run", "own.plan", "--entry=" + entry, "--seed=3", "--output-dir=" + self.path(entry), *flags)
        with open(self.path(f"{entry}/{name}.npy"), "rb") as file:
            return file.read()

    def test_computes_what_predict_does(self):
        """No dropout, the precision of training, and the running means of the weights: the same bits."""
        for flags in ([], ["--precision=bf16"], ["--accumulate=2"], ["-O0"], ["--check-numerics"]):
            with self.subTest(flags):
                entries, said = self.compile(AGAIN, *flags)
                self.assertEqual((entries, said), ({"init", "train_step", "eval_step", "predict", "again"}, ""))
                self.gpuc("gpuc-train", "own.plan", "--data=synthetic:size=32", "--steps=3", "--log-every=0",
                          "--save-variables=" + self.path("w.safetensors"))
                self.assertEqual(*(self.output(entry, "y", "--variables=" + self.path("w.safetensors"))
                                   for entry in ("predict", "again")))

    def test_takes_gradients(self):
        entries, said = self.compile(SLOPE)
        self.assertEqual((entries, said), ({"init", "train_step", "eval_step", "predict", "slope"}, ""))
        self.assertNotEqual(set(self.output("slope", "d")[-64:]), {0})

    def test_gradients_are_of_what_is_computed(self):
        """By running statistics, as the value is, in prediction, evaluation and entries; by the batch's in training."""
        x = [-1.5, 0.25, 2.0, 0.5, -0.75, 1.0, 1.25, -2.0, 0.125, 3.0, 1.0, -1.0]
        squares = sum(number * number for number in x)
        write_npy(self.path("x.npy"), "f64", [4, 3], x)
        self.write("own.mlir", NORMED)

        def output(entry, name):
            self.output(entry, name, "--input=x=" + self.path("x.npy"))
            return list(array.array("d", read_npy_bytes(self.path(f"{entry}/{name}.npy"))))

        for flags in ([], ["-O0"], ["--check-numerics"]):
            with self.subTest(flags):
                self.gpuc("gpuc-compile", "own.mlir", "-o", "own.plan", *flags)
                evaluated = {name: output(*name) for name in (("predict", "energy"), ("predict", "d"), ("slope", "d"),
                                                              ("eval_step", "loss_sum"))}
                self.assert_near(evaluated, {("predict", "energy"): [squares / 2], ("predict", "d"): x, ("slope", "d"): x,
                                             ("eval_step", "loss_sum"): [1.5 * squares]}, 1e-12)
                self.assertGreater(abs(output("train_step", "loss_sum")[0] - 1.5 * squares), 0.1)

    def test_without_a_recipe(self):
        """What nothing trains by is a function as any other."""
        entries, said = self.compile(AGAIN, "--batch=2", recipe="")
        self.assertEqual((entries, said), ({"init", "predict", "again", "loss"}, ""))

    def test_goes_on_from_each_stage(self):
        self.compile(AGAIN)
        for stage in ("gpuc", "train", "plan"):
            self.gpuc("gpuc-compile", "own.mlir", "--emit=" + stage, "-o", "stage.mlir")
            result = self.run_tool("gpuc-compile", "stage.mlir", "-o", "stage.plan")
            self.assertEqual((result.returncode, result.stderr), (0, ""))
            self.assertIn("again", json.loads(self.gpuc("gpuc-inspect", "stage.plan", "--json"))["entries"])

    def test_says_what_is_left_out(self):
        _, said = self.compile("func.func private @helper(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n"
                               "    return %x : tensor<?x4xf32>\n  }")
        self.assertRegex(said, r"^warning: own.mlir:\d+:\d+: @helper is left out: it is private, and no entry of the plan calls "
                               r"it; a public function is an entry itself\n$")
        entries, said = self.compile("func.func @reset() -> (tensor<3x4xf32> {gpuc.name = \"w\"}) {\n"
                                     "    %zero = gpuc.constant 0.0 : tensor<3x4xf32>\n"
                                     "    gpuc.assign @w, %zero : tensor<3x4xf32>\n"
                                     "    return %zero : tensor<3x4xf32>\n  }")
        self.assertIn("reset", entries)
        self.assertRegex(said, r"^warning: own.mlir:\d+:\d+: @reset does not change @w: only a train step assigns; return the "
                               r"value instead\n$")

    def test_names_that_are_taken(self):
        for name in ("init", "train_step", "eval_step"):
            self.write("own.mlir", MODEL.replace("OWN", AGAIN.replace("@again", "@" + name)).replace("RECIPE", RECIPE))
            result = self.run_tool("gpuc-compile", "own.mlir", "-o", "own.plan")
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, f"^error: own.mlir:[^\n]*is named @{name}[^\n]*rename it\n$")


if __name__ == "__main__":
    unittest.main()
