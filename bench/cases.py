"""The ten cells that scripts/bench times: what is computed, on what, and how much faster than the best peer is enough.

Everyone computes one training step in f32: forward, backward, update. The gpt cells are nanoGPT's model with tied
embeddings, exact gelu, 65 characters, no dropout and no clipping; AdamW decays matrices alone.
"""

import dataclasses
import math

SGD = {"name": "sgd", "lr": 0.01}
ADAMW = {"name": "adamw", "lr": 1e-3, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1}
CLASSES = 10
PEERS = ("torch-eager", "torch-compiled", "jax")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    title: str
    model: dict      # "kind", and what peers' models need to know
    source: list     # arguments of gpuc-model, or one file in bench/models, or "bench-models" and its argument
    optimizer: dict
    inputs: dict     # name → (dtype, shape, integers lie below this)
    target: float    # times as fast as the best peer
    # Of real_cases.py alone:
    real: bool = False
    share: float | None = None  # of the rate of products, which is as good as the target
    peers: tuple = PEERS        # that have the model
    tolerance: float = 1e-5     # of losses, relative: f32 sums of other orders, through five updates

    @property
    def batch(self):
        return next(iter(self.inputs.values()))[1][0]

    @property
    def optimizer_spec(self):
        return self.optimizer["name"] + ":" + ",".join(f"{key}={value}" for key, value in self.optimizer.items() if key != "name")

    @property
    def elements(self):
        return {name: math.prod(shape) for name, (_, shape, _) in self.inputs.items()}


def mlp(name, widths, batch, target):
    keys = [f"input={widths[0]}", "hidden=" + ",".join(map(str, widths[1:-1])), f"classes={widths[-1]}", "pixels=false"]
    return Case(name, f"MLP {'-'.join(map(str, widths))}, batch {batch}, SGD", {"kind": "mlp", "widths": widths}, ["mlp", *keys],
                SGD, {"x": ("f32", [batch, widths[0]], None), "labels": ("i32", [batch], widths[-1])}, target)


def lenet(batch, target):
    return Case(f"lenet-b{batch}", f"LeNet-5, batch {batch}, SGD", {"kind": "lenet5"}, ["lenet5.mlir"], SGD,
                {"x": ("f32", [batch, 1, 28, 28], None), "labels": ("i32", [batch], CLASSES)}, target)


def lstm(batch, target):
    return Case(f"lstm-b{batch}", f"LSTM hidden 64, T 32, batch {batch}, SGD", {"kind": "lstm", "frame": 32, "hidden": 64},
                ["lstm.mlir"], SGD, {"x": ("f32", [batch, 32, 32], None), "labels": ("i32", [batch], CLASSES)}, target)


def gpt(layers, width, length, batch, target, vocabulary=65, heads=4):
    keys = [f"layers={layers}", f"heads={heads}", f"width={width}", f"length={length}", f"vocabulary={vocabulary}"]
    return Case(f"gpt{layers}-b{batch}", f"GPT {layers} layers c{width} T{length}, batch {batch}, AdamW",
                {"kind": "gpt", "layers": layers, "heads": heads}, ["gpt2", *keys], ADAMW,
                {"x": ("i32", [batch, length], vocabulary), "labels": ("i32", [batch, length], vocabulary)}, target)


CASES = [
    mlp("mlp8-b1", [8, 8, 8], 1, 20),
    mlp("mlp784-b1", [784, 128, 128, 10], 1, 10),
    mlp("mlp784-b32", [784, 128, 128, 10], 32, 3),
    mlp("mlp784-b256", [784, 128, 128, 10], 256, 1.2),
    lenet(1, 8),
    lenet(32, 4),
    lenet(128, 3),
    lstm(16, 5),
    gpt(2, 64, 32, 1, 8),
    gpt(4, 128, 64, 12, 2.5),
]
