"""Runs docs/getting-started.md from top to bottom: each command succeeds, and prints what the page says that it prints."""

import os
import re
import subprocess
import unittest

from gpuc_tools import BIN, HERE, ToolTest

PAGE = os.path.join(HERE, "..", "..", "docs", "getting-started.md")
DATA = "/usr/share/datasets/fashion-mnist"
NUMBER = re.compile(r"\d+(?:[.:]\d+)*")


def blocks(text):
    """(language, text) of each fenced block; what a block prints stands in the next one, which has no language."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def says(expected, printed):
    """Whether a line is that of the page: losses and accuracies may differ a little on another CPU, speeds and times in all,
    sums are those of one kind of CPU, and so is its name; the length of the arena may not differ at all."""
    machine = re.compile(r" on .*?(?=$|:)|[0-9a-f]{64}")
    expected, printed = machine.sub("", expected), machine.sub("", printed)
    if NUMBER.sub("#", expected) != NUMBER.sub("#", printed):
        return False
    for name in ("loss", "accuracy"):
        pairs = zip(re.findall(rf"{name} ([\d.]+)", expected), re.findall(rf"{name} ([\d.]+)", printed))
        if any(abs(float(a) - float(b)) > 0.03 for a, b in pairs):
            return False
    return all(re.findall(exact, expected) == re.findall(exact, printed) for exact in (r"\d+ bytes", r"step \d+", r"\d+ steps", r"\d+ times"))


class GettingStarted(ToolTest):
    def setUp(self):
        super().setUp()
        if not os.path.exists(DATA):
            self.skipTest("no data set in " + DATA)

    def run_block(self, language, text):
        if language == "sh":
            text = re.sub(r"^(scripts/build|export PATH).*\n", "", text, flags=re.MULTILINE)
            # The page's variable stands in one block and is used in others.
            command = ["bash", "-euo", "pipefail", "-c", f"data={DATA}\n{text}"]
        else:
            command = ["python3", "-c", text]
        environment = dict(os.environ, PATH=os.path.abspath(BIN) + ":" + os.environ["PATH"])
        result = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=self.timeout_s)
        self.assertEqual(result.returncode, 0, f"{text}\n{result.stderr}")
        return (result.stdout + result.stderr).splitlines()

    def check(self, expected, printed):
        """Line by line; … stands for any number of lines."""
        rest, gap = list(printed), False
        for line in expected.splitlines():
            if line == "…":
                gap = True
                continue
            while gap and rest and not says(line, rest[0]):
                rest.pop(0)
            self.assertTrue(rest and says(line, rest[0]), f"the page says\n  {line}\nand it was\n" + "\n".join(printed))
            rest.pop(0)
            gap = False
        self.assertTrue(gap or not rest, "the page ends before\n" + "\n".join(rest))

    def test_the_page_from_top_to_bottom(self):
        with open(PAGE, encoding="utf-8") as file:
            page = blocks(file.read())
        self.gpuc("gpuc-model", "mlp", "-o", "mlp.mlir")  # as in the README
        self.gpuc("gpuc-compile", "mlp.mlir", "-o", "mlp.plan")
        checked, printed = 0, None
        for language, text in page:
            if language in ("sh", "python"):
                printed = self.run_block(language, text)
            elif language == "" and not text.startswith("error: "):
                with self.subTest(text.splitlines()[0]):
                    self.check(text, printed)
                checked += 1
        self.assertEqual(checked, 5)

    def test_peak_bytes_and_mistake(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        self.run_block("sh", "own-model own.mlir; gpuc-compile own.mlir -o own.plan --report=own.json")
        with open(self.path("own.json"), encoding="utf-8") as file:
            peak = re.search(r'"peak_bytes": \d+', file.read())[0]
        self.assertIn(f"`{peak}`", page)
        self.gpuc("gpuc-model", "mlp", "-o", "mlp.mlir")
        with open(self.path("mlp.mlir"), encoding="utf-8") as file:
            self.write("narrow.mlir", file.read().replace("gpuc.variable @fc1.weight : tensor<128x784", "gpuc.variable @fc1.weight : tensor<128x700"))
        result = self.run_tool("gpuc-compile", "narrow.mlir", "-o", "narrow.plan")
        self.assertIn(result.stderr, page)

    def test_commands_to_look_inside(self):
        with open(PAGE, encoding="utf-8") as file:
            table = file.read().split("## Look inside")[1]
        self.run_block("sh", "own-model own.mlir; gpuc-compile own.mlir -o own.plan")
        commands = re.findall(r"\| `(gpuc-[^`]*)`", table)
        self.assertEqual(len(commands), 8)
        for command in commands:
            self.run_block("sh", command)


if __name__ == "__main__":
    unittest.main()
