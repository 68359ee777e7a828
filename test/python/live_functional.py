"""What gpuc makes of a graph that writes in place (capture/functional.py), beside what torch's run_decompositions makes of it: the compiler is given
the same. And random programs of views and writes, trained next to eager PyTorch.
"""

import contextlib
import copy
import itertools
import random
import re
import unittest
import warnings
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from gpuc.capture import functional
from gpuc.capture.recorder import Recorder
from gpuc.step import lower, trained_of
from modules import eager_losses


def text_of(net, loss, *batch):
    """What the compiler is given, without the names of values and places."""
    recorder = Recorder(net, loss, trained_of(net, loss, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recorder.record_training(batch, {})
        recorder.record_evaluation(batch, {})
    return numbered(re.sub(r" loc\((?:[^()]|\([^()]*\))*\)", "", lower(recorder.graph("net"))))


def numbered(text):
    """Values by the order in which they are made."""
    names, count = {}, itertools.count()

    def number(found):
        if found.group(2) or found.start() < found.string.find(" = "):
            names[found.group(1)] = f"%{next(count)}"
        return names[found.group(1)] + found.group(2)

    return "\n".join(re.sub(r"(%[\w.$-]+)(:?)", number, line) for line in text.splitlines())


def by_torch():
    return mock.patch.object(functional, "ops_to_take_apart", lambda *_: None)


@contextlib.contextmanager
def counted():
    """How many graphs torch retraces as a whole meanwhile."""
    found, own = [], functional.ops_to_take_apart

    def look(*arguments):
        others = own(*arguments)
        found.append(others is None)
        return others

    with mock.patch.object(functional, "ops_to_take_apart", look):
        yield found


class Written(nn.Module):
    """forward() of a function."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.own, self.fc = forward, nn.Linear(6, 6)
        self.norm = nn.BatchNorm1d(6)
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(6))

    def forward(self, x):
        return self.own(self, x)


def twice(net, x):
    y = net.fc(x).add_(1)
    return y.mul_(2).add_(x) + y


def residual(net, x):
    y = net.norm(net.fc(x))
    y += x
    return F.silu(y, inplace=True)


def norm_twice(net, x):
    return net.norm(net.norm(x) * 2 + net.fc(x))


def buffers(net, x):
    before = net.mean * 2
    net.count.add_(1)
    net.mean.mul_(0.9).add_(0.1 * x.mean(0))
    return net.fc(x) * net.count + before - net.mean


def composite(net, x):
    x = F.pad(net.fc(x), (0, 2), value=1.0)
    y = torch.einsum("ij,kj->ik", x, x).swapaxes(0, 1).type_as(x)
    return (y[:, :6] if y.shape[1] >= 6 else F.pad(y, (0, 6 - y.shape[1]))) + torch.addcmul(x, x, x)[:, :6]


def of_constants(net, x):
    mask = torch.ones(6)
    mask.mul_(2)
    positions = torch.arange(6).diff(prepend=torch.tensor([0])).float()
    return net.fc(x) * mask * positions


def one_hot(net, x):
    return net.fc(x) * F.one_hot(x.argmax(-1), 6)


def several_results(net, x):
    values, places = net.fc(x).max(-1, keepdim=True)
    return net.fc(x) - values.neg_() + places + net.fc(x).kthvalue(2, keepdim=True).values


def full_slice(net, x):
    y = net.fc(x)[:, :6]
    y.add_(1)
    return y * y


def dropped(net, x):
    return F.leaky_relu(F.dropout(net.fc(x), 0.0), 0.1, inplace=True)


def other_overloads(net, x):
    y = net.fc(x).clamp_(min=-1).clamp_(max=1)
    y.clone().zero_()
    return y.pow_(2).div_(3, rounding_mode=None).neg_() + torch.where(x > 0, x, y).clone().fill_(0.5).masked_fill_(x > 1, 2.0).lerp_(x, 0.3)


REWRITTEN = (other_overloads, twice, residual, norm_twice, buffers, composite, of_constants, one_hot, several_results, full_slice, dropped)


def view_before(net, x):
    y = net.fc(x)
    z = y.view(-1)
    y.relu_()
    return y + z.view(y.shape)


def base_behind(net, x):
    y = net.fc(x)
    y[:, 0].mul_(2)
    return y


def slices(net, x):
    y = net.fc(x).clone()
    y[:, 1:3] = x[:, 1:3]
    return y


def chunks(net, x):
    y = net.fc(x)
    first, second = y[:, :3], y[:, 3:]
    first.add_(second)
    second.add_(first)
    return torch.cat([first, second], -1)


def rounded(net, x):
    y = net.fc(x).float()
    y.add_(x.double())
    return y.double()


def part_of_buffer(net, x):
    net.mean[:3].add_(1)
    return net.fc(x) + net.mean


def of_masks(net, x):
    mask = torch.zeros(2, 3)
    mask[:, 1:].fill_(1.0)
    return net.fc(x) * mask.view(-1)


def without_gradients(net, x):
    with torch.no_grad():
        scale = net.fc(x).abs().mean()
    return net.fc(x) / scale


BY_TORCH = (view_before, base_behind, slices, chunks, rounded, part_of_buffer, of_masks, without_gradients)


class Rewritten(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.batch = torch.randn(4, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)

    def gives_the_same(self, net, loss, *batch):
        with counted() as found:
            ours = text_of(net, loss, *batch)
        with by_torch():
            self.assertEqual(ours, text_of(net, loss, *batch))
        return found

    def test_what_is_rewritten(self):
        for forward in REWRITTEN:
            with self.subTest(forward.__name__):
                self.assertEqual(self.gives_the_same(Written(forward).double(), nn.MSELoss(), *self.batch), [False, False])

    def test_a_known_op_stays_where_its_formula_is_for_other_cases(self):
        """No graph is made of it."""
        net, (x, y) = nn.Sequential(nn.AvgPool2d(2), nn.Linear(3, 6)).double(), self.batch
        with mock.patch.object(functional, "in_a_bag", side_effect=AssertionError):
            text_of(net, nn.MSELoss(), x.reshape(2, 1, 2, 6), y[:2].reshape(2, 1, 1, 6))

    def test_what_is_left_to_torch(self):
        for forward in BY_TORCH:
            with self.subTest(forward.__name__):
                self.assertTrue(self.gives_the_same(Written(forward).double(), nn.MSELoss(), *self.batch)[0])

    def test_both_train(self):
        for forward in (*REWRITTEN, *BY_TORCH):
            with self.subTest(forward.__name__):
                trains(self, Written(forward).double(), self.batch, exactness=1e-6 if forward is rounded else 1e-9)

    def test_a_word_of_what_is_not_checked(self):
        """An assertion that is a part of an op."""
        with self.assertWarnsRegex(UserWarning, "asserts something"):
            gpuc.compile(Written(one_hot).double(), nn.MSELoss(), "sgd:lr=0.1", self.batch)


def trains(case, net, batch, steps=4, exactness=1e-9):
    eager = copy.deepcopy(net)
    expected = eager_losses(eager, F.mse_loss, torch.optim.SGD(eager.parameters(), lr=0.05), batch, steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = gpuc.compile(net, F.mse_loss, torch.optim.SGD(net.parameters(), lr=0.05), batch)
    for theirs in expected:
        case.assertAlmostEqual(float(step(*batch)), theirs, delta=exactness * max(1, abs(theirs)))


#
# Random programs
#

SHAPE = (4, 6)
FUNCTIONS = (lambda x, y: x + y, lambda x, y: x * y.sigmoid(), lambda x, y: x.tanh(), lambda x, y: torch.where(y > 0, x, y))
WRITES = (lambda x, y: x.add_(y), lambda x, y: x.mul_(0.5), lambda x, y: x.tanh_(), lambda x, y: x.sub_(y.sigmoid()),
          lambda x, y: x.clamp_(-1, 1), lambda x, y: x.masked_fill_(y > 1, 0.5), lambda x, y: x.copy_(y * 0.5),
          lambda x, y: F.silu(x, inplace=True))  # fmt: skip
VIEWS = (lambda x: x.view(-1).view(SHAPE), lambda x: x[:, :6], lambda x: x.t().t(), lambda x: x.reshape(2, 2, 6).flatten(0, 1),
         lambda x: F.dropout(x, 0.0), lambda x: x.contiguous(), lambda x: x.unsqueeze(0).squeeze(0))  # fmt: skip
PARTS = (lambda x: x[:, :3], lambda x: x[1:3], lambda x: x.view(-1)[5:9], lambda x: x[2:], lambda x: x.select(1, 2))


def random_forward(seed):
    """Eight statements over what was computed before, some of them views that are written."""
    draw = random.Random(seed)
    program = [(draw.choice(("function", "write", "write", "view", "part")), draw.random(), draw.random(), draw.random()) for _ in range(8)]

    def choose(choices, number):
        return choices[int(number * len(choices))]

    def forward(net, x):
        values = [net.fc(x), net.norm(x), net.fc(x) + net.mean]
        for kind, which, first, second in program:
            a, b = choose(values, first), choose(values, second)
            if kind == "function":
                values.append(choose(FUNCTIONS, which)(a, b))
            elif kind == "write":
                choose(WRITES, which)(a, b.clone())
            elif kind == "view":
                values.append(choose(VIEWS, which)(a))
            else:
                choose(PARTS, which)(a).mul_(0.5)
        return sum(values)

    return forward


def eager_derives(net, x, y):
    """It does not where something is written that a gradient reads."""
    try:
        F.mse_loss(copy.deepcopy(net)(x), y).backward()
    except RuntimeError:
        return False
    return True


class RandomPrograms(unittest.TestCase):
    def test_they_train(self):
        trained = 0
        with counted() as found:
            for seed in range(60):
                torch.manual_seed(seed)
                net, batch = Written(random_forward(seed)).double(), (torch.randn(SHAPE).double(), torch.randn(SHAPE).double())
                if not eager_derives(net, *batch):
                    continue
                trained += 1
                with self.subTest(seed):
                    trains(self, net, batch, steps=2)
        self.assertGreater(trained, 20)
        self.assertIn(True, found)
        self.assertIn(False, found)


if __name__ == "__main__":
    unittest.main()
