"""Gradients are consumed by the optimizer as they appear, unless the recipe forbids it; then the report says what it costs."""

import json
import unittest

from gpuc_tools import ToolTest

# The gradients of four square layers are what the step takes most for: activations of so few rows are nothing.
MODEL = ["mlp", "pixels=false", "input=256", "hidden=256,256,256", "classes=256", "batch=2"]
LAYER = 256 * 256 * 4
GRADIENTS = 4 * (LAYER + 256 * 4)

FORBIDDEN = {"--clip-norm=1": ["clip_norm"], "--skip=outliers:grad_norm=6": ["skip"], "--skip=outliers:loss=6": ["skip"]}


class WholeGradients(ToolTest):
    def reported(self, *flags, model=MODEL):
        report = self.path("report.json")
        self.compile_model(*model, flags=["--report=" + report, *flags])
        with open(report, encoding="utf-8") as file:
            read = json.load(file)
        print(*flags, read["peak_bytes"], read["whole_gradients"], flush=True)
        return read["peak_bytes"], read["whole_gradients"]

    def test_updates_follow_their_gradients(self):
        for flags in (["--optimizer=sgd:lr=0.1"], ["--optimizer=sgd:lr=0.1,momentum=0.9"], ["--optimizer=adam"],
                      ["--clip-value=1"]):
            with self.subTest(flags=flags):
                _, gradients = self.reported(*flags)
                self.assertLess(gradients["bytes"], 1.1 * LAYER)
                self.assertEqual((gradients["costs_bytes"], gradients["why"]), (0, []))

    def test_what_forbids_it_is_named_with_what_it_costs(self):
        plain, _ = self.reported()
        for flag, why in FORBIDDEN.items():
            with self.subTest(flag=flag):
                peak, gradients = self.reported(flag)
                self.assertEqual(gradients["why"], why)
                self.assertGreaterEqual(gradients["bytes"], GRADIENTS)
                self.assertLess(abs(peak - gradients["costs_bytes"] - plain), 0.1 * LAYER)

    def test_sums_over_microbatches_are_whole(self):
        """No order could change that: it costs nothing that waiting for a norm does."""
        peak, gradients = self.reported("--accumulate=2")
        self.assertEqual((gradients["costs_bytes"], gradients["why"]), (0, ["accumulate"]))
        self.assertGreaterEqual(gradients["bytes"], GRADIENTS)
        clipped, gradients = self.reported("--accumulate=2", "--clip-norm=1")
        self.assertEqual(gradients["why"], ["accumulate", "clip_norm"])
        self.assertLess(abs(clipped - gradients["costs_bytes"] - peak), 0.1 * LAYER)

    def test_a_loss_scale_tests_all_of_them(self):
        for flags, why in (([], ["loss_scale"]), (["--clip-norm=1"], ["loss_scale", "clip_norm"])):
            with self.subTest(flags=flags):
                _, gradients = self.reported("--precision=fp16", *flags)
                self.assertEqual(gradients["why"], why)
                self.assertGreaterEqual(gradients["bytes"], GRADIENTS / 2)  # in f16
                self.assertGreater(gradients["costs_bytes"], GRADIENTS / 10)

    def test_where_activations_hold_the_peak_it_costs_nothing(self):
        _, gradients = self.reported("--clip-norm=1", model=["mlp", "hidden=64", "batch=4096"])
        self.assertLess(gradients["costs_bytes"], 0.001 * gradients["bytes"])


if __name__ == "__main__":
    unittest.main()
