"""RNN, LSTM and GRU of ONNX in f64 against their formulas, one number at a time: what the backend node tests leave out.

Both directions, sequence lengths, peepholes, clipping, coupled gates, each activation, both layouts.
"""

import array
import math
import os
import subprocess
import unittest

from gpuc_tools import ToolTest
from tensor_files import read_npy_bytes, uniform, write_npy

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
DEFAULTS = {"RNN": ["Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}
ACTIVATIONS = {
    "Relu": lambda x, a, b: max(x, 0.0),
    "Tanh": lambda x, a, b: math.tanh(x),
    "Sigmoid": lambda x, a, b: 1 / (1 + math.exp(-x)),
    "Affine": lambda x, a, b: a * x + b,
    "LeakyRelu": lambda x, a, b: x if x >= 0 else a * x,
    "ThresholdedRelu": lambda x, a, b: x if x > a else 0.0,
    "ScaledTanh": lambda x, a, b: a * math.tanh(b * x),
    "HardSigmoid": lambda x, a, b: min(1.0, max(0.0, a * x + b)),
    "Elu": lambda x, a, b: x if x >= 0 else a * (math.exp(x) - 1),
    "Softsign": lambda x, a, b: x / (1 + abs(x)),
    "Softplus": lambda x, a, b: math.log(1 + math.exp(x)),
}
ALPHA = {"LeakyRelu": 0.01, "ThresholdedRelu": 1.0, "HardSigmoid": 0.2, "Elu": 1.0}
BETA = {"HardSigmoid": 0.5}

# name: op, attributes, optional inputs.
CASES = {
    "rnn both ways": ("RNN", {"direction": "bidirectional"}, "B lens h"),
    "rnn reverse, batch first": ("RNN", {"direction": "reverse", "layout": 1, "activations": ["ReLU"]}, "B lens h"),
    "rnn activations": ("RNN", {"direction": "bidirectional", "activations": ["ScaledTanh", "leakyrelu"],
                                "activation_alpha": [0.75, 0.25], "activation_beta": [1.5]}, "B"),
    "rnn more activations": ("RNN", {"direction": "bidirectional", "activations": ["Affine", "ThresholdedRelu"],
                                     "activation_alpha": [0.5, 0.125], "activation_beta": [0.25]}, ""),
    "rnn softplus": ("RNN", {"direction": "bidirectional", "activations": ["Softplus", "Softsign"]}, "h"),
    "lstm everything": ("LSTM", {"direction": "bidirectional", "clip": 0.5}, "B lens h c P"),
    "lstm coupled": ("LSTM", {"input_forget": 1, "layout": 1}, "B lens h c P"),
    "lstm activations": ("LSTM", {"activations": ["HardSigmoid", "Elu", "Tanh"], "direction": "reverse"}, "lens"),
    "gru": ("GRU", {"direction": "bidirectional", "clip": 0.25}, "B lens h"),
    "gru reset behind": ("GRU", {"direction": "bidirectional", "linear_before_reset": 1, "layout": 1}, "B lens h"),
    "gru reset behind, no bias": ("GRU", {"linear_before_reset": 1}, "h"),
}


class Values:
    """Row-major numbers under a shape."""

    def __init__(self, shape, numbers):
        self.shape, self.numbers = shape, numbers

    def at(self, *index):
        place = 0
        for extent, i in zip(self.shape, index):
            place = place * extent + i
        return self.numbers[place]


def operands(op, attributes, optional):
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    rows = GATES[op] * HIDDEN
    batch_first = attributes.get("layout", 0)
    state = [BATCH, directions, HIDDEN] if batch_first else [directions, BATCH, HIDDEN]
    shapes = {"X": [BATCH, STEPS, INPUTS] if batch_first else [STEPS, BATCH, INPUTS], "W": [directions, rows, INPUTS],
              "R": [directions, rows, HIDDEN], "B": [directions, 2 * rows], "lens": None, "h": state, "c": state,
              "P": [directions, 3 * HIDDEN]}
    made = {}
    for stream, (name, shape) in enumerate(shapes.items()):
        if name == "lens" and "lens" in optional:
            made[name] = Values([BATCH], [STEPS, 1, 3])
        elif name in ("X", "W", "R") or name in optional.split():
            made[name] = Values(shape, uniform(shape, stream + 1, 1.0))
    return made


def activations(op, attributes, directions):
    names = attributes.get("activations", DEFAULTS[op] * directions)
    alphas, betas = list(attributes.get("activation_alpha", [])), list(attributes.get("activation_beta", []))
    made = []
    for name in names:
        key = next(known for known in ACTIVATIONS if known.lower() == name.lower())
        takes_alpha = key in ("Affine", "ScaledTanh", *ALPHA)
        alpha = alphas.pop(0) if takes_alpha and alphas else ALPHA.get(key)
        beta = betas.pop(0) if key in ("Affine", "ScaledTanh", "HardSigmoid") and betas else BETA.get(key)
        made.append(lambda x, f=ACTIVATIONS[key], a=alpha, b=beta: f(x, a, b))
    return made


def reference(op, attributes, given):
    """Y, Y_h and, of an LSTM, Y_c."""
    directions = given["W"].shape[0]
    batch_first, clip = attributes.get("layout", 0), attributes.get("clip", math.inf)
    functions = activations(op, attributes, directions)
    functions = [lambda x, f=f: f(max(-clip, min(clip, x))) for f in functions]
    per, gates, n = len(functions) // directions, GATES[op], HIDDEN

    def state(name, d, b):
        if name not in given:
            return [0.0] * n
        return [given[name].at(*((b, d) if batch_first else (d, b)), i) for i in range(n)]

    def bias(d, row):
        return given["B"].at(d, row) if "B" in given else 0.0

    y, last = {}, {}
    for d in range(directions):
        f = functions[d * per:(d + 1) * per]
        backwards = d == 1 or attributes.get("direction") == "reverse"
        for b in range(BATCH):
            h, c = state("h", d, b), state("c", d, b)
            length = given["lens"].numbers[b] if "lens" in given else STEPS
            for t in range(length, STEPS):
                for i in range(n):
                    y[t, d, b, i] = 0.0
            for t in reversed(range(length)) if backwards else range(length):
                x = [given["X"].at(*((b, t) if batch_first else (t, b)), i) for i in range(INPUTS)]

                def own(gate, i):
                    return sum(given["W"].at(d, gate * n + i, k) * x[k] for k in range(INPUTS)) + bias(d, gate * n + i)

                def recurrent(gate, i, of):
                    return sum(given["R"].at(d, gate * n + i, k) * of[k] for k in range(n)) + bias(d, (gates + gate) * n + i)

                def peephole(part, i, cell):
                    return given["P"].at(d, part * n + i) * cell[i] if "P" in given else 0.0

                def total(gate, i):
                    return own(gate, i) + recurrent(gate, i, h)

                if op == "RNN":
                    h = [f[0](total(0, i)) for i in range(n)]
                elif op == "LSTM":
                    entry = [f[0](total(0, i) + peephole(0, i, c)) for i in range(n)]
                    forget = ([1 - e for e in entry] if attributes.get("input_forget") else
                              [f[0](total(2, i) + peephole(2, i, c)) for i in range(n)])
                    c = [forget[i] * c[i] + entry[i] * f[1](total(3, i)) for i in range(n)]
                    h = [f[0](total(1, i) + peephole(1, i, c)) * f[2](c[i]) for i in range(n)]
                else:
                    z, r = [f[0](total(0, i)) for i in range(n)], [f[0](total(1, i)) for i in range(n)]
                    if attributes.get("linear_before_reset"):
                        new = [f[1](own(2, i) + r[i] * recurrent(2, i, h)) for i in range(n)]
                    else:
                        reset = [r[k] * h[k] for k in range(n)]
                        new = [f[1](own(2, i) + recurrent(2, i, reset)) for i in range(n)]
                    h = [(1 - z[i]) * new[i] + z[i] * h[i] for i in range(n)]
                for i in range(n):
                    y[t, d, b, i] = h[i]
            last[d, b] = (h, c)

    every = [(t, d, b, i) for t in range(STEPS) for d in range(directions) for b in range(BATCH) for i in range(n)]
    ends = [(d, b) for d in range(directions) for b in range(BATCH)]
    if batch_first:
        every.sort(key=lambda at: (at[2], at[0], at[1], at[3]))
        ends.sort(key=lambda at: at[::-1])
    outputs = [[y[at] for at in every], [v for at in ends for v in last[at][0]], [v for at in ends for v in last[at][1]]]
    return outputs if op == "LSTM" else outputs[:2]


def attribute_text(name, value):
    if isinstance(value, list):
        kind, field = ("STRINGS", "strings") if isinstance(value[0], str) else ("FLOATS", "floats")
        each = [f'"{v}"' if isinstance(v, str) else str(v) for v in value]
        return f'attribute {{ name: "{name}" type: {kind} {" ".join(f"{field}: {v}" for v in each)} }}'
    kind, field = {str: ("STRING", "s"), int: ("INT", "i"), float: ("FLOAT", "f")}[type(value)]
    return f'attribute {{ name: "{name}" type: {kind} {field}: ' + (f'"{value}" }}' if kind == "STRING" else f"{value} }}")


def model_text(op, attributes, given, outputs):
    """All but X are initializers."""
    names = ["X", "W", "R", "B", "lens", "h", "c", "P"]
    node = " ".join(f'input: "{name if name in given else ""}"' for name in names[:8 if op == "LSTM" else 6])
    node += " " + " ".join(f'output: "{name}"' for name in outputs)
    node += " " + " ".join(attribute_text(*item) for item in {"hidden_size": HIDDEN, **attributes}.items())
    text = f'ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" node {{ name: "layer" op_type: "{op}" {node} }}'
    for name, value in given.items():
        dims = " ".join(f"dims: {extent}" for extent in value.shape)
        if name == "X":
            dims = " ".join(f"dim {{ dim_value: {extent} }}" for extent in value.shape)
            text += f' input {{ name: "X" type {{ tensor_type {{ elem_type: 11 shape {{ {dims} }} }} }} }}'
        elif name == "lens":
            text += f' initializer {{ name: "lens" data_type: 6 {dims} int32_data: {value.numbers} }}'
        else:
            text += f' initializer {{ name: "{name}" data_type: 11 {dims} double_data: {value.numbers} }}'
    for name in outputs:
        text += f' output {{ name: "{name}" type {{ tensor_type {{ elem_type: 11 }} }} }}'
    return text + " }"


class Recurrent(ToolTest):
    def check(self, op, attributes, optional):
        given = operands(op, attributes, optional)
        expected = dict(zip(["Y", "Y_h", "Y_c"], reference(op, attributes, given)))
        text = model_text(op, attributes, given, list(expected))
        encoded = subprocess.run(["protoc", "--encode=onnx.ModelProto", "-I", os.environ["GPUC_ONNX_PROTO"], "onnx.proto"],
                                 input=text.encode(), capture_output=True, check=True, timeout=60)
        self.write("model.onnx", encoded.stdout)
        self.gpuc("gpuc-import-onnx", self.path("model.onnx"))
        self.gpuc("gpuc-compile", self.path("model.mlir"), "-o", self.path("model.plan"))
        write_npy(self.path("x.npy"), "f64", given["X"].shape, given["X"].numbers)
        self.gpuc("gpuc-run", self.path("model.plan"), "--entry=predict", "--input", "X=" + self.path("x.npy"),
                  "--variables=" + self.path("model.safetensors"), "--output-dir=" + self.folder)
        for name, theirs in expected.items():
            ours = array.array("d", read_npy_bytes(self.path(name + ".npy"))).tolist()
            self.assertEqual(len(ours), len(theirs), name)
            for place, (mine, other) in enumerate(zip(ours, theirs)):
                self.assertAlmostEqual(mine, other, delta=1e-12, msg=f"{name}[{place}]")

    def test_formulas(self):
        for name, case in CASES.items():
            with self.subTest(name):
                self.check(*case)


if __name__ == "__main__":
    unittest.main()
