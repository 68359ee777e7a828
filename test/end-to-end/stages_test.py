"""gpuc-opt takes the forward graph through each pass one at a time; gpuc-compile continues from every result, and from
the text of its own --emit; what it makes trains to the same bits as the plan that was compiled at once."""

import unittest

from gpuc_tools import ToolTest, sha256

# As passes/Pipelines.cpp strings them together.
PASSES = """gpuc-override-recipe gpuc-specialize-batch gpuc-mask-padding gpuc-autodiff gpuc-expand-recipe canonicalize cse
gpuc-decompose canonicalize cse gpuc-fuse gpuc-to-plan plan-order plan-assign-streams plan-place-buffers
plan-verify""".split()

MODELS = {
    "mlp": ["mlp", "hidden=48", "dropout=0.2", "batch=32"],
    "mlp_in_f64": ["mlp", "pixels=false", "input=20", "hidden=12,9", "activation=gelu", "smoothing=0.1", "dtype=f64",
                   "optimizer=adamw:weight_decay=0.1"],
    "linear_regression": ["linear-regression", "optimizer=sgd:lr=0.01,momentum=0.9,nesterov=1"],
}


class Stages(ToolTest):
    def bits(self, plan):
        return self.trained_bits(plan, "--data=synthetic:size=200", "--steps=9", "--seed=3", "--last-batch=pad")

    def step_by_step(self, model):
        plan = self.compile_model(*model)
        text = plan.replace(".plan", ".mlir")
        for number, name in enumerate(PASSES, 1):
            after = self.path(f"{number}-{name}.mlir")
            self.gpuc("gpuc-opt", text, "--" + name, "--mlir-print-debuginfo", "-o", after)
            with self.subTest(after=name):
                self.continues(after, plan)
            text = after

    def continues(self, text, plan):
        self.gpuc("gpuc-compile", text, "-o", self.path("continued.plan"))
        if sha256(self.path("continued.plan")) != sha256(plan):  # else it is the very same program
            self.assertEqual(self.bits(self.path("continued.plan")), self.bits(plan))

    def from_emitted_text(self, model):
        plan = self.compile_model(*model)
        for stage in ("gpuc", "train", "plan"):
            with self.subTest(stage=stage):
                emitted = self.path(stage + ".mlir")
                self.gpuc("gpuc-compile", plan.replace(".plan", ".mlir"), "--emit=" + stage, "-o", emitted)
                self.continues(emitted, plan)

    def test_other_weights_have_other_bits(self):
        # Else the tests above could not fail.
        plan = self.compile_model(*MODELS["mlp"])
        flags = ["--data=synthetic:size=200", "--steps=9"]
        self.assertNotEqual(self.trained_bits(plan, *flags, "--seed=3"), self.trained_bits(plan, *flags, "--seed=4"))

    def test_a_plan_takes_no_recipe(self):
        plan = self.compile_model(*MODELS["linear_regression"])
        emitted = self.path("plan.mlir")
        self.gpuc("gpuc-compile", plan.replace(".plan", ".mlir"), "--emit=plan", "-o", emitted)
        for flag in ("--optimizer=adam", "--clip-norm=1", "--batch=8"):
            result = self.run_tool("gpuc-compile", emitted, flag, "-o", self.path("none.plan"))
            self.assertEqual((result.returncode, result.stderr),
                             (1, "error: the module is a plan already: batch and recipe can be chosen no more\n"))


def add_cases():
    for name, model in MODELS.items():
        setattr(Stages, f"test_{name}_pass_by_pass", lambda self, m=model: self.step_by_step(m))
        setattr(Stages, f"test_{name}_from_emitted_text", lambda self, m=model: self.from_emitted_text(m))


add_cases()

if __name__ == "__main__":
    unittest.main()
