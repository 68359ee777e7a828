"""Writes batch_norm.json: PyTorch trains what batch_norm.mlir describes, and evaluates it, in f64.

    /usr/bin/python3 batch_norm_reference.py > batch_norm.json

Needs Debian's python3-torch. Data and first weights are those of tensor_files.py, by the stream.
"""

import json

import torch

from tensor_files import hashed, uniform

ROWS, BATCH, STEPS = 24, 8, 6

x = torch.tensor(uniform([ROWS, 3, 4], 100, 2.0), dtype=torch.float64).reshape(ROWS, 3, 4)
labels = torch.tensor([h % 5 for h in hashed(ROWS, 101)])
norm, linear = torch.nn.BatchNorm1d(3).double(), torch.nn.Linear(12, 5, bias=False).double()
with torch.no_grad():
    linear.weight[:] = torch.tensor(uniform([5, 12], 1, 0.5), dtype=torch.float64).reshape(5, 12)
model = torch.nn.Sequential(norm, torch.nn.Flatten(), linear)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

losses = []
for step in range(STEPS):
    rows = slice(step * BATCH % ROWS, step * BATCH % ROWS + BATCH)
    loss = torch.nn.functional.cross_entropy(model(x[rows]), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())

model.eval()
print(json.dumps({
    "torch": torch.__version__,
    "losses": losses,
    "eval_loss": torch.nn.functional.cross_entropy(model(x), labels).item(),
    "variables": {"bn." + name: value.reshape(-1).tolist() for name, value in norm.state_dict().items()}
    | {"fc.weight": linear.weight.reshape(-1).tolist()},
}, indent=1))
