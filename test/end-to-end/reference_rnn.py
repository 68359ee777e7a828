"""20 losses of Inputs/rnn.mlir, computed with NumPy alone: the steps written out, backpropagation through time by hand.

    numpy/bin/python reference_rnn.py

writes reference_rnn.json, which rnn_test.py compares gpuc with. Numbers are made as in reference_losses.py.
"""

import json
import os

import numpy as np

from reference_losses import STEPS, uniform

BATCH, TIME, FEATURES, HIDDEN, ROWS = 8, 12, 5, 16, 40
VARIABLES = {
    "rnn.weight_x": {"shape": [FEATURES, HIDDEN], "stream": 2, "scale": 0.5},
    "rnn.weight_h": {"shape": [HIDDEN, HIDDEN], "stream": 3, "scale": 0.25},
    "rnn.bias": {"shape": [HIDDEN], "stream": 4, "scale": 0.25},
    "head.weight": {"shape": [HIDDEN, 1], "stream": 5, "scale": 0.25},
}
X = {"shape": [ROWS, TIME, FEATURES], "stream": 100, "scale": 1.0}
Y = {"shape": [ROWS, 1], "stream": 101, "scale": 1.0}


def train_step(w, x, y, lr):
    """Updates w in place; the mean loss before that."""
    h = [np.zeros((BATCH, HIDDEN))]  # before each step, and behind the last
    for t in range(TIME):
        h.append(np.tanh(x[:, t] @ w["rnn.weight_x"] + h[-1] @ w["rnn.weight_h"] + w["rnn.bias"]))
    error = h[-1] @ w["head.weight"] - y

    g = {name: np.zeros_like(value) for name, value in w.items()}
    d = 2 * error / error.size
    g["head.weight"] += h[-1].T @ d
    dh = d @ w["head.weight"].T
    for t in reversed(range(TIME)):
        da = dh * (1 - h[t + 1] ** 2)
        g["rnn.weight_x"] += x[:, t].T @ da
        g["rnn.weight_h"] += h[t].T @ da
        g["rnn.bias"] += da.sum(axis=0)
        dh = da @ w["rnn.weight_h"].T
    for name in w:
        w[name] -= lr * g[name]
    return float((error * error).mean())


def losses():
    w = {name: uniform(**how) for name, how in VARIABLES.items()}
    x, y = uniform(**X), uniform(**Y)
    found = []
    for step in range(STEPS):
        start = step * BATCH % ROWS
        found.append(train_step(w, x[start:start + BATCH], y[start:start + BATCH], lr=0.1))
    return found


if __name__ == "__main__":
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference_rnn.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"made by": f"reference_rnn.py, NumPy {np.__version__}, f64", "variables": VARIABLES, "x": X, "y": Y,
                   "losses": losses()}, file, indent=1)
        file.write("\n")
