"""The modules that are recorded, and trained live: small ones, which together have most of the ops. Needs torch."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


class Drawing(Mlp):
    """Drops whole rows, and disturbs others."""

    def forward(self, x):
        if self.training:
            keep = (0.7 + torch.rand((x.shape[0], 1), dtype=x.dtype, device=x.device)).floor_()
            x = x / 0.7 * keep + 0.1 * torch.randn_like(x) * x.new_empty((x.shape[0], 1)).bernoulli_(0.5)
        return super().forward(x)


class Residual(nn.Module):
    """The block of a ResNet."""

    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet(nn.Module):
    """Of torchvision's shape; with widths (64, 128, 256, 512) and two blocks each it is resnet18."""

    def __init__(self, widths=(4, 8), blocks=1, classes=3):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, widths[0], 7, 2, 3, bias=False), nn.BatchNorm2d(widths[0])
        self.relu, self.maxpool = nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        layers, channels = [], widths[0]
        for index, width in enumerate(widths):
            for block in range(blocks):
                layers.append(Residual(channels, width, 2 if index and not block else 1))
                channels = width
        self.layers = nn.Sequential(*layers)
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(channels, classes)

    def forward(self, x):
        x = self.layers(self.maxpool(self.relu(self.bn1(self.conv1(x)))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = self.attn(self.ln_1(x)).split(c, dim=2)
        q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(b, t, c))
        return x + self.out(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A small GPT-2: embeddings tied to the head, its own loss."""

    def __init__(self, vocabulary=11, width=8, heads=2, length=5, layers=1):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.h = nn.ModuleList(Block(width, heads, length) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens, targets):
        positions = torch.arange(tokens.size(1))
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(7, 4, padding_idx=0)
        self.lstm = nn.LSTM(4, 3, num_layers=2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(6, 4), nn.RNN(4, 3)

    def forward(self, tokens):
        x, (h, _) = self.lstm(self.embedding(tokens))
        x, _ = self.gru(x.transpose(0, 1))
        x, _ = self.rnn(x)
        return x[-1] + h.mean(0)


class Odd(nn.Module):
    """What gets no gradient: torch.no_grad, detach, a frozen weight, a norm in eval mode."""

    def __init__(self):
        super().__init__()
        self.frozen, self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.frozen.requires_grad_(False)
        self.norm = nn.BatchNorm1d(4)
        self.norm.running_mean.normal_()

    def forward(self, x):
        x = torch.tanh(self.first(self.frozen(x)))
        with torch.no_grad():
            scale = x.abs().mean()
        x = self.norm(x) / (scale + 1)
        return self.last(x + x.detach() * 0.5)


class ByHand(nn.Module):
    """Attention by hand with a mask that is a constant, and norms of several kinds."""

    def __init__(self):
        super().__init__()
        self.qkv, self.rms, self.group = nn.Linear(6, 18), nn.RMSNorm(6), nn.GroupNorm(2, 4)
        self.conv, self.out = nn.Conv1d(4, 4, 3, padding=1), nn.Linear(6, 6)

    def forward(self, x):
        q, k, v = self.qkv(self.rms(x)).chunk(3, dim=-1)
        mask = torch.tril(torch.ones(x.size(1), x.size(1), dtype=torch.bool))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(6)).masked_fill(~mask, float("-inf"))
        x = x + scores.softmax(-1) @ v
        heads = x.unsqueeze(1)
        x = x + F.scaled_dot_product_attention(heads, heads, heads, attn_mask=mask).squeeze(1)
        return self.out(F.silu(self.group(self.conv(x))))


class Unpooled(nn.Module):
    """Where the largest lie, and put back there; paddings that windows do not reach; rows by a mask; an LSTM whose output is narrower."""

    def __init__(self):
        super().__init__()
        self.encode, self.row = nn.Conv2d(1, 2, 3, padding=1), nn.Parameter(torch.zeros(6))
        self.decode = nn.ConvTranspose2d(2, 1, 2, stride=2, output_padding=1)
        self.lstm = nn.LSTM(9, 6, num_layers=2, batch_first=True, bidirectional=True, proj_size=3)

    def forward(self, x):
        pooled, places = F.max_pool2d(self.encode(x), 2, return_indices=True)
        x = self.decode(F.max_unpool2d(F.relu6(pooled * 8), places, 2)).squeeze(1)
        x, (h, _) = self.lstm(x)
        x = x + h[-1].mean() + 0.1 * x.clamp(2, -2)
        x[x[:, :, 0] > 0] = self.row
        return F.hardtanh(x, -0.2, 0.2)


class Derived(nn.Module):
    """A derivative by the input, and what a step along the weights' own gradient leaves."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 1)

    def forward(self, x, y):
        x = x.detach().requires_grad_(True)
        given = y * x.sum(1, keepdim=True)  # Weighs the outputs, and counts as given, though it hangs on x.
        (slope,) = torch.autograd.grad(self.last(F.silu(self.first(x))), x, given, create_graph=True)
        (curve,) = torch.autograd.grad(slope[:, 0].sum(), x, create_graph=True)
        weight, bias = torch.autograd.grad(slope.square().mean(), (self.first.weight, self.first.bias), create_graph=True)
        stepped = F.linear(x, self.first.weight - 0.1 * weight, self.first.bias - 0.1 * bias)
        return F.mse_loss(self.last(stepped), y) + curve.square().mean()


def contrastive(out, _):
    """Of pairs, the half of which is its other half: all by masks that are constants."""
    same = torch.arange(2).repeat(2)
    same, others = same[:, None] == same, ~torch.eye(4, dtype=torch.bool)
    scores = (F.normalize(out, dim=1) @ F.normalize(out, dim=1).T)[others].view(4, -1)
    same = same[others].view(4, -1)
    scores = torch.cat([scores[same].view(4, -1), scores[~same].view(4, -1)], 1)
    return F.cross_entropy(scores / 0.5, torch.zeros(4, dtype=torch.int64))


def many_losses(out, labels):
    """Of single labels, or over other rows than the batch's, and with weights for elements."""
    weight = torch.tensor([1.0, 2.0, 3.0], dtype=out.dtype)
    classes, probabilities = out.view(4, 3, 2), out[:, 3:].softmax(1)
    return 0.01 * (
        F.cross_entropy(classes, labels, weight, label_smoothing=0.1, reduction="none").square().mean()
        + F.cross_entropy(out[:3, :3], labels[:3, 0], weight, label_smoothing=0.1)
        + F.cross_entropy(out[:, :3], probabilities, weight, label_smoothing=0.1)
        + F.nll_loss(out[1:, :3].log_softmax(1), labels[1:, 1], reduction="sum")
        + F.huber_loss(out[:3], out[1:].detach(), delta=0.4) + F.smooth_l1_loss(out, out.flip(0).detach(), beta=0.3, reduction="none").sum()
        + F.mse_loss(out[:1], out[1:2]) + F.l1_loss(out[:1], out[1:2] - 3)
        + F.binary_cross_entropy_with_logits(out[:, :3], probabilities.detach(), weight, pos_weight=weight, reduction="none").square().mean()
        + F.binary_cross_entropy_with_logits(out[:3, :3], probabilities[:3].detach(), pos_weight=weight)
        + F.binary_cross_entropy(out[:, :3].sigmoid(), probabilities.detach(), weight)
    )  # fmt: skip


def odd():
    net = Odd().to(torch.float64).train()
    net.norm.eval()
    return net


def cases():
    """By name: the module, its loss, the optimizer of its parameters, a batch. All in f64."""
    torch.manual_seed(3)
    f64 = torch.float64

    def sgd(net):
        return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)

    def adamw(net):
        decayed = [parameter for parameter in net.parameters() if parameter.dim() > 1]
        rest = [parameter for parameter in net.parameters() if parameter.dim() <= 1]
        return torch.optim.AdamW([{"params": decayed}, {"params": rest, "weight_decay": 0.0, "lr": 2e-2}], lr=1e-2)

    def trained(net):
        return torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=1e-2)

    labels = torch.randint(0, 3, (4,))
    return {
        "mlp": (Mlp().to(f64), nn.CrossEntropyLoss(), sgd, (torch.randn(4, 6, dtype=f64), labels)),
        "resnet": (ResNet().to(f64), nn.CrossEntropyLoss(label_smoothing=0.1), sgd,
                   (torch.randn(4, 3, 16, 16, dtype=f64), labels)),
        "gpt": (Gpt().to(f64), None, adamw, (torch.randint(0, 11, (2, 5)), torch.randint(0, 11, (2, 5)))),
        "recurrent": (Recurrent().to(f64), nn.CrossEntropyLoss(), adamw, (torch.randint(0, 7, (4, 6)), labels)),
        "odd": (odd(), F.mse_loss, trained,
                (torch.randn(4, 4, dtype=f64), torch.randn(4, 2, dtype=f64))),
        "by_hand": (ByHand().to(f64), nn.SmoothL1Loss(beta=0.5), adamw,
                    (torch.randn(2, 4, 6, dtype=f64), torch.randn(2, 4, 6, dtype=f64))),
        "losses": (nn.Linear(6, 6).to(f64), many_losses, sgd,
                   (torch.randn(4, 6, dtype=f64), torch.tensor([[0, 1], [2, -100], [1, 1], [-100, 0]]))),
        "unpooled": (Unpooled().to(f64), F.mse_loss, sgd, (torch.randn(3, 1, 4, 4, dtype=f64), torch.randn(3, 9, 6, dtype=f64))),
        "derived": (Derived().to(f64), None, sgd, (torch.randn(4, 3, dtype=f64), torch.randn(4, 1, dtype=f64))),
        "contrastive": (Mlp().to(f64), contrastive, sgd, (torch.randn(4, 6, dtype=f64), torch.zeros(4, dtype=f64))),
    }  # fmt: skip


def eager_losses(net, loss, optimizer, batch, steps):
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = net(*batch) if loss is None else loss(net(*batch[:-1]), batch[-1])
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses
