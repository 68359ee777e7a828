"""Models of PyTorch become plans that train as PyTorch does: imported from ONNX with --loss, compiled, trained by the tools.

20 losses in f64 to 1e-8 of PyTorch's, and the outputs in eval mode after that, from the weights in the file and the same
batches. pytorch_models.py wrote the models and the numbers in Inputs; where PyTorch is installed it also exports them anew,
and the same is asked of what it writes.
"""

import array
import json
import os
import subprocess
import tempfile
import unittest

import pytorch_cases
from gpuc_tools import ToolTest
from tensor_files import read_npy_bytes, read_safetensors, write_npy

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's, for which python3-torch is.
TOLERANCE = 1e-8


# One with the packages that docs/onnx.md names, which Debian has not.
NEW_PYTHON = os.environ.get("GPUC_TORCH_PYTHON", PYTHON)
PAGE = os.path.join(HERE, "..", "..", "docs", "onnx.md")


def imports(python, modules):
    try:
        return subprocess.run([python, "-c", "import " + modules], capture_output=True).returncode == 0
    except OSError:
        return False


def has_torch():
    return imports(PYTHON, "torch, torch.onnx")


def block_after(text, begin):
    """The rest of the first block of code that begins so."""
    block = text[text.index(begin) + len(begin):]
    return block[:block.index("```")]


class PyTorch(ToolTest):
    def write_fields(self, name, rows=None):
        paths = {}
        for field, (dtype, shape, values) in pytorch_cases.data(name).items():
            kept = shape if rows is None else [rows, *shape[1:]]
            paths[field] = self.path(f"{field}-{kept[0]}.npy")
            write_npy(paths[field], dtype, kept, values[:len(values) * kept[0] // shape[0]])
        return paths

    def compile(self, folder, name):
        case = pytorch_cases.CASES[name]
        self.gpuc("gpuc-import-onnx", os.path.join(folder, name + ".onnx"), "--loss=cross_entropy", *case["import"],
                  "-o", self.path(name + ".mlir"))
        self.gpuc("gpuc-compile", self.path(name + ".mlir"), "--optimizer=" + case["optimizer"], *case["compile"],
                  "-o", self.path(name + ".plan"))

    def train(self, name):
        fields = ",".join(f"{field}={path}" for field, path in self.write_fields(name).items())
        self.gpuc("gpuc-train", self.path(name + ".plan"), "--data=npy:" + fields, "--no-shuffle", "--log-every=0",
                  f"--steps={pytorch_cases.STEPS}", "--variables=" + self.path(name + ".safetensors"),
                  "--save-variables=" + self.path("trained.safetensors"), "--metrics=" + self.path("metrics.jsonl"))
        return [event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")]

    def predict(self, name):
        x = self.write_fields(name, pytorch_cases.BATCH)["x"]
        self.gpuc("gpuc-run", self.path(name + ".plan"), "--entry=predict", "--input", "x=" + x,
                  "--variables=" + self.path("trained.safetensors"), "--output-dir=" + self.folder)
        return array.array("d", read_npy_bytes(self.path("logits.npy"))).tolist()

    def check(self, what, ours, theirs):
        self.assertEqual(len(ours), len(theirs), what)
        for place, (mine, other) in enumerate(zip(ours, theirs)):
            self.assertLessEqual(abs(mine - other), TOLERANCE * max(abs(other), 1),
                                 f"{what} {place}: gpuc {mine!r}, PyTorch {other!r}")

    def check_folder(self, folder):
        with open(os.path.join(folder, "pytorch_losses.json"), encoding="utf-8") as file:
            kept = json.load(file)
        for name in pytorch_cases.CASES:
            with self.subTest(name):
                self.compile(folder, name)
                self.check("loss", self.train(name), kept[name]["losses"])
                self.check("logit", self.predict(name), kept[name]["logits"])
        with self.subTest("statistics"):  # The export's own pass over the model has not moved them.
            self.compile(folder, "convnet")
            weights = read_safetensors(self.path("convnet.safetensors"))
            self.assertEqual(weights["bn1.running_mean"], [5, 6, 7, 8])

    def test_kept(self):
        self.check_folder(os.path.join(HERE, "Inputs"))

    @unittest.skipUnless(has_torch(), f"{PYTHON} has no torch")
    def test_exported_anew(self):
        with tempfile.TemporaryDirectory(prefix="gpuc-pytorch-") as folder:
            subprocess.run([PYTHON, "-B", os.path.join(HERE, "pytorch_models.py"), folder], check=True, timeout=300)
            self.check_folder(folder)

    @unittest.skipUnless(imports(NEW_PYTHON, "torch, onnx, onnxscript"), "GPUC_TORCH_PYTHON names no Python with torch, onnx "
                         "and onnxscript")
    def test_example_of_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        names = "\nimport json\n"
        names += "print(json.dumps([[name for name, _ in made] for made in (net.named_parameters(), net.named_buffers())]))\n"
        script = self.write("net.py", block_after(page, "```python\n") + names)
        printed = subprocess.run([NEW_PYTHON, "-B", script], cwd=self.folder, capture_output=True, text=True, check=True,
                                 timeout=self.timeout_s).stdout
        parameters, buffers = json.loads(printed.splitlines()[-1])
        imported = self.run_tool("gpuc-import-onnx", "net.onnx", "--loss=cross_entropy")
        self.assertEqual(imported.returncode, 0, imported.stderr)
        rows = [line.split() for line in imported.stderr.splitlines() if line.startswith("  ")]
        self.assertEqual(sorted(row[1] for row in rows if row[0] == "trained"), sorted(parameters))
        self.assertEqual(sorted(row[1] for row in rows if row[0] == "statistic"),
                         sorted(name for name in buffers if not name.endswith("num_batches_tracked")))
        for line in block_after(page, "$ gpuc-import-onnx net.onnx --loss=cross_entropy\n").split("$")[0].splitlines():
            if line != "  …":
                self.assertIn(line + "\n", imported.stderr)
        with open(self.path("net.mlir"), encoding="utf-8") as file:
            module = file.read()
        self.assertEqual((module.count("gpuc.batch_norm "), module.count("gpuc.dropout ")), (2, 1))
        self.gpuc("gpuc-compile", "net.mlir", "--batch=64", "--optimizer=adam:lr=0.001", "-o", "net.plan")
        self.gpuc("gpuc-train", "net.plan", "--data=synthetic:size=128", "--variables=net.safetensors",
                  "--save-variables=trained.safetensors")
        trained = read_safetensors(self.path("trained.safetensors"))
        self.assertLessEqual({*parameters}, trained.keys())

    def test_what_is_frozen_stays(self):
        # A buffer that --freeze names, and a mask, which its infinities give away.
        self.compile(os.path.join(HERE, "Inputs"), "language")
        self.train("language")
        before, after = (read_safetensors(self.path(stem + ".safetensors")) for stem in ("language", "trained"))
        self.assertEqual({name for name in before if before[name] == after[name]}, {"mask", "places.pe"})


if __name__ == "__main__":
    unittest.main()
