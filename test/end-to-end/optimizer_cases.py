"""What optimizers_reference.py and optimizers_test.py train: models with odd extents, and optimizers by gpuc's names."""

import math

import zoo_cases
from tensor_files import hashed

STEPS = 50

MODELS = {
    "mlp": {"keys": ["input=7", "hidden=5,3", "activation=tanh", "classes=3", "pixels=false", "batch=9"],
            "x": ("f64", [9, 7]), "labels": 3},
    # Filters of four dimensions.
    "convnet": {"keys": ["in_channels=1", "size=5", "classes=3", "batch=3"], "x": ("ui8", [3, 1, 5, 5]), "labels": 3},
}

# name → model and optimizer, as gpuc-compile takes it.
CASES = {
    "sgd": ("mlp", "sgd:lr=0.1"),
    "sgd with momentum": ("mlp", "sgd:lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01"),
    "sgd with nesterov": ("mlp", "sgd:lr=0.05,momentum=0.9,nesterov=true"),
    "sgd up the slope": ("mlp", "sgd:lr=0.01,momentum=0.5,weight_decay=0.3,maximize=true"),
    "adam": ("mlp", "adam:lr=0.01,betas=(0.8,0.99),eps=1e-6,weight_decay=0.02"),
    "adam with amsgrad": ("mlp", "adam:lr=0.01,amsgrad=true"),
    "adamw": ("mlp", "adamw:lr=0.01,weight_decay=0.1"),
    "adamw up the slope": ("mlp", "adamw:lr=0.001,weight_decay=0.1,maximize=true"),
    "adamw of all": ("mlp", "adamw:lr=0.01,weight_decay=0.1,decay=all"),
    "adamw with amsgrad": ("mlp", "adamw:lr=0.01,weight_decay=0.1,amsgrad=true"),
    "rmsprop": ("mlp", "rmsprop:lr=0.003"),
    "rmsprop with momentum": ("mlp", "rmsprop:lr=0.003,alpha=0.9,momentum=0.8,weight_decay=0.01"),
    "rmsprop centered": ("mlp", "rmsprop:lr=0.003,alpha=0.9,eps=1e-3,centered=true"),
    "rmsprop centered with momentum": ("mlp", "rmsprop:lr=0.003,eps=1e-3,momentum=0.5,centered=true"),
    "adagrad": ("mlp", "adagrad:lr=0.05"),
    "adagrad with decay": ("mlp", "adagrad:lr=0.05,lr_decay=0.1,weight_decay=0.01,initial_accumulator_value=0.5"),
    "adadelta": ("mlp", "adadelta:lr=0.5"),
    "adadelta with decay": ("mlp", "adadelta:lr=1,rho=0.8,eps=1e-4,weight_decay=0.01"),
    "adamax": ("mlp", "adamax:lr=0.01"),
    "adamax with decay": ("mlp", "adamax:lr=0.01,betas=(0.8,0.9),eps=1e-4,weight_decay=0.01"),
    "nadam": ("mlp", "nadam:lr=0.01"),
    "nadam with decay": ("mlp", "nadam:lr=0.01,betas=(0.8,0.9),eps=1e-4,momentum_decay=0.1,weight_decay=0.01"),
    "radam": ("mlp", "radam:lr=0.01"),
    "radam with decay": ("mlp", "radam:lr=0.01,betas=(0.8,0.9),eps=1e-4,weight_decay=0.01"),
    "asgd": ("mlp", "asgd:lr=0.1"),
    "asgd with decay": ("mlp", "asgd:lr=0.1,lambd=0.01,alpha=0.5,t0=10,weight_decay=0.01"),
    "rprop": ("mlp", "rprop:lr=0.001"),
    "rprop with other keys": ("mlp", "rprop:lr=0.01,etas=(0.25,1.5),step_sizes=(1e-4,0.02)"),
    "lion": ("mlp", "lion:lr=0.003,betas=(0.8,0.95),weight_decay=0.1"),
    "lion of all": ("mlp", "lion:lr=0.003,weight_decay=0.1,decay=all"),
    "adafactor": ("mlp", "adafactor:lr=0.05,weight_decay=0.1"),
    "adafactor with other keys": ("mlp", "adafactor:lr=0.05,beta2_decay=-0.5,eps=(1e-3,0.1),d=2"),
    "adafactor of filters": ("convnet", "adafactor:eps1=1e-6"),
    "muon": ("mlp", "muon:weight_decay=0.1,adam_lr=0.01,adam_weight_decay=0.2"),
    "muon without nesterov": ("mlp", "muon:lr=0.01,momentum=0.8,nesterov=false,ns_steps=3"),
    "muon of filters": ("convnet", "muon:lr=0.005"),
    "muon with a group": ("mlp", "muon:lr=0.01,adam_lr=0.01"),
    "groups": ("mlp", "adamw:lr=0.01,weight_decay=0.1"),
}

# case → (pattern, keys) for each --group.
GROUPS = {
    "muon with a group": [("fc3.*", {"use_muon": False})],
    "groups": [("fc3.bias", {"weight_decay": 0.3}), ("fc[23].*", {"lr": 0.002, "beta1": 0.5}),
               ("fc1.*", {"decay": "all"})],
}


def data(model):
    """(x, labels) of a model, flat."""
    dtype, shape = MODELS[model]["x"]
    numbers = hashed(math.prod(shape), 100)
    x = [h >> 24 for h in numbers] if dtype == "ui8" else [(h >> 8) / 2**23 - 1 for h in numbers]
    return x, [h % MODELS[model]["labels"] for h in hashed(shape[0], 101)]


def options(spec):
    """name and keys of NAME:key=value,…; a tuple gives numbered keys, as eps=(a,b) gives eps1 and eps2."""
    name, _, text = spec.partition(":")
    keys, depth, part, parts = {}, 0, "", []
    for character in text + ",":
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += character
    for key, value in (p.split("=") for p in parts if p):
        if value.startswith("("):
            stem = key if key == "eps" else key.removesuffix("s")
            keys.update({f"{stem}{i}": float(v) for i, v in enumerate(value.strip("()").split(","), 1)})
        else:
            keys[key] = {"true": True, "false": False, "all": "all"}.get(value) if value.isalpha() else float(value)
    return name, keys


weights = zoo_cases.weights


def kept(values):
    """What is compared of trained weights: all of a small tensor, of a large one its norm and projections."""
    return values if len(values) <= 64 else zoo_cases.projections(values)
