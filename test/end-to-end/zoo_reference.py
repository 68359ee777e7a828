"""Writes zoo_losses.json: PyTorch trains small models of the zoo, in f64, with the weights and data of zoo_cases.py.

    /usr/bin/python3 test/end-to-end/zoo_reference.py        # Debian: python3-torch

Kept of each: 20 losses, and of the first gradient of each parameter its norm and projections (zoo_cases.projections).
"""

import itertools
import json
import math
import os

import torch
from torch import nn
from torch.nn import functional

import zoo_cases

torch.set_default_dtype(torch.float64)


class LinearRegression(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.linear = nn.Linear(int(keys["in"]), int(keys["out"]))

    def loss(self, x, y):
        return functional.mse_loss(self.linear(x), y)


class Mlp(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.activation = getattr(functional, keys.get("activation", "relu"))
        self.largest = 255 if keys.get("pixels", "true") == "true" else 1
        self.smoothing = float(keys.get("smoothing", 0))
        extents = map(int, [math.prod(map(int, keys["input"].split("x"))), *keys["hidden"].split(","), keys["classes"]])
        for i, (inside, outside) in enumerate(itertools.pairwise(extents), 1):
            self.add_module(f"fc{i}", nn.Linear(inside, outside))

    def loss(self, x, labels):
        *hidden, last = self.children()
        h = x.flatten(1) / self.largest
        for linear in hidden:
            h = self.activation(linear(h))
        return functional.cross_entropy(last(h), labels, label_smoothing=self.smoothing)


class ConvNet(nn.Module):
    def __init__(self, keys):
        super().__init__()
        size = int(keys["size"])
        self.conv1 = nn.Conv2d(int(keys["in_channels"]), 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.fc1 = nn.Linear(64 * (size // 4) ** 2, 128)
        self.fc2 = nn.Linear(128, int(keys["classes"]))

    def loss(self, x, labels):
        h = functional.max_pool2d(functional.relu(self.conv1(x / 255)), 2)
        h = functional.max_pool2d(functional.relu(self.conv2(h)), 2)
        return functional.cross_entropy(self.fc2(functional.relu(self.fc1(h.flatten(1)))), labels)


class RnnClassifier(nn.Module):
    def __init__(self, keys):
        super().__init__()
        kind = {"gru": nn.GRU, "lstm": nn.LSTM, "rnn": nn.RNN}[keys["cell"]]
        self.directions = 2 if keys["bidirectional"] == "true" else 1
        hidden = int(keys["hidden"])
        self.rnn = kind(int(keys["width"]), hidden, int(keys["layers"]), batch_first=True,
                        bidirectional=self.directions == 2)
        self.fc = nn.Linear(self.directions * hidden, int(keys["classes"]))

    def loss(self, x, labels):
        _, last = self.rnn(x.squeeze(1) / 255)  # (layers * directions, batch, hidden)
        last = last[-self.directions:].transpose(0, 1).flatten(1)
        return functional.cross_entropy(self.fc(last), labels)


class LstmGenerator(nn.Module):
    def __init__(self, keys):
        super().__init__()
        embedding, hidden, vocabulary = int(keys["embedding"]), int(keys["hidden"]), int(keys["vocabulary"])
        self.embed = nn.Embedding(vocabulary, embedding)
        self.lstm = nn.LSTM(embedding, hidden, int(keys["layers"]), batch_first=True)
        self.linear = nn.Linear(hidden, vocabulary)

    def loss(self, x, labels):
        logits = self.linear(self.lstm(self.embed(x))[0])
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def convolution(inside, outside, kernel, stride=1):
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)


class ResidualBlock(nn.Module):
    """torchvision's BasicBlock or Bottleneck."""

    def __init__(self, inside, width, stride, is_bottleneck):
        super().__init__()
        outside = 4 * width if is_bottleneck else width
        kernels = [(inside, width, 1, 1), (width, width, 3, stride), (width, outside, 1, 1)] if is_bottleneck else [
            (inside, width, 3, stride), (width, width, 3, 1)]
        self.depth = len(kernels)
        for i, kernel in enumerate(kernels, 1):
            self.add_module(f"conv{i}", convolution(*kernel))
            self.add_module(f"bn{i}", nn.BatchNorm2d(kernel[1]))
        self.downsample = None
        if inside != outside or stride != 1:
            self.downsample = nn.Sequential(convolution(inside, outside, 1, stride), nn.BatchNorm2d(outside))

    def forward(self, x):
        h = x
        for i in range(1, self.depth + 1):
            h = self.get_submodule(f"bn{i}")(self.get_submodule(f"conv{i}")(h))
            h = functional.relu(h) if i < self.depth else h
        return functional.relu(h + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, keys, depths, is_bottleneck):
        super().__init__()
        base, inside = int(keys["width"]), int(keys["width"])
        self.smoothing = float(keys.get("smoothing", 0))
        self.conv1, self.bn1 = convolution(int(keys["in_channels"]), base, 7, 2), nn.BatchNorm2d(base)
        for stage, depth in enumerate(depths):
            width, blocks = base << stage, []
            for i in range(depth):
                blocks.append(ResidualBlock(inside, width, 2 if i == 0 and stage > 0 else 1, is_bottleneck))
                inside = width * (4 if is_bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, int(keys["classes"]))

    def loss(self, x, labels):
        h = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x / 255))), 3, 2, 1)
        h = self.layer4(self.layer3(self.layer2(self.layer1(h))))
        return functional.cross_entropy(self.fc(h.mean((2, 3))), labels, label_smoothing=self.smoothing)


class Transformer(nn.Module):
    def __init__(self, keys):
        super().__init__()
        self.width = width = int(keys["width"])
        sizes = (width, int(keys["heads"]), int(keys["feedforward"]), 0.0)
        layers = int(keys["layers"])
        self.src_embedding = nn.Embedding(int(keys["src_vocabulary"]), width)
        self.tgt_embedding = nn.Embedding(int(keys["tgt_vocabulary"]), width)
        self.transformer = nn.Module()
        self.transformer.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(*sizes, batch_first=True), layers,
                                                         nn.LayerNorm(width))
        self.transformer.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, batch_first=True), layers,
                                                         nn.LayerNorm(width))
        self.generator = nn.Linear(width, int(keys["tgt_vocabulary"]))

    def places(self, x):
        place = torch.arange(x.shape[1]).unsqueeze(1)
        factor = torch.exp(torch.arange(0, self.width, 2) * (-math.log(10000.0) / self.width))
        waves = torch.zeros(x.shape[1], self.width)
        waves[:, 0::2] = torch.sin(place * factor)
        waves[:, 1::2] = torch.cos(place * factor)
        return x * math.sqrt(self.width) + waves

    def loss(self, src, tgt, labels):
        padding = src == 0
        later = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        memory = self.transformer.encoder(self.places(self.src_embedding(src)), src_key_padding_mask=padding)
        h = self.transformer.decoder(self.places(self.tgt_embedding(tgt)), memory, tgt_mask=later,
                                     memory_key_padding_mask=padding)
        return functional.cross_entropy(self.generator(h).flatten(0, 1), labels.flatten(), ignore_index=0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.mlp = nn.Module(), nn.Module()
        self.attn.c_attn, self.attn.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp.c_fc, self.mlp.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.attn.c_attn(self.ln_1(x)).split(width, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -math.inf)
        x = x + self.attn.c_proj((scores.softmax(3) @ v).transpose(1, 2).reshape(x.shape))
        return x + self.mlp.c_proj(functional.gelu(self.mlp.c_fc(self.ln_2(x))))


class LoraLinear(nn.Module):
    """A linear layer that is frozen, and an adapter that is trained in its place."""

    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.weight, self.bias = linear.weight.requires_grad_(False), linear.bias.requires_grad_(False)
        self.lora_A = nn.Linear(linear.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, linear.out_features, bias=False)
        self.scale = alpha / rank

    def forward(self, x):
        return functional.linear(x, self.weight, self.bias) + self.scale * self.lora_B(self.lora_A(x))


def add_lora(module, rank, alpha):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, LoraLinear(child, rank, alpha))
        else:
            add_lora(child, rank, alpha)


class Gpt2(nn.Module):
    def __init__(self, keys):
        super().__init__()
        width = int(keys["width"])
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(int(keys["vocabulary"]), width)
        self.transformer.wpe = nn.Embedding(int(keys["length"]), width)
        self.transformer.h = nn.ModuleList(Block(width, int(keys["heads"])) for _ in range(int(keys["layers"])))
        self.transformer.ln_f = nn.LayerNorm(width)
        if "lora" in keys:
            self.requires_grad_(False)
            add_lora(self, int(keys["lora"]), float(keys["lora_alpha"]))

    def loss(self, x, labels):
        h = self.transformer.wte(x) + self.transformer.wpe.weight
        for block in self.transformer.h:
            h = block(h)
        logits = self.transformer.ln_f(h) @ self.transformer.wte.weight.T
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


MODELS = {"linear-regression": LinearRegression, "mlp": Mlp, "convnet": ConvNet,
          "resnet18": lambda keys: ResNet(keys, [2, 2, 2, 2], False),
          "resnet50": lambda keys: ResNet(keys, [3, 4, 6, 3], True), "rnn-classifier": RnnClassifier,
          "lstm-generator": LstmGenerator, "transformer": Transformer, "gpt2": Gpt2}


def tensor(dtype, shape, values):
    return torch.tensor(values, dtype=torch.int64 if dtype == "i32" else torch.float64).reshape(shape)


def train(name, case):
    model = MODELS[case.get("model", name)](case["keys"])
    shapes = {parameter: list(value.shape) for parameter, value in sorted(model.named_parameters())}
    with torch.no_grad():
        for parameter, values in zoo_cases.weights(shapes).items():
            model.get_parameter(parameter).copy_(torch.tensor(values).reshape(shapes[parameter]))
    inputs = {field: tensor(*field_of) for field, field_of in zoo_cases.data(case).items()}
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=case.get("lr", zoo_cases.LR), momentum=zoo_cases.MOMENTUM)
    losses, gradients = [], {}
    for step in range(20):
        optimizer.zero_grad()
        loss = model.loss(**inputs)
        loss.backward()
        if step == 0:
            gradients = {parameter: zoo_cases.projections(value.grad.flatten().tolist())
                         for parameter, value in model.named_parameters() if value.requires_grad}
        optimizer.step()
        losses.append(loss.item())
    return {"shapes": shapes, "losses": losses, "gradients": gradients}


if __name__ == "__main__":
    kept = {name: train(name, case) for name, case in zoo_cases.CASES.items()}
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zoo_losses.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")
