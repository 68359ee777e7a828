"""Updates where gradients appear (plan-update-in-products), in products and convolutions: the same bits as with each gradient
stored, no higher peak, and fewer bytes to move; and none where somebody wants a gradient as a whole.
"""

import itertools
import json
import os
import random
import re
import unittest

from gpuc_tools import ToolTest, sha256

STEPS = 3
WIDE = ["mlp", "pixels=false", "input=200", "hidden=130,96", "classes=70"]
TEXT = ["gpt2", "layers=2", "heads=4", "width=64", "length=32", "vocabulary=90"]
ADAMW, MOMENTUM = "--optimizer=adamw:lr=1e-3,weight_decay=0.1", "--optimizer=sgd:lr=0.1,momentum=0.9,nesterov=true"

# Key by key, and how many updates are in products at least.
CASES = [
    (WIDE + ["batch=9"], ["--optimizer=sgd:lr=0.1"], 3),
    (WIDE + ["batch=33"], [ADAMW, "--ema=ema:decay=0.99"], 3),
    (WIDE + ["batch=33"], [MOMENTUM], 3),
    (WIDE + ["batch=20", "dtype=f64"], [ADAMW], 3),
    (["mlp", "pixels=false", "input=4097", "hidden=3", "classes=3", "batch=5"], ["--optimizer=lion"], 1),  # a width without divisors
    # Of all 69 * 37 elements one is left over behind whole vectors, of each row 5.
    (["mlp", "pixels=false", "input=37", "hidden=69", "batch=8", "dtype=f64"], ["--optimizer=sgd:lr=0.1"], 1),
    (WIDE + ["batch=8"], ["--optimizer=muon:lr=0.01"], 3),  # of which the momentum is an update
    (TEXT + ["batch=3"], [ADAMW], 4),
    (["transformer", "width=64", "heads=4", "layers=1", "feedforward=96", "src_vocabulary=60", "tgt_vocabulary=70", "length=12",
      "batch=3"], [ADAMW], 4),
    (["lstm-generator", "embedding=48", "hidden=64", "length=8", "batch=7"], ["--optimizer=sgd:lr=0.1"], 1),
    (["convnet", "size=20", "batch=5"], [], 2),
    (["resnet18", "size=40", "width=32", "classes=10", "batch=5"], [ADAMW], 19),
    (["resnet18", "size=40", "width=32", "classes=10", "batch=3"], [MOMENTUM], 19),
    (["resnet50", "size=33", "width=16", "classes=10", "batch=4"], [MOMENTUM, "--ema=ema:decay=0.99"], 42),
]
# What wants a gradient as a whole.
FORBIDDEN = [["--clip-norm=1"], ["--skip=outliers:grad_norm=6"], ["--accumulate=2"], ["--data-parallel"], ["--precision=fp16"],
             ["--clip-value=0.01"], ["--optimizer=adafactor"], ["--target=cuda:sm_90"]]
PASSES = ["--gpuc-to-plan=target=host", "--plan-order", "--plan-bucket-all-reduces", "--plan-assign-streams",
          "--plan-group-launches", "--plan-place-buffers", "--plan-parallelize", "--plan-verify"]


def updates_in(text):
    return re.findall(r"plan.(?:matmul|conv) .* update @(\S+)\(", text.split("plan.program @train_step")[1].split("plan.program")[0])


def peak_of(text):
    return int(re.search(r"plan.program @train_step peak (\d+)", text)[1])


class UpdatesInProducts(ToolTest):
    def model(self, keys):
        self.gpuc("gpuc-model", *keys, "-o", self.path("model.mlir"))
        return self.path("model.mlir")

    def planned(self, name, passes):
        text = self.gpuc("gpuc-opt", self.path("step.mlir"), *passes)
        self.gpuc("gpuc-compile", self.write(name + ".mlir", text), "-o", self.path(name + ".plan"),
                  "--report=" + self.path(name + ".json"))
        return text

    def trained(self, name, threads):
        """Hashes of all variables and outputs after the steps."""
        folder = self.path(f"{name}-{threads}")
        self.gpuc("gpuc-run", self.path(name + ".plan"), "--entry=train_step", f"--threads={threads}", f"--repeat={STEPS}",
                  "--output-dir=" + folder, "--save-variables=" + folder + ".safetensors", "--check-memory")
        hashes = {file: sha256(os.path.join(folder, file)) for file in os.listdir(folder)}
        self.assertIn("grad_norm.npy", hashes)
        return hashes | {"variables": sha256(folder + ".safetensors")}

    def bytes_moved(self, name):
        with open(self.path(name + ".json"), encoding="utf-8") as file:
            work = json.load(file)["work"]
        return sum((entry["bytes_read"] + entry["bytes_written"]) * entry["executions"]
                   for entry in work if entry["entry"] == "train_step")

    def check(self, keys, flags, least, threads=(1, 2, 3, 5)):
        self.write("step.mlir", self.gpuc("gpuc-compile", self.model(keys), "--emit=train", *flags))
        stored = self.planned("stored", PASSES)
        joined = self.planned("joined", PASSES[:2] + ["--plan-update-in-products"] + PASSES[2:])
        self.assertEqual(updates_in(stored), [])
        self.assertGreaterEqual(len(updates_in(joined)), least)
        self.assertLessEqual(peak_of(joined), peak_of(stored))
        self.assertLess(self.bytes_moved("joined"), self.bytes_moved("stored"))
        expected = self.trained("stored", 1)
        for count in threads:
            self.assertEqual(self.trained("joined", count), expected, count)
        print(*keys, *flags, f"{len(updates_in(joined))} updates in products, peak {peak_of(stored)} -> {peak_of(joined)}, "
              f"bytes {self.bytes_moved('stored')} -> {self.bytes_moved('joined')}", flush=True)

    def test_bits_are_those_of_stored_gradients(self):
        for keys, flags, least in CASES:
            with self.subTest(keys=keys, flags=flags):
                self.check(keys, flags, least)

    def test_bits_of_random_widths(self):
        """Rows of a product's tile end amid vectors, each as all elements together need not. $GPUC_WIDTHS: of so many models."""
        draw = random.Random(7)
        one_over = [size for size in itertools.product(range(33, 300), range(65, 300)) if size[0] * size[1] % 16 == 1]
        for index in range(int(os.environ.get("GPUC_WIDTHS", "6"))):
            size = draw.choice(one_over) if index % 2 else (draw.randint(33, 300), draw.randint(65, 300))
            keys = ["mlp", "pixels=false", f"input={size[0]}", f"hidden={size[1]},{draw.randint(65, 300)}",
                    f"classes={draw.randint(2, 40)}", f"batch={draw.choice((5, 8, 17, 32, 65))}", f"dtype={draw.choice(('f32', 'f64'))}"]
            optimizer = draw.choice(("sgd:lr=0.1", "sgd:lr=0.1,momentum=0.9", "adamw:lr=1e-3", "lion"))
            with self.subTest(keys=keys, optimizer=optimizer):
                self.check(keys, ["--optimizer=" + optimizer], 1, (2,))

    def test_who_wants_a_gradient_as_a_whole_gets_it(self):
        for keys, whole in (WIDE + ["batch=8"], 3), (["convnet", "size=20", "batch=5"], 2):
            source = self.model(keys)
            self.assertEqual(len(updates_in(self.gpuc("gpuc-compile", source, "--emit=plan"))), whole)
            for flags in FORBIDDEN:
                with self.subTest(keys=keys, flags=flags):
                    self.assertEqual(updates_in(self.gpuc("gpuc-compile", source, "--emit=plan", *flags)), [])


if __name__ == "__main__":
    unittest.main()
