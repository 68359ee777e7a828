"""gpuc-inspect --memory-snapshot: what Python reads of it is a history that an allocator could have: no byte is given out twice, each
release is of what was given out, the most that is out at a time is the report's peak, and what is left are the segment's blocks."""

import json
import pickle
import pickletools
import unittest

from gpuc_tools import ToolTest

TEXT = ["layers=3", "heads=2", "width=16", "length=24", "vocabulary=50", "batch=4"]
MODELS = [
    ("convnet", ["size=16", "batch=5"], ["--checkpoint=full"]),
    ("rnn-classifier", ["cell=gru", "steps=18", "width=8", "hidden=24", "batch=32"], ["--accumulate=2"]),
    ("gpt2", ["layers=2", "width=64", "heads=2", "batch=12"], ["--accumulate=4"]),
    ("gpt2", TEXT, ["--checkpoint=sqrt", "--precision=bf16"]),
    ("gpt2", TEXT, ["--target=cuda:sm_90"]),
]
# What torch/utils/viz/MemoryViz.js can read.
OPCODES = {"PROTO", "STOP", "EMPTY_DICT", "EMPTY_LIST", "APPEND", "SETITEM", "LONG1", "BINUNICODE"}


class MemorySnapshot(ToolTest):
    def snapshot(self, plan):
        self.gpuc("gpuc-inspect", plan, "--memory-snapshot=memory.pickle")
        with open(self.path("memory.pickle"), "rb") as file:
            content = file.read()
        self.assertEqual({opcode.name for opcode, _, _ in pickletools.genops(content)} - OPCODES, set())
        snapshot = pickle.loads(content)
        self.assertEqual((len(snapshot["segments"]), len(snapshot["device_traces"])), (1, 1))
        return snapshot["segments"][0], snapshot["device_traces"][0]

    def play(self, events):
        """The bytes that are out at most, and what is out at the end: by address, size and tensor."""
        out, most, asked = {}, 0, None
        for event in events:
            at, size = event["addr"], event["size"]
            if event["action"] == "alloc":
                self.assertTrue(all(other + other_size <= at or at + size <= other for other, (other_size, _) in out.items()), event)
                out[at] = size, event["frames"]
                most = max(most, sum(size for size, _ in out.values()))
            elif event["action"] == "free_requested":
                asked = at
            else:
                self.assertEqual((event["action"], at, out.pop(at)), ("free_completed", asked, (size, event["frames"])))
        return most, out

    def check_segment(self, segment, out, arena):
        at, found = segment["address"], {}
        for block in segment["blocks"]:
            self.assertEqual(block["address"], at)
            if block["state"] == "active_allocated":
                found[at] = block["size"], block["frames"]
            at += block["size"]
        self.assertEqual((at, segment["total_size"]), (segment["address"] + arena, arena))
        self.assertEqual(found, out)

    def test_it_is_the_plans_memory(self):
        self.timed = 0
        for model, keys, flags in MODELS:
            with self.subTest(model=model, keys=keys, flags=flags):
                plan = self.compile_model(model, *keys, flags=["--report=" + self.path("report.json"), *flags])
                with open(self.path("report.json"), encoding="utf-8") as file:
                    report = json.load(file)
                facts = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
                segment, (first, *events) = self.snapshot(plan)
                self.assertEqual((first["action"], first["size"], first["category"]), ("segment_alloc", facts["arena_bytes"], "unknown"))
                most, out = self.play(events)
                self.assertEqual(most, report["peak_bytes"] - report["by_category"]["alignment_and_gaps"])
                self.check_segment(segment, out, facts["arena_bytes"])
                self.check_tensors(events, facts, first["addr"])
                self.check_times(events, [c for c in facts["commands"] if c["entry"] == "train_step"])
        self.assertGreater(self.timed, 1, "models without loops")

    def check_times(self, events, commands):
        """Without loops: what the next command needs is given out when all is released that only those before it needed."""
        if any(c["kind"] in ("repeat", "parallel") for c in commands) or len({c["stream"] for c in commands}) > 1:
            return
        self.timed += 1
        first, last = {}, {}
        for step, command in enumerate(c for c in commands if c["reads"] or c["writes"]):
            for operand in command["reads"] + command["writes"]:
                first.setdefault(operand["buffer"], step)
                last[operand["buffer"]] = step
        given = [e["frames"][0]["name"].split(" ")[0] for e in events if e["action"] == "alloc"]
        released = {e["frames"][0]["name"].split(" ")[0] for e in events if e["action"] == "free_completed"}
        alone = {name for name in released if given.count(name) == 1}  # of its name
        out = set()
        for event in events:
            name = event["frames"][0]["name"].split(" ")[0]
            if event["action"] == "free_completed":
                out.discard(name)
            elif event["action"] == "alloc":
                late = [other for other in out & alone if last[other] < first.get(name, 0) and given.count(name) == 1]
                self.assertEqual(late, [], f"when {name} is given out")
                out.add(name)

    def check_tensors(self, events, facts, arena):
        given = {(e["frames"][0]["name"].split(" ")[0], e["size"], e["category"]) for e in events if e["action"] == "alloc"}
        used = {operand["buffer"] for c in facts["commands"] if c["entry"] == "train_step" for operand in c["reads"] + c["writes"]}
        of = {(b["name"], b["bytes"], b["residual"] if b["residual"] and b["category"] == "activation" else b["category"])
              for b in facts["buffers"]}
        self.assertEqual(given - of, set())
        self.assertEqual(used - {name for name, _, _ in given}, set())
        offsets = {(b["name"], b["offset"]) for b in facts["buffers"] if b["slots"] == 1}
        slotted = {b["name"] for b in facts["buffers"] if b["slots"] > 1}
        for event in events:
            name = event["frames"][0]["name"].split(" ")[0]
            self.assertTrue((name, event["addr"] - arena) in offsets or name in slotted, event)
        lines = {frame["line"] for event in events for frame in event["frames"]}
        self.assertGreater(len(lines), 5, "lines of the model")


    def test_it_is_a_file_beside_others(self):
        plan = self.compile_model("mlp")
        self.assertEqual(self.gpuc("gpuc-inspect", plan, "--memory-snapshot=a.pickle", "--html=a.html"), "")
        self.assertIn("entries", json.loads(self.gpuc("gpuc-inspect", plan, "--memory-snapshot=b.pickle", "--json")))
        with open(self.path("a.pickle"), "rb") as a, open(self.path("b.pickle"), "rb") as b:
            self.assertEqual(a.read(), b.read())
        for flags in ([f"--memory-snapshot={plan}"], ["--memory-snapshot=c", "--html=c"]):
            result = self.run_tool("gpuc-inspect", plan, *flags)
            self.assertEqual(result.returncode, 1)
            self.assertRegex(result.stderr, r"^error: [^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
