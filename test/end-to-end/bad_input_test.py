"""Whatever is wrong with what a user gives: one line on stderr that names it, the exit status of the contract (2 for the
command line, 1 for all else), no output, and every file as it was."""

import ctypes
import os
import re
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest
import zlib

from gpuc_tools import BIN, ToolTest, sha256
from tensor_files import write_npy, write_safetensors

ROWS = 100
PIXELS = 28 * 28


def idx(type_code, extents, data):
    return struct.pack(">HBB", 0, type_code, len(extents)) + b"".join(struct.pack(">I", e) for e in extents) + data


def grey_png(value):
    """One pixel."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes([0, value]))) + chunk(b"IEND", b"")


FORMAT = 5  # runtime/plan/header.h


def sealed(payload, format_version=FORMAT):
    """A plan with a header that is true of its payload: see docs/plan-format.md."""
    checksum = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    checksum.argtypes, checksum.restype = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64), ctypes.c_uint64
    payload = bytes(payload)
    return struct.pack("<8sIIQQ", b"gpucplan", format_version, 0, len(payload), checksum(payload, len(payload), len(payload))) + payload


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
        return {name: os.path.isdir(self.path(name)) or sha256(self.path(name)) for name in os.listdir(self.folder)}

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
        self.refuses_to_compile("cannot read .: Is a directory", ".")
        self.write("empty.mlir", "")
        self.refuses_to_compile("the module is empty: expected a model.*", "empty.mlir")
        self.refuses_to_compile(r"model\.plan: not text of \.mlir; it is a plan of gpuc: .*", "model.plan")
        self.refuses_to_compile(r"changed\.mlir:\d+:\d+: custom op 'gpuc.rleu' is unknown.*",
                                self.changed_model("gpuc.relu", "gpuc.rleu"))

    def test_shapes_that_do_not_fit(self):
        # Without `transpose`, 784 columns meet 16 rows.
        self.refuses_to_compile(r"layer fc1: 'gpuc\.matmul' op lhs 'tensor<\?x784xf32>' and rhs 'tensor<16x784xf32>' .*",
                                self.changed_model("matmul %flatten, transpose %fc1", "matmul %flatten, %fc1"))

    def test_shapes_that_hold_nothing_or_too_much(self):
        for extent, message in (("0", "input of type 'tensor<0x4xf32>' holds nothing: every extent of an input must be at least 1"),
                                ("4611686018427387904", r"tensor of type 'tensor<\d+x4xf32>' has 2\^63 bytes or more; .*")):
            tensor = f"tensor<{extent}x4xf32>"
            self.write("extent.mlir", f"""
func.func @predict(%x: {tensor} {{gpuc.name = "x"}}) -> ({tensor} {{gpuc.name = "y"}}) {{
  %y = gpuc.relu %x : {tensor}
  return %y : {tensor}
}}""")
            self.refuses_to_compile(r"extent\.mlir:2:\d+: " + message, "extent.mlir")
        self.refuses_to_compile(r".*2\^63 bytes or more.*", "model.mlir", "--batch=9223372036854775807")

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
        self.refuses_to_train(r"labels\.npy: sample 63 has labels = -1, which lies outside the plan's range \[0, 10\): .*ignore_index=-1",
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

    def test_pictures_of_other_classes(self):
        """The labels of two folders mean the same only if their classes have the same names."""
        self.gpuc("gpuc-model", "mlp", "input=1x1x1", "classes=2", "batch=1", "-o", "pixel.mlir")
        self.gpuc("gpuc-compile", "pixel.mlir", "-o", "pixel.plan")
        for folder in ("train/cat", "train/dog", "same/cat", "same/dog", "other/cat", "other/cow"):
            os.makedirs(self.path(folder))
            self.write(folder + "/a.png", grey_png(7))
        self.refuses_to_train("--eval-data: class 1 is 'cow', but 'dog' in --data: classes are numbered by their folders' names, .*",
                              "images:train", "--eval-data=images:other", plan="pixel.plan")
        self.gpuc("gpuc-train", "pixel.plan", "--data=images:train", "--eval-data=images:same")

    def test_plans_of_another_format(self):
        def format_99(content):
            content[8] = 99
            return content

        def flip(content):
            content[len(content) // 2] ^= 1
            return content

        def sealed_format_99(content):
            return sealed(content[32:], format_version=99)

        self.assertEqual(self.changed_plan(lambda content: sealed(content[32:])), "changed.plan")
        self.assertEqual(sha256(self.path("changed.plan")), sha256(self.path("model.plan")))
        self.gpuc("gpuc-compile", "model.mlir", "--emit=plan", "-o", "text.plan")
        self.refuses_to_train(r"text\.plan: not a gpuc plan: .*", "idx:good", plan="text.plan")
        for change, message in (
                (sealed_format_99, rf"changed\.plan: plan format version 99, this runtime expects {FORMAT}: compile the model again .*"),
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

    def test_plans_for_other_libraries(self):
        def version(text):
            return lambda content: sealed(bytes(content[32:]).replace(b"1.17.0", text))

        with open(self.path("model.plan"), "rb") as file:
            self.assertEqual(file.read().count(b"1.17.0"), 1, "the plan does not name LIBXSMM")
        major = r"plan compiled for libxsmm 2\.17\.0, found 1\.17\.0: another major version; compile the model again here"
        minor = r"plan compiled for libxsmm 1\.18\.0, found 1\.17\.0: bits may differ"
        plan = self.changed_plan(version(b"2.17.0"))
        self.refuses(1, major, "gpuc-run", plan, "--entry=predict", "--json=kept")
        self.refuses_to_train(major, "idx:good", plan=plan)
        plan = self.changed_plan(version(b"1.18.0"))
        strict = minor + ", and --strict refuses that"
        self.refuses(1, strict, "gpuc-run", plan, "--entry=predict", "--strict", "--json=kept")
        self.refuses_to_train(strict, "idx:good", "--strict", plan=plan)
        for command in (["gpuc-run", plan, "--entry=predict"], ["gpuc-train", plan, "--data=idx:good"]):
            result = self.run_tool(*command)
            self.assertRegex(result.stderr, f"\\Awarning: {minor}\n\\Z")
            self.assertEqual(result.returncode, 0)
        result = self.run_tool("gpuc-run", self.changed_plan(version(b"1.17.9")), "--entry=predict", "--strict")
        self.assertEqual((result.stderr, result.returncode), ("", 0))

    def test_flags_and_values(self):
        for status, message, flag in (
                (2, r"unknown flag --optimiser; did you mean --optimizer\?", "--optimiser=adam"),
                (2, "--batch: 0 is less than 1", "--batch=0"),
                (2, "--batch: 'many' is not an integer, nor 'max'", "--batch=many"),
                (2, "--emit: 'ptx' is none of gpuc, train, plan", "--emit=ptx"),
                (2, "--optimizer: unknown optimizer 'adma': the nearest is 'adam'.*", "--optimizer=adma"),
                (2, "--optimizer: optimizer adam has no key 'lrr': the nearest is 'lr'.*", "--optimizer=adam:lrr=1"),
                (2, "--optimizer: 'lr' in 'adam:lr' is not key=value.*", "--optimizer=adam:lr"),
                (2, '--optimizer: optimizer adam: lr is a finite number, not "x"', "--optimizer=adam:lr=x"),
                (2, "--target: unknown target 'tpu': .*", "--target=tpu"),
                (2, "--target: 'cuda' does not say which: .*", "--target=cuda"),
                (2, "--target: 'host:' does not say which: .*", "--target=host:"),
                (2, "missing value: --optimizer=SPEC", "--optimizer="),
                (2, '--optimizer: optimizer adam: lr is a finite number, not "inf"', "--optimizer=adam:lr=inf"),
                (2, "--clip-norm: '1e400' is not a finite number", "--clip-norm=1e400"),
                (2, "--clip-value: 'inf' is not a finite number", "--clip-value=inf"),
                (2, "--optimizer: 'lr' is given twice in .*", "--optimizer=adam:lr=1,lr=2"),
                (2, "--schedule: unknown schedule 'cosin': the nearest is 'cosine'.*", "--schedule=cosin"),
                (2, "--schedule: schedule cosine needs a value for 'T_max'", "--schedule=cosine"),
                (2, "--batch: '1e3' is not an integer, nor 'max'", "--batch=1e3"),
                (2, "--batch: '99999999999999999999' is not within the range of 64-bit integers, nor 'max'", "--batch=99999999999999999999"),
                (2, r"unknown flag --mlir-timng; did you mean --mlir-timing\?", "--mlir-timng"),
                (2, "--target: unknown CPU 'nonsense': name one as LLVM does, .*", "--target=host:nonsense"),
                (2, "--target: CPU 'x86-64' has no fused multiply-add: .*", "--target=host:x86-64"),
                (2, "--target: unknown GPU architecture 'sm_1': one of sm_80, .*", "--target=cuda:sm_1"),
                (2, "--target: unknown target 'auto:sm_90': .*", "--target=auto:sm_90"),
                (2, "--target: unknown GPU architecture 'sm_90:': one of .*", "--target=cuda:sm_90:")):
            self.refuses_to_compile(message, "model.mlir", flag, status=status)
        self.refuses(2, "missing argument: FILE", "gpuc-compile")
        self.refuses(2, "--seed is given twice", "gpuc-compile", "model.mlir", "--seed=1", "--seed=1", "-o", "new.plan")
        for message, flag in (("--device: unknown device 'tpu': expected auto, host, cuda or cuda:N", "--device=tpu"),
                              ("--threads: -1 is less than 0", "--threads=-1"),
                              ("--threads: 1000000000 is more than 4096", "--threads=1000000000"),
                              ("--seed: -1 is less than 0", "--seed=-1")):
            self.refuses(2, message, "gpuc-run", "model.plan", "--entry=predict", "--json=kept", flag)
            self.refuses_to_train(message, "idx:good", flag, status=2)
        self.refuses(2, "--input=x: expected NAME=FILE.npy", "gpuc-run", "model.plan", "--entry=predict", "--input=x")
        self.refuses(2, "missing value: --entry=NAME", "gpuc-run", "model.plan", "--entry=")
        self.refuses_to_train("--steps: 0 is less than 1", "idx:good", "--steps=0", status=2)
        self.refuses_to_train(r"unknown flag --stesp; did you mean --steps\?", "idx:good", "--stesp=3", status=2)
        self.refuses_to_train("--steps: -3 is less than 1", "idx:good", "--steps=-3", status=2)
        self.refuses_to_train("--data: data 'ixd:good': unknown kind 'ixd'; did you mean 'idx'.*", "ixd:good", status=2)
        self.refuses(2, "missing argument: --data=SPEC", "gpuc-train", "model.plan")
        self.refuses(2, "--entry is missing: .*", "gpuc-run", "model.plan", "--json=kept")
        self.refuses(1, "the plan has no entry 'predikt', it has: predict, .*", "gpuc-run", "model.plan",
                     "--entry=predikt", "--json=kept")

    def test_numbers_of_a_recipe(self):
        """Each line names the flag, the key, what it may be, and what it is."""
        not_negative, below_one, flag = "0 or above", "0 or above, and below 1", "true or false"
        steps = "a whole number of steps from 1 to 2147483647"
        for spec, keys, bound, wrong in (
                ("optimizer sgd", "lr momentum weight_decay", not_negative, "-1"),
                ("optimizer sgd", "nesterov", flag, "2"),
                ("optimizer adam", "lr eps weight_decay", not_negative, "-0.5"),
                ("optimizer adamw", "beta1 beta2", below_one, "1"),
                ("optimizer adamw", "amsgrad", flag, "-1"),
                ("optimizer rmsprop", "lr alpha eps momentum weight_decay", not_negative, "-1"),
                ("optimizer rmsprop", "centered", flag, "1.5"),
                ("optimizer adagrad", "lr lr_decay initial_accumulator_value eps weight_decay", not_negative, "-1"),
                ("optimizer adadelta", "lr eps weight_decay", not_negative, "-1"),
                ("optimizer adadelta", "rho", "from 0 to 1", "1.5"),
                ("optimizer adamax", "lr eps weight_decay", not_negative, "-1"),
                ("optimizer adamax", "beta1 beta2", below_one, "1"),
                ("optimizer nadam", "lr eps weight_decay momentum_decay", not_negative, "-1"),
                ("optimizer nadam", "beta1 beta2", below_one, "1"),
                ("optimizer nadam", "decoupled_weight_decay", flag, "2"),
                ("optimizer radam", "lr eps weight_decay", not_negative, "-1"),
                ("optimizer radam", "beta1 beta2", below_one, "1"),
                ("optimizer radam", "decoupled_weight_decay", flag, "2"),
                ("optimizer asgd", "lr lambd weight_decay", not_negative, "-1"),
                ("optimizer rprop", "lr step_size1 step_size2 weight_decay", not_negative, "-1"),
                ("optimizer rprop", "eta1", "above 0 and below 1", "1"),
                ("optimizer rprop", "eta2", "above 1", "1"),
                ("optimizer lion", "beta1 beta2", below_one, "-1"),
                ("optimizer adafactor", "lr eps1 eps2 weight_decay", not_negative, "-1"),
                ("optimizer adafactor", "beta2_decay", "0 or below", "1"),
                ("optimizer adafactor", "d", "1 or above", "0.5"),
                ("optimizer muon", "lr adam_lr adam_eps adam_weight_decay weight_decay", not_negative, "-1"),
                ("optimizer muon", "momentum adam_beta1 adam_beta2", below_one, "1"),
                ("optimizer muon", "nesterov use_muon", flag, "2"),
                ("optimizer muon", "ns_steps", "a whole number from 1 to 99", "2.5"),
                ("schedule one_cycle", "max_lr", not_negative, "-1"),
                ("schedule one_cycle", "three_phase", flag, "2"),
                ("loss scale static", "scale", "above 0, and within f32", "1e+40"),
                ("loss scale dynamic", "init_scale min_scale", "above 0, and within f32", "0"),
                ("loss scale dynamic", "growth_factor", "above 1", "1"),
                ("loss scale dynamic", "backoff_factor", "above 0 and below 1", "1"),
                ("loss scale dynamic", "growth_interval", steps, "1.5"),
                ("running mean ema", "decay", "from 0 to 1", "2"),
                ("running mean ema", "evaluate", flag, "2")):
            what, name = spec.rsplit(" ", 1)
            given = {"loss scale": "--loss-scale", "running mean": "--ema"}.get(what, "--" + what)
            for key in keys.split():
                kind = "true or false" if bound == flag else "a finite number"
                for value, reason in ((wrong, f"must be {bound}, but is {re.escape(wrong)}"), ("nan", f"is {kind}, not nan")):
                    message = f"{given}: {spec}: {key} {reason}"
                    self.refuses_to_compile(message, "model.mlir", f"{given}={name}:{key}={value}", status=2)
        for message, given in (
                ("optimizer: optimizer adam: lr is a finite number, not true", "optimizer=adam:lr=true"),
                ("optimizer: optimizer sgd: dampening is a finite number, not nan", "optimizer=sgd:dampening=nan"),
                ("optimizer: optimizer sgd: nesterov needs a momentum above 0 and a dampening of 0, but they are 0 and 0",
                 "optimizer=sgd:nesterov=true"),
                (r"optimizer: optimizer adam: betas is a list, \(…,…\); say beta1 for one number alone", "optimizer=adam:betas=0.9"),
                ("schedule: schedule exponential: gamma is a finite number, not nan", "schedule=exponential:gamma=nan"),
                ("schedule: schedule polynomial: power is a finite number, not nan", "schedule=polynomial:power=nan"),
                (r"schedule: schedule cosine: Expected positive integer T_max, but got 1e\+20", "schedule=cosine:T_max=1e20"),
                ("precision: precision: f32 lists layers and ops, not 2", "precision=bf16:f32=2"),
                ("loss-scale: loss scale dynamic: min_scale must not be above init_scale, but they are 4 and 2",
                 "loss-scale=dynamic:init_scale=2,min_scale=4")):
            self.refuses_to_compile("--" + message, "model.mlir", "--" + given, status=2)

    def test_outputs_that_cannot_be_written(self):
        self.refuses(1, "cannot write no/x.plan: no is not a folder", "gpuc-compile", "model.mlir", "-o", "no/x.plan")
        self.refuses(1, "cannot write no/r.json: no is not a folder", "gpuc-compile", "model.mlir", "-o", "kept", "--report=no/r.json")
        self.refuses(1, "cannot write no/x.plan: no is not a folder", "gpuc-compile", "model.mlir", "-o", "no/x.plan", "--report=r.json")

    def test_outputs_that_are_read_or_written_twice(self):
        read = "cannot write {}: it is read, too; give the output another name"
        twice = "cannot write {}: two outputs go there; give each its own"
        os.mkdir(self.path("folder"))
        for message, command in (
                (read.format("./model.mlir"), ["gpuc-compile", "model.mlir", "-o", "./model.mlir"]),
                (read.format("model.mlir"), ["gpuc-compile", "model.mlir", "-o", "new.plan", "--report=model.mlir"]),
                (twice.format("new.plan"), ["gpuc-compile", "model.mlir", "-o", "new.plan", "--report=new.plan"]),
                (twice.format("stdout"), ["gpuc-compile", "model.mlir", "-o", "-", "--report=-"]),
                ("cannot write folder: it is a folder", ["gpuc-compile", "model.mlir", "-o", "folder", "--report=new.json"]),
                ("cannot write folder: it is a folder", ["gpuc-model", "mlp", "-o", "folder"]),
                (read.format("model.plan"), ["gpuc-inspect", "model.plan", "--html=model.plan"]),
                (twice.format("stdout"), ["gpuc-inspect", "model.plan", "--html=-", "--json"]),
                (read.format("model.plan"), ["gpuc-run", "model.plan", "--entry=init", "--save-variables=model.plan"]),
                ("cannot write folder: it is a folder", ["gpuc-run", "model.plan", "--entry=init", "--json=folder", "--output-dir=new"]),
                ("cannot write to kept: it is not a folder", ["gpuc-run", "model.plan", "--entry=init", "--output-dir=kept", "--json=new"]),
                (read.format("model.plan"), ["gpuc-train", "model.plan", "--data=idx:good", "--metrics=model.plan"]),
                (twice.format("new"), ["gpuc-train", "model.plan", "--data=idx:good", "--metrics=new", "--save-variables=new"])):
            self.refuses(1, message, *command)
        self.write("buffers.csv", "id,lower,upper,size\na,0,3,4\n")
        self.refuses(1, read.format("buffers.csv"), "gpuc-place-buffers", "--input=buffers.csv", "--output=buffers.csv")

    def test_checkpoints_on_a_full_disk(self):
        """The former checkpoint stays whole: training goes on from it to the bits of a run that met no full disk."""
        flags = ["model.plan", "--data=idx:good", "--checkpoint-every=1", "--log-every=0", "--checkpoint-dir=run"]
        expected = self.saved_bits(*flags[:-1], "--epochs=4", "--checkpoint-dir=whole")
        self.gpuc("gpuc-train", *flags, "--epochs=2")
        before = {name: sha256(self.path("run/" + name)) for name in os.listdir(self.path("run"))}
        # A limit on the size of files fails a write half-way, as a full disk does.
        size = os.path.getsize(self.path("good.safetensors")) // 2
        result = subprocess.run([os.path.join(BIN, "gpuc-train"), *flags, "--epochs=4", "--resume"], cwd=self.folder, capture_output=True,
                                text=True, restore_signals=False,  # Python ignores SIGXFSZ, and so will what it starts
                                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        self.assertEqual((result.returncode, result.stderr),
                         (1, "error: cannot write run/step-00000003.safetensors: File too large\n"))
        self.assertEqual({name: sha256(self.path("run/" + name)) for name in os.listdir(self.path("run"))}, before)
        self.assertEqual(self.saved_bits(*flags, "--epochs=4", "--resume"), expected)

    def saved_bits(self, *flags):
        self.gpuc("gpuc-train", *flags, "--save-variables=trained.safetensors")
        return sha256(self.path("trained.safetensors"))

    def test_checkpoints_of_something_else(self):
        common = ["--log-every=0", "--checkpoint-dir=run"]
        self.gpuc("gpuc-train", "model.plan", "--data=idx:good", *common)
        self.gpuc("gpuc-model", "mlp", "hidden=8", "-o", "other.mlir")
        self.gpuc("gpuc-compile", "other.mlir", "-o", "other.plan")
        self.gpuc("gpuc-compile", "model.mlir", "--batch=32", "-o", "smaller.plan")
        for message, plan in ((r"run/step-00000001\.safetensors does not fit the plan's variables: .*", "other.plan"),
                              (r"run/step-00000001\.safetensors was trained with a global batch of 64, this run has 32: .*", "smaller.plan")):
            self.refuses(1, message, "gpuc-train", plan, "--data=idx:good", "--resume", *common)
        self.refuses(1, "cannot make the folder kept: Not a directory", "gpuc-train", "model.plan", "--data=idx:good",
                     "--checkpoint-dir=kept", "--log-every=0")
        # One that computes something else, of variables that are called alike, may be meant.
        self.gpuc("gpuc-compile", "model.mlir", "--optimizer=adam:lr=0.5", "-o", "faster.plan")
        for plan, said in (("faster.plan", "warning: run/step-00000001.safetensors was trained by another plan, .* --checkpoint-dir\n"), ("model.plan", "")):
            self.assertRegex(self.run_tool("gpuc-train", plan, "--data=idx:good", "--resume", *common).stderr, f"^{said}$")
        # `latest` may name what is gone: what is there is found.
        self.write("run/latest", "step-00000099.safetensors\n")
        self.assertIn("resuming after step 1 ", self.gpuc("gpuc-train", "model.plan", "--data=idx:good", "--resume", "--epochs=2", *common))

    def test_more_rows_than_samples(self):
        self.refuses_to_train("the data set has 10 samples, fewer than one global batch of 64 rows; .*",
                              "synthetic:size=10")


def cpu_maker():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        found = re.search(r"^vendor_id\s*:\s*(\S+)", file.read(), re.MULTILINE)
    return found and found[1]


if __name__ == "__main__":
    unittest.main()
