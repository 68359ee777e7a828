"""gpuc-inspect says of each activation what the compiler's report says: kept for the backward pass, or computed again; and
where in the model it comes from."""

import json
import unittest

from gpuc_tools import ToolTest

MODELS = {
    "convnet": ["size=16", "batch=5"],
    "gpt2": ["layers=4", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1", "batch=4"],
    "rnn-classifier": ["cell=gru", "steps=6", "width=8", "hidden=24", "layers=2", "batch=18"],
}
UNNAMED = """module @unnamed {
  gpuc.variable @w : tensor<8x8xf32> init zeros
  func.func @predict(%x: tensor<4x8xf32> {gpuc.name = "x"}) -> (tensor<4x8xf32> {gpuc.name = "y"}) {
    %w = gpuc.read @w : tensor<8x8xf32>
    %h = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %y = gpuc.exp %h : tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
}
"""


class Inspect(ToolTest):
    def residuals(self, plan):
        """(name, bytes, state) of each buffer that has a state, as JSON and as the table have it."""
        page = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
        listed = [(b["name"], b["bytes"], b["residual"]) for b in page["buffers"] if b["residual"]]
        text = self.gpuc("gpuc-inspect", plan, "--activations")
        rows = [line.split() for line in text[text.index("\nactivations:"):].splitlines()[2:-1]]
        activations = {b["name"] for b in page["buffers"] if b["category"] == "activation"}
        self.assertEqual(sorted((row[0], int(row[2]), row[4]) for row in rows if row[4] != "-"),
                         sorted(entry for entry in listed if entry[0] in activations))
        self.assertEqual(len(rows), sum(b["category"] == "activation" for b in page["buffers"]))
        return sorted(listed), text.splitlines()[-1]

    def test_kept_and_recomputed_are_the_reports(self):
        for model, keys in MODELS.items():
            for policy in ("none", "sqrt", "full"):
                with self.subTest(model=model, policy=policy):
                    report = self.path("report.json")
                    plan = self.compile_model(model, *keys, flags=["--report=" + report, "--checkpoint=" + policy])
                    with open(report, encoding="utf-8") as file:
                        reported = json.load(file)["residuals"]
                    listed, last = self.residuals(plan)
                    self.assertEqual(listed, sorted((r["name"], r["bytes"], r["state"]) for r in reported))
                    sums = {state: [bytes for _, bytes, its in listed if its == state] for state in ("kept", "recomputed")}
                    self.assertEqual(last, "for the backward pass: " + ", and ".join(
                        f"{len(sizes)} {state}, {sum(sizes)} bytes" for state, sizes in sums.items()))
                    self.assertEqual(bool(sums["recomputed"]), policy != "none")

    def test_buffers_have_numbers_where_names_repeat(self):
        """A program after another one has buffers of the same names at other places."""
        plan = self.compile_model("gpt2", *MODELS["gpt2"])
        page = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
        names = [b["name"] for b in page["buffers"]]
        self.assertGreater(len(names), len(set(names)))
        for command in page["commands"]:
            for operand in command["reads"] + command["writes"]:
                buffer = page["buffers"][operand["index"]]
                self.assertEqual(buffer["name"], operand["buffer"])
                inside = operand["offset"] - buffer["offset"]
                self.assertTrue(0 <= inside <= inside + operand["bytes"] <= buffer["bytes"], operand)
        for output in page["entries"]["train_step"]["outputs"]:
            self.assertEqual([page["buffers"][output["index"]][key] for key in ("shape", "dtype")], [output["shape"], output["dtype"]])

    def test_a_source_line_is_named_where_the_model_has_one(self):
        self.write("unnamed.mlir", UNNAMED)
        self.gpuc("gpuc-compile", "unnamed.mlir", "-o", "unnamed.plan")
        sources = {b["source"] for b in json.loads(self.gpuc("gpuc-inspect", "unnamed.plan", "--json"))["buffers"]}
        self.assertIn("unnamed.mlir:5:10", sources)
        self.assertIn("unnamed.mlir:5:10\n", self.gpuc("gpuc-inspect", "unnamed.plan", "--activations"))


if __name__ == "__main__":
    unittest.main()
