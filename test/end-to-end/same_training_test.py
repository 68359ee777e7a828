"""Going on from a checkpoint: what a plan trains may be shared out and computed otherwise, and is not to be anything else without a word."""

import unittest

from gpuc_tools import ToolTest

SAID = "warning: run/step-00000002.safetensors was trained by another plan, "
TRAIN = ["--data=synthetic:size=64", "--log-every=0", "--checkpoint-dir=run", "--resume"]
ROWS = 32  # of an update, whoever computes them


class SameTraining(ToolTest):
    def setUp(self):
        super().setUp()
        self.gpuc("gpuc-model", "mlp", "hidden=8", "batch=8", "-o", "mlp.mlir")
        with open(self.path("mlp.mlir"), encoding="utf-8") as file:
            self.model = file.read()
        self.begin("--optimizer=adam:lr=0.01")

    def begin(self, *flags):
        """Two updates of two ranks, each on two microbatches."""
        self.gpuc("gpuc-compile", "mlp.mlir", "--accumulate=2", "--data-parallel", *flags, "-o", "first.plan")
        self.gpuc("gpuc-train", "first.plan", *TRAIN, "--ranks=2", "--steps=2")

    def said(self, *flags, text=None, ranks=1, steps=2):
        """What is said where this goes on."""
        self.write("next.mlir", text or self.model)
        if not any(flag.startswith("--optimizer") for flag in flags):
            flags = (*flags, "--optimizer=adam:lr=0.01")
        self.gpuc("gpuc-compile", "next.mlir", *flags, "-o", "next.plan")
        result = self.run_tool("gpuc-train", "next.plan", *TRAIN, f"--ranks={ranks}", f"--steps={steps}")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def test_shared_out_otherwise(self):
        for ranks, flags in (
            (1, [f"--batch={ROWS}"]), (1, ["--accumulate=4"]), (1, ["--emulate-ranks=4"]), (4, ["--data-parallel"]),
            (1, [f"--batch={ROWS}", "--seed=7"]),  # the checkpoint's seed holds
            (2, ["--batch=16", "--data-parallel", "--bucket-size=1KB"]),
            (2, ["--accumulate=2", "--data-parallel", "--shard=optimizer", "--world-size=2"]),
        ):
            self.assertEqual(self.said(*flags, ranks=ranks), "", flags)

    def test_computed_otherwise(self):
        for flags in (["-O0"], ["--checkpoint=full"], ["--memory-budget=1GiB"], ["--check-numerics"], ["--no-predict"]):
            self.assertNotIn(SAID, self.said(f"--batch={ROWS}", *flags), flags)
        unnamed = self.model.replace("kaiming_uniform", "kaiming_normal").replace('loc("fc1")', 'loc("layer")')
        self.assertNotEqual(unnamed, self.model)
        self.assertEqual(self.said(f"--batch={ROWS}", text=unnamed), "")

    def test_whichever_stage_it_is_made_of(self):
        self.gpuc("gpuc-compile", "mlp.mlir", f"--batch={ROWS}", "--optimizer=adam:lr=0.01", "--emit=gpuc", "-o", "recipe.mlir")
        self.gpuc("gpuc-compile", "recipe.mlir", "--emit=train", "-o", "step.mlir")
        self.gpuc("gpuc-compile", "step.mlir", "-o", "next.plan")
        self.assertEqual(self.run_tool("gpuc-train", "next.plan", *TRAIN, "--steps=2").stderr, "")

    def test_something_else(self):
        twice = "%twice = gpuc.add %loss, %loss : tensor<f32>\n    return %twice, %loss_0 : "
        for flags, old, new in (
            (["--optimizer=adam:lr=0.1"], "", ""), (["--optimizer=adamw:lr=0.01"], "", ""), (["--schedule=step:step_size=2"], "", ""),
            (["--precision=bf16"], "", ""), (["--clip-norm=1"], "", ""), (["--group=match=fc1.*,lr=0.1"], "", ""),
            ([], "gpuc.relu", "gpuc.tanh"), ([], "0.003921569", "0.007843138"), ([], "return %loss, %loss_0 : ", twice),
        ):
            text = self.model.replace(old, new)
            self.assertTrue(old == "" or text != self.model, old)
            self.assertIn(SAID, self.said(f"--batch={ROWS}", *flags, text=text), (flags, new))


if __name__ == "__main__":
    unittest.main()
