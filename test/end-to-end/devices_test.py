"""gpuc-compile --devices: what is said of a GPU that is not there is what a plan for it, with its memory as the budget, comes to."""

import json
import re
import unittest

from gpuc_tools import ToolTest


class Devices(ToolTest):
    def model(self, *keys):
        self.gpuc("gpuc-model", "mlp", "hidden=" + ",".join(8 * ["512"]), *keys, "-o", self.path("model.mlir"))
        return self.path("model.mlir")

    def report(self, *flags):
        done = self.run_tool("gpuc-compile", self.path("model.mlir"), "-o", self.path("model.plan"),
                             "--report=" + self.path("report.json"), *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file)

    def figures(self, report):
        return {name: report[name] for name in ("peak_bytes", "predicted_step_us", "recompute_flops")}

    def test_answers_are_what_plans_come_to(self):
        # The first fits an L4 whole, the second with what is computed again, the third does not.
        for rows, fits in ((1000, True), (1_500_000, True), (4_000_000, False)):
            with self.subTest(rows=rows):
                self.model(f"batch={rows}")
                answers = self.report("--devices=l4,h200")["devices"]
                self.assertEqual([answer["device"] for answer in answers], ["l4", "h200"])
                self.assertEqual([answer["target"] for answer in answers], ["cuda:sm_89", "cuda:sm_90"])
                for answer in answers:
                    self.assertEqual(answer["calibration"], "uncalibrated")
                    self.assertRegex(answer["rates_source"], "data sheet")
                    self.assertEqual(answer["fits"], answer["all_kept"]["peak_bytes"] <= answer["memory_bytes"])
                l4 = answers[0]
                self.assertEqual(l4["fits"], rows == 1000)
                self.assertEqual(l4["within_memory"] is not None, fits)
                if l4["fits"]:
                    self.assertEqual(l4["all_kept"], self.figures(self.report("--memory-budget=l4", "--checkpoint=none")))
                if fits:
                    self.assertGreater(l4["within_memory"]["recompute_flops"] + l4["fits"], 0)
                    kept = l4["within_memory"].pop("kept")
                    self.assertEqual(kept == "none", l4["fits"])
                    self.assertEqual(l4["within_memory"], self.figures(self.report("--memory-budget=l4")))
                else:
                    done = self.run_tool("gpuc-compile", self.path("model.mlir"), "--memory-budget=l4")
                    self.assertIn(f"the least takes {l4['least_bytes']} (", done.stderr)

    def test_table(self):
        model = self.model("batch=1500000")
        lines = self.gpuc("gpuc-compile", model, "--devices=l4,h200").splitlines()
        self.assertRegex(lines[0], "^  device  target +memory +all kept +a step +in its memory +a step  rates$")
        size, time = r"\d+\.\d\d GiB", r"\d+\.\d\d m?s"
        self.assertRegex(lines[1], rf"^  l4 +cuda:sm_89 +20\.99 GiB +{size} +{time} +{size} +{time}  uncalibrated: NVIDIA L4 data sheet$")
        self.assertRegex(lines[2], rf"^  h200 +cuda:sm_90 +138\.90 GiB +{size} +{time} +all of it fits +uncalibrated: NVIDIA H200 .*$")
        self.assertEqual(len(lines), 3)
        self.assertRaises(FileNotFoundError, open, self.path("model.plan"), "rb")
        # 4,000,000 rows are too many.
        model = self.model("batch=4000000")
        self.assertRegex(self.gpuc("gpuc-compile", model, "--devices=l4"), rf"at least {size}  does not fit  uncalibrated: ")

    def test_what_does_not_train_has_no_step(self):
        self.write("model.mlir", "func.func @predict(%x: tensor<8xf32>) -> tensor<8xf32> {\n"
                   "  %0 = gpuc.exp %x : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n")
        self.assertRegex(self.gpuc("gpuc-compile", self.path("model.mlir"), "--devices=h100"),
                         r"0\.00 GiB +all of it fits +uncalibrated")

    def test_precision_is_seen(self):
        """Products of 16 bits are predicted by tensor cores."""
        self.gpuc("gpuc-model", "gpt2", "layers=2", "width=512", "heads=8", "length=256", "batch=64", "-o", self.path("model.mlir"))
        times = {}
        for precision in ("f32", "tf32", "bf16"):
            report = self.report("--target=cuda:sm_90", "--precision=" + precision, "--devices=h100")
            times[precision] = report["devices"][0]["all_kept"]["predicted_step_us"]
        self.assertLess(times["tf32"], 0.8 * times["f32"])
        self.assertLess(times["bf16"], times["tf32"])

    def refused(self, status, message, *flags):
        done = self.run_tool("gpuc-compile", self.path("model.mlir"), *flags)
        self.assertEqual(done.returncode, status)
        self.assertRegex(done.stderr, f"^error: {message}\n$")

    def test_refusals(self):
        self.model("batch=4")
        known = r"Known are l4, l40s, rtx4090, a100-40gb, a100, h100-pcie, h100, h200, b200"
        self.refused(2, rf"--devices: unknown device 'v100'; did you mean a100\? {known}", "--devices=h100,v100")
        self.refused(2, rf"--devices: unknown device ''; did you mean .*\? {known}", "--devices=h100,,l4")
        self.refused(2, "--devices asks what --memory-budget would make of it: not with --checkpoint",
                     "--devices=l4", "--checkpoint=full")
        self.refused(2, "--devices and --report-tradeoff both write to stdout: ask for one of them", "--devices=l4",
                     "--report-tradeoff")
        self.refused(2, "--devices writes to stdout beside a plan: name a file with -o", "--devices=l4", "-o", "-")
        alone = "is for a plan, and --devices alone makes none: name a file with -o, or leave it out"
        for flag in ("--rates=rates.json", "--profile-in=trace.json", "--target=host", "--link=ethernet", "--bucket-size=1MB"):
            self.refused(2, f"{flag.split('=')[0]} {alone}", "--devices=l4", flag)
        self.gpuc("gpuc-compile", self.path("model.mlir"), "--devices=l4", "--rates=none")
        self.gpuc("gpuc-compile", self.path("model.mlir"), "--emit=train", "-o", self.path("step.mlir"))
        done = self.run_tool("gpuc-compile", self.path("step.mlir"), "--devices=l4")
        self.assertEqual((done.returncode, done.stderr),
                         (1, "error: --devices needs a model: this text is made for one target already\n"))

    def test_budgets_that_are_none(self):
        self.model("batch=4")
        for status, message, *flags in (
                (2, "--memory-budget: 0 is less than 1", "--memory-budget=0"),
                (2, "--memory-budget: 0MiB is less than 1", "--memory-budget=0MiB"),
                (2, "--memory-budget: '9223372036854775808' is not a size .*", f"--memory-budget={2**63}"),
                (2, "--memory-budget: '-1' is not a size .*", "--memory-budget=-1"),
                (2, r"--memory-budget: unknown device 'l41'; did you mean l4\? .*", "--memory-budget=l41"),
                (2, "--memory-budget: l4 is an NVIDIA L4, which plans for cuda:sm_89 are made for, and --target says host: "
                 "leave --target out", "--memory-budget=l4", "--target=host"),
                (2, "--checkpoint: .*", "--checkpoint=most", "--memory-budget=1GiB"),
                (2, "--checkpoint=budget needs a budget: .*", "--checkpoint=budget"),
                (1, r"no plan fits --memory-budget=1000 bytes: variables, constants and inputs alone take \d+, .*",
                 "--memory-budget=1000")):
            self.refused(status, message, *flags)
        for stage in ("train", "plan"):
            text = self.path(stage + ".mlir")
            self.gpuc("gpuc-compile", self.path("model.mlir"), "--emit=" + stage, "-o", text)
            done = self.run_tool("gpuc-compile", text, "--memory-budget=1GiB")
            self.assertEqual(done.returncode, 1)
            self.assertTrue(re.fullmatch("error: .* already: what it keeps can be chosen no more: give --memory-budget where it "
                                         "is made from the model\n", done.stderr), done.stderr)
        # 2^63 - 1 is a budget like any other.
        self.gpuc("gpuc-compile", self.path("model.mlir"), "-o", self.path("large.plan"), f"--memory-budget={2**63 - 1}")


if __name__ == "__main__":
    unittest.main()
