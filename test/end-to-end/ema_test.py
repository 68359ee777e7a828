"""A running mean of the weights, --ema, against a loop in Python over the weights that training leaves after each step; what
evaluation reads; and what weights from a file begin it with."""

import os
import unittest

from gpuc_tools import ToolTest
from tensor_files import hashed, read_safetensors, uniform, write_npy, write_safetensors

STEPS, DECAY = 6, 0.75
SHAPES = {"fc1.weight": [5, 7], "fc1.bias": [5], "fc2.weight": [3, 5], "fc2.bias": [3]}


class Ema(ToolTest):
    def setUp(self):
        super().setUp()
        write_npy(self.path("x.npy"), "f64", [9, 7], uniform([9, 7], 100, 1.0))
        write_npy(self.path("labels.npy"), "i32", [9], (h % 3 for h in hashed(9, 101)))
        self.first = {name: uniform(shape, 10 + i, 0.5) for i, (name, shape) in enumerate(SHAPES.items())}
        write_safetensors(self.path("first.safetensors"), "f64",
                          {name: (SHAPES[name], values) for name, values in self.first.items()})

    def compile(self, ema):
        return self.compile_model("mlp", "input=7", "hidden=5", "classes=3", "pixels=false", "batch=9", "dtype=f64",
                                  flags=["--optimizer=sgd:lr=0.3,momentum=0.9"] + ([ema] if ema else []))

    def train(self, plan, steps, weights="first.safetensors"):
        """The variables after so many steps."""
        self.gpuc("gpuc-train", plan, "--data=npy:x=x.npy,labels=labels.npy", f"--steps={steps}", "--no-shuffle",
                  "--log-every=0", "--variables=" + weights, "--save-variables=last.safetensors")
        return read_safetensors(self.path("last.safetensors"))

    def test_the_mean_is_that_of_the_weights(self):
        plan, mean = self.compile(f"--ema=ema:decay={DECAY}"), {}
        for step in range(1, STEPS + 1):
            after = self.train(plan, step)
            for name in SHAPES:
                mean[name] = after[name] if step == 1 else [
                    DECAY * e + (1 - DECAY) * w for e, w in zip(mean[name], after[name])]
                for ours, theirs in zip(after[name + "/ema"], mean[name]):
                    self.assertLessEqual(abs(ours - theirs), 1e-15, f"{name}, step {step}")
        self.assertNotEqual(after["fc1.weight"], after["fc1.weight/ema"])

    def test_it_leaves_training_alone(self):
        with_mean = self.train(self.compile("--ema=ema:decay=0.5"), STEPS)
        without = self.train(self.compile(None), STEPS)
        for name, values in without.items():
            self.assertEqual(with_mean[name], values, name)

    def test_training_that_goes_on_keeps_it(self):
        plan = self.compile("--ema=ema:decay=0.75")
        whole = self.train(plan, 4)
        self.train(plan, 2)
        os.rename(self.path("last.safetensors"), self.path("half.safetensors"))
        self.assertEqual(self.train(plan, 2, "half.safetensors"), whole)

    def losses(self, plan, steps):
        """What a run evaluates at its end, after `steps`."""
        self.gpuc("gpuc-train", plan, "--data=npy:x=x.npy,labels=labels.npy", "--eval-data=npy:x=x.npy,labels=labels.npy",
                  f"--steps={steps}", "--no-shuffle", "--log-every=0", "--variables=first.safetensors",
                  "--metrics=metrics.jsonl", "--save-variables=last.safetensors")
        return self.metrics(self.path("metrics.jsonl"), "eval")[-1]["loss"]

    def test_evaluation_reads_it(self):
        of_means = self.losses(self.compile("--ema=ema:decay=0.75"), STEPS)
        last = read_safetensors(self.path("last.safetensors"))
        write_safetensors(self.path("first.safetensors"), "f64",
                          {name: (SHAPES[name], last[name + "/ema"]) for name in SHAPES})
        # A plan without means, with the means as its weights; a step with a rate of 0 changes nothing.
        plan = self.compile("--group=match=*,lr=0")
        self.assertEqual(self.losses(plan, 1), of_means)

    def test_evaluation_of_the_weights(self):
        of_weights = self.losses(self.compile("--ema=ema:decay=0.75,evaluate=false"), STEPS)
        self.assertEqual(self.losses(self.compile(None), STEPS), of_weights)

    def test_a_plan_without_it_says_that_the_means_are_unused(self):
        self.train(self.compile("--ema=ema:decay=0.75"), 2)
        plan, only_predicts = self.compile(None), self.path("predict.plan")
        with open(self.path("model.mlir"), "w", encoding="utf-8") as file:
            file.write(self.gpuc("gpuc-model", "mlp", "input=7", "hidden=5", "classes=3", "pixels=false", "dtype=f64").split("gpuc.recipe")[0] + "}\n")
        self.gpuc("gpuc-compile", "model.mlir", "--batch=9", "-o", only_predicts)
        means = (r"last\.safetensors: running means of weights are left unused \(4: fc1\.bias/ema, fc1\.weight/ema, fc2\.bias/ema, "
                 r"fc2\.weight/ema\): the plan computes with the weights themselves; compile it with --ema=… to use the means\n")
        data = "--data=npy:x=x.npy,labels=labels.npy"
        for command, others in (
                (["gpuc-train", plan, data, "--steps=1", "--log-every=0"], ""),
                (["gpuc-run", plan, "--entry=predict"], ""),
                (["gpuc-run", only_predicts, "--entry=predict"],
                 r"warning: last\.safetensors: an optimizer's state is left unused \(4: .*\): the plan does not train\n")):
            result = self.run_tool(*command, "--variables=last.safetensors")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stderr, r"\Awarning: " + means + others + r"\Z")

    def test_it_begins_with_the_weights_of_a_file(self):
        self.gpuc("gpuc-run", self.compile("--ema=ema:decay=0.75"), "--entry=predict", "--variables=first.safetensors",
                  "--save-variables=begun.safetensors")
        begun = read_safetensors(self.path("begun.safetensors"))
        for name, values in self.first.items():
            self.assertEqual(begun[name + "/ema"], values, name)


if __name__ == "__main__":
    unittest.main()
