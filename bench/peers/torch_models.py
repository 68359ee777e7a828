"""The cells' models as a PyTorch user writes them; parameters are called as gpuc's variables."""

import torch
from torch import nn
from torch.nn import functional

import torch_real_models


class Mlp(nn.Module):
    def __init__(self, widths):
        super().__init__()
        for index, (inside, outside) in enumerate(zip(widths, widths[1:]), 1):
            self.add_module(f"fc{index}", nn.Linear(inside, outside))

    def forward(self, x):
        *hidden, last = self.children()
        for linear in hidden:
            x = functional.relu(linear(x))
        return last(x)


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.fc3(functional.relu(self.fc2(functional.relu(self.fc1(x.flatten(1))))))


class Lstm(nn.Module):
    def __init__(self, frame, hidden, layer=nn.LSTM):
        super().__init__()
        self.rnn = layer(frame, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 10)

    def forward(self, x):
        return self.fc(self.rnn(x)[1][0][-1])


class Cells(nn.Module):
    """nn.LSTM's parameters and last state, written out cell by cell: torch.compile cannot take nn.LSTM in one graph."""

    def __init__(self, frame, hidden, batch_first):
        super().__init__()
        self.hidden_size = hidden
        for name, shape in (("weight_ih_l0", (4 * hidden, frame)), ("weight_hh_l0", (4 * hidden, hidden)),
                            ("bias_ih_l0", (4 * hidden,)), ("bias_hh_l0", (4 * hidden,))):
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def forward(self, x):
        gates = functional.linear(x, self.weight_ih_l0, self.bias_ih_l0 + self.bias_hh_l0)  # (batch, time, 4 hidden)
        h = c = x.new_zeros(x.shape[0], self.hidden_size)
        for at_time in gates.unbind(1):
            i, f, g, o = (at_time + functional.linear(h, self.weight_hh_l0)).chunk(4, 1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return None, (h[None], c[None])


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc, self.c_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(width), Attention(width, heads)
        self.ln_2, self.mlp = nn.LayerNorm(width), FeedForward(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    def __init__(self, layers, heads, vocabulary, length, width):
        super().__init__()
        self.transformer = nn.Module()
        self.transformer.wte = nn.Embedding(vocabulary, width)
        self.transformer.wpe = nn.Embedding(length, width)
        self.transformer.h = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.transformer.ln_f = nn.LayerNorm(width)

    def forward(self, x):
        h = self.transformer.wte(x) + self.transformer.wpe.weight
        for block in self.transformer.h:
            h = block(h)
        return functional.linear(self.transformer.ln_f(h), self.transformer.wte.weight)


class BasicBlock(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.downsample = nn.Identity()
        if inside != width or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inside, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Bottleneck(nn.Module):
    def __init__(self, inside, width, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.downsample = nn.Identity()
        if inside != 4 * width or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(inside, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        return functional.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet(nn.Module):
    """torchvision's, of bytes."""

    def __init__(self, block, depths, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(width)
        inside = width
        for stage, depth in enumerate(depths):
            blocks = []
            for index in range(depth):
                blocks.append(block(inside, width << stage, 2 if stage and index == 0 else 1))
                inside = (width << stage) * (4 if block is Bottleneck else 1)
            self.add_module(f"layer{stage + 1}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inside, classes)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x.float() * (1 / 255))))
        y = functional.max_pool2d(y, 3, 2, padding=1)
        y = self.layer4(self.layer3(self.layer2(self.layer1(y))))
        return self.fc(y.mean((2, 3)))


def build(model, weights, one_graph=False):
    """The model of a case, whose extents the weights tell; `one_graph`: so that torch.compile can take it whole."""
    kind = model["kind"]
    if kind == "mlp":
        return Mlp(model["widths"])
    if kind == "lenet5":
        return LeNet5()
    if kind == "lstm":
        return Lstm(model["frame"], model["hidden"], Cells if one_graph else nn.LSTM)
    if kind in ("resnet18", "resnet50"):
        block, depths = (BasicBlock, (2, 2, 2, 2)) if kind == "resnet18" else (Bottleneck, (3, 4, 6, 3))
        return ResNet(block, depths, weights["bn1.weight"].shape[0], weights["fc.bias"].shape[0])
    if kind in torch_real_models.KINDS:
        return torch_real_models.KINDS[kind](model)
    vocabulary, width = weights["transformer.wte.weight"].shape
    return Gpt(model["layers"], model["heads"], vocabulary, weights["transformer.wpe.weight"].shape[0], width)


def loss(logits, labels, model):
    if model["kind"] == "unet":  # a label for each pixel, logits (batch, classes, height, width)
        return functional.cross_entropy(logits, labels)
    return functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=model.get("ignored", -100))
