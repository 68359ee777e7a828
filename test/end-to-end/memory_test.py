"""The peak that gpuc-compile states is the arena that gpuc-run allocates, the length that a hook sees in the one
allocation, and the end of the bytes that are touched; steps allocate nothing."""

import json
import os
import unittest

from gpuc_tools import BIN, ToolTest, is_sanitized

# A sanitizer allocates when a thread starts, which may be long after the first steps.
THREADS = ["--threads=1"] if is_sanitized() else []

ALIGNMENT = 64


class Memory(ToolTest):
    def compiled(self, *model):
        report = self.path("report.json")
        plan = self.compile_model(*model, flags=["--report=" + report])
        with open(report, encoding="utf-8") as file:
            return plan, json.load(file)

    def ran(self, plan, *flags):
        return json.loads(self.gpuc("gpuc-run", plan, "--entry=train_step", "--json=-", *flags))

    def check_peak(self, *model):
        plan, report = self.compiled(*model)
        self.assertEqual(sum(report["by_category"].values()), report["peak_bytes"])
        self.check_tensors(report)
        run = self.ran(plan, "--repeat=990", "--warmup=10", *THREADS)
        self.assertEqual(run["by_category"], report["by_category"])
        self.assertEqual((run["arena_bytes"], run["arena_allocations"]), (report["peak_bytes"], 1))
        self.assertEqual(run["allocations_per_step"], 0)
        # The arena is poisoned before, and the page behind its end cannot be touched.
        touched = self.ran(plan, "--repeat=5", "--check-memory")["touched_bytes"]
        print(f"{model}: peak {report['peak_bytes']}, arena {run['arena_bytes']}, touched {touched}", flush=True)
        return report["peak_bytes"], touched

    def check_tensors(self, report):
        """What lies in the arena at its peak, by layer and by tensor, is what lies there by category."""
        peak, categories = report["peak"], dict(report["by_category"])
        self.assertEqual(peak["program"], "train_step")
        used = report["peak_bytes"] - categories.pop("alignment_and_gaps")
        self.assertEqual(sum(layer["bytes"] for layer in peak["by_layer"]), used)
        for category, expected in categories.items():
            self.assertEqual(sum(tensor["bytes"] for tensor in peak["tensors"] if tensor["category"] == category), expected)
        sizes = [tensor["bytes"] for tensor in peak["tensors"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        for tensor in peak["tensors"]:
            # What is as small may be the step's own: a rate, the gradient's norm.
            if tensor["category"] in ("gradient", "activation") and tensor["bytes"] > 64:
                self.assertRegex(tensor["source"], r"\.mlir:\d+:\d+$", tensor)
                self.assertTrue(tensor["layer"], tensor)

    def test_every_byte_is_touched(self):
        for model in (["mlp"], ["mlp", "dropout=0.2", "hidden=256,128"], ["linear-regression"],
                      ["mlp", "pixels=false", "dtype=f64"],
                      ["rnn-classifier", "cell=gru", "steps=8", "width=8", "hidden=16", "bidirectional=true"]):
            with self.subTest(model=model):
                peak, touched = self.check_peak(*model)
                self.assertEqual(touched, peak)

    def test_up_to_the_padding_of_odd_inputs(self):
        # x has 1,300 bytes and y 100: whichever ends the arena, the rest of its last 64 bytes is padding.
        peak, touched = self.check_peak("linear-regression", "batch=25")
        self.assertLess(touched, peak)
        self.assertLess(peak - touched, ALIGNMENT)

    def test_what_libraries_take(self):
        """Of the host's, the report says what a run on one thread finds; of a GPU's nobody knows."""
        for model in (["mlp"], ["convnet", "batch=8"], ["gpt2", "layers=1"], ["lstm-generator", "length=8"]):
            with self.subTest(model=model):
                plan, report = self.compiled(*model)
                run = self.ran(plan, "--threads=1", "--repeat=1")
                self.assertGreater(report["library_bytes"], 0)
                self.assertEqual(report["library_bytes"], run["library_bytes"])
                self.assertRegex(report["library_bytes_source"], r"^code that libxsmm \S+ generates on this CPU$")
        model, report = self.path("mlp.mlir"), self.path("report.json")
        for flags, known, source in ((["--target=cuda:sm_90"], None, "unknown: cublasLt .* take what they want .*"),
                                     (["--emit=plan"], None, "unknown: only of a plan's file")):
            self.gpuc("gpuc-compile", model, "-o", self.path("other"), "--report=" + report, *flags)
            with open(report, encoding="utf-8") as file:
                said = json.load(file)
            self.assertEqual(said["library_bytes"], known)
            self.assertRegex(said["library_bytes_source"], f"^{source}$")
        self.write("exp.mlir", "func.func @predict(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                   "  %0 = gpuc.exp %x : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n")
        self.gpuc("gpuc-compile", self.path("exp.mlir"), "-o", self.path("other"), "--report=" + report)
        with open(report, encoding="utf-8") as file:
            said = json.load(file)
        self.assertEqual((said["library_bytes"], said["library_bytes_source"]), (0, "the plan calls no library"))

    def test_steps_10_to_1000_allocate_nothing(self):
        plan, report = self.compiled("mlp")
        hooked = os.path.join(BIN, "..", "test", "end_to_end_allocations")
        counts = json.loads(self.gpuc(hooked, plan, "synthetic:size=6400").splitlines()[-1])  # after what trainers say
        print(counts, flush=True)
        self.assertEqual(counts["arenas"], [report["peak_bytes"]])
        if counts["largest"] is not None:  # sanitizers keep mmap from the hook
            self.assertEqual(counts["largest"], report["peak_bytes"])
        self.assertEqual(counts["steps_1000"], counts["steps_10"])
        self.assertEqual(counts["planted"], counts["steps_10"] + 1)


if __name__ == "__main__":
    unittest.main()
