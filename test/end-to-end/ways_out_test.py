"""Where no plan fits a budget, the error names ways out: flags with which a plan takes what the error says, to the byte. Those that
fit do, also with the budget and nothing said of what is kept; where nothing does, what is named takes less than all that was found."""

import json
import re
import unittest

from gpuc_tools import ToolTest
from small_zoo import MODELS

WAY = re.compile(r"((?: --[a-z-]+=[a-z0-9]+)+), which takes (\d+)")


class WaysOut(ToolTest):
    def compiled(self, model, *flags):
        return self.run_tool("gpuc-compile", model, "-o", self.path("model.plan"), "--report=" + self.path("report.json"), *flags)

    def peak(self, model, *flags):
        done = self.compiled(model, *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.json"), encoding="utf-8") as file:
            return json.load(file)["peak_bytes"]

    def said(self, model, *flags):
        """The error."""
        done = self.compiled(model, *flags)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        return done.stderr

    def ways(self, error):
        """Flags and bytes of each, and whether they are said to fit."""
        fits, less = ", or what fits:" in error, ", or less with" in error
        ways = [(way[1].split(), int(way[2])) for way in WAY.finditer(error)]
        self.assertEqual(bool(ways), fits or less, error)
        self.assertTrue(len(ways) == 1 or not less, error)
        return ways, fits

    def replaced(self, flags, way):
        """What the way says anew is not said twice."""
        names = {flag.split("=")[0] for flag in way}
        return [flag for flag in flags if flag.split("=")[0] not in names] + way

    def check(self, model, budget, *flags):
        error = self.said(model, f"--memory-budget={budget}", *flags)
        least = int(re.search(r"the least .*?takes (\d+)", error)[1])
        ways, fits = self.ways(error)
        for way, said in ways:
            with self.subTest(way=way):
                self.assertEqual(self.peak(model, *self.replaced(flags, way)), said)
                self.assertEqual(said <= budget, fits)
                self.assertLess(said, least)
                if fits:
                    way = [flag for flag in way if not flag.startswith("--checkpoint")]
                    self.assertLessEqual(self.peak(model, f"--memory-budget={budget}", *self.replaced(flags, way)), budget)
        return {flag.split("=")[0] for way, _ in ways for flag in way}, fits

    def least(self, model, *flags):
        return int(re.search(r"the least .*?takes (\d+)", self.said(model, "--memory-budget=1", *flags))[1])

    def test_what_is_said_is_so(self):
        for name, keys, flags in (("convnet", ["size=16", "batch=32"], []),
                                  ("gpt2", [*MODELS["gpt2"][0][:-1], "batch=6"], ["--accumulate=2", "--target=cuda:sm_89"])):
            with self.subTest(model=name, flags=flags):
                model = self.path(name + ".mlir")
                self.gpuc("gpuc-model", name, *keys, "-o", model)
                named, fits = self.check(model, self.least(model, *flags) - 1, *flags)
                self.assertTrue(fits)
                self.assertIn("--batch", named)
                named, fits = self.check(model, 1000, *flags)
                self.assertFalse(fits)

    def test_what_is_chosen_already_is_no_way(self):
        model = self.path("model.mlir")
        self.gpuc("gpuc-model", "mlp", "batch=1", "-o", model)
        named, _ = self.check(model, 1000)
        self.assertNotIn("--batch", named, "there is no half of a row")
        self.gpuc("gpuc-model", "convnet", "size=16", "batch=32", "-o", model)
        named, fits = self.check(model, self.least(model, "--precision=bf16") - 1, "--precision=bf16")
        self.assertTrue(fits)
        self.assertNotIn("--precision", named)

    def test_ranks_that_share_out(self):
        """Only of ranks that there are to be, which do not share out already, and as few as will do."""
        model = self.path("model.mlir")
        self.gpuc("gpuc-model", "mlp", "hidden=256,256", "batch=8", "-o", model)
        shares = ["--shard=optimizer", "--world-size=2"]
        for target in ([], ["--target=cuda:sm_89"]):
            flags = ["--data-parallel", *target]
            alone, two = self.least(model, *flags), self.peak(model, *flags, "--checkpoint=full", *shares)
            self.assertLess(two, alone)
            for budget, ranks in ((two, 2), (two - 1, 4)):
                self.assertIn(f"--shard=optimizer --world-size={ranks}", self.said(model, f"--memory-budget={budget}", *flags))
                named, fits = self.check(model, budget, *flags)
                self.assertTrue(fits)
                self.assertIn("--world-size", named)
        for flags in ([], ["--data-parallel", *shares]):
            error = self.said(model, "--memory-budget=1000", *flags)
            self.assertNotIn("--shard", error)

    def test_beside_a_policy(self):
        """What that takes, and what else there is."""
        model = self.path("model.mlir")
        self.gpuc("gpuc-model", "convnet", "size=16", "batch=32", "-o", model)
        full = self.peak(model, "--checkpoint=full")
        said = self.said(model, f"--memory-budget={full}", "--checkpoint=none")
        self.assertRegex(said, rf"leave --checkpoint out, and what fits is chosen \(--checkpoint=full takes {full}\)\n$")
        self.assertLessEqual(self.peak(model, f"--memory-budget={full}"), full)
        said = self.said(model, f"--memory-budget={full - 1}", "--checkpoint=none")
        self.assertIn(f"leave --checkpoint out for the least that is found (--checkpoint=full takes {full})", said)
        ways, fits = self.ways(said)
        self.assertTrue(fits)
        for way, bytes_ in ways:
            self.assertEqual(self.peak(model, *way), bytes_)


if __name__ == "__main__":
    unittest.main()
