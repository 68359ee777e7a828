"""Writes text_losses.json: PyTorch trains the zoo's language models on a real text, as a PyTorch user would, with weights
and an order of its own. Kept of each: the loss on text that it has not seen, after 2,000 steps.

    /usr/bin/python3 test/end-to-end/text_reference.py       # Debian: python3-torch bible-kjv bible-kjv-text
"""

import json
import math
import os

import torch
from torch import nn
from torch.nn import functional

import text_cases
from text_cases import LENGTH
from zoo_reference import Gpt2, LstmGenerator

torch.set_default_dtype(torch.float32)


def gpt2():
    model = Gpt2({"vocabulary": "256", "width": "128", "length": str(LENGTH), "layers": "4", "heads": "4"})
    for name, value in model.named_parameters():
        if name.endswith("c_proj.weight"):
            nn.init.normal_(value, std=0.02 / math.sqrt(2 * 4))
        elif "ln_" not in name:
            nn.init.zeros_(value) if name.endswith("bias") else nn.init.normal_(value, std=0.02)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)


def lstm_generator():
    model = LstmGenerator({"vocabulary": "256", "embedding": "128", "hidden": "256", "layers": "2"})
    return model, torch.optim.Adam(model.parameters(), lr=2e-3)


MODELS = {"gpt2": gpt2, "lstm-generator": lstm_generator}


def windows(text):
    """All runs of LENGTH tokens that follow one another, and for each token the next."""
    tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    count = (len(tokens) - 1) // LENGTH
    return tokens[:count * LENGTH].view(count, LENGTH), tokens[1:count * LENGTH + 1].view(count, LENGTH)


def train(name, seed, training, validation):
    torch.manual_seed(seed)
    model, optimizer = MODELS[name]()
    x, labels = windows(training)
    batch = text_cases.BATCH[name]
    order = torch.randperm(len(x))
    for step in range(text_cases.STEPS):
        rows = order[step * batch % (len(order) - batch):][:batch]
        optimizer.zero_grad()
        model.loss(x[rows], labels[rows]).backward()
        optimizer.step()
    x, labels = windows(validation)
    with torch.no_grad():
        losses = [model.loss(x[i:i + 256], labels[i:i + 256]).item() * len(x[i:i + 256]) for i in range(0, len(x), 256)]
    return math.fsum(losses) / len(x)


if __name__ == "__main__":
    training, validation = text_cases.parts(text_cases.text())
    kept = {name: {str(seed): train(name, seed, training, validation) for seed in text_cases.SEEDS} for name in MODELS}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "text_losses.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")
    print(json.dumps(kept))
