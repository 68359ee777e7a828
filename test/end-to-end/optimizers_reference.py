"""Writes optimizers.json: PyTorch trains small models in f64 with each optimizer of gpuc, from the weights and data of
optimizer_cases.py.

    /usr/bin/python3 test/end-to-end/optimizers_reference.py        # Debian: python3-torch

sgd, adam, adamw, rmsprop and adagrad are torch.optim's. PyTorch 1.13 has no lion, adafactor and muon: they are written here
with NumPy, lion by algorithm 2 of Chen et al. 2023, adafactor by the formulas that torch.optim.Adafactor documents, muon by
Jordan's description. Gradients are PyTorch's for all. Kept of each: 50 losses, and the weights after the last step.
"""

import fnmatch
import json
import math
import os

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import optimizer_cases

torch.set_default_dtype(torch.float64)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(7, 5), nn.Linear(5, 3), nn.Linear(3, 3)

    def forward(self, x):
        return self.fc3(torch.tanh(self.fc2(torch.tanh(self.fc1(x)))))


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(64, 128), nn.Linear(128, 3)

    def forward(self, x):
        h = functional.max_pool2d(functional.relu(self.conv1(x / 255)), 2)
        h = functional.max_pool2d(functional.relu(self.conv2(h)), 2)
        return self.fc2(functional.relu(self.fc1(h.flatten(1))))


MODELS = {"mlp": Mlp, "convnet": ConvNet}


# ---------------------------------------------------------------------------------------------------------------------
# What PyTorch 1.13 does not have: one step for one weight w with gradient g, in place; `state` is empty in step t = 1.
# ---------------------------------------------------------------------------------------------------------------------


def lion(w, g, state, t, lr=1e-4, beta1=0.9, beta2=0.99, weight_decay=0):
    m = state.setdefault("m", np.zeros_like(w))
    update = np.sign(beta1 * m + (1 - beta1) * g)
    w -= lr * (update + weight_decay * w)
    state["m"] = beta2 * m + (1 - beta2) * g


def rms(x):
    return math.sqrt(np.mean(np.square(x)))


def adafactor(w, g, state, t, lr=0.01, beta2_decay=-0.8, eps1=np.finfo(np.float64).eps, eps2=1e-3, d=1.0, weight_decay=0):
    def running(name, value):
        state[name] = state.get(name, 0) + t**beta2_decay * (value - state.get(name, 0))
        return state[name]

    scale = max(eps2, rms(w)) * min(lr, 1 / math.sqrt(t))
    w *= 1 - lr * weight_decay
    if w.ndim >= 2:
        row = running("row", np.mean(g * g, axis=-1, keepdims=True))
        column = running("column", np.mean(g * g, axis=-2, keepdims=True))
        variance = row @ column / np.maximum(np.mean(row, axis=-2, keepdims=True), eps1)
    else:
        variance = running("variance", g * g)
    update = g / np.sqrt(np.maximum(variance, eps1 * eps1))
    w -= scale / max(1, rms(update) / d) * update


def orthogonalized(x, steps):
    if x.shape[0] > x.shape[1]:
        return orthogonalized(x.T, steps).T
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(steps):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x


def adamw(w, g, state, t, lr, beta1, beta2, eps, weight_decay):
    w *= 1 - lr * weight_decay
    state["m"] = beta1 * state.get("m", 0) + (1 - beta1) * g
    state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * g * g
    w -= lr * state["m"] / (1 - beta1**t) / (np.sqrt(state["v"] / (1 - beta2**t)) + eps)


def muon(w, g, state, t, lr=0.02, momentum=0.95, nesterov=True, ns_steps=5, weight_decay=0, use_muon=True, adam_lr=3e-4,
         adam_weight_decay=0):
    if w.ndim < 2 or not use_muon:
        return adamw(w, g, state, t, adam_lr, 0.9, 0.95, 1e-10, adam_weight_decay)
    b = state["b"] = state.get("b", 0) + (1 - momentum) * (g - state.get("b", 0))
    u = g + momentum * (b - g) if nesterov else b
    rows = w.shape[0]
    x = orthogonalized(u.reshape(rows, -1), int(ns_steps)).reshape(w.shape)
    w *= 1 - lr * weight_decay
    w -= lr * math.sqrt(max(1, rows * rows / w.size)) * x


class Handwritten:
    """torch.optim's interface around one of these."""

    def __init__(self, step, groups):
        self.step_of, self.groups, self.t = step, groups, 0
        self.states = {parameter: {} for group in groups for parameter in group["params"]}

    def zero_grad(self):
        for parameter in self.states:
            parameter.grad = None

    def step(self):
        self.t += 1
        for group in self.groups:
            keys = {key: value for key, value in group.items() if key != "params"}
            for parameter in group["params"]:
                self.step_of(parameter.detach().numpy(), parameter.grad.numpy(), self.states[parameter], self.t, **keys)


# ---------------------------------------------------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------------------------------------------------

TORCH = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "rmsprop": torch.optim.RMSprop,
         "adagrad": torch.optim.Adagrad, "radam": torch.optim.RAdam, "nadam": torch.optim.NAdam, "adamax": torch.optim.Adamax, "adadelta": torch.optim.Adadelta,
         "rprop": torch.optim.Rprop, "asgd": torch.optim.ASGD}
OWN = {"lion": lion, "adafactor": adafactor, "muon": muon}
DECOUPLED = ("adamw", "lion", "adafactor", "muon")


def keys_of(parameter, name, value, keys, groups):
    """The optimizer's keys for one parameter: the first group that matches, and no decay of vectors unless it says so."""
    own = next((given for pattern, given in groups if fnmatch.fnmatchcase(parameter, pattern)), {})
    decay = own.get("decay", keys.get("decay", "matrices" if name in DECOUPLED else "all"))
    result = dict(keys)
    if decay == "matrices" and value.ndim < 2:
        result["weight_decay"] = 0.0
        if name == "muon":
            result["adam_weight_decay"] = 0.0
    result.update(own)
    result.pop("decay", None)
    if name in ("adam", "adamax", "adamw", "nadam", "radam"):
        result["betas"] = (result.pop("beta1", 0.9), result.pop("beta2", 0.999))
    if name == "rprop":
        result["etas"] = (result.pop("eta1", 0.5), result.pop("eta2", 1.2))
        result["step_sizes"] = (result.pop("step_size1", 1e-6), result.pop("step_size2", 50))
    return result


def optimizer_of(case, model):
    name, keys = optimizer_cases.options(optimizer_cases.CASES[case][1])
    groups = optimizer_cases.GROUPS.get(case, [])
    parameters = [{"params": [value], **keys_of(parameter, name, value, keys, groups)}
                  for parameter, value in model.named_parameters()]
    if name in OWN:
        return Handwritten(OWN[name], parameters)
    # What fills the state at first is not a group's in PyTorch.
    return TORCH[name](parameters, **{key: keys[key] for key in ("lr", "initial_accumulator_value") if key in keys})


def train(case):
    kind = optimizer_cases.CASES[case][0]
    model = MODELS[kind]()
    shapes = {parameter: list(value.shape) for parameter, value in sorted(model.named_parameters())}
    with torch.no_grad():
        for parameter, values in optimizer_cases.weights(shapes).items():
            model.get_parameter(parameter).copy_(torch.tensor(values).reshape(shapes[parameter]))
    x, labels = optimizer_cases.data(kind)
    x = torch.tensor(x, dtype=torch.float64).reshape(optimizer_cases.MODELS[kind]["x"][1])
    optimizer, losses = optimizer_of(case, model), []
    for _ in range(optimizer_cases.STEPS):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x), torch.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    last = {parameter: optimizer_cases.kept(value.detach().flatten().tolist())
            for parameter, value in sorted(model.named_parameters())}
    return {"shapes": shapes, "losses": losses, "weights": last}


if __name__ == "__main__":
    kept = {case: train(case) for case in optimizer_cases.CASES}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "optimizers.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")
