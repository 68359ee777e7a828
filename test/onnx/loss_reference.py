"""Losses, weights and evaluations of the cases of loss_cases.py, by PyTorch in f64.

    PYTHONPATH=test/end-to-end python3 test/onnx/loss_reference.py [FILE [FIRST COUNT]]

FILE is test/onnx/Inputs/loss_numbers.json; that has cases 0 to 79.
"""

import json
import os
import sys

import torch
from torch.nn import functional

from loss_cases import BATCH, RATE, STEPS, data, is_padded, make_case, samples, target_row, weight_shape, weights

FUNCTIONS = {"nll": "nll_loss", "mse": "mse_loss", "l1": "l1_loss", "huber": "huber_loss", "smooth_l1": "smooth_l1_loss",
             "bce_with_logits": "binary_cross_entropy_with_logits"}


def loss_of(case, y, target):
    arguments = {key: torch.tensor(v, dtype=torch.float64) if isinstance(v, list) else v
                 for key, v in case["arguments"].items()}
    if "dim" in case:
        y = y.movedim(case["dim"], 1)
        if case["loss"] == "nll":
            y = functional.log_softmax(y, 1)
    return getattr(functional, FUNCTIONS.get(case["loss"], case["loss"]))(y, target, **arguments)


def run(case):
    count = samples(case)
    x, target = data(case)
    x = torch.tensor(x, dtype=torch.float64).reshape(count, *case["row"])
    dtype = torch.int64 if "dim" in case else torch.float64
    target = torch.tensor(target, dtype=dtype).reshape(count, *target_row(case))
    w = torch.tensor(weights(case), dtype=torch.float64).reshape(weight_shape(case)).requires_grad_()
    batches = [slice(begin, begin + BATCH) for begin in range(0, count, BATCH)]
    losses = []
    for step in range(STEPS):
        rows = batches[step % len(batches)]
        loss = loss_of(case, x[rows] * w, target[rows])
        losses.append(loss.item())
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= RATE * gradient
    with torch.no_grad():
        if is_padded(case) and case["arguments"].get("reduction") != "sum":
            evaluated = loss_of(case, x * w, target).item()
        else:  # Each batch counts as one.
            evaluated = sum(loss_of(case, x[rows] * w, target[rows]).item() for rows in batches) / len(batches)
        made = {"losses": losses, "weights": w.flatten().tolist(), "evaluated": evaluated}
        if "dim" in case and not case["own"]:
            hits = (x * w).movedim(case["dim"], 1).argmax(1) == target
            counted = target != case["arguments"].get("ignore_index", -100)
            made["accuracy"] = ((hits & counted).double().sum() / counted.double().sum()).item()  # NaN of no labels
    return made


def main(path, first, count):
    kept = {seed: run(make_case(seed)) for seed in range(first, first + count)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=0)
        file.write("\n")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    chosen = sys.argv[1:] or [os.path.join(here, "Inputs", "loss_numbers.json")]
    main(chosen[0], *(map(int, chosen[1:3]) if len(chosen) > 1 else (0, 80)))
