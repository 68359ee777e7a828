"""A recurrent network's batch in slices that threads take side by side is the batch: the same update of each variable, but
for the order of sums, with dropout on and padding in ragged places; and with any number of threads the same bits."""

import json
import re
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors

SMALL = ["steps=16", "width=4", "hidden=6", "classes=3", "dropout=0.3"]

# keys of the model, rows, slices
MODELS = [
    (["rnn-classifier", "cell=lstm", "layers=2", *SMALL], 16, 2),
    (["rnn-classifier", "cell=gru", "bidirectional=true", *SMALL], 64, 4),
    (["rnn-classifier", "cell=rnn", *SMALL], 24, 2),
    (["lstm-generator", "layers=2", "embedding=5", "hidden=6", "length=17", "vocabulary=11", "dropout=0.3"], 32, 4),
]


class Slices(ToolTest):
    def compiled(self, name, keys, rows, *flags):
        self.gpuc("gpuc-model", *keys, "-o", self.path(name + ".mlir"))
        self.gpuc("gpuc-compile", self.path(name + ".mlir"), "-o", self.path(name + ".plan"), f"--batch={rows}",
                  "--target=host", "--optimizer=sgd:lr=1", "--seed=7", *flags)
        return self.path(name + ".plan")

    def slices_of(self, keys, rows, *flags):
        """What the plan says; 1 if it says nothing."""
        plan = self.compiled("text", keys, rows, "--emit=plan", *flags)
        with open(plan, encoding="utf-8") as file:
            parallel = re.findall(r"plan\.parallel (\d+) {", file.read())
        self.assertLessEqual(len(parallel), 1)
        return int(parallel[0]) if parallel else 1

    def compare(self, ours, theirs, tolerance):
        """Of two files of variables."""
        self.assert_near(read_safetensors(ours), read_safetensors(theirs), tolerance)

    def updated(self, plan, *flags):
        """The variables after three steps over numbers made of the seed."""
        variables = plan + ".safetensors"
        self.gpuc("gpuc-run", plan, "--entry=train_step", "--repeat=3", "--save-variables=" + variables, *flags)
        return variables

    def test_slices_equal_the_batch(self):
        for keys, rows, slices in MODELS:
            for dtype, tolerance in (("f64", 1e-12), ("f32", 1e-5)):
                with self.subTest(keys, dtype=dtype):
                    model = [*keys, "dtype=" + dtype]
                    self.assertEqual(self.slices_of(model, rows), slices)
                    self.assertEqual(self.slices_of(model, rows, "-O0"), 1)
                    parts = self.updated(self.compiled("parts", model, rows))
                    self.compare(parts, self.updated(self.compiled("whole", model, rows, "-O0")), tolerance)

    def test_slices_equal_the_batch_where_the_norm_of_all_gradients_is_needed(self):
        keys, rows, slices = MODELS[0]
        model, clipped = [*keys, "dtype=f64"], "--clip-norm=0.1"
        with open(self.compiled("text", model, rows, "--emit=plan", clipped), encoding="utf-8") as file:
            self.assertGreater(file.read().count("plan.sum"), 5)
        report = "--report=" + self.path("parts.json")
        self.compare(self.updated(self.compiled("parts", model, rows, clipped, report)),
                     self.updated(self.compiled("whole", model, rows, clipped, "-O0")), 1e-12)
        with open(self.path("parts.json"), encoding="utf-8") as file:
            costs = [work["flops"] for work in json.load(file)["work"] if work["kind"] == "sum"]
        self.assertGreater(len(costs), 5)
        self.assertGreater(min(costs), 0)

    def test_any_number_of_threads_gives_the_same_bits(self):
        for keys, rows, _ in MODELS:
            for flags in ([], ["--precision=bf16"]):
                with self.subTest(keys, flags=flags):
                    plan = self.compiled("bits", keys, rows, *flags)
                    bits = {self.trained_bits(plan, "--data=synthetic:size=192", "--steps=3", f"--threads={threads}")
                            for threads in (1, 2, 3, 4, 7)}
                    self.assertEqual(len(bits), 1)

    def test_rows_without_a_sample_count_nothing(self):
        """Of 16 rows five hold a sample: the second slice has none."""
        keys = [*MODELS[0][0], "dtype=f64"]
        for precision in ([], ["--loss-scale=static:scale=64"]):
            with self.subTest(precision=precision):
                plans = {"padded": self.compiled("padded", keys, 16, *precision),
                         "full": self.compiled("full", keys, 5, *precision)}
                for name, plan in plans.items():
                    self.gpuc("gpuc-train", plan, "--data=synthetic:size=5", "--steps=1", "--no-shuffle", "--last-batch=pad",
                              "--log-every=0", "--save-variables=" + self.path(name))
                self.compare(self.path("padded"), self.path("full"), 1e-12)


if __name__ == "__main__":
    unittest.main()
