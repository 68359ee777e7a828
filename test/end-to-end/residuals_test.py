"""What kernels compute again for the backward pass, since it would cost more to keep it (RepeatResults.h): gone from the
residuals of the report, and the update is that of a plan in which each op is a kernel of its own."""

import json
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors

# What waits for the backward pass is more than the caches hold: keys of the model, the most bytes of its residuals.
MODELS = [
    # The pixels, the product before each activation, a mask: no tanh or erf, which take a MiB each, and nothing that the
    # activations give, a MiB each, which is written again.
    (["mlp", "hidden=64,64", "dropout=0.2", "activation=gelu", "batch=2048"], 15_400_000),
    (["mlp", "hidden=64,64", "dropout=0.2", "activation=gelu_tanh", "batch=2048"], 15_400_000),
    # Its first relu is read by a pooling: 16 · 8 · 32 · 32 f64 that the gradient makes of the convolution's again.
    (["resnet18", "size=64", "width=8", "classes=5", "batch=16"], 7_300_000),
]


class Residuals(ToolTest):
    def updated(self, name, keys, *flags):
        """The variables after three steps over numbers made of the seed, and the residuals' bytes."""
        report, variables = self.path(name + ".json"), self.path(name + ".safetensors")
        plan = self.compile_model(*keys, flags=["--optimizer=sgd:lr=0.1", "--report=" + report, *flags])
        self.gpuc("gpuc-run", plan, "--entry=train_step", "--repeat=3", "--save-variables=" + variables)
        with open(report, encoding="utf-8") as file:
            return read_safetensors(variables), sum(value["bytes"] for value in json.load(file)["residuals"])

    def test_are_computed_again_to_the_same_update(self):
        for keys, most in MODELS:
            with self.subTest(keys):
                model = [*keys, "dtype=f64"]
                ours, kept = self.updated("ours", model)
                plain, _ = self.updated("plain", model, "-O0")
                self.assert_near(ours, plain, 1e-12)
                self.assertLessEqual(kept, most)


if __name__ == "__main__":
    unittest.main()
