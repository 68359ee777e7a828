"""Every flag of every tool, tried on every other one: refused with status 2 and one line that names the tool which has it;
and with values that it cannot have. And --help, which -h is too."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from gpuc_tools import BIN, HERE, ToolTest

# The tools with gpuc's own command lines; gpuc-opt, gpuc-reduce and gpuc-lsp-server have LLVM's.
TOOLS = ("gpuc-calibrate gpuc-compile gpuc-generate gpuc-import-onnx gpuc-inspect gpuc-model gpuc-place-buffers gpuc-run gpuc-simulate gpuc-train").split()
LLVM_TOOLS = "gpuc-opt gpuc-reduce gpuc-lsp-server".split()


class UnknownFlags(ToolTest):
    @classmethod
    def setUpClass(cls):
        asking = cls("test_every_flag_on_every_other_tool")
        asking.folder = "/"
        cls.help = {tool: asking.run_tool(tool, "--help") for tool in TOOLS}
        cls.flags = {tool: re.findall(r"^  (?:-\w, )?--([a-z-]+)", help.stdout, re.MULTILINE) for tool, help in cls.help.items()}

    def owners(self, flag):
        return [tool for tool in TOOLS if flag in self.flags[tool]]

    def test_every_flag_on_every_other_tool(self):
        tried = 0
        for tool in TOOLS:
            for flag in sorted(set().union(*self.flags.values()) - set(self.flags[tool]) - {"mlir-"}):
                with self.subTest(f"{tool} --{flag}"):
                    result = self.run_tool(tool, f"--{flag}=1")
                    self.assertEqual((result.returncode, result.stdout), (2, ""))
                    self.assertRegex(result.stderr, rf"\Aerror: unknown flag --{flag}; [^\n]+\n\Z")
                    said = result.stderr.split(";", 1)[1]
                    self.assertIn(f"--{flag} is a flag of ", said)
                    self.assertEqual(re.findall("gpuc-[a-z-]+", said.split(f"--{flag} is a flag of ")[1]), self.owners(flag))
                    tried += 1
        self.assertGreater(tried, 400)

    def test_every_flag_with_a_wrong_value(self):
        wrong = {"=N": ["x", "1.5", "1e3", "0x10", "+1", " 1", "nan", "99999999999999999999"],
                 "=X": ["x", "nan", "1,2", "-"], "=S": ["x", "nan", "-1"],
                 "=SIZE": ["-1", "1kb", "1 GB", "KB", "1TB", "nan", "99999999999GiB"], "": ["yes", "1", "TRUE"]}
        tried = 0
        for tool in TOOLS:
            flags = re.findall(r"^  (?:-\w, )?--([a-z-]+)(=N(?![A-Z,])|=X|=S(?:IZE)?(?![A-Z])|\S*)", self.help[tool].stdout, re.MULTILINE)
            self.assertEqual([flag for flag, _ in flags], self.flags[tool])
            for flag, value in flags:
                for text in ([] if flag == "mlir-" else ["", *wrong.get(value, [])]):
                    with self.subTest(f"{tool} --{flag}={text}"):
                        result = self.run_tool(tool, f"--{flag}={text}", "nothing")
                        self.assertEqual((result.returncode, result.stdout), (2, ""))
                        self.assertRegex(result.stderr, rf"\Aerror: (missing value: --{flag}|--{flag}: )[^\n]*\n\Z")
                        tried += 1
        self.assertEqual(os.listdir(self.folder), [])
        self.assertGreater(tried, 250)

    def test_every_tool_has_flags_and_help_by_one_letter(self):
        for tool in TOOLS:
            with self.subTest(tool):
                self.assertGreater(len(self.flags[tool]), 4)
                short = self.run_tool(tool, "-h")
                self.assertEqual((short.returncode, short.stdout, short.stderr), (0, self.help[tool].stdout, ""))

    def on_terminal(self, columns, *command):
        """What a program writes to a terminal that is so wide."""
        ours, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        program = subprocess.Popen([os.path.join(BIN, command[0]), *command[1:]], stdout=its, stderr=subprocess.PIPE)
        os.close(its)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # how Linux says that the other end is closed
            pass
        os.close(ours)
        self.assertEqual((program.communicate()[1], program.returncode), (b"", 0))
        return written.decode().replace("\r\n", "\n")

    def test_help_is_as_wide_as_the_terminal(self):
        """Or, where there is none, 100 columns; and no wider, nor narrower than 60."""
        for tool in TOOLS:
            for columns, most in ((None, 100), (250, 100), (80, 80), (60, 60), (20, 60)):
                with self.subTest(f"{tool} {columns}"):
                    text = self.on_terminal(columns, tool, "--help") if columns else self.help[tool].stdout
                    self.assertEqual(text.split(), self.help[tool].stdout.split())
                    long = [line for line in text.splitlines() if len(line) > most and " " in line.strip() and not line.startswith("Usage")]
                    self.assertEqual(long, [])
                    under = [line for line in text.splitlines() if line.startswith("   ")]
                    self.assertEqual([line for line in under if len(line) - len(line.lstrip()) != 30], [])

    def test_llvm_tools_have_help_by_one_letter_too(self):
        for tool in LLVM_TOOLS:
            with self.subTest(tool):
                short = self.run_tool(tool, "-h")
                self.assertEqual((short.returncode, short.stderr), (0, ""))
                self.assertRegex(short.stdout, r"\AOVERVIEW: (?s:.)*--help +- Display available options")

    def test_help_is_without_flags_of_code_generators(self):
        for tool in LLVM_TOOLS:
            with self.subTest(tool):
                listed = re.findall(r"^  --([a-z0-9-]+)", self.run_tool(tool, "--help").stdout, re.MULTILINE)
                foreign = [name for name in listed if re.match("aarch64|amdgpu|arm-|instcombine|lto-|nvptx|polly|riscv|wasm|x86", name)]
                self.assertEqual(foreign, [])
                self.assertLess(len(listed), 100)
        self.assertIn("--x86-align-branch", self.run_tool("gpuc-opt", "--help-hidden").stdout)
        help_text = self.run_tool("gpuc-opt", "--help").stdout
        for flag in ("mlir-timing", "mlir-print-debuginfo", "gpuc-fuse", "plan-verify", "canonicalize", "verify-diagnostics"):
            self.assertRegex(help_text, rf"(?m)^ +--{flag}\b")

    def test_all_tools_are_asked(self):
        self.assertEqual(sorted(TOOLS + LLVM_TOOLS), sorted(name.removesuffix(".cpp") for name in os.listdir(os.path.join(HERE, "..", "..", "tools")) if name.startswith("gpuc-")))


if __name__ == "__main__":
    unittest.main()
