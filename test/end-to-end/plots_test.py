"""gpuc-inspect --html with what gpuc-compile wrote beside the plan: --report gives a roofline whose dots are the report's commands,
--tradeoff a curve whose dots are its plans; files of another plan, or that are none, are refused."""

import copy
import json
import math
import os
import random
import re
import unittest

from gpuc_tools import ToolTest
from picture_page import Page

TEXT = ["layers=3", "heads=2", "width=16", "length=24", "vocabulary=50", "batch=4"]
ROUNDS = 60


def places(values, ticks):
    """What the marks of an axis say at these shares of it: two marks are enough to know them all."""
    (low, first), (high, last) = ticks[0], ticks[-1]
    return [first + (value - low) / (high - low) * (last - first) for value in values]


class Plots(ToolTest):
    def setUp(self):
        super().setUp()
        self.gpuc("gpuc-model", "gpt2", *TEXT, "-o", "model.mlir")
        curve = self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan", "--report=report.json", "--report-tradeoff",
                          "--checkpoint=sqrt")
        self.write("curve.json", curve)
        self.curve = json.loads(curve)
        with open(self.path("report.json"), encoding="utf-8") as file:
            self.report = json.load(file)

    def page(self, *flags):
        self.gpuc("gpuc-inspect", "model.plan", "--html=page.html", *flags)
        with open(self.path("page.html"), encoding="utf-8") as file:
            return Page(file.read())

    def dots(self, picture, read):
        """(x, y) of each dot as the axes' marks tell, by `read`, and its rectangle; all lie in the drawing."""
        self.assertEqual(picture["view"], [0, 0, 1000, 1000])
        marks = {axis: [(float(re.search(r":([\d.]+)%", style)[1]) / 100, read(text)) for style, text in ticks]
                 for axis, ticks in picture["ticks"].items()}
        for rect in picture["rects"]:
            self.assertTrue(0 <= rect["x"] <= 1000 and 0 <= rect["y"] <= 1000, rect)
        xs = places([rect["x"] / 1000 for rect in picture["rects"]], marks["x"])
        ys = places([1 - rect["y"] / 1000 for rect in picture["rects"]], marks["y"])
        return list(zip(xs, ys, picture["rects"]))

    @staticmethod
    def decade(text):
        scale = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}.get(text[-1], 1)
        return math.log10(float(text.rstrip("kMGT")) * scale)

    def test_the_roofline_is_the_reports(self):
        page = self.page("--report=report.json")
        rates = self.report["rates"]
        self.assertAlmostEqual(sum(w["predicted_us"] * w["executions"] for w in self.report["work"] if w["entry"] == "train_step"),
                               self.report["predicted_step_us"], delta=0.1 * self.report["predicted_step_us"])
        for entry in page.programs:
            work = [w for w in self.report["work"] if w["entry"] == entry and w["flops"] > 0]
            expected = {(w["flops"], w["bytes_read"] + w["bytes_written"]): w["predicted_us"] for w in work}
            self.assertEqual("roofline" in page.programs[entry], bool(expected))
            if not expected:
                continue
            picture = page.programs[entry]["roofline"]
            dots = self.dots(picture, self.decade)
            self.assertEqual(len(dots), len(expected))
            self.assertEqual(sorted((round(x, 3), round(y, 3)) for x, y, _ in dots),
                             sorted((round(math.log10(flops / bytes), 3), round(math.log10(flops / us / 1000), 3))
                                    for (flops, bytes), us in expected.items()))
            for x, y, rect in dots:
                roof = min(math.log10(rates["flops_per_us"] / 1e3), x + math.log10(rates["bytes_per_us"] / 1e3))
                self.assertLessEqual(y, roof + 1e-3, rect)
            shares = [float(re.search(r"([\d.]+)% of these", rect["title"])[1]) for _, _, rect in dots]
            self.assertAlmostEqual(sum(shares), 100, delta=0.1)
            self.assertEqual(len(picture["paths"]), 1)

    def test_the_curve_is_what_was_reported(self):
        page = self.page("--tradeoff=curve.json")
        dots = self.dots(page.programs["train_step"]["tradeoff"], float)
        self.assertEqual([rect["title"].split("\n")[0] for _, _, rect in dots],
                         [point["kept"] + (", this plan" if point["chosen"] else "") for point in self.curve])
        for (x, y, rect), point in zip(dots, self.curve, strict=True):
            self.assertAlmostEqual(x, point["peak_bytes"] / 2**20, delta=1e-4 * x)
            self.assertAlmostEqual(y, point["predicted_step_us"] / 1000, delta=1e-4 * y)
            self.assertEqual("chosen" in rect["kind"].split(), point["chosen"])
        self.assertEqual(["tradeoff" in pictures for pictures in page.programs.values()], [True] + [False] * (len(page.programs) - 1))

    def refused(self, flag, content, because):
        """With one line, and no page."""
        self.write("other.json", content if isinstance(content, str) else json.dumps(content))
        result = self.run_tool("gpuc-inspect", "model.plan", "--html=none.html", f"--{flag}=other.json")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^error: [^\n]*\n$")
        self.assertIn("other.json", result.stderr)
        self.assertIn(because, result.stderr)
        self.assertFalse(os.path.exists(self.path("none.html")))

    def changed(self, content, **members):
        result = copy.deepcopy(content)
        (result[0] if isinstance(result, list) else result).update(members)
        return result

    def test_other_files_are_refused(self):
        for flag in ("report", "tradeoff"):
            for text in ("", "{}", "[]", "[1]", "null", "{", '{"work": [', '"x"', "[" * 20000, "\x00\x01"):
                self.refused(flag, text, "give the file that gpuc-compile --report")
            result = self.run_tool("gpuc-inspect", "model.plan", "--html=none.html", f"--{flag}=missing.json")
            self.assertEqual((result.returncode, "missing.json" in result.stderr), (1, True))
            result = self.run_tool("gpuc-inspect", "model.plan", f"--{flag}=report.json")
            self.assertEqual((result.returncode, result.stderr), (2, f"error: --{flag} adds to a page: give --html=FILE, too\n"))
        self.refused("report", self.changed(self.report, peak_bytes=64), "of another plan, whose arena is 64 bytes")
        self.refused("report", self.changed(self.report, peak_bytes=-64), "peak_bytes")
        self.refused("report", self.changed(self.report, rates={"flops_per_us": 0, "bytes_per_us": 1}), "a rate is 0")
        self.refused("report", self.changed(self.report, work=[{"entry": "train_step"}]), "without kind")
        for member, bad in (("kept", 1), ("peak_bytes", "x"), ("predicted_step_us", -1), ("chosen", 1)):
            self.refused("tradeoff", self.changed(self.curve, **{member: bad}), "a plan without " + member)
        self.refused("tradeoff", [dict(point, chosen=False) for point in self.curve], "no plan is chosen")
        self.refused("tradeoff", [dict(point, peak_bytes=64) for point in self.curve], "of another plan, whose arena is 64 bytes")

    def test_names_are_text(self):
        hostile = '</title><script>alert(1)</script>"\' \u202e\x1b[31m'
        for item in self.report["work"]:
            item.update(name=hostile, layer=hostile, kind=hostile)
        for point in self.curve:
            point["kept"] = hostile
        self.write("report.json", json.dumps(self.report))
        self.write("curve.json", json.dumps(self.curve))
        page = self.page("--report=report.json", "--tradeoff=curve.json")
        self.assertEqual(sum(tag == "script" for tag, _ in page.tags), 1)
        shown = page.programs["train_step"]["tradeoff"]["rects"][0]["title"].split("\n")[0]
        self.assertTrue(shown.startswith('</title><script>alert(1)</script>"\' \\xe2\\x80\\xae\\x1b[31m'), shown)

    def test_files_that_are_bent_give_a_page_or_a_line(self):
        chance = random.Random(7)
        bad = [None, -1, 0, 1e300, 1e24, 2**64, "", "x", [], {}, True, 1e-300]
        for _ in range(ROUNDS):
            flag, content = chance.choice((("report", copy.deepcopy(self.report)), ("tradeoff", copy.deepcopy(self.curve))))
            for _ in range(chance.randint(1, 3)):
                place = content
                while isinstance(place, (dict, list)) and place:
                    key = chance.choice(list(place)) if isinstance(place, dict) else chance.randrange(len(place))
                    if not isinstance(place[key], (dict, list)) or chance.random() < 0.2:
                        place[key] = chance.choice(bad)
                        break
                    place = place[key]
            self.write("bent.json", json.dumps(content))
            result = self.run_tool("gpuc-inspect", "model.plan", "--html=bent.html", f"--{flag}=bent.json")
            if result.returncode == 0:
                with open(self.path("bent.html"), encoding="utf-8") as file:
                    text = file.read()
                self.assertEqual(re.findall(r'(?i).{,80}[":> ]-?(?:nan|inf).{,80}', text.split("<script>")[0]), [])
                for pictures in Page(text).programs.values():
                    for name in {"roofline", "tradeoff"} & set(pictures):
                        for rect in pictures[name]["rects"]:
                            self.assertTrue(-0.1 <= rect["x"] <= 1000.1 and -0.1 <= rect["y"] <= 1000.1, rect)
            else:
                self.assertEqual(result.returncode, 1)
                self.assertRegex(result.stderr, r"^error: [^\n]*bent.json[^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
