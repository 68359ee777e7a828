"""A label or token outside of what the plan says it may be: every way in is asked, and each refuses before a step has run.
What Session::run itself says is in test/runtime/session_test.cpp."""

import struct
import unittest

from gpuc_tools import ToolTest
from tensor_files import write_npy

LENGTH, VOCABULARY, ROWS = 6, 11, 64


class Ranges(ToolTest):
    def refuses(self, message, tool, *arguments):
        with self.subTest(" ".join([tool, *arguments])):
            result = self.run_tool(tool, *arguments)
            self.assertRegex(result.stderr, f"\\Aerror: {message}\n\\Z")
            self.assertEqual(result.returncode, 1)

    def train(self, plan, data, *flags):
        self.gpuc("gpuc-train", plan, "--data=" + data, "--log-every=0", "--steps=1", *flags)

    def refuses_to_train(self, message, plan, data):
        self.refuses(message, "gpuc-train", plan, "--data=" + data, "--log-every=0", "--steps=1")
        # What is evaluated on is looked at too.
        self.refuses(message, "gpuc-train", plan, "--data=synthetic:size=64", "--eval-data=" + data, "--log-every=0", "--steps=1")

    def test_labels(self):
        self.gpuc("gpuc-model", "mlp", "hidden=4", "batch=16", "-o", "mlp.mlir")
        self.gpuc("gpuc-compile", "mlp.mlir", "-o", "mlp.plan")
        head = struct.pack(">HBB", 0, 8, 3) + struct.pack(">III", ROWS, 28, 28)
        self.write("d-images-idx3-ubyte", head + bytes(ROWS * 784))
        write_npy(self.path("x.npy"), "ui8", [ROWS, 1, 28, 28], bytes(ROWS * 784))
        write_npy(self.path("batch.npy"), "ui8", [16, 1, 28, 28], bytes(16 * 784))
        outside = r", which lies outside the plan's range \[0, 10\)"
        for position, wrong in ((0, 10), (ROWS - 1, 255), (17, 200)):
            labels = bytearray(ROWS)
            self.write("d-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, ROWS) + bytes(labels))
            self.train("mlp.plan", "idx:d")
            labels[position] = wrong
            self.write("d-labels-idx1-ubyte", struct.pack(">HBBI", 0, 8, 1, ROWS) + bytes(labels))
            self.refuses_to_train(rf"\S*d-labels-idx1-ubyte: sample {position} has labels = {wrong}" + outside, "mlp.plan", "idx:d")
        for position, wrong in ((0, -1), (5, 10), (15, -100), (8, 2**31 - 1), (9, -2**31)):
            labels = [3] * ROWS
            labels[position] = wrong
            write_npy(self.path("labels.npy"), "i32", [ROWS], labels)
            cure = rf": a plan that is to ignore it .*ignore_index={wrong}" if wrong < 0 else ""
            self.refuses_to_train(rf"\S*labels\.npy: sample {position} has labels = {wrong}" + outside + cure, "mlp.plan",
                                  "npy:x=x.npy,labels=labels.npy")
            write_npy(self.path("one.npy"), "i32", [16], labels[:16])
            self.refuses(rf"one\.npy: element {position} is {wrong}, input 'labels' takes 0 to 9", "gpuc-run", "mlp.plan",
                         "--entry=train_step", "--input", "x=batch.npy", "--input", "labels=one.npy")

    def test_tokens(self):
        self.gpuc("gpuc-model", "gpt2", "layers=1", "heads=2", "width=8", f"length={LENGTH}", f"vocabulary={VOCABULARY}",
                  "batch=2", "-o", "gpt.mlir")
        self.gpuc("gpuc-compile", "gpt.mlir", "-o", "gpt.plan")
        good = [i % VOCABULARY for i in range(200)]
        self.write("good.bin", struct.pack("<200H", *good))
        self.train("gpt.plan", "tokens:good.bin", "--save-variables=gpt.safetensors")
        for position, wrong in ((0, VOCABULARY), (100, 65535), (3, 256)):
            bad = list(good)
            bad[position] = wrong
            self.write("bad.bin", struct.pack("<200H", *bad))
            self.refuses_to_train(rf"bad\.bin: .*{wrong}.*", "gpt.plan", "tokens:bad.bin")
        self.write("text.txt", bytes(good))
        self.train("gpt.plan", "text:text.txt")
        self.write("letters.txt", bytes(good[:50]) + b"a" + bytes(good[50:]))
        self.refuses_to_train(r"letters\.txt: .*97.*", "gpt.plan", "text:letters.txt")
        generate = ("gpuc-generate", "gpt.plan", "--variables=gpt.safetensors", "--tokens=2")
        self.gpuc(*generate, "--prompt-tokens=1,10")
        self.refuses(r"prompt: token 11 at position 1 is no token of the model's vocabulary of 11", *generate, "--prompt-tokens=1,11")
        self.refuses(r"prompt: token -1 at position 0 is no token of the model's vocabulary of 11", *generate, "--prompt-tokens=-1")
        self.refuses(r"prompt: byte 97 \('a'\) at position 0 is no token of the model's vocabulary of 11", *generate, "--prompt=a")


if __name__ == "__main__":
    unittest.main()
