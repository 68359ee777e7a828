"""K microbatches of b rows are one batch of K * b: the same update of each variable, with dropout on and padding in ragged
places, in the memory of b rows. So are N ranks of K microbatches, which assign the mean of their statistics."""

import json
import math
import os
import unittest

from gpuc_tools import ToolTest
from tensor_files import hashed, read_safetensors, uniform, write_npy

MICROBATCHES, ROWS = 4, 2

# model → keys, and fields: field → (shape of a sample, below), or (shape, None) for numbers of the model's type.
MODELS = {
    "linear-regression": ({"in": "5"}, {"x": ([5], None), "y": ([1], None)}),
    "mlp": ({"input": "1x4x4", "hidden": "8", "classes": "3", "dropout": "0.3"}, {"x": ([1, 4, 4], 256), "labels": ([], 3)}),
    "convnet": ({"in_channels": "1", "size": "8", "classes": "3"}, {"x": ([1, 8, 8], 256), "labels": ([], 3)}),
    "rnn-classifier": ({"cell": "gru", "steps": "5", "width": "4", "hidden": "6", "classes": "3", "dropout": "0.3"},
                       {"x": ([1, 5, 4], 256), "labels": ([], 3)}),
    "lstm-generator": ({"layers": "2", "embedding": "5", "hidden": "6", "length": "7", "vocabulary": "11",
                        "dropout": "0.3"}, {"x": ([7], 11), "labels": ([7], 11)}),
    "transformer": ({"width": "8", "heads": "2", "layers": "1", "feedforward": "12", "src_vocabulary": "5",
                     "tgt_vocabulary": "7", "length": "6", "dropout": "0.2"},
                    {"src": ([6], 5), "tgt": ([6], 7), "labels": ([6], 7)}),
    "gpt2": ({"layers": "2", "heads": "2", "width": "8", "length": "6", "vocabulary": "11"},
             {"x": ([6], 11), "labels": ([6], 11)}),
    "gpt2 with dropout": ({"layers": "2", "heads": "2", "width": "8", "length": "6", "vocabulary": "11", "dropout": "0.2"},
             {"x": ([6], 11), "labels": ([6], 11)}),
}


def ragged(row, shape, values):
    """Tokens of sequences that end at different places: 0 pads, and labels of 0 do not count."""
    length = 2 + 3 * row % (shape[0] - 1)
    return [value if place < length else 0 for place, value in enumerate(values)]


def samples(model, dtype, rows):
    """field → (type, shape, values) of the first `rows` rows; a shorter batch is the beginning of a longer one."""
    for stream, (field, (shape, below)) in enumerate(MODELS[model][1].items()):
        each = math.prod(shape)
        if below is None:
            yield field, dtype, [rows] + shape, uniform([rows] + shape, stream, 1)
            continue
        values = [value % below for value in hashed(rows * each, stream)]
        if model == "transformer":
            values = [value for row in range(rows)
                      for value in ragged(row, shape, values[row * each:(row + 1) * each])]
        yield field, "ui8" if below == 256 else "i32", [rows] + shape, values


class Accumulate(ToolTest):
    def compiled(self, model, dtype, name, *flags):
        keys = [f"{key}={value}" for key, value in MODELS[model][0].items()]
        self.gpuc("gpuc-model", model.split()[0], *keys, "dtype=" + dtype, "-o", self.path("model.mlir"))
        self.gpuc("gpuc-compile", self.path("model.mlir"), "-o", self.path(name + ".plan"), "--seed=7",
                  "--report=" + self.path(name + ".json"), *flags)
        return self.path(name + ".plan")

    def gradients(self, model, dtype, name, *flags):
        """variable → what a step of plain SGD with a learning rate of 1 took off it; and the mean loss."""
        plan = self.compiled(model, dtype, name, "--optimizer=sgd:lr=1", *flags)
        fields = []
        for field, type_of_field, shape, values in samples(model, dtype, MICROBATCHES * ROWS):
            write_npy(self.path(field + ".npy"), type_of_field, shape, values)
            fields.append(f"{field}={self.path(field + '.npy')}")
        self.gpuc("gpuc-run", plan, "--entry=init", "--save-variables=" + self.path("first.safetensors"))
        self.gpuc("gpuc-train", plan, "--data=npy:" + ",".join(fields), "--steps=1", "--no-shuffle", "--log-every=0",
                  "--metrics=" + self.path("metrics.jsonl"), "--save-variables=" + self.path("last.safetensors"))
        first, last = (read_safetensors(self.path(file + ".safetensors")) for file in ("first", "last"))
        step = self.metrics(self.path("metrics.jsonl"), "step")[0]
        return {variable: [before - after for before, after in zip(first[variable], last[variable])]
                for variable in first if variable not in ("seed", "step")}, step

    def check(self, model, dtype, tolerance, *flags, cut=(f"--accumulate={MICROBATCHES}",)):
        parts, step = self.gradients(model, dtype, "parts", f"--batch={ROWS}", *cut, *flags)
        whole, whole_step = self.gradients(model, dtype, "whole", f"--batch={ROWS * MICROBATCHES}", *flags)
        for variable, expected in whole.items():
            self.assertTrue(any(expected), variable)
        # A gradient that is zero but for rounding (of keys' biases) has no relative error.
        self.assert_near(parts, whole, tolerance, least=1e-3 * whole_step["grad_norm"])
        self.assertLessEqual(abs(step["loss"] - whole_step["loss"]), tolerance * abs(whole_step["loss"]))

    def test_microbatches_equal_the_batch(self):
        for model in MODELS:
            for dtype, tolerance in (("f64", 1e-12), ("f32", 1e-5)):
                with self.subTest(model, dtype=dtype):
                    self.check(model, dtype, tolerance)

    def test_ranks_equal_the_batch(self):
        for model in MODELS:
            with self.subTest(model):
                self.check(model, "f64", 1e-12, cut=("--emulate-ranks=2", f"--accumulate={MICROBATCHES // 2}"))

    def test_ranks_of_one_microbatch_are_microbatches(self):
        for model in MODELS:
            with self.subTest(model):
                ranks, microbatches = (self.gradients(model, "f32", flag, f"--batch={ROWS}", f"--{flag}={MICROBATCHES}")
                                       for flag in ("emulate-ranks", "accumulate"))
                self.assertEqual(ranks[0], microbatches[0])
                self.assertEqual(ranks[1]["loss"], microbatches[1]["loss"])

    def test_ranks_that_take_slices(self):
        """The batch of a recurrent network is cut by threads as well, in each rank."""
        keys = ["cell=gru", "steps=16", "width=4", "hidden=6", "classes=3", "dropout=0.3", "dtype=f64"]
        ends = []
        for flags in (["--batch=16", "--emulate-ranks=3"], ["--batch=48"]):
            plan = self.compile_model("rnn-classifier", *keys, flags=["--seed=7", *flags])
            self.gpuc("gpuc-train", plan, "--data=synthetic:size=96", "--steps=2", "--no-shuffle", "--log-every=0",
                      "--save-variables=" + self.path("last.safetensors"))
            ends.append(read_safetensors(self.path("last.safetensors")))
        for variable, expected in ends[1].items():
            for ours, theirs in zip(ends[0][variable], expected):
                self.assertLessEqual(abs(ours - theirs), 1e-12, variable)

    def test_what_ranks_do_added_by_hand(self):
        """Two ranks, of two microbatches of two rows each: the mean of what each would do by itself, running statistics among
        it, is what both do together."""
        keys = ["in_channels=1", "size=32", "width=2", "classes=3", "dtype=f64"]
        self.gpuc("gpuc-model", "resnet18", *keys, "-o", self.path("model.mlir"))
        pixels, labels = list(hashed(8 * 32 * 32, 1)), list(hashed(8, 2))

        def trained(first, last, *flags):
            write_npy(self.path("x.npy"), "ui8", [last - first, 1, 32, 32],
                      [value % 256 for value in pixels[first * 1024:last * 1024]])
            write_npy(self.path("labels.npy"), "i32", [last - first], [value % 3 for value in labels[first:last]])
            plan = self.path("rank.plan")
            self.gpuc("gpuc-compile", self.path("model.mlir"), "-o", plan, "--seed=7", "--batch=2", "--accumulate=2",
                      "--optimizer=sgd:lr=1", *flags)
            self.gpuc("gpuc-run", plan, "--entry=init", "--save-variables=" + self.path("first.safetensors"))
            self.gpuc("gpuc-train", plan, f"--data=npy:x={self.path('x.npy')},labels={self.path('labels.npy')}", "--steps=1",
                      "--no-shuffle", "--log-every=0", "--save-variables=" + self.path("last.safetensors"))
            return read_safetensors(self.path("last.safetensors"))

        both, one, other = trained(0, 8, "--emulate-ranks=2"), trained(0, 4), trained(4, 8)
        before = read_safetensors(self.path("first.safetensors"))
        moved = 0
        for variable in set(both) - {"seed", "step"}:
            for together, a, b, start in zip(both[variable], one[variable], other[variable], before[variable]):
                self.assertLessEqual(abs(together - (a + b) / 2), 1e-11 * max(1, abs(a), abs(b)), variable)
                moved += "running" in variable and together != start
        self.assertGreater(moved, 0)

    def test_a_scaled_loss_is_that_of_the_batch(self):
        """Of ragged sequences the microbatches' counts differ, and the mean is over all of them."""
        for model in ("mlp", "transformer", "gpt2 with dropout"):
            with self.subTest(model):
                self.check(model, "f64", 1e-12, "--loss-scale=static:scale=1000")

    def test_a_batch_that_is_cut_both_ways_is_the_batch(self):
        """Three microbatches of two slices of two rows, as text: dropout and the mask of the tail are those of twelve rows."""
        cut = "gpuc.partition = #gpuc.partition<microbatches = 3, slices = 2, rows = 2>"
        write_npy(self.path("x.npy"), "f64", [11, 3], uniform([11, 3], 1, 1))
        for scale in ("none", "static(scale = 24.0)"):
            ends = []
            for rows, on_argument, on_op in ((2, ", " + cut, "{" + cut + "}"), (12, "", "")):
                attributes = f"attributes {{{cut}}}" if on_op else ""
                self.write("cut.mlir", f"""
                    module @cut attributes {{gpuc.batch = {12 if rows == 12 else 4} : i64}} {{
                      gpuc.variable @w : tensor<3xf64> init ones
                      func.func private @loss(%x: tensor<{rows}x3xf64> {{gpuc.name = "x"{on_argument}}})
                          -> (tensor<f64>, tensor<f64>) {attributes} {{
                        %w = gpuc.read @w : tensor<3xf64>
                        %0 = gpuc.broadcast %w dims [1] : tensor<3xf64> to tensor<{rows}x3xf64>
                        %1 = gpuc.dropout %0 p 0.4 id 7 {on_op} : tensor<{rows}x3xf64>
                        %sum, %count = gpuc.mse %1, %x : (tensor<{rows}x3xf64>, tensor<{rows}x3xf64>) -> (tensor<f64>, tensor<f64>)
                        return %sum, %count : tensor<f64>, tensor<f64>
                      }}
                      gpuc.recipe {{ loss = @loss, optimizer = sgd(lr = 0.1), loss_scale = {scale} }}
                    }}""")
                self.gpuc("gpuc-compile", self.path("cut.mlir"), "-o", self.path("cut.plan"))
                self.gpuc("gpuc-train", self.path("cut.plan"), f"--data=npy:x={self.path('x.npy')}", "--steps=3", "--no-shuffle",
                          "--last-batch=pad", "--log-every=0", "--save-variables=" + self.path("cut.safetensors"))
                ends.append(read_safetensors(self.path("cut.safetensors"))["w"])
            self.assertNotEqual(ends[0], [1, 1, 1])
            for ours, theirs in zip(*ends):
                self.assertLessEqual(abs(ours - theirs), 1e-14, scale)

    def peak(self, model, *flags):
        self.compiled(model, "f32", "peak", *flags)
        with open(self.path("peak.json"), encoding="utf-8") as file:
            report = json.load(file)
        return report["peak_bytes"], report["by_category"]["input"]

    def test_memory_follows_the_microbatch(self):
        for model in MODELS:
            with self.subTest(model):
                four, four_inputs = self.peak(model, "--batch=16", "--accumulate=4")
                many, many_inputs = self.peak(model, "--batch=16", "--accumulate=64")
                # What grows are the inputs, and the number of each microbatch.
                self.assertLessEqual(many - many_inputs, four - four_inputs + 64 * 8, model)

    def test_rows_without_a_sample_count_nothing(self):
        """Of 4 * 2 rows three hold a sample: the last two microbatches hold none."""
        full, full_step = self.trained_on(3, "--batch=3")
        padded, padded_step = self.trained_on(3, f"--batch={ROWS}", f"--accumulate={MICROBATCHES}")
        self.assertLessEqual(abs(full_step["loss"] - padded_step["loss"]), 1e-12)
        for variable, expected in full.items():
            for ours, theirs in zip(padded[variable], expected):
                self.assertLessEqual(abs(ours - theirs), 1e-12, variable)

    def test_evaluation_takes_microbatches(self):
        plan = self.compiled("mlp", "f32", "both", f"--batch={ROWS}", f"--accumulate={MICROBATCHES}")
        self.assertIn(f"batch {ROWS}, {ROWS * MICROBATCHES} rows to an update", self.gpuc("gpuc-inspect", plan))
        self.gpuc("gpuc-train", plan, "--data=synthetic:size=16", "--eval-data=synthetic:size=5", "--epochs=1",
                  "--log-every=0", "--metrics=" + self.path("metrics.jsonl"))
        self.assertEqual([event["step"] for event in self.metrics(self.path("metrics.jsonl"), "step")], [1, 2])
        self.assertEqual(len(self.metrics(self.path("metrics.jsonl"), "eval")), 1)

    def trained_on(self, rows, *flags):
        plan = self.compiled("mlp", "f64", "padded", "--optimizer=sgd:lr=1", *flags)
        fields = []
        for field, type_of_field, shape, values in samples("mlp", "f64", rows):
            write_npy(self.path(field + ".npy"), type_of_field, shape, values)
            fields.append(f"{field}={self.path(field + '.npy')}")
        self.gpuc("gpuc-train", plan, "--data=npy:" + ",".join(fields), "--steps=1", "--no-shuffle", "--log-every=0",
                  "--last-batch=pad", "--metrics=" + self.path("metrics.jsonl"),
                  "--save-variables=" + self.path("last.safetensors"))
        return read_safetensors(self.path("last.safetensors")), self.metrics(self.path("metrics.jsonl"), "step")[0]


if __name__ == "__main__":
    unittest.main()
