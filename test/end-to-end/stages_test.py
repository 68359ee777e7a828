"""gpuc-opt takes the forward graph through each pass one at a time; gpuc-compile continues from every result, and what it
makes trains to the same bits as the plan that was compiled at once. From the text of its own --emit it makes the very same
file, whatever the options were, without being told them again."""

import unittest

from gpuc_tools import ToolTest, sha256

# As passes/Pipelines.cpp strings them together.
PASSES = """gpuc-override-recipe gpuc-specialize-batch gpuc-mask-padding gpuc-differentiate-loss gpuc-autodiff
gpuc-expand-recipe canonicalize cse
gpuc-decompose canonicalize cse gpuc-fuse gpuc-to-plan plan-order plan-assign-streams plan-place-buffers
plan-verify""".split()

MODELS = {
    "mlp": ["mlp", "hidden=48", "dropout=0.2", "batch=32"],
    "mlp_in_f64": ["mlp", "pixels=false", "input=20", "hidden=12,9", "activation=gelu", "smoothing=0.1", "dtype=f64",
                   "optimizer=adamw:weight_decay=0.1"],
    "linear_regression": ["linear-regression", "optimizer=sgd:lr=0.01,momentum=0.9,nesterov=1"],
}


# The zoo, small, and what it is compiled with in one go.
ZOO = [["linear-regression"], ["convnet", "size=8", "batch=4"], ["rnn-classifier", "cell=gru", "hidden=32", "batch=32"],
       ["lstm-generator", "hidden=16", "embedding=8", "length=8", "batch=4"],
       ["transformer", "width=16", "heads=2", "layers=1", "feedforward=32", "src_vocabulary=50", "tgt_vocabulary=50", "length=8", "batch=4"],
       ["resnet18", "size=32", "width=4", "classes=10", "batch=2"], ["resnet50", "size=32", "width=4", "classes=10", "batch=2"],
       ["gpt2", "layers=1", "heads=2", "width=16", "length=8", "vocabulary=64", "batch=4", "lora=2"]]
MUCH = ["--precision=bf16", "--accumulate=2", "--ema=ema:decay=0.9", "--batch=6", "--seed=5", "--clip-norm=1"]

# What is no part of a model's text, and so has to be said again for that alone.
LATER = [["-O0"], ["-O2"], ["--check-numerics"], ["--checkpoint=save=matmul"], ["--target=cuda:sm_90"], ["--target=host:x86-64-v3"]]
OPTIONS = [["--precision=fp16"], ["--precision=bf16:f32=(fc1)"], ["--accumulate=3"], ["--batch=6"], ["--seed=7"],
           ["--optimizer=muon", "--clip-value=2", "--group=match=*,lr=1e-3", "--skip=outliers:loss=6"],
           ["--schedule=linear:total_iters=10,steps=10", "--schedule=cosine:T_max=90"], MUCH]


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
                self.gpuc("gpuc-compile", emitted, "-o", self.path("continued.plan"))
                self.assertEqual(sha256(self.path("continued.plan")), sha256(plan))

    def same_file(self, model, flags, stages=("gpuc", "train", "plan")):
        """The plan that is compiled at once is also made of each stage's text, without a flag."""
        self.gpuc("gpuc-model", *model, "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", *flags, "-o", "at-once.plan")
        for stage in stages:
            with self.subTest(" ".join(model + flags), stage=stage):
                self.gpuc("gpuc-compile", "model.mlir", *flags, "--emit=" + stage, "-o", "stage.mlir")
                self.gpuc("gpuc-compile", "stage.mlir", "-o", "continued.plan")
                self.assertEqual(sha256(self.path("continued.plan")), sha256(self.path("at-once.plan")))

    def test_the_whole_zoo_is_the_same_file(self):
        for model in ZOO:
            self.same_file(model, MUCH, stages=("gpuc", "train"))

    def test_every_option_is_in_the_text(self):
        model = ["mlp", "hidden=16", "dropout=0.2"]
        for flags in OPTIONS:
            self.same_file(model, flags)
        for flags in LATER:
            self.same_file(model, flags, stages=("train", "plan"))
            with self.subTest(flags=flags):
                result = self.run_tool("gpuc-compile", "model.mlir", *flags, "--emit=gpuc", "-o", "model2.mlir")
                self.assertEqual((result.returncode, result.stderr), (0, f"warning: the text of a model does not say {flags[0]}: "
                                                                         "give it again where that is compiled\n"))
                self.gpuc("gpuc-compile", "model2.mlir", *flags, "-o", "continued.plan")
                self.assertEqual(sha256(self.path("continued.plan")), sha256(self.path("at-once.plan")))

    def test_what_is_decided_is_not_decided_again(self):
        self.gpuc("gpuc-model", "mlp", "hidden=16", "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", "--emit=train", "-o", "step.mlir")
        made = "error: the train step is made already: "
        for flag, error in (("--optimizer=sgd", made + "batch and recipe can be chosen no more"),
                            ("--batch=8", made + "batch and recipe can be chosen no more"),
                            ("--check-numerics", made + "--check-numerics can be chosen no more"),
                            ("--checkpoint=full", made + "--checkpoint can be chosen no more"),
                            ("--target=cuda:sm_90", "error: the train step is made for host already: its target can be chosen no more")):
            result = self.run_tool("gpuc-compile", "step.mlir", flag, "-o", "none.plan")
            self.assertEqual((result.returncode, result.stderr), (1, error + "\n"))
        # What is the same is no contradiction, and the seed is the plan's default, not the step's.
        self.gpuc("gpuc-compile", "step.mlir", "--batch=64", "--target=host", "--seed=3", "-o", "step.plan")
        self.gpuc("gpuc-compile", "model.mlir", "--seed=3", "-o", "at-once.plan")
        self.assertEqual(sha256(self.path("step.plan")), sha256(self.path("at-once.plan")))

    def test_text_without_locations(self):
        """For people: no loc(…). What is compiled from it has the same bits and the same memory, and says what it cannot name."""
        self.gpuc("gpuc-model", *MODELS["mlp"], "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan")
        expected = self.bits("model.plan")
        for stage in ("gpuc", "train", "plan"):
            with self.subTest(stage=stage):
                self.assertIn("loc(", self.gpuc("gpuc-compile", "model.mlir", "--emit=" + stage))
                text = self.gpuc("gpuc-compile", "model.mlir", "--emit=" + stage, "--no-locations")
                self.assertNotIn("loc(", text)
                self.assertEqual(self.gpuc("gpuc-compile", "model.mlir", "--emit=" + stage, "--mlir-print-debuginfo=false"), text)
                self.write("bare.mlir", text)
                result = self.run_tool("gpuc-compile", "bare.mlir", "-o", "bare.plan", "--report=bare.json")
                self.assertEqual(result.returncode, 0)
                self.assertRegex(result.stderr, r"\A\Z" if stage == "gpuc" else r"\Awarning: bare.mlir is without locations: .*--no-locations.*\n\Z")
                self.assertEqual(self.bits("bare.plan"), expected)
        result = self.run_tool("gpuc-compile", "model.mlir", "--no-locations", "-o", "none.plan")
        self.assertEqual((result.returncode, result.stderr), (2, "error: --no-locations is for the text that --emit writes\n"))

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
