"""Attention that a model spells out trains as `gpuc.attention` does and as its ops do one by one, whichever way its mask is said, and
stores no scores."""

import re
import unittest

from gpuc_tools import ToolTest
from tensor_files import hashed

BATCH, HEADS, LENGTH, WIDTH, CLASSES = 3, 2, 6, 4, 11
STEPS = 8
MODEL = ["gpt2", "layers=1", f"heads={HEADS}", f"width={HEADS * WIDTH}", f"length={LENGTH}", f"vocabulary={CLASSES}",
         f"batch={BATCH}", "dtype=f64", "optimizer=sgd:lr=0.5"]
SCORES = f"tensor<?x{HEADS}x{LENGTH}x{LENGTH}xf64>"
FLAGS = f"tensor<?x{HEADS}x{LENGTH}x{LENGTH}xi1>"
PLANE = f"{LENGTH}x{LENGTH}x"

# From %scaled to %masked, [T, S] or all scores.
TRIANGLE = f"""%query = gpuc.iota dim 0 : tensor<{PLANE}i32>
%key = gpuc.iota dim 1 : tensor<{PLANE}i32>
%later = gpuc.compare lt %query, %key : tensor<{PLANE}i32>
"""
IN_PLACE = TRIANGLE + f"""%fill = gpuc.constant FILL : {SCORES}
%hidden = gpuc.broadcast %later dims [2, 3] : tensor<{PLANE}i1> to {FLAGS}
%masked = gpuc.select %hidden, %fill, %scaled : {FLAGS}, {SCORES}
"""
ADDED = TRIANGLE + f"""%seen = gpuc.not %later : tensor<{PLANE}i1>
%nothing = gpuc.constant 0.0 : tensor<{PLANE}f64>
%fill = gpuc.constant FILL : tensor<{PLANE}f64>
%plane = gpuc.select %seen, %nothing, %fill : tensor<{PLANE}i1>, tensor<{PLANE}f64>
%mask = gpuc.broadcast %plane dims [2, 3] : tensor<{PLANE}f64> to {SCORES}
%masked = gpuc.add %mask, %scaled : {SCORES}
"""
MASKS = {"in place": IN_PLACE.replace("FILL", "-inf"), "by a large number": IN_PLACE.replace("FILL", "-1.0e9"),
         "added": ADDED.replace("FILL", "-inf"), "the least f32, added": ADDED.replace("FILL", "-3.4028234663852886e38")}  # fmt: skip


def written(mask, scale, drop):
    """The place of `%out, %lse = gpuc.attention %q, %k, %v causal …`, of heads [B, H, T, D]."""
    heads = f"tensor<?x{HEADS}x{LENGTH}x{WIDTH}xf64>"
    return f"""%scores = gpuc.matmul %q, transpose %k : ({heads}, {heads}) -> {SCORES}
{scale}
%scaled = gpuc.mul %scores, %scale : {SCORES}
{mask}
%kept = gpuc.softmax %masked dim 3 : {SCORES}
{f"%p = gpuc.dropout %kept {drop} : {SCORES}" if drop else ""}
%out = gpuc.matmul {"%p" if drop else "%kept"}, %v : ({SCORES}, {heads}) -> {heads}
"""


# Nobody computes the square root of a constant before it runs: ops stay as they are.
SCALE = f"%scale = gpuc.constant 0.5 : {SCORES}"
HIDDEN_SCALE = f"%quarter = gpuc.constant 0.25 : {SCORES}\n%scale = gpuc.sqrt %quarter : {SCORES}"


class WrittenAttention(ToolTest):
    def model(self, *keys):
        text = self.gpuc("gpuc-model", *MODEL, *keys)
        return re.sub(r" loc\(\"[^\"]*\"\)", "", text)

    def spelled(self, model, mask, scale):
        """The model with its attention op by op."""
        attention = re.compile(r"(%\S+), %\S+ = gpuc\.attention (%\S+), (%\S+), (%\S+) causal (?:dropout (\S+) id (\d+) )?:.*")

        def spell(found):
            out, q, k, v, p, number = found.groups()
            text = written(mask, scale, p and f"p {p} id {number}")
            names = {"out": out, "q": q, "k": k, "v": v}
            return re.sub(r"%(\w+)", lambda name: names.get(name[1], f"%spelled_{name[1]}"), text)

        text, changed = attention.subn(spell, model)
        self.assertEqual(changed, 3)  # loss, accuracy, prediction
        return text

    def losses(self, text, *flags):
        """Of some steps, and how many attentions, forward and back, the step has."""
        self.write("model.mlir", text)
        emitted = self.gpuc("gpuc-compile", "model.mlir", "--emit=plan", *flags)
        step = re.search(r"plan\.program @train_step .*?\n  \}", emitted, re.DOTALL)[0]
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan", *flags)
        tokens = [number % CLASSES for number in hashed(BATCH * LENGTH * 4 + 1, 7)]
        data = "tokens:" + self.write("tokens.bin", b"".join(token.to_bytes(2, "little") for token in tokens))
        metrics = self.path("steps.jsonl")
        self.gpuc("gpuc-train", "model.plan", "--data=" + data, f"--steps={STEPS}", "--log-every=0", "--metrics=" + metrics)
        return [each["loss"] for each in self.metrics(metrics, "step")], step.count("plan.attention")

    def check(self, *keys):
        model = self.model(*keys)
        expected, commands = self.losses(model)
        self.assertEqual(commands, 2)
        self.assertLess(expected[-1], expected[0] - 0.01)
        for name, mask in MASKS.items():
            for scale, said in ((SCALE, 2), (HIDDEN_SCALE, 0)):
                with self.subTest(mask=name, attentions=said):
                    losses, commands = self.losses(self.spelled(model, mask, scale))
                    self.assertEqual(commands, said)
                    for ours, theirs in zip(losses, expected, strict=True):
                        self.assertAlmostEqual(ours, theirs, delta=1e-11 * theirs)

    def test_losses_are_those_of_the_op(self):
        self.check()

    def test_dropout_is_the_same(self):
        self.check("dropout=0.2")

    def test_parts_of_a_batch_drop_what_the_whole_does(self):
        text = self.spelled(self.model("dropout=0.2"), MASKS["in place"], SCALE)
        whole, commands = self.losses(text)
        parts, _ = self.losses(text, "--batch=1", f"--accumulate={BATCH}")  # whose programs are called by the step
        self.assertEqual(commands, 2)
        for ours, theirs in zip(parts, whole, strict=True):
            self.assertAlmostEqual(ours, theirs, delta=1e-11 * theirs)


if __name__ == "__main__":
    unittest.main()
