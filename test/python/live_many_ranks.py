"""Modules of many kinds on three and on five ranks; run by torch_test.py with a Python that has torch.

Ranks have the bits of one process that computes their parts one after the other (accumulate=), dropout on: three in f64, in which they
also have what one process computes of the whole batch, to rounding, and five in f32.
"""

import copy
import pathlib
import sys
import unittest

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from launched import Launched, rank_main  # noqa: E402

HERE = pathlib.Path(__file__).resolve()
ROWS, STEPS, WORDS, CLASSES, WIDTH, LENGTH = 3, 3, 11, 3, 8, 5


class Net(nn.Module):
    """Some parts, and what is done with them."""

    def __init__(self, forward, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.does = forward

    def forward(self, *inputs):
        return self.does(self, *inputs)

    def drop(self, x, p=0.3):
        return F.dropout(x, p, self.training)


def mlp(*widths, p=0.0):
    layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Linear(a, b), nn.ReLU(), nn.Dropout(p))]
    return nn.Sequential(*layers[:-2])


def vectors(rows):
    return torch.randn(rows, 6), torch.randint(0, CLASSES, (rows,))


def sequences(rows):
    return torch.randn(rows, LENGTH, WIDTH), torch.randint(0, CLASSES, (rows,))


def texts(rows):
    return torch.randint(0, WORDS, (rows, LENGTH)), torch.randint(0, WORDS, (rows, LENGTH))


def mostly_ignored(rows):
    """The labels of most ranks count nothing at all."""
    x, _ = vectors(rows)
    return x, torch.tensor([1, *[2] * (rows - 1)])


def language_model(recurrent):
    embedding, head = nn.Embedding(WORDS, WIDTH, padding_idx=0), nn.Linear(WIDTH, WORDS, bias=False)
    head.weight = embedding.weight
    return Net(lambda s, x: s.head(s.recurrent(s.embedding(x))[0]).transpose(1, 2), embedding=embedding, head=head, recurrent=recurrent)


def attends(**options):
    """A mask of the batch's own; weights of attention, which are of [rows · heads, …], are dropped."""
    def forward(self, x):
        hidden = self.embedding(x)
        return self.head(self.attention(hidden, hidden, hidden, key_padding_mask=x.roll(1, 1) == 0, **options)[0]).transpose(1, 2)

    return Net(forward, embedding=nn.Embedding(WORDS, WIDTH), head=nn.Linear(WIDTH, WORDS),
               attention=nn.MultiheadAttention(WIDTH, 2, dropout=0.2, batch_first=True))  # fmt: skip


def drops_paths():
    def forward(self, x):
        keep = x.new_empty((x.shape[0], 1)).bernoulli_(0.6) if self.training else 1
        return self.last(x + torch.relu(self.first(x)) * keep)

    return Net(forward, first=nn.Linear(6, 6), last=nn.Linear(6, CLASSES))


def drops_queries():
    """A weight is spread over the rows, and each of them drops its own."""
    def forward(self, x):
        queries = self.drop(self.queries.expand(x.shape[0], -1, -1))
        return self.last(((queries @ x.transpose(1, 2)).softmax(-1) @ x).flatten(1))

    return Net(forward, queries=nn.Parameter(torch.randn(1, 2, WIDTH)), last=nn.Linear(2 * WIDTH, CLASSES))


def drops_a_weight():
    """Which is the same for all rows."""
    return Net(lambda s, x: s.last(F.linear(x, s.drop(s.first.weight)).relu()), first=nn.Linear(6, WIDTH), last=nn.Linear(WIDTH, CLASSES))


def autoencoder():
    """Draws, and computes its own loss, of two terms."""
    def forward(self, x, labels):
        mean, deviation = self.encoder(x).chunk(2, -1)
        decoded = self.decoder(mean + torch.randn_like(mean) * deviation.exp())
        return F.mse_loss(decoded, x) + 0.1 * (mean**2 + deviation.exp()).mean() + 0.1 * F.cross_entropy(decoded[:, :CLASSES], labels)

    return Net(forward, encoder=nn.Linear(6, 8), decoder=nn.Linear(4, 6))


def penalised():
    """A derivative by the input, of what drops."""

    def forward(net, x, labels):
        x = x.detach().requires_grad_(True)
        y = net.drop(net.layers(x))
        (slope,) = torch.autograd.grad(y.logsumexp(1).sum(), x, create_graph=True)
        return F.cross_entropy(y, labels) + slope.square().mean()

    return Net(forward, layers=mlp(6, WIDTH, CLASSES, p=0.3))


def time_first():
    return Net(lambda s, x: s.last(s.recurrent(x.transpose(0, 1))[0][-1]), recurrent=nn.LSTM(WIDTH, 6, num_layers=2, dropout=0.3),
               last=nn.Linear(6, CLASSES))  # fmt: skip


def layers_that_are_time_first():
    layer = nn.TransformerEncoderLayer(WIDTH, 2, 16, dropout=0.2)
    return Net(lambda s, x: s.last(s.layers(x.transpose(0, 1)).mean(0)), layers=nn.TransformerEncoder(layer, 1), last=nn.Linear(WIDTH, CLASSES))


def frozen():
    net = mlp(6, WIDTH, WIDTH, CLASSES, p=0.3)
    net[0].requires_grad_(False)
    return net


def tokens_in_one_row():
    return Net(lambda s, x: s.last(s.drop(s.first(x.flatten(0, 1)))).view(*x.shape[:2], -1).mean(1), first=nn.Linear(WIDTH, 6),
               last=nn.Linear(6, CLASSES))  # fmt: skip


LOSS, WEIGHTS = nn.CrossEntropyLoss(), torch.tensor([0.1, 2.0, 1.0])
# The module, its loss, a batch of so many rows.
MODULES = {
    "mlp": (lambda: mlp(6, WIDTH, CLASSES, p=0.3), LOSS, vectors),
    "ignored": (lambda: mlp(6, WIDTH, CLASSES), nn.CrossEntropyLoss(ignore_index=2), mostly_ignored),
    "weighted": (lambda: mlp(6, WIDTH, CLASSES), nn.CrossEntropyLoss(weight=WEIGHTS, label_smoothing=0.2, ignore_index=1), vectors),
    "summed": (lambda: mlp(6, WIDTH, CLASSES), nn.CrossEntropyLoss(reduction="sum"), vectors),
    "tied": (lambda: language_model(nn.GRU(WIDTH, WIDTH, batch_first=True)), nn.CrossEntropyLoss(ignore_index=0), texts),
    "attention": (attends, LOSS, texts),
    "weights of attention": (lambda: attends(need_weights=False), LOSS, texts),
    "paths": (drops_paths, LOSS, vectors),
    "queries": (drops_queries, LOSS, sequences),
    "a weight": (drops_a_weight, LOSS, vectors),
    "autoencoder": (autoencoder, None, vectors),
    "penalised": (penalised, None, vectors),
    "time first": (time_first, LOSS, sequences),
    "layers, time first": (layers_that_are_time_first, LOSS, sequences),
    "tokens in one row": (tokens_in_one_row, LOSS, sequences),
    "frozen": (frozen, LOSS, vectors),
}
# Of which each part draws numbers of its own, since rows do not stand in front of what is drawn.
OF_PARTS = ("time first", "layers, time first")


def trained(name, dtype, ranks, parts):
    """Losses and all state, of this process's rows of the batches of so many ranks."""
    make, loss, batch = MODULES[name]
    torch.set_default_dtype(getattr(torch, dtype))
    torch.manual_seed(3)
    batches = [batch(ranks * ROWS) for _ in range(STEPS)]
    if gpuc.world_size() > 1:
        mine = slice(gpuc.rank() * ROWS, (gpuc.rank() + 1) * ROWS)
        batches = [tuple(each[mine] for each in whole) for whole in batches]
    torch.manual_seed(7 + gpuc.rank())  # The first rank's weights count.
    net = make().to(getattr(torch, dtype))
    loss = copy.deepcopy(loss).to(getattr(torch, dtype)) if loss else None
    optimizer = torch.optim.AdamW([each for each in net.parameters() if each.requires_grad], lr=0.01)
    options = {"data_parallel": True} if gpuc.world_size() > 1 else {"accumulate": parts}
    step = gpuc.compile(net, loss, optimizer, batches[0], threads=1, seed=5, **options)
    losses = [step(*each) for each in batches]
    slots = [slot for each in optimizer.state_dict()["state"].values() for slot in each.values()]
    return {"losses": losses, "state": [each.double().flatten().tolist() for each in (*net.state_dict().values(), *slots)]}


def all_trained(dtype, ranks):
    return {name: trained(name, dtype, ranks, parts=ranks) for name in MODULES}


def numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [number for each in value for number in numbers(each)] if isinstance(value, list) else [value]


class ManyRanks(Launched, unittest.TestCase):
    script = str(HERE)
    timeout_s = 1800  # Each rank compiles all modules.
    launcher = [sys.executable, "-B", str(HERE.parent.parent / "end-to-end" / "start_ranks.py"), "-n"]

    def check(self, dtype, ranks):
        status, results, said = self.launch("all_trained", launcher=[*self.launcher, str(ranks)], dtype=dtype, ranks=ranks)
        self.assertEqual((status, len(results)), (0, ranks), said)
        for name in MODULES:
            with self.subTest(name=name, dtype=dtype, ranks=ranks):
                expected = trained(name, dtype, ranks, parts=ranks)
                for result in results:
                    self.check_same(result[name], expected)
                if dtype == "float64" and name not in OF_PARTS:
                    self.check_near(expected, trained(name, dtype, ranks, parts=1))

    def check_near(self, found, expected):
        furthest = max(abs(one - other) / max(1, abs(other)) for one, other in zip(numbers(found), numbers(expected), strict=True))
        self.assertLess(furthest, 1e-10)

    def test_three(self):
        self.check("float64", 3)

    def test_five(self):
        self.check("float32", 5)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank_main([all_trained], *sys.argv[2:])
    else:
        unittest.main()
