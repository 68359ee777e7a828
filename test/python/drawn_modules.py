"""Modules, losses and batches that follow from a seed, for live_drawn.py: layers of sequences and of pictures behind one another, many of
them written as gpuc computes them otherwise. Needs torch."""

import dataclasses
import random
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WORDS, CLASSES = 8, 11, 4


class Layer(nn.Module):
    """Some parts, and what is done with them."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            if isinstance(part, torch.Tensor) and not isinstance(part, nn.Parameter):
                self.register_buffer(name, part)
            else:
                setattr(self, name, part)
        self.does = forward

    def forward(self, x):
        return self.does(self, x)


class Draw:
    """Choices that follow from a seed; without `draws` nothing in the modules is random."""

    def __init__(self, seed, draws):
        self.random, self.draws = random.Random(seed), draws

    def one(self, *choices):
        return self.random.choice(choices)

    def rate(self):
        rate = self.one(0.2, 0.5)
        return rate if self.draws else 0.0

    def dropout(self):
        kind, rate = self.one(nn.Dropout, nn.Dropout, nn.AlphaDropout), self.rate()
        return kind(rate)


def turned(module):
    """Over [rows, width, length]."""
    return Layer(lambda s, x: s.inner(x.transpose(1, 2)).transpose(1, 2), inner=module)


# ---- Sequences: each is a layer from [rows, length, width] to the same ----


def with_mask(draw, length):
    """What is done to scores [..., length, length], of which each query keeps a key."""
    place = torch.arange(length)
    later, far = place[None] > place[:, None], (place[None] - place[:, None]).abs() > 1
    added = torch.zeros(length, length, dtype=torch.float64).masked_fill(later, -torch.inf)

    def keys(scores, x):
        hidden = x.mean(-1) > 0.2
        hidden = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, 1:]], 1)[:, None, :]
        heads = scores.shape[0] // x.shape[0] if scores.dim() == 3 else 1
        hidden = hidden.repeat_interleave(heads, 0) if scores.dim() == 3 else hidden[:, None]
        return scores.masked_fill(hidden, -torch.inf)

    return draw.one(
        lambda scores, x: scores,
        keys,
        lambda scores, x: scores.masked_fill(later, -torch.inf),
        lambda scores, x: scores.masked_fill(later, -1e9),
        lambda scores, x: scores + added,
        lambda scores, x: keys(scores.masked_fill(later, -torch.inf), x),
        lambda scores, x: torch.where(far, torch.full_like(scores, -1e9), scores),
        lambda scores, x: scores - 0.3 * (place[None] - place[:, None]).abs(),
    )


def attention(draw, length, width):
    """As papers write it, with scale, mask and dropout in whatever form; heads beside the rows or among them."""
    masked, scaled = with_mask(draw, length), draw.one(lambda a: a, lambda a: a * 0.7, lambda a: a / 1.7, lambda a: -0.5 * a)
    product = draw.one(lambda q, k: q @ k.mT, lambda q, k: torch.einsum("...ld,...md->...lm", q, k))
    rate, are_flat, has_rest = draw.rate(), draw.one(False, True), draw.one(False, True)

    def forward(self, x):
        heads = [layer(x).unflatten(-1, (2, -1)).transpose(1, 2) for layer in (self.query, self.key, self.value)]
        query, key, value = [each.flatten(0, 1) for each in heads] if are_flat else heads
        weights = masked(scaled(product(query, key)), x).softmax(-1)
        y = F.dropout(weights, rate, self.training) @ value
        y = self.out((y.unflatten(0, (-1, 2)) if are_flat else y).transpose(1, 2).flatten(2))
        return x + y if has_rest else y

    return Layer(forward, **{name: nn.Linear(width, width) for name in ("query", "key", "value", "out")})


def library_attention(draw, length, width):
    rate, is_causal, weights = draw.rate(), draw.one(False, True), draw.one(False, True)
    mask = torch.ones(length, length, dtype=torch.bool).triu(1)
    return Layer(lambda s, x: x + s.inner(x, x, x, attn_mask=s.mask if is_causal else None, need_weights=weights)[0], mask=mask,
                 inner=nn.MultiheadAttention(width, 2, dropout=rate, batch_first=True))  # fmt: skip


def encoder(draw, length, width):
    return nn.TransformerEncoderLayer(width, 2, 2 * width, draw.rate(), draw.one("relu", "gelu"), batch_first=True, norm_first=draw.one(False, True))


def recurrent(draw, length, width):
    kind, layers, both = draw.one(nn.LSTM, nn.GRU, nn.RNN), draw.one(1, 2), draw.one(False, True)
    inner = kind(width, width // 2 if both else width, layers, batch_first=True, bidirectional=both, dropout=draw.rate() if layers == 2 else 0.0)
    return Layer(lambda s, x: s.inner(x)[0], inner=inner)


def unrolled(draw, length, width):
    def forward(self, x):
        state, states = torch.zeros_like(x[:, 0]), []
        for step in x.unbind(1):
            state = torch.tanh(self.inner(torch.cat([step, state], -1)))
            states.append(state)
        return torch.stack(states, 1)

    return Layer(forward, inner=nn.Linear(2 * width, width))


def series(draw, length, width):
    """A causal convolution: zeros in front, or what comes too late cut off."""
    size, spacing, groups = draw.one(1, 2, 3), draw.one(1, 2), draw.one(1, 2)
    before = (size - 1) * spacing
    conv = nn.Conv1d(width, width, size, dilation=spacing, groups=groups, padding=draw.one(0, before))
    return turned(Layer(lambda s, x: s.conv(x if s.conv.padding[0] else F.pad(x, (before, 0)))[..., :length], conv=conv))


def rest(draw, length, width):
    activation = draw.one(nn.ReLU, nn.SiLU, nn.GELU, nn.Mish, nn.ELU)()
    inner = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 2 * width), activation, draw.dropout(), nn.Linear(2 * width, width))
    return Layer(lambda s, x: x + s.inner(x), inner=inner)


def path(draw, length, width):
    """Stochastic depth."""
    rate = draw.rate()

    def forward(self, x):
        kept = (torch.rand(x.shape[0], 1, 1, dtype=x.dtype) >= rate).to(x.dtype) / (1 - rate) if self.training and rate else 1
        return x + self.inner(x) * kept

    return Layer(forward, inner=nn.Linear(width, width))


def noise(draw, length, width):
    """For each row, for the tokens of all rows behind one another, or the same for all rows."""
    disturbed = draw.one(
        lambda x: x + 0.1 * torch.randn(x.shape[0], length, 1, dtype=x.dtype),
        lambda x: x + 0.1 * torch.randn_like(x.reshape(-1, width)).view(x.shape),
        lambda x: F.dropout(x.flatten(1), 0.3).view(x.shape),
        lambda x: x + 0.1 * torch.rand(length, width, dtype=x.dtype),
    )
    draws = draw.draws
    return Layer(lambda s, x: disturbed(x) if s.training and draws else x)


def gate(draw, length, width):
    return draw.one(
        Layer(lambda s, x: F.glu(s.inner(x), -1), inner=nn.Linear(width, 2 * width)),
        Layer(lambda s, x: x * s.inner(x).softmax(1), inner=nn.Linear(width, 1)),
        Layer(lambda s, x: s.inner(x).softmax(-1) @ s.table, inner=nn.Linear(width, width), table=nn.Parameter(torch.randn(width, width))),
        nn.utils.parametrizations.weight_norm(nn.Linear(width, width)),
        turned(nn.PReLU(width)),
    )


def norm(draw, length, width):
    return draw.one(nn.LayerNorm(width), nn.RMSNorm(width), turned(nn.GroupNorm(2, width)), Layer(lambda s, x: F.normalize(x + 0.1, dim=-1)))


SEQUENCES = attention, attention, attention, library_attention, encoder, recurrent, unrolled, series, rest, path, noise, gate, norm

# ---- Pictures: each is a layer from so many channels, rows and columns to others ----


def convolution(draw, channels, rows, columns):
    """Zeros around it, and what is cut off, said in two ways."""
    groups, size = draw.one(1, 1, channels), draw.one(1, 2, 3)
    conv = nn.Conv2d(channels, groups * draw.one(1, 2, 3), size, draw.one(1, 1, 2), draw.one(0, 1, 2), draw.one(1, 1, 2), groups, draw.one(False, True))
    before, first, last = draw.one((0, 0, 0, 0), (1, 2, 0, 1)), draw.one(0, 1), draw.one(None, -1)
    return Layer(lambda s, x: s.conv(F.pad(x, before))[:, :, first:, first:last], conv=conv)


def filtered(draw, channels, rows, columns):
    """With channels enough for Winograd's filtering."""
    return nn.Sequential(nn.Conv2d(channels, draw.one(8, 16), 3, padding=1), nn.ReLU())


def transposed(draw, channels, rows, columns):
    step, size = draw.one(1, 2), draw.one(2, 3)
    return nn.ConvTranspose2d(channels, draw.one(1, 2, 3), size, step, draw.one(0, 1), draw.one(0, step - 1))


def pooled(draw, channels, rows, columns):
    kind = draw.one(nn.MaxPool2d, nn.AvgPool2d)
    pool = kind(draw.one(2, 3), draw.one(1, 2), draw.one(0, 1), ceil_mode=draw.one(False, True))
    return draw.one(pool, nn.Sequential(nn.ReLU(), pool))


def picture_norm(draw, channels, rows, columns):
    across = Layer(lambda s, x: s.inner(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2), inner=nn.LayerNorm(channels))
    return draw.one(nn.GroupNorm(1, channels), nn.InstanceNorm2d(channels, affine=True), across)


def pixels(draw, channels, rows, columns):
    return draw.one(draw.dropout(), nn.Dropout2d(draw.rate()), nn.SiLU(), nn.Upsample(scale_factor=2, mode=draw.one("nearest", "bilinear")))


def block(draw, channels, rows, columns):
    first, last = nn.Conv2d(channels, 2 * channels, 3, padding=1), nn.Conv2d(2 * channels, channels, 3, padding=1)
    return Layer(lambda s, x: F.relu(x + s.last(F.relu(s.first(x)))), first=first, last=last)


PICTURES = convolution, convolution, convolution, filtered, transposed, pooled, picture_norm, pixels, block

# ---- Whole ones ----


def cross_entropies(draw):
    """Of [rows, classes, …]."""
    weight = torch.linspace(0.5, 1.5, CLASSES, dtype=torch.float64)
    return draw.one(
        F.cross_entropy,
        lambda out, y: F.cross_entropy(out, y, weight, label_smoothing=0.1),
        lambda out, y: F.nll_loss(out.log_softmax(1), y, weight, ignore_index=1),
        lambda out, y: F.nll_loss(F.log_softmax(out, 1), y),
        lambda out, y: -out.log_softmax(1).gather(1, y.unsqueeze(1)).mean(),
    )


@dataclasses.dataclass
class Drawn:
    net: nn.Module
    loss: Callable
    batches: list
    layers: list  # Their names.


def sequences(draw):
    length, width, count = draw.one(3, 5, 6), draw.one(4, 6, 8), draw.one(1, 2, 3)
    layers = [draw.one(*SEQUENCES) for _ in range(count)]
    head, each = nn.Linear(width, CLASSES), draw.one(False, True)
    parts = [nn.Embedding(WORDS, width), *(layer(draw, length, width) for layer in layers), head]
    last = Layer(lambda s, y: y.transpose(1, 2) if each else y.mean(1))
    batches = [(torch.randint(0, WORDS, (ROWS, length)), torch.randint(0, CLASSES, (ROWS, length) if each else (ROWS,))) for _ in range(3)]
    return nn.Sequential(*parts, last), batches, layers


def pictures(draw):
    shape, layers, parts = (draw.one(1, 2, 3), draw.one(6, 7, 8), draw.one(6, 7)), [], []
    x = torch.randn(3, ROWS, *shape)
    for _ in range(draw.one(1, 2, 3)):
        layer = draw.one(*PICTURES)
        part = layer(draw, *shape)
        made = part(torch.zeros(1, *shape)).shape[1:]
        if min(made[1:]) < 3 or max(made) > 24:
            continue  # The next one has no room, or takes its time.
        layers.append(layer)
        parts.append(part)
        shape = made
    dense = draw.one(False, True)
    last = [nn.Conv2d(shape[0], CLASSES, 1)] if dense else [nn.Flatten(), draw.dropout(), nn.Linear(shape.numel(), CLASSES)]
    labels = torch.randint(0, CLASSES, (3, ROWS, *shape[1:]) if dense else (3, ROWS))
    return nn.Sequential(*parts, *last), [(a.double(), b) for a, b in zip(x, labels)], layers


def drawn(seed, draws):
    """In f64."""
    draw = Draw(seed, draws)
    torch.manual_seed(seed)
    net, batches, layers = draw.one(sequences, pictures)(draw)
    return Drawn(net.double(), cross_entropies(draw), batches, [layer.__name__ for layer in layers])
