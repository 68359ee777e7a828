"""In bf16 and fp16 models of the zoo reach the loss that they reach in f32; weights stay f32 and hold what 16 bits would
lose; the report says what was computed how."""

import json
import os
import struct
import unittest

from gpuc_tools import ToolTest
from tensor_files import hashed, read_npy_bytes, read_safetensors, uniform, write_npy

STEPS = 60

# y = x · w, and the loss is y: with x = 1 the gradient is 1.
SLOPE = """
module @slope {
  gpuc.variable @w : tensor<1x1xf32> init ones
  func.func @loss(%x: tensor<?x1xf32> {gpuc.name = "x"}) -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<1x1xf32>
    %y = gpuc.matmul %x, %w : (tensor<?x1xf32>, tensor<1x1xf32>) -> tensor<?x1xf32>
    %sum = gpuc.sum %y dims [0, 1] : (tensor<?x1xf32>) -> tensor<f32>
    %one = gpuc.constant 1.0 : tensor<f32>
    return %sum, %one : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 1, optimizer = sgd(lr = 2.44140625e-4) }
}
"""


# One row a step, so that the whole scale, 65536, flows back into the op: more than f16 holds.
FUSED = """
module @fused {
  gpuc.variable @w : tensor<3x4xf32> init zeros
  func.func @loss(%x: tensor<?x4xf32> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 3})
      -> (tensor<f32>, tensor<f32>) {
    %w = gpuc.read @w : tensor<3x4xf32>
    %sum, %count = gpuc.linear_cross_entropy %x, %w labels %labels
        : (tensor<?x4xf32>, tensor<3x4xf32>, tensor<?xi32>) -> (tensor<f32>, tensor<f32>)
    return %sum, %count : tensor<f32>, tensor<f32>
  }
  gpuc.recipe { loss = @loss, batch = 1, optimizer = sgd(lr = 0.1) }
}
"""


class MixedPrecision(ToolTest):
    def pictures(self, rows):
        """A bright square, whose place is the label, in noise."""
        pixels, labels = [], []
        for row, label in enumerate(h % 4 for h in hashed(rows, 31)):
            noise = [h >> 25 for h in hashed(256, 1000 + row)]
            for i in range(8):
                for j in range(8):
                    noise[(i + 8 * (label // 2)) * 16 + j + 8 * (label % 2)] += 24
            pixels += noise
            labels.append(label)
        write_npy(self.path("x.npy"), "ui8", [rows, 1, 16, 16], pixels)
        write_npy(self.path("labels.npy"), "i32", [rows], labels)

    def sentences(self, rows, length):
        """Each token follows from the one before it, but one in four."""
        tokens, labels = [], []
        for row in range(rows):
            sentence = [row % 61]
            for h in hashed(length, 2000 + row):
                sentence.append((sentence[-1] * 5 + 7) % 61 if h % 4 else (h >> 8) % 61)
            tokens += sentence[:-1]
            labels += sentence[1:]
        write_npy(self.path("x.npy"), "i32", [rows, length], tokens)
        write_npy(self.path("labels.npy"), "i32", [rows, length], labels)

    def losses(self, model, keys, precision):
        plan = self.compile_model(model, *keys, flags=["--precision=" + precision])
        self.gpuc("gpuc-train", plan, f"--data=npy:x={self.path('x.npy')},labels={self.path('labels.npy')}",
                  f"--steps={STEPS}", "--log-every=0", "--seed=1", "--metrics=" + self.path("metrics.jsonl"))
        return self.metrics(self.path("metrics.jsonl"), "step")

    def compare(self, model, *keys):
        single = [event["loss"] for event in self.losses(model, keys, "f32")]
        expected = sum(single[-10:]) / 10
        self.assertLess(expected, 0.8 * single[0], "f32 has not learned enough to compare with")
        for precision in ("bf16", "fp16"):
            events = self.losses(model, keys, precision)
            kept = [event["loss"] for event in events]
            reached = sum(kept[-10:]) / 10
            print(f"{model} {precision}: {reached:.5f} of {expected:.5f}", flush=True)
            self.assertLessEqual(abs(reached - expected), 0.02 * expected, precision)
            self.assertNotEqual(kept, single, precision + " computed in f32")
            self.assertEqual(events[0]["loss_scale"], 65536 if precision == "fp16" else 1)
            self.assertLessEqual(sum(event["skipped"] for event in events), 3, precision)

    def test_convnet(self):
        self.pictures(512)
        self.compare("convnet", "in_channels=1", "size=16", "classes=4", "batch=32", "optimizer=adam:lr=4e-4")

    def test_gpt2_nano(self):
        self.sentences(120, 64)
        self.compare("gpt2", "size=nano", "vocabulary=61")

    def test_rnn(self):
        self.pictures(512)
        self.compare("rnn-classifier", "steps=16", "width=16", "hidden=32", "classes=4", "batch=32", "optimizer=adam:lr=3e-3")

    def test_fused_loss(self):
        write_npy(self.path("x.npy"), "f32", [64, 4], uniform([64, 4], 41, 0.5))
        write_npy(self.path("labels.npy"), "i32", [64], [h % 3 for h in hashed(64, 42)])
        losses = {}
        for precision in ("f32", "fp16"):
            self.gpuc("gpuc-compile", self.write("fused.mlir", FUSED), "-o", self.path("fused.plan"),
                      "--precision=" + precision)
            self.gpuc("gpuc-train", self.path("fused.plan"), "--no-shuffle", "--steps=64", "--log-every=0",
                      f"--data=npy:x={self.path('x.npy')},labels={self.path('labels.npy')}",
                      "--metrics=" + self.path("metrics.jsonl"))
            events = self.metrics(self.path("metrics.jsonl"), "step")
            self.assertFalse(any(event["skipped"] for event in events), precision)
            losses[precision] = [event["loss"] for event in events]
        for ours, single in zip(losses["fp16"], losses["f32"]):
            self.assertLessEqual(abs(ours - single), 0.005 * single)
        self.assertNotEqual(losses["fp16"], losses["f32"])

    def test_master_weights(self):
        """64 updates of 2⁻¹², each too small for a bf16 near 1, whose steps are 2⁻⁸ below it. In fp16 the first step is
        skipped: the gradient is 1, and the scale more than f16 holds."""
        write_npy(self.path("x.npy"), "f32", [64, 1], [1.0] * 64)
        for precision, updates in (("bf16", 64), ("fp16", 63)):
            plan = self.path("slope.plan")
            self.gpuc("gpuc-compile", self.write("slope.mlir", SLOPE), "-o", plan, "--precision=" + precision)
            self.gpuc("gpuc-train", plan, "--data=npy:x=" + self.path("x.npy"), "--steps=64", "--log-every=0",
                      "--save-variables=" + self.path("last.safetensors"))
            self.assertEqual(read_safetensors(self.path("last.safetensors"))["w"], [1 - updates / 4096], precision)

    def test_prediction_is_of_the_precision(self):
        """The logits come out as f32, and are numbers of bf16: the lower 16 bits are 0."""
        plan = self.compile_model("mlp", "hidden=16", "input=8", "pixels=false", flags=["--precision=bf16"])
        self.gpuc("gpuc-run", plan, "--entry=predict", "--output-dir=" + self.path("out"))
        bits = read_npy_bytes(self.path("out/logits.npy"))
        words = struct.unpack(f"<{len(bits) // 4}I", bits)
        self.assertGreater(len(set(words)), 100)
        self.assertEqual({word & 0xFFFF for word in words}, {0})

    def test_report(self):
        self.gpuc("gpuc-model", "mlp", "-o", self.path("mlp.mlir"))
        self.gpuc("gpuc-compile", self.path("mlp.mlir"), "-o", self.path("mlp.plan"),
                  "--precision=bf16:f32=(fc2,relu)", "--report=" + self.path("report.json"))
        with open(self.path("report.json"), encoding="utf-8") as report:
            rows = {(row["op"], row["layer"]): (row["type"], row["why"]) for row in json.load(report)["precision"]}
        self.assertEqual(rows["matmul", "fc1"], ("bf16", "autocast list: lower"))
        self.assertEqual(rows["add", "fc1"], ("bf16", "bias of a product"))
        self.assertEqual(rows["matmul", "fc2"], ("f32", "override fc2"))
        self.assertEqual({row for (op, _), row in rows.items() if op == "relu"}, {("f32", "override relu")})
        self.assertEqual({row for (op, _), row in rows.items() if op == "cross_entropy"}, {("f32", "autocast list: f32")})


if __name__ == "__main__":
    unittest.main()
