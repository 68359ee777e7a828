"""Loss curves of gpuc's models, computed with NumPy alone: forward, backward and update written out by hand.

    python3 -m venv numpy && numpy/bin/pip install numpy && numpy/bin/python reference_losses.py

writes reference_losses.json, which loss_curves_test.py compares gpuc with. Everything is computed in f64. Inputs and
first weights are multiples of a power of two that f32 holds exactly, so that f32 and f64 start from the same numbers:
the reference of an f32 run is the f64 curve too.

Nothing here is taken from gpuc: the updates are those of torch.optim's documentation (SGD, Adam, AdamW), the losses
those of torch.nn.CrossEntropyLoss (label_smoothing included) and MSELoss, both as means over the batch.
"""

import json
import os

import numpy as np

STEPS = 20
BATCH = 64
CLASSES = 10


def hashed(count, stream):
    """`count` integers below 2**32: lowbias32, the mixing function of https://nullprogram.com/blog/2018/07/31/."""
    h = (np.arange(count, dtype=np.uint64) + stream * 0x9E3779B9) % 2**32
    h ^= h >> 16
    h = h * 0x7FEB352D % 2**32
    h ^= h >> 15
    h = h * 0x846CA68B % 2**32
    return h ^ h >> 16


def uniform(shape, stream, scale):
    """In [-scale, scale), in steps of scale / 2**23."""
    values = (hashed(int(np.prod(shape)), stream) >> 8).astype(np.float64) / 2**23 - 1
    return (values * scale).reshape(shape)


# ---------------------------------------------------------------------------------------------------------------------
# Forward and backward: each gives the mean loss of the batch and its gradient by parameter name.
# ---------------------------------------------------------------------------------------------------------------------


def relu(z):
    return np.maximum(z, 0), z > 0


def tanh(z):
    y = np.tanh(z)
    return y, 1 - y * y


def classify(parameters, x, labels, activation, smoothing):
    layers = len(parameters) // 2
    kept = [x.reshape(len(x), -1)]  # the input of each layer
    slopes = []
    for i in range(1, layers + 1):
        z = kept[-1] @ parameters[f"fc{i}.weight"].T + parameters[f"fc{i}.bias"]
        if i < layers:
            y, slope = activation(z)
            kept.append(y)
            slopes.append(slope)
    z = z - z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    target = np.full_like(log_p, smoothing / CLASSES)
    target[np.arange(len(x)), labels] += 1 - smoothing
    loss = -(target * log_p).sum() / len(x)

    gradients = {}
    d = (np.exp(log_p) - target) / len(x)
    for i in range(layers, 0, -1):
        gradients[f"fc{i}.weight"] = d.T @ kept[i - 1]
        gradients[f"fc{i}.bias"] = d.sum(axis=0)
        if i > 1:
            d = d @ parameters[f"fc{i}.weight"] * slopes[i - 2]
    return loss, gradients


def regress(parameters, x, y):
    error = x @ parameters["linear.weight"].T + parameters["linear.bias"] - y
    d = 2 * error / error.size
    return (error * error).mean(), {"linear.weight": d.T @ x, "linear.bias": d.sum(axis=0)}


# ---------------------------------------------------------------------------------------------------------------------
# Updates, in place; `slots` is empty before the first.
# ---------------------------------------------------------------------------------------------------------------------


def sgd(w, g, slots, t, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=0):
    g = g + weight_decay * w
    if momentum:
        slots["b"] = momentum * slots["b"] + (1 - dampening) * g if t > 1 else g
        g = g + momentum * slots["b"] if nesterov else slots["b"]
    w -= lr * g


def adam(w, g, slots, t, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0):
    g = g + weight_decay * w
    slots["m"] = beta1 * slots.get("m", 0) + (1 - beta1) * g
    slots["v"] = beta2 * slots.get("v", 0) + (1 - beta2) * g * g
    m, v = slots["m"] / (1 - beta1**t), slots["v"] / (1 - beta2**t)
    w -= lr * m / (np.sqrt(v) + eps)


def adamw(w, g, slots, t, lr=1e-3, weight_decay=0.01, **options):
    if w.ndim >= 2:  # biases do not decay
        w *= 1 - lr * weight_decay
    adam(w, g, slots, t, lr, **options)


UPDATES = {"sgd": sgd, "adam": adam, "adamw": adamw}


def update_of(spec):
    """sgd:lr=0.1,momentum=0.9 as a function of w, g, slots, t."""
    name, _, options = spec.partition(":")
    options = {key: float(value) for key, value in (o.split("=") for o in options.split(",") if o)}
    return lambda *arguments: UPDATES[name](*arguments, **options)


# ---------------------------------------------------------------------------------------------------------------------
# Cases
# ---------------------------------------------------------------------------------------------------------------------


def variable(shape, stream, scale):
    return {"shape": shape, "stream": stream, "scale": scale}


def mlp_variables(*widths):
    variables = {}
    for i, (fan_in, fan_out) in enumerate(zip(widths, widths[1:]), 1):
        scale = 2.0 ** -round(np.log2(fan_in) / 2)
        variables[f"fc{i}.weight"] = variable([fan_out, fan_in], 2 * i, scale)
        variables[f"fc{i}.bias"] = variable([fan_out], 2 * i + 1, scale)
    return variables


MLP = ["mlp", "pixels=false"]
MLP_VARIABLES = mlp_variables(784, 128, CLASSES)
LINEAR = ["linear-regression"]
LINEAR_VARIABLES = {"linear.weight": variable([1, 13], 2, 0.25), "linear.bias": variable([1], 3, 0.25)}


def mlp(optimizer, model=MLP, variables=MLP_VARIABLES, rows=320, x="uniform", **loss):
    return {"model": model, "optimizer": optimizer, "rows": rows, "variables": variables, "x": x, "loss": loss}


def linear(optimizer, rows=320):
    return {"model": LINEAR, "optimizer": optimizer, "rows": rows, "variables": LINEAR_VARIABLES, "x": "uniform"}


# 320 rows are 5 whole batches, four times over; of 300 rows the fifth batch has 44, and gpuc pads it.
CASES = {
    "mlp": mlp("adam:lr=1e-3"),
    "mlp of pixels": mlp("adam:lr=1e-3", model=["mlp"], x="pixels"),
    "mlp, padded last batch": mlp("adam:lr=1e-3", rows=300),
    "mlp, sgd": mlp("sgd:lr=0.1"),
    "mlp, sgd with momentum": mlp("sgd:lr=0.05,momentum=0.9,dampening=0.1,weight_decay=0.01"),
    "mlp, sgd with nesterov": mlp("sgd:lr=0.05,momentum=0.9,nesterov=1"),
    "mlp, adam with decay": mlp("adam:lr=1e-3,beta1=0.8,beta2=0.99,eps=1e-6,weight_decay=0.01"),
    "mlp, adamw": mlp("adamw:lr=1e-3,weight_decay=0.1"),
    "mlp, tanh, two layers, smoothing": mlp(
        "adam:lr=1e-3", model=[*MLP, "hidden=64,32", "activation=tanh", "smoothing=0.1"],
        variables=mlp_variables(784, 64, 32, CLASSES), activation="tanh", smoothing=0.1),
    "linear-regression": linear("sgd:lr=0.01"),
    "linear-regression, padded last batch": linear("sgd:lr=0.01", rows=300),
    "linear-regression, adamw": linear("adamw:lr=0.01,weight_decay=0.1"),
}


def data_of(case):
    rows = case["rows"]
    if case["model"][0] == "linear-regression":
        return uniform([rows, 13], 100, 1.0), uniform([rows, 1], 101, 1.0)
    labels = (hashed(rows, 101) % CLASSES).astype(np.int64)
    if case["x"] == "pixels":
        return (hashed(rows * 784, 100) >> 24).reshape(rows, 784) / 255, labels
    return uniform([rows, 784], 100, 1.0), labels


def losses_of(case):
    parameters = {name: uniform(**v) for name, v in case["variables"].items()}
    slots = {name: {} for name in parameters}
    update = update_of(case["optimizer"])
    x, y = data_of(case)
    starts = range(0, case["rows"], BATCH)
    losses = []
    for step in range(STEPS):
        start = starts[step % len(starts)]
        batch = x[start:start + BATCH], y[start:start + BATCH]
        if case["model"][0] == "linear-regression":
            loss, gradients = regress(parameters, *batch)
        else:
            activation = {"relu": relu, "tanh": tanh}[case["loss"].get("activation", "relu")]
            loss, gradients = classify(parameters, *batch, activation, case["loss"].get("smoothing", 0))
        losses.append(float(loss))
        for name, w in parameters.items():
            update(w, gradients[name], slots[name], step + 1)
    return losses


if __name__ == "__main__":
    results = {name: {**{k: v for k, v in case.items() if k != "loss"}, "losses": losses_of(case)}
               for name, case in CASES.items()}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference_losses.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"made by": f"reference_losses.py, NumPy {np.__version__}, f64", "cases": results}, file, indent=1)
        file.write("\n")
