"""Every model that gpuc-model lists trains to the same bits with 1, 2 and 3 threads, and no step allocates.

With the sizes of zoo_cases.py most commands would be left to one thread, and a run compared with itself. Here a tenth to a
half of each model's commands are cut into as many parts as there are threads, or nearly: those of convolutions, matmuls,
attention and generated kernels.
"""

import json
import os
import unittest

from gpuc_tools import ToolTest, sha256

STEPS = 3
THREADS = (1, 2, 3)
# Batches are odd, so that parts differ in size. Attention has so few heads and so many keys that its gradient is added up
# from parts.
TEXT = ["layers=1", "heads=4", "width=64", "length=80", "vocabulary=90", "dropout=0.1", "batch=3"]
MODELS = {
    "linear-regression": [["in=600", "out=40", "batch=257"]],
    "mlp": [["hidden=96,64", "dropout=0.2", "batch=65"]],
    "convnet": [["in_channels=2", "size=20", "batch=13"]],
    "rnn-classifier": [["cell=" + cell, "steps=5", "width=16", "hidden=96", "layers=2", "dropout=0.2", "bidirectional=true",
                        "batch=65"] for cell in ("rnn", "lstm", "gru")],
    "lstm-generator": [["embedding=32", "hidden=64", "length=8", "dropout=0.2", "batch=33"]],
    "transformer": [["width=64", "heads=4", "layers=1", "feedforward=128", "src_vocabulary=60", "tgt_vocabulary=70",
                     "length=72", "batch=3"]],
    "resnet18": [["size=40", "width=16", "classes=20", "batch=5"]],
    "resnet50": [["size=64", "width=8", "classes=20", "batch=5"]],
    "gpt2": [TEXT, TEXT + ["lora=4"]],
}


class ZooThreads(ToolTest):
    def trained(self, plan, threads):
        """Hashes of all variables and outputs after the steps; allocations in the step that had most."""
        folder = self.path(f"threads-{threads}")
        report = json.loads(self.gpuc("gpuc-run", plan, "--entry=train_step", f"--threads={threads}", f"--repeat={STEPS}",
                                      "--output-dir=" + folder, "--save-variables=" + folder + ".safetensors", "--json=-"))
        hashes = {name: sha256(os.path.join(folder, name)) for name in os.listdir(folder)}
        self.assertIn("loss_sum.npy", hashes)
        return hashes | {"variables": sha256(folder + ".safetensors")}, report["allocations_per_step"]

    def check(self, model, keys):
        plan = self.compile_model(model, *keys)
        expected, _ = self.trained(plan, 1)
        for threads in THREADS:
            with self.subTest(model=model, keys=keys, threads=threads):
                bits, allocations = self.trained(plan, threads)
                self.assertEqual(bits, expected)
                self.assertEqual(allocations, 0)

    def test_every_model(self):
        listed = [line.split(":")[0] for line in self.gpuc("gpuc-model", "--list").splitlines() if line[0] != " "]
        self.assertEqual(set(listed), set(MODELS), "each model of gpuc-model has sizes here")
        for model in listed:
            for keys in MODELS[model]:
                self.check(model, keys)


if __name__ == "__main__":
    unittest.main()
