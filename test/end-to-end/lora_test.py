"""Fine-tuning by adapters: base weights stay as they are, cost no gradient, and are not saved a second time."""

import json
import os
import re
import struct
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors

# A body of which adapters are trained, and a head for a new task.
TUNED = """module @tuned {
  gpuc.variable @body.weight frozen : tensor<6x4xf32> init uniform(bound = 0.5)
  gpuc.variable @body.lora_A.weight : tensor<2x4xf32> init uniform(bound = 0.5)
  gpuc.variable @body.lora_B.weight : tensor<6x2xf32> init zeros
  gpuc.variable @head.weight : tensor<CLASSESx6xf32> init uniform(bound = 0.5)
  func.func @predict(%x: tensor<?x4xf32> {gpuc.name = "x"}) -> (tensor<?xCLASSESxf32> {gpuc.name = "logits"}) {
    %w = gpuc.read @body.weight : tensor<6x4xf32>
    %a = gpuc.read @body.lora_A.weight : tensor<2x4xf32>
    %b = gpuc.read @body.lora_B.weight : tensor<6x2xf32>
    %head = gpuc.read @head.weight : tensor<CLASSESx6xf32>
    %h = gpuc.matmul %x, transpose %w : (tensor<?x4xf32>, tensor<6x4xf32>) -> tensor<?x6xf32>
    %l = gpuc.matmul %x, transpose %a : (tensor<?x4xf32>, tensor<2x4xf32>) -> tensor<?x2xf32>
    %m = gpuc.matmul %l, transpose %b : (tensor<?x2xf32>, tensor<6x2xf32>) -> tensor<?x6xf32>
    %s = gpuc.add %h, %m : tensor<?x6xf32>
    %y = gpuc.matmul %s, transpose %head : (tensor<?x6xf32>, tensor<CLASSESx6xf32>) -> tensor<?xCLASSESxf32>
    return %y : tensor<?xCLASSESxf32>
  }
  func.func @loss(%x: tensor<?x4xf32> {gpuc.name = "x"}, %y: tensor<?xi32> {gpuc.name = "y", gpuc.range = CLASSES})
      -> (tensor<f32>, tensor<f32>) {
    %p = call @predict(%x) : (tensor<?x4xf32>) -> tensor<?xCLASSESxf32>
    %s, %c = gpuc.cross_entropy %p, %y : (tensor<?xCLASSESxf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    return %s, %c : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 4, optimizer = adam(lr = 0.1) }
}
"""

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

    def tuned(self, classes):
        self.write("tuned.mlir", TUNED.replace("CLASSES", str(classes)))
        self.gpuc("gpuc-compile", "tuned.mlir", "-o", f"tuned{classes}.plan")
        return f"tuned{classes}.plan"

    def train(self, plan, *files, steps=2):
        """Trains from the files; gives what is said on stderr and what was trained, all of it."""
        result = self.run_tool("gpuc-train", plan, *DATA, f"--steps={steps}", *("--variables=" + file for file in files),
                               "--save-trained=trained.safetensors", "--save-variables=all.safetensors")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr, read_safetensors(self.path("all.safetensors"))

    def test_adapters_and_a_fresh_head(self):
        """The base has the head of another task, of more classes. Adapters and the new head begin anew on it, and come back
        from the one file in which they were saved."""
        _, base = self.train(self.tuned(5))
        os.rename(self.path("all.safetensors"), self.path("base.safetensors"))
        self.write_without("body.safetensors", "base.safetensors", "lora")  # as it was before anyone adapted it
        plan = self.tuned(3)
        said, first = self.train(plan, "body.safetensors")
        self.assertEqual(said, "warning: body.safetensors holds of the 3 parameters that are trained not all; as init makes them "
                               "begin body.lora_A.weight, body.lora_B.weight, head.weight (5x6xf32, the plan has 3x6xf32)\n")
        self.assertEqual((first["body.weight"], first["step"]), (base["body.weight"], [2]))
        os.rename(self.path("trained.safetensors"), self.path("tuned.safetensors"))
        os.rename(self.path("all.safetensors"), self.path("whole.safetensors"))
        for at in ("body.safetensors", "base.safetensors"):  # whatever of them the base has
            self.assertEqual(self.predict(plan, at, "tuned.safetensors"), self.predict(plan, "whole.safetensors"))
            said, second = self.train(plan, at, "tuned.safetensors")
            self.assertEqual((said, second["step"]), ("", [4]))

    def test_names_what_begins_anew(self):
        plan = self.tuned(3)
        self.train(plan)
        os.rename(self.path("all.safetensors"), self.path("whole.safetensors"))
        for left, fresh in (("head", "head.weight"), ("lora", "body.lora_A.weight, body.lora_B.weight")):
            self.write_without("part.safetensors", "whole.safetensors", left)
            said, variables = self.train(plan, "part.safetensors")
            self.assertEqual(said, "warning: part.safetensors holds of the 3 parameters that are trained not all; as init makes "
                                   f"them begin {fresh}\n")
            self.assertEqual(variables["step"], [2])
        # A file of what was trained holds what the plan trains, or it is another plan's.
        self.train(self.tuned(5))
        result = self.run_tool("gpuc-train", plan, *DATA, "--steps=1", "--variables=whole.safetensors",
                               "--variables=trained.safetensors")
        self.assertEqual(result.returncode, 1)
        self.assertIn("of another shape or type head.weight (5x6xf32, the plan has 3x6xf32) in trained.safetensors", result.stderr)

    def write_without(self, name, source, part):
        """A copy of a file of weights, without those whose name holds `part` and without the optimizer's state."""
        with open(self.path(source), "rb") as file:
            size = struct.unpack("<Q", file.read(8))[0]
            header, data = json.loads(file.read(size)), file.read()
        kept, bytes_ = {}, b""
        for tensor, entry in header.items():
            if tensor != "__metadata__" and part not in tensor and "/" not in tensor:
                begin, end = entry["data_offsets"]
                kept[tensor] = {**entry, "data_offsets": [len(bytes_), len(bytes_) + end - begin]}
                bytes_ += data[begin:end]
        text = json.dumps(kept).encode()
        self.write(name, struct.pack("<Q", len(text)) + text + bytes_)

    def test_says_what_has_no_adapter(self):
        result = self.run_tool("gpuc-model", "gpt2", *LORA, "-o", "lora.mlir")
        self.assertRegex(result.stderr, "^warning: no adapter for .*wte.weight, .*wpe.weight: [^\n]*\n$")
        self.assertEqual(self.run_tool("gpuc-model", "gpt2", *KEYS, "-o", "base.mlir").stderr, "")

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
