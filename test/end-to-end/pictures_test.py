"""gpuc-inspect --html: every buffer of every program is a rectangle that lies on its axes and is as large as the plan says; what the
picture says of the peak is what the compiler's report says; each command stands on its stream, and who waits stands behind whom it
waits for; the page needs no other file; and text of a model stays text."""

import json
import re
import unittest

from gpuc_tools import ToolTest
from picture_page import Page

MIB = 1 << 20
TEXT = ["layers=3", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1", "batch=4"]
MODELS = [  # name, keys, flags
    ("mlp", ["hidden=24,24", "batch=33"], []),
    ("convnet", ["size=16", "batch=5"], ["--checkpoint=full"]),
    ("rnn-classifier", ["cell=lstm", "steps=6", "width=8", "hidden=24", "batch=18"], []),
    ("rnn-classifier", ["cell=gru", "steps=18", "width=8", "hidden=24", "batch=32", "layers=2"], ["--accumulate=2"]),
    ("lstm-generator", ["embedding=8", "hidden=16", "length=24", "batch=32"], ["--accumulate=2"]),
    ("gpt2", TEXT, ["--checkpoint=sqrt"]),
    ("gpt2", TEXT, ["--accumulate=4", "--precision=bf16"]),
    ("gpt2", ["layers=2", "width=64", "heads=2", "batch=12"], ["--accumulate=4"]),  # loops in a loop
    ("gpt2", TEXT, ["--target=cuda:sm_90"]),
    ("rnn-classifier", ["cell=lstm", "steps=6", "hidden=24", "batch=8"], ["--target=cuda:sm_90", "--accumulate=2", "--precision=bf16"]),
]
HOSTILE = ['</title></svg><script>document.title = 1</script>', '"><img src=x onerror=alert(1)>', "' onfocus='alert(1)", "a&lt;b&amp;c",
           "<!-- ]]> %s {{x}} ${x} `x`", "tête/注意 🙂"]


def bytes_in(text):
    """Of "1.82 MiB (1907840 bytes)"."""
    return int(re.search(r"(\d+) bytes?\b", text)[1])


def covered(intervals):
    total, counted = 0, 0
    for begin, end in sorted(intervals):
        total += max(0, end - max(begin, counted))
        counted = max(counted, end)
    return total


class Pictures(ToolTest):
    def page(self, plan):
        self.gpuc("gpuc-inspect", plan, "--html=page.html")
        with open(self.path("page.html"), encoding="utf-8") as file:
            return file.read()

    def check_rectangles(self, program, facts):
        """Each lies on the axes and is a buffer where the plan places it; gives (first, end, bottom, top), in bytes."""
        unit = MIB / program["unit"]
        _, _, width, height = program["view"]
        arena = facts["arena_bytes"]
        self.assertEqual(height * unit, arena)
        places = {}  # the buffers of each place: slots lie 64-byte aligned one behind the other
        for buffer in facts["buffers"]:
            for slot in range(buffer["slots"]):
                at = buffer["offset"] + slot * ((buffer["bytes"] + 63) // 64 * 64)
                places.setdefault((buffer["name"], buffer["bytes"], at), []).append(buffer)
        boxes = []
        for rect in program["rects"]:
            bottom, top = (arena - round(edge * unit) for edge in (rect["y"] + rect["height"], rect["y"]))
            self.assertTrue(0 <= rect["x"] < rect["x"] + rect["width"] <= width, rect)
            self.assertTrue(0 <= bottom < top <= arena, rect)
            name, facts_of_it = rect["title"].split("\n")[:2]
            self.assertIn((name, top - bottom, bottom), places)
            buffers = places[name, top - bottom, bottom]
            self.assertEqual(bytes_in(facts_of_it), top - bottom)
            self.assertIn(int(facts_of_it.split("from byte ")[1]), {b["offset"] for b in buffers})
            self.assertTrue(any(rect["kind"] in (b["category"], b["residual"]) for b in buffers), rect)
            boxes.append((rect["x"], rect["x"] + rect["width"], bottom, top))
        return boxes

    def check_ticks(self, program):
        unit, (_, _, commands, height) = program["unit"], program["view"]
        for axis, side, end in (("x", "left", commands), ("y", "bottom", height / unit)):
            ticks = program["ticks"][axis]
            self.assertGreaterEqual(len(ticks), 3)
            for style, text in ticks:
                share = float(re.fullmatch(side + r":([\d.]+)%", style)[1]) / 100
                self.assertTrue(0 <= share <= 1)
                self.assertAlmostEqual(float(text), share * end, delta=1e-5 * end)

    def check_peak(self, program, boxes, arena):
        live = {step: covered((bottom, top) for first, end, bottom, top in boxes if first <= step < end)
                for step in range(int(program["view"][2]))}
        most = max(live.values())
        step = int(re.search(r"at command (\d+)", program["peak"])[1])
        self.assertEqual(step, min(at for at, bytes in live.items() if bytes == most))
        self.assertEqual(most, bytes_in(program["peak"]))
        table = {name: bytes_in(bytes) for name, bytes in program["table"]}
        self.assertEqual(table.pop("arena"), arena)
        self.assertEqual(sum(table.values()), arena)
        self.assertEqual(arena - table["nothing"], bytes_in(program["peak"]))
        return table

    def check_report(self, table, report):
        """The training step needs most: what it says of its peak is what the report says."""
        table["parameter"] = table.get("parameter", 0) + table.pop("constant", 0)
        table["alignment_and_gaps"] = table.pop("nothing")
        for category, bytes in report["by_category"].items():
            self.assertEqual(table.get(category, 0), bytes, category)

    def check_streams(self, pictures, commands):
        """Where there are several: each command that touches memory on its lane, in the lane's order, and lines from records to
        waits, which lead forward."""
        streams = list(dict.fromkeys(c["stream"] for c in commands))
        self.assertEqual("streams" in pictures, len(streams) > 1)
        if len(streams) < 2:
            return
        picture = pictures["streams"]
        rects, paths = picture["rects"], [path for path in picture["paths"] if "end" not in path["class"]]
        self.assertEqual(picture["view"], [0, 0, pictures["memory"]["view"][2], len(streams)])
        self.assertEqual([rect["x"] for rect in rects], list(range(len(rects))))
        for lane, stream in enumerate(streams):
            expected = [c["name"] for c in commands if c["stream"] == stream and (c["reads"] or c["writes"])]
            drawn = [rect for rect in rects if lane < rect["y"] < rect["y"] + rect["height"] < lane + 1]
            self.assertEqual([rect["title"].split("\n")[0] for rect in drawn], expected)
            self.assertTrue(all(f"stream {stream}" in rect["title"] for rect in drawn))
        self.assertEqual({rect["title"].split("\n")[0] for rect in rects if rect["kind"] == "upload"},
                         {c["name"] for c in commands if c["name"].startswith("copy h2d")})
        self.assertEqual(len(paths), sum(c["kind"] == "wait" for c in commands))
        for path in paths:
            x, y, to_x, to_y = map(float, re.fullmatch(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", path["d"]).groups())
            self.assertTrue(0 <= x <= to_x <= len(rects) and y != to_y and {y % 1, to_y % 1} == {0.5}, path)

    def test_rectangles_axes_and_peak(self):
        for model, keys, flags in MODELS:
            with self.subTest(model=model, keys=keys, flags=flags):
                plan = self.compile_model(model, *keys, flags=["--report=" + self.path("report.json"), *flags])
                facts = json.loads(self.gpuc("gpuc-inspect", plan, "--json"))
                with open(self.path("report.json"), encoding="utf-8") as file:
                    report = json.load(file)
                text = self.page(plan)
                self.assertNotRegex(text, r"(?i)https?:|src=|href=|@import|url\(", "the page needs nothing else")
                page = Page(text)
                self.assertEqual(page.heading[0], "train_step")
                self.assertEqual(set(page.heading), set(facts["entries"]))
                for name, pictures in page.programs.items():
                    program = pictures["memory"]
                    boxes = self.check_rectangles(program, facts)
                    self.check_ticks(program)
                    table = self.check_peak(program, boxes, facts["arena_bytes"])
                    if name == "train_step":
                        self.check_report(table, report)
                    self.check_streams(pictures, [c for c in facts["commands"] if c["entry"] == name])
                self.check_all_are_drawn(page, facts)

    def check_all_are_drawn(self, page, facts):
        rects = [rect for program in page.programs.values() for rect in program["memory"]["rects"]]
        drawn = {rect["title"].split("\n")[0] for rect in rects}
        self.assertEqual(drawn, {b["name"] for b in facts["buffers"]})
        recomputed = sum(b["residual"] == "recomputed" and b["category"] == "activation" for b in facts["buffers"])
        self.assertEqual(sum(rect["kind"] == "recomputed" for rect in rects), recomputed)
        self.assertTrue(all("recomputed for the backward pass" in r["title"] for r in rects if r["kind"] == "recomputed"))

    def test_text_stays_text(self):
        for layer in HOSTILE:
            with self.subTest(layer=layer):
                quoted = layer.replace("\\", "\\\\").replace('"', '\\"')
                self.write("model.mlir", f"""module @m {{
  gpuc.variable @w : tensor<8x8xf32> init zeros
  func.func @predict(%x: tensor<4x8xf32> {{gpuc.name = "x"}}) -> (tensor<4x8xf32> {{gpuc.name = "y"}}) {{
    %w = gpuc.read @w : tensor<8x8xf32>
    %h = gpuc.matmul %x, transpose %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("{quoted}")
    %y = gpuc.exp %h : tensor<4x8xf32> loc("{quoted}")
    return %y : tensor<4x8xf32>
  }}
}}
""")
                self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan")
                text = self.page("model.plan")
                page = Page(text)
                self.assertEqual(sum(tag == "script" for tag, _ in page.tags), 1)
                self.assertEqual(text.lower().count("</script"), 1)
                allowed = {"class", "x", "y", "width", "height", "style", "title", "viewbox", "preserveaspectratio", "data-unit", "d",
                           "tabindex", "role", "aria-label", "lang", "charset", "name", "content", "open"}
                self.assertEqual({name for _, attributes in page.tags for name in attributes} - allowed, set())
                self.assertNotIn("img", {tag for tag, _ in page.tags})
                titles = [rect["title"] for rect in page.programs["predict"]["memory"]["rects"]]
                self.assertTrue(any("layer " + layer in title for title in titles), titles)

    def test_what_turns_text_around_is_spelled_out(self):
        self.write("model.mlir", """module @m {
  func.func @predict(%x: tensor<4xf32> {gpuc.name = "x"}) -> (tensor<4xf32> {gpuc.name = "y"}) {
    %y = gpuc.exp %x : tensor<4xf32> loc("a\\E2\\80\\AEb")
    return %y : tensor<4xf32>
  }
}
""")
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan")
        text = self.page("model.plan")
        self.assertNotIn("\u202e", text)
        self.assertIn("layer a\\xe2\\x80\\xaeb", text)


if __name__ == "__main__":
    unittest.main()
