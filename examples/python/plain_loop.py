"""A PyTorch training loop of one's own, with a compiled step: Fashion-MNIST.

    PYTHONPATH=build/python PYTHON-WITH-TORCH examples/python/plain_loop.py [--data FOLDER] [--epochs N]

What is gpuc's is marked; all else is as it would be without.
"""

import argparse
import gzip
import pathlib
import tempfile

import numpy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gpuc

parser = argparse.ArgumentParser()
parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="where the .gz files of the data set lie")
parser.add_argument("--epochs", type=int, default=1)
arguments = parser.parse_args()


def read(part):
    """Pictures and labels; idx files have headers of 16 and 8 bytes."""
    folder = pathlib.Path(arguments.data)
    pictures = gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:]
    x = torch.from_numpy(numpy.frombuffer(pictures, numpy.uint8).copy()).reshape(-1, 28 * 28).float() / 255
    return TensorDataset(x, torch.from_numpy(numpy.frombuffer(labels, numpy.uint8).astype(numpy.int64)))


torch.manual_seed(1)
train, test = read("train"), read("t10k")
loader, val = DataLoader(train, 64, shuffle=True), DataLoader(test, 64)
net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.epochs)

step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, next(iter(loader)), clip_norm=1.0)  # gpuc: instead of a forward pass,
print(f"memory, known before the first step: {step.report['peak_bytes']} bytes")  # backward(), clipping and optimizer.step()

for epoch in range(arguments.epochs):
    total = 0.0
    for x, y in loader:
        total += step(x, y)  # gpuc: one update
    print(f"epoch {epoch + 1}: loss {total / len(loader):.4f}, validation {step.evaluate(val).loss:.4f}")  # gpuc: in eval mode
    scheduler.step()

net.eval()  # The module has the trained weights at all times.
with torch.no_grad():
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in val)
print(f"accuracy {right / len(test):.4f}")

with tempfile.TemporaryDirectory() as folder:
    torch.save(net.state_dict(), f"{folder}/net.pt")
    step.save(f"{folder}/net.plan")  # gpuc: gpuc.load trains on from here, without torch
