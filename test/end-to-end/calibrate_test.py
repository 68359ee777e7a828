"""gpuc-calibrate measures this machine, gpuc-compile finds what it wrote, and a prediction is a time for each command. How near
that comes to a measured step bench/predicted.py says."""

import json
import os
import unittest

from gpuc_tools import ToolTest


class Calibrate(ToolTest):
    def test_rates_of_this_machine(self):
        os.environ["XDG_CACHE_HOME"] = self.path("cache")
        self.gpuc("gpuc-calibrate", "--threads=2", "--json=done.json")
        with open(self.path("done.json"), encoding="utf-8") as file:
            done = json.load(file)
        self.assertEqual(done["rates"], self.path("cache/gpuc/rates.json"))
        self.assertEqual(done["threads"], 2)
        self.assertGreater(done["commands"], 500)
        self.gpuc("gpuc-model", "mlp", "-o", "mlp.mlir")
        for flags in ([], ["--rates=" + done["rates"]]):
            self.gpuc("gpuc-compile", "mlp.mlir", "--report=report.json", *flags)
            with open(self.path("report.json"), encoding="utf-8") as file:
                report = json.load(file)
            self.assertEqual(report["rates"], {"source": f"calibrated on {done['cpu']}, 2 threads", "threads": 2})
            step = [work for work in report["work"] if work["entry"] == "train_step"]
            self.assertTrue(all(work["predicted_us"] > 0 for work in step))
            self.assertLessEqual(sum(work["predicted_us"] * work["executions"] for work in step), report["predicted_step_us"] * 1.0001)


if __name__ == "__main__":
    unittest.main()
