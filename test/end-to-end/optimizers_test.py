"""Each optimizer against PyTorch's, or where PyTorch 1.13 has none against one written with NumPy from its authors' formulas
(optimizers_reference.py): 50 losses and the weights after them, in f64 to 1e-10, with 1e-5 between the first losses in f32."""

import json
import os
import unittest

import optimizer_cases
from gpuc_tools import HERE, ToolTest
from tensor_files import read_safetensors, write_npy, write_safetensors

TOLERANCE = 1e-10

with open(os.path.join(HERE, "optimizers.json"), encoding="utf-8") as kept:
    REFERENCE = json.load(kept)


def group_flag(pattern, keys):
    text = {True: "true", False: "false"}
    return f"--group=match={pattern}," + ",".join(f"{key}={text.get(value, value) if isinstance(value, bool) else value}"
                                                  for key, value in keys.items())


class Optimizers(ToolTest):
    def train(self, case, dtype, steps):
        """Losses and the weights after them."""
        name, optimizer = optimizer_cases.CASES[case]
        model, shapes = optimizer_cases.MODELS[name], REFERENCE[case]["shapes"]
        flags = ["--optimizer=" + optimizer] + [group_flag(*group) for group in optimizer_cases.GROUPS.get(case, [])]
        plan = self.compile_model(name, *model["keys"], "dtype=" + dtype, flags=flags)
        x, labels = optimizer_cases.data(name)
        dtype_of_x = model["x"][0] if model["x"][0] == "ui8" else dtype
        write_npy(self.path("x.npy"), dtype_of_x, model["x"][1], x)
        write_npy(self.path("labels.npy"), "i32", [len(labels)], labels)
        write_safetensors(self.path("first.safetensors"), dtype, {
            parameter: (shapes[parameter], values) for parameter, values in optimizer_cases.weights(shapes).items()})
        self.gpuc("gpuc-train", plan, "--data=npy:x=x.npy,labels=labels.npy", f"--steps={steps}", "--no-shuffle",
                  "--log-every=0", "--variables=first.safetensors", "--metrics=metrics.jsonl",
                  "--save-variables=last.safetensors")
        losses = [event["loss"] for event in self.metrics(self.path("metrics.jsonl"), "step")]
        self.assertEqual(len(losses), steps)
        return losses, read_safetensors(self.path("last.safetensors"))

    def check(self, case):
        losses, last = self.train(case, "f64", optimizer_cases.STEPS)
        theirs = REFERENCE[case]
        worst = max(abs(our - their) / abs(their) for our, their in zip(losses, theirs["losses"]))
        for parameter, expected in theirs["weights"].items():
            found = optimizer_cases.kept(last[parameter])
            self.assertEqual(len(found), len(expected), parameter)
            size = max(map(abs, expected))
            worst = max(worst, max(abs(our - their) for our, their in zip(found, expected)) / size)
        print(f"{case}: {worst:.2g} of {TOLERANCE:g}", flush=True)
        self.assertLessEqual(worst, TOLERANCE)
        climbs = "maximize" in optimizer_cases.CASES[case][1]
        self.assertLess(*((losses[0], losses[-1]) if climbs else (losses[-1], losses[0])))

    def check_f32(self, case):
        # Rounding grows with the steps: what it is in the first few tells the formulas apart.
        losses, _ = self.train(case, "f32", 5)
        for our, their in zip(losses, REFERENCE[case]["losses"]):
            self.assertLessEqual(abs(our - their), 1e-5 * abs(their), case)

    def test_f64(self):
        for case in optimizer_cases.CASES:
            with self.subTest(case):
                self.check(case)

    def test_f32(self):
        for case in optimizer_cases.CASES:
            with self.subTest(case):
                self.check_f32(case)

    def test_every_optimizer_is_compared(self):
        error = self.run_tool("gpuc-compile", "--optimizer=x", self.write("model.mlir", "")).stderr
        known = error.partition("known are ")[2].partition(":")[0].strip().rstrip(".").split(", ")
        self.assertEqual(sorted(known), sorted({optimizer.partition(":")[0] for _, optimizer in optimizer_cases.CASES.values()}),
                         error)


if __name__ == "__main__":
    unittest.main()
