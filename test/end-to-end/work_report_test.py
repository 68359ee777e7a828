"""The report's list of work, for every model of the zoo: what it adds up to, what stands in it, and that kernels are named
after the layer that they compute."""

import json
import re
import unittest

from gpuc_tools import ToolTest
from zoo_cases import CASES

GROUPS = ("update", "grad_norm", "sums")  # what plan-group-launches makes of several layers


class WorkReport(ToolTest):
    def reported(self, model, keys):
        source, report = self.path(model + ".mlir"), self.path(model + ".json")
        self.gpuc("gpuc-model", model, *(f"{key}={value}" for key, value in keys.items()), "-o", source)
        self.gpuc("gpuc-compile", source, "--emit=plan", "-o", self.path(model + ".plan.mlir"), "--report=" + report)
        with open(report, encoding="utf-8") as file:
            return json.load(file)

    def check_entry(self, entry):
        self.assertIn(entry["kind"], ("launch", "matmul", "conv", "attention", "attention_gradient"))
        self.assertGreater(entry["bytes_written"], 0)
        self.assertGreaterEqual(entry["executions"], 1)
        if entry["kind"] == "launch":
            self.assertTrue(entry["ops"] or re.search(r"\.copy(_\d+)?$", entry["name"]), entry)
        else:
            self.assertGreater(entry["flops"], 0)
        if entry["layer"]:
            self.assertTrue(entry["name"].startswith(entry["layer"] + "."), entry)
            self.assertIn(entry["layer"], [*(entry.get("layers") or [entry["layer"]]), *GROUPS])

    def test_the_zoo(self):
        for case, described in CASES.items():
            with self.subTest(model=case):
                report = self.reported(described.get("model", case), described["keys"])
                step = [entry for entry in report["work"] if entry["entry"] == "train_step"]
                for entry in report["work"]:
                    self.check_entry(entry)
                self.assertEqual(sum(entry["flops"] * entry["executions"] for entry in step), report["flops"])
                kernels = [entry for entry in step if entry["kind"] == "launch"]
                names = [entry["name"] for entry in kernels]
                self.assertEqual(len(set(names)), len(names))
                self.assertEqual([entry["name"] for entry in kernels if not entry["layer"]], [])
                with open(self.path(described.get("model", case) + ".mlir"), encoding="utf-8") as file:
                    layers = set(re.findall(r'gpuc\.variable @.* loc\("([^"]+)"\)', file.read()))
                computed = {layer for entry in step for layer in [entry["layer"], *entry.get("layers", [])]}
                print(f"{case}: {len(kernels)} kernels, {len(layers)} layers with weights", flush=True)
                self.assertEqual(sorted(layers - computed), [])

    def test_numbers_by_hand(self):
        # x [7, 5] · w [2, 5]ᵀ, in f32.
        report = self.reported("linear-regression", {"in": "5", "out": "2", "batch": "7"})
        product = next(entry for entry in report["work"] if entry["kind"] == "matmul" and entry["entry"] == "predict")
        self.assertEqual((product["ops"], product["shape"]), (["matmul", "add"], "7x2x5"))
        self.assertEqual(product["flops"], 2 * 7 * 2 * 5 + 7 * 2)
        self.assertEqual((product["bytes_read"], product["bytes_written"]), (4 * (7 * 5 + 2 * 5 + 2), 4 * 7 * 2))
        # With its target y [7, 2], and a mask of 7 rows: the bias is the kernel's, since that reads the product alone.
        loss = next(entry for entry in report["work"] if entry["name"] == "linear.add_mse")
        self.assertEqual((loss["ops"], loss["flops"]), (["add", "sub", "mul", "select", "sum"], 5 * 7 * 2))
        self.assertEqual((loss["bytes_read"], loss["bytes_written"]), (4 * (2 * 7 * 2 + 2) + 7, 4))

    def test_of_a_table_what_is_gathered(self):
        # 2 · 24 tokens of 1,000, and 24 positions, each a row of 32.
        keys = {"layers": "1", "width": "32", "heads": "2", "length": "24", "vocabulary": "1000", "batch": "2"}
        report = self.reported("gpt2", keys)
        embedding = next(entry for entry in report["work"] if "gather" in entry["ops"] and entry["entry"] == "predict")
        self.assertEqual(embedding["bytes_read"], 4 * 2 * 24 * (1 + 32) + 4 * 24 * 32)

    def test_what_is_written_again_is_named(self):
        report = self.reported("gpt2", {"layers": "2"})  # more waits for its backward pass than caches hold
        kernels = {entry["name"]: entry for entry in report["work"] if entry["kind"] == "launch" and entry["entry"] == "train_step"}
        again = {name: entry["writes_again"] for name, entry in kernels.items() if entry["writes_again"]}
        for writer, names in again.items():
            self.assertTrue(kernels[writer]["backward"], writer)
            for name in names:
                self.assertFalse(kernels[name]["backward"], f"{writer} writes {name} again")
                self.assertGreaterEqual(kernels[writer]["bytes_written"], 4 * 8 * 128)
        for layer in ("transformer.h.0.mlp", "transformer.h.1.mlp"):
            self.assertTrue(any(name.startswith(layer + ".gelu") for names in again.values() for name in names), again)

    def test_how_a_product_is_computed_and_what_it_wastes(self):
        # Of 1,000 classes the last vector has half of its lanes idle.
        report = self.reported("resnet18", {"size": "64", "batch": "16"})
        convolutions = [entry for entry in report["work"] if entry["kind"] == "conv"]
        self.assertGreater(len(convolutions), 40)
        for entry in convolutions:
            costs = [float(cost) for cost in re.findall(r" [a-z_]+ ([0-9.]+)", entry["why"].partition(":")[2])]
            self.assertEqual(costs, sorted(costs), entry)
            self.assertIn(f": {entry['method'].partition(',')[0]} ", entry["why"])
            self.assertTrue(0 <= entry["wasted"] < 1, entry)
        self.assertGreater(len({entry["method"] for entry in convolutions}), 2)
        report = self.reported("mlp", {"input": "784", "hidden": "128", "classes": "1000", "batch": "64"})
        products = [entry for entry in report["work"] if entry["kind"] == "matmul" and entry["entry"] == "predict"]
        self.assertEqual([entry["wasted"] for entry in products], [0, 1 - 1000 / 1008])

    def test_loops_count_each_execution(self):
        report = self.reported("rnn-classifier", CASES["rnn-classifier"]["keys"])
        self.assertIn(5, {entry["executions"] for entry in report["work"]})  # time steps


if __name__ == "__main__":
    unittest.main()
