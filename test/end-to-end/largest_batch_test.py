"""gpuc-compile --batch=max: the rows that fit by the policy that is named, or by whatever a budget chooses; eight more do not."""

import re
import unittest

from gpuc_tools import ToolTest

BUDGET = "--memory-budget=4MiB"


class LargestBatch(ToolTest):
    def compile(self, *flags):
        return self.run_tool("gpuc-compile", self.path("model.mlir"), BUDGET, "--emit=train", "-o", self.path("step.mlir"), *flags)

    def largest(self, *flags):
        done = self.compile("--batch=max", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = int(re.search(r"--batch=max: (\d+) rows", done.stderr)[1])
        self.assertEqual(rows % 8, 0)
        self.assertNotEqual(self.compile(f"--batch={rows + 8}", *flags).returncode, 0)
        return rows

    def test_a_budget_has_room_for_more_than_any_policy(self):
        # Its batch is cut in slices, which a budget has computed one after another, in the memory of one.
        self.gpuc("gpuc-model", "rnn-classifier", "cell=gru", "hidden=48", "steps=28", "-o", self.path("model.mlir"))
        none, full, budget = self.largest("--checkpoint=none"), self.largest("--checkpoint=full"), self.largest()
        self.assertLess(none, full)
        self.assertGreater(budget, 1.5 * full)


if __name__ == "__main__":
    unittest.main()
