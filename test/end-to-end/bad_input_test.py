"""Whatever is wrong with what a user gives: one line on stderr that names it, the exit status of the contract (2 for the
command line, 1 for all else), no output, and every file as it was."""

import os
import re
import shutil
import struct
import tempfile
import unittest

from gpuc_tools import ToolTest, sha256
from tensor_files import write_npy, write_safetensors

ROWS = 100
PIXELS = 28 * 28


def idx(type_code, extents, data):
    return struct.pack(">HBB", 0, type_code, len(extents)) + b"".join(struct.pack(">I", e) for e in extents) + data


class BadInput(ToolTest):
    @classmethod
    def setUpClass(cls):
        cls.made = tempfile.mkdtemp(prefix="gpuc-bad-input-")
        cls.addClassCleanup(shutil.rmtree, cls.made, ignore_errors=True)
        maker = cls("make")
        maker.folder = cls.made
        maker.make()

    def setUp(self):
        super().setUp()
        for name in os.listdir(self.made):
            shutil.copy(os.path.join(self.made, name), self.folder)
        self.write("kept", "what stood here before")

    def make(self):
        """What the cases have in common: a model, its plan, data that fits."""
        self.gpuc("gpuc-model", "mlp", "hidden=16", "-o", "model.mlir")
        self.gpuc("gpuc-compile", "model.mlir", "-o", "model.plan")
        self.write("good-images-idx3-ubyte", idx(8, [ROWS, 28, 28], bytes(ROWS * PIXELS)))
        self.write("good-labels-idx1-ubyte", idx(8, [ROWS], bytes(ROWS)))
        self.gpuc("gpuc-train", "model.plan", "--data=idx:good", "--log-every=0", "--save-variables=good.safetensors")

    def files(self):
        return {name: sha256(self.path(name)) for name in os.listdir(self.folder)}

    def refuses(self, status, message, tool, *arguments):
        """`message` is a regular expression for what follows `error: `."""
        with self.subTest(" ".join([tool, *arguments])):
            before = self.files()
            result = self.run_tool(tool, *arguments)
            self.assertRegex(result.stderr, f"\\Aerror: {message}\n\\Z")
            self.assertEqual(result.returncode, status, result.stderr)
            self.assertEqual(result.stdout, "")
            self.assertEqual(self.files(), before)

    def refuses_to_compile(self, message, file, *flags, status=1):
        """Neither makes a file nor changes one that is there."""
        for output in ("new.plan", "kept"):
            self.refuses(status, message, "gpuc-compile", file, "-o", output, *flags)

    def refuses_to_train(self, message, data, *flags, plan="model.plan", status=1):
        outputs = ["--save-variables=kept", "--metrics=new.jsonl", "--checkpoint-dir=new", "--log-dir=log"]
        self.refuses(status, message, "gpuc-train", plan, "--data=" + data, *outputs, *flags)

    def with_data(self, prefix, images=None, labels=None):
        """The good data under another name, with one of its files replaced."""
        for name, replacement in (("images-idx3-ubyte", images), ("labels-idx1-ubyte", labels)):
            with open(self.path("good-" + name), "rb") as file:
                self.write(f"{prefix}-{name}", replacement if replacement is not None else file.read())
        return "idx:" + prefix

    def changed_model(self, old, new):
        with open(self.path("model.mlir"), encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        self.write("changed.mlir", text.replace(old, new))
        return "changed.mlir"

    def changed_plan(self, change):
        with open(self.path("model.plan"), "rb") as file:
            content = bytearray(file.read())
        self.write("changed.plan", bytes(change(content)))
        return "changed.plan"

    def test_missing_files(self):
        message = "cannot open none[^:]*: No such file or directory"
        self.refuses_to_compile(message, "none.mlir")
        self.refuses(1, message, "gpuc-run", "none.plan", "--entry=predict", "--output-dir=new")
        self.refuses(1, message, "gpuc-inspect", "none.plan", "--html=kept")
        self.refuses_to_train(message, "idx:good", plan="none.plan")
        self.refuses_to_train(message, "idx:good", "--variables=none.safetensors")
        self.refuses_to_train(message, "npy:x=none.npy,labels=none.npy")
        self.refuses_to_train("no such data: neither none-images-idx3-ubyte nor .* exists", "idx:none")
        self.refuses_to_train("no such data: neither none-images-idx3-ubyte nor .* exists", "idx:good",
                              "--eval-data=idx:none")
        self.refuses(1, message, "gpuc-run", "model.plan", "--entry=predict", "--input=x=none.npy", "--json=kept")

    def test_not_mlir(self):
        self.write("letter.mlir", "Dear reader,\n")
        self.refuses_to_compile(r"letter\.mlir:1:1: custom op 'Dear' is unknown .*", "letter.mlir")
        self.write("empty.mlir", "")
        self.refuses_to_compile("the module is empty: expected a model.*", "empty.mlir")
        self.refuses_to_compile(r"model\.plan:1:\d+: .*", "model.plan")
        self.refuses_to_compile(r"changed\.mlir:\d+:\d+: custom op 'gpuc.rleu' is unknown.*",
                                self.changed_model("gpuc.relu", "gpuc.rleu"))

    def test_shapes_that_do_not_fit(self):
        # Without `transpose`, 784 columns meet 16 rows.
        self.refuses_to_compile(r"layer fc1: 'gpuc\.matmul' op lhs 'tensor<\?x784xf32>' and rhs 'tensor<16x784xf32>' .*",
                                self.changed_model("matmul %flatten, transpose %fc1", "matmul %flatten, %fc1"))

    def test_variables_that_are_not_declared(self):
        self.refuses_to_compile(r"layer fc1: 'gpuc\.read' op variable 'fc1\.bias' is not declared, did you mean 'fc1\.byas'\?.*",
                                self.changed_model("gpuc.variable @fc1.bias", "gpuc.variable @fc1.byas"))

    def test_labels_out_of_range(self):
        data = self.with_data("eleven", labels=idx(8, [ROWS], bytes(70) + b"\x0b" + bytes(29)))
        message = r"eleven-labels-idx1-ubyte: sample 70 has labels = 11, which lies outside the plan's range \[0, 10\)"
        self.refuses_to_train(message, data)
        self.refuses_to_train(message, "idx:good", "--eval-data=" + data)
        write_npy(self.path("x.npy"), "ui8", [64, PIXELS], bytes(64 * PIXELS))
        write_npy(self.path("labels.npy"), "i32", [64], [0] * 63 + [-1])
        self.refuses_to_train(r"labels\.npy: sample 63 has labels = -1, which lies outside the plan's range \[0, 10\)",
                              "npy:x=x.npy,labels=labels.npy")

    def test_data_cut_short(self):
        whole = idx(8, [ROWS, 28, 28], bytes(ROWS * PIXELS))
        for length in (0, 3, 15, len(whole) - 1):
            self.refuses_to_train("short-images-idx3-ubyte: .*", self.with_data("short", images=whole[:length]))
        self.refuses_to_train("short-labels-idx1-ubyte: .*", self.with_data("short", labels=idx(8, [ROWS], bytes(99))))
        self.refuses_to_train(".* 100 .* 99 .*|.* 99 .* 100 .*",
                              self.with_data("fewer", labels=idx(8, [ROWS - 1], bytes(ROWS - 1))))
        self.write("broken-images-idx3-ubyte.gz", b"\x1f\x8b\x08\x00no gzip")
        self.write("broken-labels-idx1-ubyte", idx(8, [ROWS], bytes(ROWS)))
        self.refuses_to_train(r"broken-images-idx3-ubyte\.gz: .*", "idx:broken")
        with open(self.path("good.safetensors"), "rb") as file:
            self.write("short.safetensors", file.read()[:-1])
        self.refuses_to_train(r"short\.safetensors: .*", "idx:good", "--variables=short.safetensors")

    def test_data_of_another_type(self):
        floats = idx(0x0D, [ROWS, 28, 28], bytes(4 * ROWS * PIXELS))
        self.refuses_to_train(r"floats-images-idx3-ubyte: .*type.*", self.with_data("floats", images=floats))
        self.refuses_to_train(r"flat-images-idx3-ubyte: .*",
                              self.with_data("flat", images=idx(8, [ROWS], bytes(ROWS))))
        self.refuses_to_train(r".*narrow.*", self.with_data("narrow", images=idx(8, [ROWS, 27, 28], bytes(ROWS * 27 * 28))))
        write_npy(self.path("x.npy"), "f32", [64, PIXELS], [0.0] * (64 * PIXELS))
        write_npy(self.path("labels.npy"), "i32", [64], [0] * 64)
        self.refuses_to_train(r".*x.*f32.*ui8.*|.*x.*ui8.*f32.*", "npy:x=x.npy,labels=labels.npy")
        write_safetensors(self.path("other.safetensors"), "f64", {"fc1.bias": ([16], [0.0] * 16)})
        self.refuses_to_train(r"other\.safetensors does not fit the plan's variables: missing .* of another shape or type fc1\.bias .*", "idx:good", "--variables=other.safetensors")

    def test_plans_of_another_format(self):
        def format_99(content):
            content[8] = 99
            return content

        def flip(content):
            content[len(content) // 2] ^= 1
            return content

        for change, message in (
                (format_99, r"changed\.plan: plan format version 99, this runtime expects \d+: .*"),
                (flip, r"changed\.plan: damaged plan: checksum .*"),
                (lambda content: content[:1000], r"changed\.plan: plan cut short: 968 bytes follow the header, .*"),
                (lambda content: content[:20], r"changed\.plan: .*"),
                (lambda content: content + b"!", r"changed\.plan: .*"),
                (lambda content: b"PK" + content[2:], r"changed\.plan: not a gpuc plan: .*")):
            plan = self.changed_plan(change)
            self.refuses(1, message, "gpuc-run", plan, "--entry=predict", "--json=new.json", "--output-dir=new")
            self.refuses(1, message, "gpuc-inspect", plan, "--html=kept")
            self.refuses_to_train(message, "idx:good", plan=plan)

    def test_plans_for_another_target(self):
        # Each maker has extensions that the other never had: XOP and AMX.
        cpu, feature = ("bdver4", "xop") if cpu_maker() == "GenuineIntel" else ("graniterapids", "amx-fp16")
        self.gpuc("gpuc-compile", "model.mlir", "--target=host:" + cpu, "-o", "other.plan")
        message = rf"plan compiled for {cpu} needs CPU features that this machine lacks: .*{feature}.*"
        self.refuses(1, message, "gpuc-run", "other.plan", "--entry=predict", "--json=kept")
        self.refuses_to_train(message, "idx:good", plan="other.plan")

    def test_flags_and_values(self):
        for status, message, flag in (
                (2, r"unknown flag --optimiser; did you mean --optimizer\?", "--optimiser=adam"),
                (2, "--batch: 0 is less than 1", "--batch=0"),
                (2, "--batch: 'many' is not an integer", "--batch=many"),
                (2, "--emit: 'ptx' is none of gpuc, train, plan", "--emit=ptx"),
                (2, "--optimizer: unknown optimizer 'adma': the nearest is 'adam'.*", "--optimizer=adma"),
                (2, "--optimizer: optimizer adam has no key 'lrr': the nearest is 'lr'.*", "--optimizer=adam:lrr=1"),
                (2, "--optimizer: 'lr' in 'adam:lr' is not key=value.*", "--optimizer=adam:lr"),
                (2, '--optimizer: optimizer adam: lr is a number, not "x"', "--optimizer=adam:lr=x"),
                (2, "--target: unknown target 'tpu': .*", "--target=tpu"),
                (1, ".*unknown CPU 'nonsense'.*", "--target=host:nonsense")):
            self.refuses_to_compile(message, "model.mlir", flag, status=status)
        self.refuses(2, "missing argument: FILE", "gpuc-compile")
        self.refuses_to_train(r"unknown flag --stesp; did you mean --steps\?", "idx:good", "--stesp=3", status=2)
        self.refuses_to_train("--steps: -3 is less than 1", "idx:good", "--steps=-3", status=2)
        self.refuses_to_train("--data: data 'ixd:good': unknown kind 'ixd'; did you mean 'idx'.*", "ixd:good", status=2)
        self.refuses(2, "missing argument: --data=SPEC", "gpuc-train", "model.plan")
        self.refuses(2, "--entry is missing: .*", "gpuc-run", "model.plan", "--json=kept")
        self.refuses(1, "the plan has no entry 'predikt', it has: predict, .*", "gpuc-run", "model.plan",
                     "--entry=predikt", "--json=kept")

    def test_outputs_that_cannot_be_written(self):
        self.refuses(1, "cannot write no/x.plan: no is not a folder", "gpuc-compile", "model.mlir", "-o", "no/x.plan")
        self.refuses(1, "cannot write no/r.json: no is not a folder", "gpuc-compile", "model.mlir", "-o", "kept", "--report=no/r.json")
        self.refuses(1, "cannot write no/x.plan: no is not a folder", "gpuc-compile", "model.mlir", "-o", "no/x.plan", "--report=r.json")

    def test_more_rows_than_samples(self):
        self.refuses_to_train("the data set has 10 samples, fewer than one global batch of 64 rows; .*",
                              "synthetic:size=10")


def cpu_maker():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^vendor_id\s*:\s*(\S+)", file.read(), re.MULTILINE)
    return found and found[1]


if __name__ == "__main__":
    unittest.main()
