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


def has_torch():
    try:
        return subprocess.run([PYTHON, "-c", "import torch, torch.onnx"], capture_output=True).returncode == 0
    except OSError:
        return False


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

    def test_what_is_frozen_stays(self):
        # A buffer that --freeze names, and a mask, which its infinities give away.
        self.compile(os.path.join(HERE, "Inputs"), "language")
        self.train("language")
        before, after = (read_safetensors(self.path(stem + ".safetensors")) for stem in ("language", "trained"))
        self.assertEqual({name for name in before if before[name] == after[name]}, {"mask", "places.pe"})


if __name__ == "__main__":
    unittest.main()
