"""Models as PyTorch's tutorials write them, exported to ONNX, and the losses to which PyTorch trains them.

    PYTHONPATH=test/end-to-end /usr/bin/python3 test/onnx/pytorch_models.py [FOLDER]     # Debian: python3-torch

Writes NAME.onnx and pytorch_losses.json into FOLDER (test/onnx/Inputs): of each model STEPS losses in f64, on the data
and with the optimizer of pytorch_cases.py, then the outputs for the first batch in eval mode. Dropout is 0 there, since
PyTorch draws other numbers than gpuc.
"""

import json
import math
import os
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional

from pytorch_cases import BATCH, BATCHES, CASES, CLASSES, LENGTH, STEPS, WORDS, data


class ConvNet(nn.Module):
    """As in "Training a classifier", with the batch norms that any convnet has by now."""

    def __init__(self, dropout):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 8, 3)
        self.bn2 = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2, 2)
        self.drop = nn.Dropout(dropout)
        self.fc1 = nn.Linear(8 * 2 * 2, 16)
        self.fc2 = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = self.pool(functional.relu(self.bn1(self.conv1(x))))
        x = self.pool(functional.relu(self.bn2(self.conv2(x))))
        x = x.view(x.size(0), -1)
        return self.fc2(self.drop(functional.relu(self.fc1(x))))


class Classifier(nn.Module):
    """Learned places, an encoder of two layers, and the mean over the words."""

    def __init__(self, dropout, width=8):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.places = nn.Embedding(LENGTH, width)
        layer = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=16, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x):
        places = torch.arange(x.size(1), device=x.device).unsqueeze(0).expand_as(x)
        x = self.embedding(x) + self.places(places)
        return self.classifier(self.encoder(x).mean(dim=1))


class PositionalEncoding(nn.Module):
    """That of "Language modeling with nn.Transformer", batch first."""

    def __init__(self, width, dropout, longest=12):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(longest).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        pe = torch.zeros(1, longest, width)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return self.dropout(x + self.pe[:, :x.size(1)])


class Block(nn.Module):
    def __init__(self, width, dropout):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, dropout=dropout, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, mask):
        h = self.ln_1(x)
        h, _ = self.attention(h, h, h, attn_mask=mask, need_weights=False)
        x = x + h
        return x + self.mlp(self.ln_2(x))


class Language(nn.Module):
    """Predicts the next word; the output's matrix is the embedding's."""

    def __init__(self, dropout, width=8):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(WORDS, width)
        self.places = PositionalEncoding(width, dropout)
        self.blocks = nn.ModuleList(Block(width, dropout) for _ in range(2))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, WORDS, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def forward(self, x):
        x = self.places(self.embedding(x) * math.sqrt(self.width))
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(self.norm(x))


class Recurrent(nn.Module):
    """Reads the words both ways, and gives each a class."""

    def __init__(self, dropout, width=6):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=dropout, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.rnn = nn.RNN(width, width, nonlinearity="relu", batch_first=True)
        self.classifier = nn.Linear(width, CLASSES)

    def forward(self, x):
        h, _ = self.lstm(self.embedding(x))
        h, last = self.gru(h)
        h, _ = self.rnn(h, last)
        return self.classifier(h)


MODELS = {"convnet": ConvNet, "classifier": Classifier, "language": Language, "recurrent": Recurrent}
OPTIMIZERS = {
    "sgd:lr=0.05,momentum=0.9": lambda weights: torch.optim.SGD(weights, lr=0.05, momentum=0.9),
    "adam:lr=0.01": lambda weights: torch.optim.Adam(weights, lr=0.01),
    "adam:lr=0.002": lambda weights: torch.optim.Adam(weights, lr=0.002),
    "adamw:lr=0.002,weight_decay=0.05,decay=all": lambda weights: torch.optim.AdamW(weights, lr=0.002, weight_decay=0.05),
}


def make(name, dropout=0.0):
    torch.manual_seed(7)
    model = MODELS[name](dropout)
    for layer in model.modules():
        if hasattr(layer, "running_mean"):  # As if it had been trained before.
            layer.running_mean.copy_(torch.arange(5, 5 + layer.num_features))
    return model


def export(model, example, path):
    """As docs/onnx.md says it: dropout and batch norm stay, the statistics as they are, weights under their names."""
    model.train()
    for layer in model.modules():
        if hasattr(layer, "running_mean"):
            layer.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, path, opset_version=17, training=torch.onnx.TrainingMode.PRESERVE,
                          do_constant_folding=False, input_names=["x"], output_names=["logits"],
                          dynamic_axes={"x": {0: "batch"}, "logits": {0: "batch"}})
    model.train()


def tensor(dtype, shape, values):
    return torch.tensor(values, dtype=torch.float64 if dtype == "f64" else torch.int64).reshape(shape)


def train(name, model):
    case = CASES[name]
    fields = {field: tensor(*parts) for field, parts in data(name).items()}
    optimizer = OPTIMIZERS[case["optimizer"]](model.parameters())
    losses = []
    for step in range(STEPS):
        begin = step % BATCHES * BATCH
        x, labels = (fields[field][begin:begin + BATCH] for field in ("x", "labels"))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(x).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        logits = model(fields["x"][:BATCH])
    return {"losses": losses, "logits": logits.flatten().tolist()}


def main(folder):
    torch.set_default_dtype(torch.float64)
    kept = {}
    for name in CASES:
        model = make(name)
        export(model, tensor(*data(name)["x"])[:BATCH], os.path.join(folder, name + ".onnx"))
        kept[name] = train(name, model)
    with open(os.path.join(folder, "pytorch_losses.json"), "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs"))
