"""Writes clipping.json: PyTorch trains linear regression with clipped gradients, in f64.

    /usr/bin/python3 clipping_reference.py > clipping.json

Needs Debian's python3-torch. Data and first weights are those of tensor_files.py, by the stream. Kept of each update: its
loss, and the norm of the gradient as clip_grad_norm_ finds it.
"""

import json

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from tensor_files import uniform

UPDATES, ROWS, BATCH, RATE = 30, 320, 32, 0.1
CASES = {"none": {}, "norm": {"norm": 0.45}, "value": {"value": 0.1}, "value, then norm": {"value": 0.2, "norm": 0.45}}
torch.set_default_dtype(torch.float64)


def train(value=None, norm=None):
    x = torch.tensor(uniform([ROWS, 13], 100, 1.0)).reshape(ROWS, 13)
    y = torch.tensor(uniform([ROWS, 1], 101, 1.0)).reshape(ROWS, 1)
    linear = torch.nn.Linear(13, 1)
    with torch.no_grad():
        linear.weight[:] = torch.tensor(uniform([1, 13], 2, 0.25)).reshape(1, 13)
        linear.bias[:] = torch.tensor(uniform([1], 3, 0.25))
    optimizer = torch.optim.SGD(linear.parameters(), lr=RATE)
    losses, norms = [], []
    for update in range(UPDATES):
        begin = update * BATCH % ROWS
        loss = torch.nn.functional.mse_loss(linear(x[begin:begin + BATCH]), y[begin:begin + BATCH])
        optimizer.zero_grad()
        loss.backward()
        if value:
            clip_grad_value_(linear.parameters(), value)
        norms.append(clip_grad_norm_(linear.parameters(), norm or float("inf")).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "norms": norms}


print(json.dumps({
    "torch": torch.__version__, "rate": RATE,
    "cases": {name: {"flags": [f"--clip-{key}={bound}" for key, bound in bounds.items()], **train(**bounds)}
              for name, bounds in CASES.items()},
}, indent=1))
