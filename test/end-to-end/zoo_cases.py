"""Small models of the zoo with weights and data that PyTorch (zoo_reference.py) and gpuc (zoo_test.py) both begin with."""

import math

from tensor_files import hashed, uniform

LR, MOMENTUM = 0.05, 0.9
PROJECTIONS = 8

# keys: of gpuc-model. data: field → (type, shape, below, least): integers from `least` to below; or (None, shape, scale):
# the model's float type, within ±scale.
CASES = {
    "linear-regression": {"keys": {"in": "5", "out": "2", "batch": "7"},
                          "data": {"x": (None, [7, 5], 2), "y": (None, [7, 2], 1)}},
    "mlp": {"keys": {"input": "2x5x3", "hidden": "12,9", "classes": "4", "smoothing": "0.1", "batch": "6"},
            "data": {"x": ("ui8", [6, 2, 5, 3], 256, 0), "labels": ("i32", [6], 4, 0)}},
    "mlp-rows": {"model": "mlp", "keys": {"input": "7", "hidden": "8", "classes": "3", "activation": "gelu",
                                          "pixels": "false", "batch": "5"},
                 "data": {"x": (None, [5, 7], 2), "labels": ("i32", [5], 3, 0)}},
    "convnet": {"keys": {"in_channels": "2", "size": "9", "classes": "4", "batch": "3"},
                "data": {"x": ("ui8", [3, 2, 9, 9], 256, 0), "labels": ("i32", [3], 4, 0)}},
    "rnn-classifier": {"keys": {"cell": "gru", "steps": "5", "width": "4", "hidden": "6", "layers": "2",
                                "bidirectional": "true", "classes": "4", "batch": "3"},
                       "data": {"x": ("ui8", [3, 1, 5, 4], 256, 0), "labels": ("i32", [3], 4, 0)}},
    "lstm-generator": {"keys": {"layers": "2", "embedding": "5", "hidden": "6", "length": "7", "vocabulary": "11",
                                "batch": "3"},
                       "data": {"x": ("i32", [3, 7], 11, 0), "labels": ("i32", [3, 7], 11, 0)}},
    "resnet18": {"keys": {"in_channels": "2", "size": "40", "width": "4", "classes": "5", "smoothing": "0.1", "batch": "4"},
                 "data": {"x": ("ui8", [4, 2, 40, 40], 256, 0), "labels": ("i32", [4], 5, 0)}},
    "resnet50": {"keys": {"in_channels": "1", "size": "64", "width": "4", "classes": "5", "batch": "8"},
                 # With more, the last bit of a weight changes the losses by 1e-8 and soon by much more; in PyTorch too.
                 "lr": 2e-5,
                 "data": {"x": ("ui8", [8, 1, 64, 64], 256, 0), "labels": ("i32", [8], 5, 0)}},
    "transformer": {"keys": {"width": "8", "heads": "2", "layers": "2", "feedforward": "12", "src_vocabulary": "5",
                             "tgt_vocabulary": "7", "length": "6", "dropout": "0", "batch": "3"},
                    "data": {"src": ("i32", [3, 6], 5, 0), "tgt": ("i32", [3, 6], 7, 0), "labels": ("i32", [3, 6], 7, 0)}},
    "gpt2": {"keys": {"layers": "2", "heads": "2", "width": "8", "length": "6", "vocabulary": "11", "batch": "3"},
             "data": {"x": ("i32", [3, 6], 11, 0), "labels": ("i32", [3, 6], 11, 0)}},
    "gpt2-lora": {"model": "gpt2", "keys": {"layers": "2", "heads": "2", "width": "8", "length": "6", "vocabulary": "11",
                                            "lora": "3", "lora_alpha": "12", "batch": "3"},
                  "data": {"x": ("i32", [3, 6], 11, 0), "labels": ("i32", [3, 6], 11, 0)}},
}


def weights(shapes):
    """name → values in ±1/√fan in, or ±1/4 for vectors; norms' weights lie around 1."""
    values = {}
    for stream, (name, shape) in enumerate(sorted(shapes.items())):
        scale = 1 / math.sqrt(math.prod(shape[1:])) if len(shape) > 1 else 0.25
        shift = 1 if len(shape) == 1 and name.endswith("weight") else 0
        values[name] = [shift + value for value in uniform(shape, 100 + stream, scale)]
    return values


def data(case, float_type="f64"):
    """field → (type, shape, values)."""
    def numbers(stream, dtype, shape, scale, least=0):
        if dtype is None:
            return float_type, shape, uniform(shape, stream, scale)
        return dtype, shape, [least + number % (scale - least) for number in hashed(math.prod(shape), stream)]
    return {field: numbers(stream, *how) for stream, (field, how) in enumerate(case["data"].items())}


def projections(gradient):
    """The norm of a vector, then its products with vectors of random signs, divided by √length: two gradients whose
    projections all agree to ε · norm differ by about as much."""
    signs = [list(hashed(len(gradient), 1000 + i)) for i in range(PROJECTIONS)]
    root = math.sqrt(len(gradient))
    return [math.sqrt(math.fsum(g * g for g in gradient))] + [
        math.fsum(g if bit & 1 else -g for g, bit in zip(gradient, sign)) / root for sign in signs]
