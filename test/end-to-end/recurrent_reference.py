"""Writes recurrent_numbers.json: PyTorch's RNN, LSTM and GRU in f64, in every way that they can be asked for.

    /usr/bin/python3 test/end-to-end/recurrent_reference.py        # Debian: python3-torch

Kept of each case, for recurrent_test.cpp: of the outputs, the last states and the gradients of x, the first states and all
parameters the Euclidean norm, and the product with a vector of hashed numbers. What is differentiated is the sum of the
products of outputs and last states with such vectors.
"""

import itertools
import json
import math
import os

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tensor_files import uniform

BATCH, TIME, IN, HIDDEN = 3, 5, 2, 3
LENGTHS = [3, 5, 1]
# Streams of hashed numbers: parameters count from the first, results from the second; the last is for the products.
PARAMETERS, RESULTS, PRODUCTS = 10, 100, 200

torch.set_default_dtype(torch.float64)


def numbers(shape, stream, scale=1.0):
    return torch.tensor(uniform(shape, stream, scale)).reshape(shape)


def kept(tensor):
    values = tensor.flatten().tolist()
    other = uniform([len(values)], PRODUCTS, 1.0)
    pair = math.sqrt(math.fsum(v * v for v in values)), math.fsum(v * o for v, o in zip(values, other))
    return [float(f"{number:.13g}") for number in pair]


def module(cell, layers, bidirectional, batch_first, bias):
    kinds = {"rnn": (nn.RNN, {}), "rnn_relu": (nn.RNN, {"nonlinearity": "relu"}), "lstm": (nn.LSTM, {}), "gru": (nn.GRU, {})}
    kind, more = kinds[cell]
    return kind(IN, HIDDEN, layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias, **more)


def run(cell, layers, bidirectional, batch_first, lengths, states, bias=True):
    rnn = module(cell, layers, bidirectional, batch_first, bias)
    parts = ["h0", "c0"] if cell == "lstm" else ["h0"]
    # gpuc's states have the batch where x has it, PyTorch's always second.
    turned = lambda state: state.transpose(0, 1).contiguous() if batch_first else state
    leaves = {"x": numbers([BATCH, TIME, IN] if batch_first else [TIME, BATCH, IN], 0)}
    if states:
        count = layers * (2 if bidirectional else 1)
        for stream, part in enumerate(parts, 1):
            leaves[part] = numbers([BATCH, count, HIDDEN] if batch_first else [count, BATCH, HIDDEN], stream)
    with torch.no_grad():
        for stream, (_, parameter) in enumerate(sorted(rnn.named_parameters()), PARAMETERS):
            parameter.copy_(numbers(list(parameter.shape), stream))
    for leaf in leaves.values():
        leaf.requires_grad_()

    first = tuple(turned(leaves[part]) for part in parts) if states else None
    first = first[0] if states and len(parts) == 1 else first
    x = leaves["x"]
    if lengths:
        packed = pack_padded_sequence(x, torch.tensor(LENGTHS), batch_first=batch_first, enforce_sorted=False)
        output, last = rnn(packed, first)
        output, _ = pad_packed_sequence(output, batch_first=batch_first, total_length=TIME)
    else:
        output, last = rnn(x, first)
    last = last if isinstance(last, tuple) else (last,)
    results = {"output": output, **{part: turned(state) for part, state in zip(("hn", "cn"), last)}}
    sum((result * numbers(list(result.shape), RESULTS + i)).sum() for i, result in enumerate(results.values())).backward()
    gradients = {**leaves, **{"rnn." + name: parameter for name, parameter in rnn.named_parameters()}}
    return {"results": {name: kept(result) for name, result in results.items()},
            "gradients": {name: kept(leaf.grad) for name, leaf in gradients.items()}}


def cases():
    keys = ("layers", "bidirectional", "batch_first", "lengths", "states")
    for cell in ("rnn", "rnn_relu", "lstm", "gru"):
        for choice in itertools.product((1, 2), *[(False, True)] * 4):
            yield {"cell": cell, **dict(zip(keys, choice)), "bias": True}
        yield {"cell": cell, **dict(zip(keys, (2, True, True, False, False))), "bias": False}


if __name__ == "__main__":
    lines = [json.dumps({**case, **run(**case)}) for case in cases()]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurrent_numbers.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"torch": ' + json.dumps(torch.__version__) + ', "cases": [\n' + ",\n".join(lines) + "\n]}\n")
