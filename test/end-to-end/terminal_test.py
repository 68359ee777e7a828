"""Names from files and command lines give no orders to a terminal: whatever a tool prints of them is printable. A plan that
would bring some is refused when it is read (test/runtime/plan_text_test.cpp), and not written."""

import os
import re
import subprocess
import unittest

from gpuc_tools import BIN, ToolTest
from tensor_files import write_safetensors

# A color, a title, a bell, two lines, DEL, U+009B by UTF-8, text from right to left, an isolate, a line's end.
ORDERS = ["\x1b[31m", "\x1b]0;title\x07", "\x07", "a\nerror: b", "\x7f", "\u009b31m", "\u202e", "\u2066", "\u2028"]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

MODEL = """module @NAME {
  gpuc.variable @"VARIABLE" : tensor<4xf32> init zeros
  func.func @"ENTRY"(%x: tensor<?x4xf32> {gpuc.name = "INPUT"}) -> (tensor<?x4xf32> {gpuc.name = "OUTPUT"}) {
    %w = gpuc.read @"VARIABLE" : tensor<4xf32>
    %b = gpuc.broadcast %w dims [1] : tensor<4xf32> to tensor<?x4xf32>
    %y = gpuc.add %x, %b : tensor<?x4xf32> loc("LAYER")
    return %y : tensor<?x4xf32>
  }
}
"""
NAMES = {"NAME": "m", "VARIABLE": "w", "ENTRY": "predict", "INPUT": "x", "OUTPUT": "y", "LAYER": "layer"}


def in_mlir(text):
    return "".join(c if c.isascii() and c.isprintable() else "".join(f"\\{b:02X}" for b in c.encode()) for c in text)


class Terminal(ToolTest):
    def shows(self, tool, *arguments, fails=True):
        """What a tool prints, of which nothing is obeyed; an error is one line."""
        result = subprocess.run([os.path.join(BIN, tool), *arguments], cwd=self.folder, capture_output=True, timeout=self.timeout_s)
        out, err = (text.decode("utf-8", "strict") for text in (result.stdout, result.stderr))
        for text in (out, err):
            self.assertIsNone(OBEYED.search(text), [tool, *arguments, text])
        self.assertEqual(fails, result.returncode != 0, err)
        if fails:
            self.assertRegex(err, r"\Aerror: [^\n]*\n\Z")
        return out + err

    def model(self, **names):
        text = MODEL
        for name, value in {**NAMES, **names}.items():
            quoted = in_mlir(value)
            text = text.replace(name, f'"{quoted}"' if name == "NAME" else quoted)
        self.write("model.mlir", text)

    def test_names_of_a_model(self):
        for order in ORDERS:
            for name in ("NAME", "VARIABLE", "ENTRY", "INPUT", "OUTPUT"):
                self.model(**{name: "n" + order})
                self.assertIn("a control character in it", self.shows("gpuc-compile", "model.mlir", "--batch=4", "-o", "new.plan"))
                self.assertFalse(os.path.exists(self.path("new.plan")))

    def test_layers_are_shown(self):
        for order in ORDERS:
            self.model(LAYER="n" + order)
            self.shows("gpuc-compile", "model.mlir", "--batch=4", "-o", "model.plan", fails=False)
            for flags in (["--activations", "--variables"], ["--json"], ["--html=page.html"]):
                self.shows("gpuc-inspect", "model.plan", *flags, fails=False)
            with open(self.path("page.html"), encoding="utf-8") as page:
                self.assertIsNone(OBEYED.search(page.read()))
            self.shows("gpuc-run", "model.plan", "--entry=predict", "--profile=profile.json", fails=False)

    def test_names_of_files_flags_and_tensors(self):
        self.model()
        self.gpuc("gpuc-compile", "model.mlir", "--batch=4", "-o", "model.plan")
        for order in ORDERS:
            name = "n" + order
            self.write("model" + order, "no model")
            for tool, *arguments in (
                ("gpuc-compile", name, "-o", "new"), ("gpuc-compile", "model" + order, "-o", "new"), ("gpuc-compile", "--" + name),
                ("gpuc-compile", "model.mlir", "--batch=" + name), ("gpuc-compile", "model.mlir", "--optimizer=" + name, "-o", "new"),
                ("gpuc-run", name, "--entry=x"), ("gpuc-run", "model" + order, "--entry=x"), ("gpuc-run", "model.plan", "--entry=" + name),
                ("gpuc-run", "model.plan", "--entry=predict", "--input=" + name), ("gpuc-run", "model.plan", "--entry=predict", "--device=" + name),
                ("gpuc-run", "model.plan", "--entry=predict", f"--input={name}={name}"),
                ("gpuc-run", "model.plan", "--entry=predict", "--variables=" + name),
                ("gpuc-train", name, "--data=synthetic:size=4"), ("gpuc-train", "model.plan", "--data=" + name),
                ("gpuc-train", "model.plan", "--data=npy:x=" + name), ("gpuc-generate", name, "--variables=a", "--prompt=b", "--tokens=1"),
                ("gpuc-inspect", name), ("gpuc-inspect", "model" + order), ("gpuc-inspect", "model.plan", "--html=no/" + name),
                ("gpuc-import-onnx", name), ("gpuc-import-onnx", "model" + order), ("gpuc-model", name), ("gpuc-model", "mlp", name + "=3"),
                ("gpuc-place-buffers", "--input=" + name, "--output=new"), ("gpuc-place-buffers", "--input=model" + order, "--output=new"),
            ):
                with self.subTest(" ".join([tool, *arguments])):
                    self.shows(tool, *arguments)
            write_safetensors(self.path("weights.safetensors"), "f32", {"w": ([4], [0.0] * 4), name: ([4], [0.0] * 4)})
            self.assertIn("weights.safetensors", self.shows("gpuc-run", "model.plan", "--entry=predict", "--variables=weights.safetensors"))


if __name__ == "__main__":
    unittest.main()
