"""plan_memory, by which other tests judge plans: what it counts by hand, and that a buffer at a place where it may not be is found."""

import json
import random
import unittest

from gpuc_tools import ToolTest
from plan_memory import LASTING, least_bytes
from small_zoo import MODELS


def buffer(name, offset, size, category="activation"):
    return {"name": name, "offset": offset, "bytes": size, "slots": 1, "category": category}


def plan_of(buffers, commands, outputs=()):
    """Commands as (depth, buffers that are read, buffers that are written), by their names; a loop touches nothing itself."""
    def operands(names):
        numbers = [next(i for i, b in enumerate(buffers) if b["name"] == name.rstrip("?")) for name in names]
        return [{"index": i, "bytes": buffers[i]["bytes"] // (2 if name[-1] == "?" else 1)} for i, name in zip(numbers, names)]

    listed = [{"entry": "f", "stream": "compute", "name": "", "depth": depth, "reads": operands(reads), "writes": operands(writes)}
              for depth, reads, writes in commands]
    return {"buffers": buffers, "commands": listed,
            "entries": {"f": {"outputs": [{"index": i} for i, b in enumerate(buffers) if b["name"] in outputs]}}}


class PlanMemory(ToolTest):
    def test_a_chain(self):
        # w lasts; of the chain a, b, c two are needed at a time: 64 and 128, then 128 and 64.
        buffers = [buffer("w", 0, 60, "parameter"), buffer("a", 64, 64), buffer("b", 128, 128), buffer("c", 64, 64)]
        commands = [(0, "w", "a"), (0, "a", "b"), (0, "b", "c")]
        self.assertEqual(least_bytes(plan_of(buffers, commands)), 64 + 192)
        # An output is needed to the end, where a is not.
        buffers[3]["offset"] = 0x1000
        self.assertEqual(least_bytes(plan_of(buffers, [*commands, (0, "w", "a")], outputs="b")), 64 + 256)

    def test_in_place(self):
        buffers = [buffer("a", 0, 64), buffer("b", 0, 64), buffer("c", 64, 64)]
        self.assertEqual(least_bytes(plan_of(buffers, [(0, "", "a"), (0, "a", "b"), (0, "b", "c")])), 128)
        for wrong in ([(0, "", "a"), (0, "a", "b"), (0, "a", "c")],  # a is read once more
                      [(0, "", "ab"), (0, "b", "c")]):  # both are written at once
            with self.assertRaisesRegex(AssertionError, "f: a, needed in .*, and b, in .*, share bytes"):
                least_bytes(plan_of(buffers, wrong))

    def test_loops(self):
        # In each iteration a, then b. They share bytes, if each is written whole first.
        buffers = [buffer("a", 0, 64), buffer("b", 0, 64), buffer("x", 64, 64)]
        whole = [(0, "", "x"), (0, "", ""), (1, "x", "a"), (1, "a", "x"), (1, "x", "b"), (1, "b", "x")]
        self.assertEqual(least_bytes(plan_of(buffers, whole)), 128)
        for wrong in ([*whole[:2], (1, "x", ["b?"]), *whole[2:]],  # b is first written in part: it may hand something on
                      [*whole[:4], (1, "b", "x"), (1, "x", "b")]):  # read before it is written
            with self.assertRaisesRegex(AssertionError, "share bytes"):
                least_bytes(plan_of(buffers, wrong))
        # Of a loop in a loop it is the outer one that needs it.
        inner = [(0, "", ""), (1, "", "a"), (1, "a", ""), (1, "", ""), (2, "", ["b?"]), (0, "", "x")]
        with self.assertRaisesRegex(AssertionError, "share bytes"):
            least_bytes(plan_of(buffers, inner))

    def test_a_buffer_that_was_moved_is_found(self):
        moved = found = 0
        draw = random.Random(1)
        for model in ("mlp", "gpt2", "rnn-classifier"):
            plan = json.loads(self.gpuc("gpuc-inspect", self.compile_model(model, *MODELS[model][0]), "--json"))
            least_bytes(plan)
            placed = [b for b in plan["buffers"] if b["category"] not in LASTING]
            lowest = min(b["offset"] for b in placed)
            for _ in range(40):
                one = draw.choice(placed)
                before, one["offset"] = one["offset"], draw.randrange(lowest, plan["arena_bytes"] - one["bytes"], 64)
                moved += 1
                try:
                    least_bytes(plan)
                except AssertionError:
                    found += 1
                one["offset"] = before
        self.assertGreater(found, moved / 3)  # the others fell into a gap, or where nothing is needed at the time


if __name__ == "__main__":
    unittest.main()
