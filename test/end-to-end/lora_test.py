"""Fine-tuning by adapters: base weights stay as they are, cost no gradient, and are not saved a second time."""

import re
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors

KEYS = ["layers=1", "heads=2", "width=8", "length=6", "vocabulary=11", "batch=3"]
LORA = [*KEYS, "lora=2"]
DATA = ["--data=synthetic:size=30", "--log-every=0"]


class Lora(ToolTest):
    def fine_tune(self, *flags):
        """Trains a base model, then adapters on it; gives the plan of both and base.safetensors."""
        base = self.path("base.safetensors")
        self.gpuc("gpuc-train", self.compile_model("gpt2", *KEYS), *DATA, "--steps=5", "--save-variables=" + base)
        plan = self.compile_model("gpt2", *LORA)
        self.gpuc("gpuc-train", plan, *DATA, "--steps=5", "--variables=" + base, *flags)
        return plan, base

    def predict(self, plan, *files):
        """The bytes of predict's logits."""
        self.gpuc("gpuc-run", plan, "--entry=predict", "--output-dir=" + self.path("out"),
                  *("--variables=" + file for file in files))
        with open(self.path("out/logits.npy"), "rb") as file:
            return file.read()

    def test_saves_adapters_alone(self):
        adapters, everything = self.path("adapters.safetensors"), self.path("all.safetensors")
        plan, base = self.fine_tune("--save-trained=" + adapters, "--save-variables=" + everything)
        names = read_safetensors(adapters).keys()
        parameters = {name for name in names if "/" not in name} - {"seed", "step"}
        self.assertEqual(len(parameters), 8)  # four linear layers, A and B
        for name in parameters:
            self.assertRegex(name, r"\.lora_[AB]\.weight$")
        weights, trained = read_safetensors(base), read_safetensors(everything)
        for name in weights:
            if name in trained and name not in ("seed", "step"):
                self.assertEqual(weights[name], trained[name], name)
        self.assertEqual(self.predict(plan, base, adapters), self.predict(plan, everything))
        self.assertNotEqual(self.predict(plan, base, adapters), self.predict(plan, base))

    def test_begins_as_the_base(self):
        plan, base = self.fine_tune()
        self.assertEqual(self.predict(plan, base), self.predict(self.compile_model("gpt2", *KEYS), base))

    def test_goes_on_from_adapters(self):
        first, whole = self.path("first.safetensors"), self.path("whole.safetensors")
        plan, base = self.fine_tune("--save-trained=" + first)
        self.gpuc("gpuc-train", plan, *DATA, "--steps=1", "--variables=" + base, "--variables=" + first,
                  "--save-variables=" + whole)
        self.assertEqual(read_safetensors(whole)["step"], [6])

    def test_base_costs_no_gradient(self):
        self.gpuc("gpuc-model", "gpt2", *LORA, "-o", self.path("lora.mlir"))
        self.gpuc("gpuc-compile", self.path("lora.mlir"), "--emit=train", "-o", self.path("train.mlir"))
        with open(self.path("train.mlir"), encoding="utf-8") as file:
            step = re.search(r"@train_step.*?\n  }", file.read(), re.S).group()
        # The feedforward's weight is the one tensor of this shape: only reading gives it, and nothing a gradient.
        makers = re.findall(r"= (\S+) [^\n]*tensor<32x8xf32>$", re.sub(r" loc\(.*?\)$", "", step, flags=re.M), re.M)
        self.assertEqual(set(makers), {"gpuc.read"})
        assigned = re.findall(r"gpuc\.assign [^\n]*@([\w./]+)", step)
        self.assertTrue(assigned)
        for name in assigned:
            self.assertRegex(name, r"lora_[AB]|^step$")

    def test_bad_files(self):
        plan, base = self.fine_tune("--save-trained=" + self.path("adapters.safetensors"))
        for flags, message in (
                (["--variables=" + self.path("adapters.safetensors")], "does not fit the plan's variables: missing"),
                (["--variables=" + base, "--save-trained=" + base], "base.safetensors")):
            result = self.run_tool("gpuc-train", plan, *DATA, "--steps=1", *flags)
            self.assertEqual((result.returncode, result.stderr.count("\n")), (1, 1), result.stderr)
            self.assertIn(message, result.stderr)


if __name__ == "__main__":
    unittest.main()
