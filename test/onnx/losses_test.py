"""Losses of --loss, and those that a model computes itself, against PyTorch's numbers in f64.

Three steps of SGD, the weights after them, evaluation, for random shapes and arguments (loss_cases.py). The numbers in
Inputs are PyTorch's (loss_reference.py); GPUC_LOSS_NUMBERS names other ones.
"""

import json
import math
import os
import subprocess
import unittest

from gpuc_tools import ToolTest
from loss_cases import BATCH, RATE, STEPS, data, is_padded, make_case, samples, spec, target_row, weight_shape, weights
from tensor_files import read_safetensors, write_npy

HERE = os.path.dirname(os.path.abspath(__file__))
NUMBERS = os.environ.get("GPUC_LOSS_NUMBERS") or os.path.join(HERE, "Inputs", "loss_numbers.json")
TOLERANCE = 1e-12


def shape_text(shape):
    return " ".join("dim { " + (f'dim_param: "{e}"' if isinstance(e, str) else f"dim_value: {e}") + " }" for e in shape)


def value_text(kind, name, elements, shape):
    return f' {kind} {{ name: "{name}" type {{ tensor_type {{ elem_type: {elements} shape {{ {shape_text(shape)} }} }} }} }}'


def node_text(op, inputs, output, attributes=()):
    text = f' node {{ name: "{output}" op_type: "{op}" output: "{output}" '
    text += " ".join(f'input: "{name}"' for name in inputs)
    for name, value in dict(attributes).items():
        kind, field = {int: ("INT", "i"), str: ("STRING", "s")}[type(value)]
        text += f' attribute {{ name: "{name}" type: {kind} {field}: {json.dumps(value)} }}'
    return text + " }"


def initializer_text(name, shape, values):
    return f' initializer {{ name: "{name}" data_type: 11 {" ".join(f"dims: {e}" for e in shape)} double_data: {values} }}'


def model_text(case):
    batch, arguments = "N" if case["open"] else BATCH, case["arguments"]
    body = node_text("Mul", ["x", "w"], "y" if case["loss"] == "nll" else "scores")
    if case["loss"] == "nll":
        body += node_text("LogSoftmax", ["y"], "scores", {"axis": case["dim"]})
    body += initializer_text("w", weight_shape(case), weights(case))
    ends = value_text("input", "x", 11, [batch, *case["row"]])
    if case["own"] and case["loss"] == "mse":
        body += node_text("Sub", ["scores", "target"], "d") + node_text("Mul", ["d", "d"], "dd")
        body += node_text("ReduceSum" if arguments.get("reduction") == "sum" else "ReduceMean", ["dd"], "loss", {"keepdims": 0})
        ends += value_text("input", "target", 11, [batch, *case["row"]])
        ends += ' output { name: "loss" type { tensor_type { elem_type: 11 } } }'
    elif case["own"]:
        op = {"nll": "NegativeLogLikelihoodLoss", "cross_entropy": "SoftmaxCrossEntropyLoss"}[case["loss"]]
        inputs = ["scores", "labels"] + (["classes"] if "weight" in arguments else [])
        body += node_text(op, inputs, "loss",
                          {"reduction": arguments.get("reduction", "mean"), "ignore_index": arguments.get("ignore_index", -100)})
        if "weight" in arguments:
            # Of a computation, as a buffer that --freeze would name: it is not trained.
            body += initializer_text("classes", [len(arguments["weight"])], arguments["weight"])
        ends += value_text("input", "labels", 7, [batch, *target_row(case)])
        ends += ' output { name: "loss" type { tensor_type { elem_type: 11 } } }'
    ends += value_text("output", "scores", 11, [batch, *case["row"]])
    return f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {body} {ends} }}'


class Losses(ToolTest):
    def encode(self, text):
        encoded = subprocess.run(["protoc", "--encode=onnx.ModelProto", "-I", os.environ["GPUC_ONNX_PROTO"], "onnx.proto"],
                                 input=text.encode(), capture_output=True, check=True, timeout=60)
        return self.write("model.onnx", encoded.stdout)

    def write_data(self, case):
        x, target = data(case)
        count, name = samples(case), "labels" if "dim" in case else "target"
        write_npy(self.path("x.npy"), "f64", [count, *case["row"]], x)
        write_npy(self.path("target.npy"), case["labels"] if "dim" in case else "f64", [count, *target_row(case)], target)
        return f"npy:x={self.path('x.npy')},{name}={self.path('target.npy')}"

    def train(self, case):
        freeze = ["--freeze=classes"] if case["own"] and "weight" in case["arguments"] else []
        self.gpuc("gpuc-import-onnx", self.encode(model_text(case)), "--loss=" + spec(case), *freeze)
        self.gpuc("gpuc-compile", self.path("model.mlir"), f"--optimizer=sgd:lr={RATE}", "-O1", "-o", self.path("model.plan"),
                  *([f"--batch={BATCH}"] if case["open"] else []))
        fields = self.write_data(case)
        self.gpuc("gpuc-train", self.path("model.plan"), "--data=" + fields, "--eval-data=" + fields, "--no-shuffle",
                  "--last-batch=pad", "--log-every=0", f"--steps={STEPS}", "--variables=" + self.path("model.safetensors"),
                  "--save-variables=" + self.path("trained.safetensors"), "--metrics=" + self.path("metrics.jsonl"))

    def check_numbers(self, what, ours, theirs):
        self.assertEqual(len(ours), len(theirs), what)
        for mine, other in zip(ours, theirs):
            if math.isnan(other):  # The labels of a batch are all ignored; NaN is null in JSON.
                self.assertIsNone(mine, what)
            else:
                self.assertLessEqual(abs(mine - other), TOLERANCE * max(abs(other), 1), what)

    def check(self, case, theirs):
        if any(map(math.isnan, theirs["weights"])):
            return  # PyTorch's weights went to NaN in a batch without labels; gpuc's stay.
        self.train(case)
        steps = self.metrics(self.path("metrics.jsonl"), "step")
        self.check_numbers("loss", [step["loss"] for step in steps], theirs["losses"])
        self.check_numbers("weight", read_safetensors(self.path("trained.safetensors"))["w"], theirs["weights"])
        evaluated = self.metrics(self.path("metrics.jsonl"), "eval")[-1]
        self.check_numbers("evaluated", [evaluated["loss"]], [theirs["evaluated"]])
        if "accuracy" in theirs:
            self.check_numbers("accuracy", [evaluated["accuracy"]], [theirs["accuracy"]])

    def test_numbers(self):
        with open(NUMBERS, encoding="utf-8") as file:
            kept = json.load(file)
        for seed, theirs in kept.items():
            case = make_case(int(seed))
            with self.subTest(spec(case), case=case):
                self.check(case, theirs)

    def test_padding_is_refused_where_it_would_count(self):
        case = next(case for case in map(make_case, range(1000)) if not is_padded(case) and "dim" in case)
        self.train(case)
        x, labels = data(case)
        write_npy(self.path("x.npy"), "f64", [BATCH + 1, *case["row"]], x[:(BATCH + 1) * math.prod(case["row"])])
        write_npy(self.path("target.npy"), "i64", [BATCH + 1, *target_row(case)],
                  labels[:(BATCH + 1) * math.prod(target_row(case))])
        fields = f"npy:x={self.path('x.npy')},labels={self.path('target.npy')}"
        refused = self.run_tool("gpuc-train", self.path("model.plan"), "--data=" + fields, "--last-batch=pad")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("cannot leave out padding", refused.stderr)


if __name__ == "__main__":
    unittest.main()
