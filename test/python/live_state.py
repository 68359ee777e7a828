"""What a module and an optimizer hold after some steps: the bits of gpuc-run, eager's gradients, and what eager goes on from.

By a Python with torch; $GPUC_BIN is where gpuc-run lies.
"""

import copy
import json
import os
import random
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from modules import Mlp, ResNet, eager_losses

STEPS = 7


class Tangled(nn.Module):
    """Tied weights, a norm that is frozen, a part without gradients and one that is detached."""

    def __init__(self):
        super().__init__()
        self.embed, self.mix, self.head = nn.Embedding(11, 6), nn.Linear(6, 6), nn.Linear(6, 11, bias=False)
        self.norm, self.gate = nn.BatchNorm1d(6), nn.Linear(6, 6)
        self.head.weight = self.embed.weight
        for name, each in self.norm.named_buffers():
            if each.dtype.is_floating_point:
                each.copy_(torch.rand(6) + (0.5 if name == "running_var" else 0.0))
        self.norm.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, tokens):
        x = self.embed(tokens)
        with torch.no_grad():
            scale = torch.sigmoid(self.gate(x))
        x = self.norm(torch.tanh(self.mix(x)) * scale) + 0.1 * torch.tanh(x).detach() * x
        return self.head(x)


def sgd(net, rate):
    return torch.optim.SGD([each for each in net.parameters() if each.requires_grad], lr=rate)


def saved(path):
    """{name: (type, bytes)} of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    header.pop("__metadata__", None)
    return {name: (each["dtype"], data[slice(*each["data_offsets"])]) for name, each in header.items()}


def bits(tensor):
    return tensor.detach().contiguous().numpy().tobytes()


def halve_moments(net, optimizer):
    for state in optimizer.state.values():
        for name in state.keys() & {"exp_avg", "exp_inf", "momentum_buffer"}:
            state[name] = state[name] * 0.5


def scale_weights(net, optimizer):
    with torch.no_grad():
        for each in net.parameters():
            each.mul_(0.9)


def set_rates(net, optimizer):
    for group in optimizer.param_groups:
        group["lr"] *= 0.7


# What a loop does between steps, with a module and its optimizer.
BETWEEN = {
    "saved and loaded": lambda net, optimizer: optimizer.load_state_dict(optimizer.state_dict()),
    "copied and loaded": lambda net, optimizer: optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict())),
    "weights loaded": lambda net, optimizer: net.load_state_dict({name: 0.9 * each for name, each in net.state_dict().items()}),
    "looked at": lambda net, optimizer: len(optimizer.state),
    "moments": halve_moments,
    "weights": scale_weights,
    "rates": set_rates,
    "cleared": lambda net, optimizer: optimizer.state.clear(),
    "a hook": lambda net, optimizer: net.fc1.register_forward_hook(lambda *_: None),
    "clamped": lambda net, optimizer: [each.data.clamp_(-0.4, 0.4) for each in net.parameters()],
    "copied": lambda net, optimizer: copy.deepcopy((net, optimizer)),
    "evaluated": lambda net, optimizer: net.eval()(torch.ones(2, 6, dtype=torch.float64)).sum() + bool(net.train()),
}


class State(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = lambda name: os.path.join(folder.name, name)

    def test_gradients_of_what_is_tied_frozen_and_detached(self):
        """A step of rate 1 leaves the gradients as differences."""
        net = Tangled().double().train()
        tokens, labels = torch.randint(0, 11, (9,)), torch.randint(0, 11, (9,))
        eager = copy.deepcopy(net).train()
        F.cross_entropy(eager(tokens), labels).backward()
        before = {name: each.detach().clone() for name, each in net.named_parameters()}
        with self.assertWarnsRegex(UserWarning, "gate.weight is not trained"):
            step = gpuc.compile(net, nn.CrossEntropyLoss(), sgd(net, 1.0), (tokens, labels))
        step(tokens, labels)
        self.assertIs(net.head.weight, net.embed.weight)
        moved = 0
        for name, each in net.named_parameters():
            gradient = eager.get_parameter(name).grad
            gradient = torch.zeros_like(each) if gradient is None else gradient
            self.assertLess((before[name] - each.detach() - gradient).abs().max(), 1e-10, name)
            moved += bool(gradient.abs().max() > 1e-3)
        self.assertGreaterEqual(moved, 3)  # embed, mix's weight and bias
        for name, each in net.named_buffers():
            self.assertEqual(bits(each), bits(eager.get_buffer(name)), name)

    def test_the_bits_of_gpuc_run(self):
        for make, shape, dtype in ((Mlp, (8, 6), torch.float64), (ResNet, (4, 3, 16, 16), torch.float32)):
            net, x, y = make().to(dtype).train(), torch.randn(shape).to(dtype), torch.randint(0, 3, shape[:1])
            step = gpuc.compile(net, nn.CrossEntropyLoss(), torch.optim.AdamW(net.parameters(), lr=1e-2), (x, y))
            step(x, y)
            step.save(self.path("net.plan"))
            inputs = []
            for (name, *_), value in zip(step.programs["train_step"][0], (x, y)):
                np.save(self.path(f"{name}.npy"), value.numpy())
                inputs.append(f"--input={name}={self.path(name)}.npy")
            for _ in range(STEPS):
                step(x, y)
            subprocess.run([os.path.join(os.environ["GPUC_BIN"], "gpuc-run"), self.path("net.plan"), "--entry=train_step",
                            f"--variables={self.path('net.safetensors')}", f"--repeat={STEPS}", f"--save-variables={self.path('end')}",
                            *inputs], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
            by_run = saved(self.path("end"))
            for name, each in net.state_dict().items():
                self.assertEqual(by_run[name][1], bits(each), f"{make.__name__}'s {name}")

    def test_drawn_loops(self):
        """Some things in some order, of which each may be in the way of another's, with steps and evaluations between."""
        makes = {"Adam": {}, "Adamax": {}, "SGD": dict(momentum=0.9), "RMSprop": dict(momentum=0.5)}
        x, y = torch.randn(8, 6).double(), torch.randint(0, 3, (8,))
        for seed in range(12):
            drawn = random.Random(seed)
            name, numbers = drawn.choice(sorted(makes.items()))
            net = Mlp().double()
            eager = copy.deepcopy(net)
            optimizers = [getattr(torch.optim, name)(each.parameters(), lr=0.01, **numbers) for each in (net, eager)]
            step, done = gpuc.compile(net, nn.CrossEntropyLoss(), optimizers[0], (x, y), predict=False), []
            for _ in range(8):
                for _ in range(drawn.randint(1, 4)):
                    (expected,) = eager_losses(eager, nn.CrossEntropyLoss(), optimizers[1], (x, y), 1)
                    self.assertAlmostEqual(step(x, y), expected, delta=1e-9, msg=f"{seed}: {name}, {done}")
                if drawn.random() < 0.3:
                    step.eval_step(x, y)
                done.append(drawn.choice(list(BETWEEN)))
                for each, optimizer in zip((net, eager), optimizers):
                    BETWEEN[done[-1]](each, optimizer)

    def test_eager_goes_on(self):
        for dtype, tolerance in ((torch.float64, 1e-8), (torch.float32, 1e-5)):
            net, x, y = Mlp().to(dtype), torch.randn(8, 6).to(dtype), torch.randint(0, 3, (8,))
            eager = copy.deepcopy(net)
            optimizers = [torch.optim.AdamW(each.parameters(), lr=1e-2) for each in (net, eager)]

            def by_eager(each, optimizer):
                optimizer.zero_grad()
                loss = F.cross_entropy(each(x), y)
                loss.backward()
                optimizer.step()
                return loss.item()

            step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizers[0], (x, y))
            for _ in range(STEPS):
                step(x, y), by_eager(eager, optimizers[1])
            del step
            for _ in range(5):
                self.assertLess(abs(by_eager(net, optimizers[0]) - by_eager(eager, optimizers[1])), tolerance)


if __name__ == "__main__":
    unittest.main()
