"""Modules that are drawn (drawn_modules.py), each trained in every way that says it trains the same: as eager mode does, by any number of
threads, with values computed again, and in parts, dropout and noise on; and with gradients that are those of what was drawn. Run by
torch_test.py with a Python that has torch; $GPUC_DRAWN_MODULES says how many."""

import os
import pathlib
import sys
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from drawn_modules import drawn  # noqa: E402

SEEDS = range(int(os.environ.get("GPUC_DRAWN_MODULES", "40")))


def optimizer(net):
    return torch.optim.AdamW(net.parameters(), lr=0.01, eps=1e-3)


def numbers(losses, net):
    return torch.cat([torch.tensor(losses).double(), *(each.detach().double().flatten() for each in net.state_dict().values())])


def trained(seed, draws, rows=None, **options):
    """Losses and all state; of so many rows in the second step."""
    module = drawn(seed, draws)
    step = gpuc.compile(module.net, module.loss, optimizer(module.net), module.batches[0], seed=5, **{"threads": 1, **options})
    losses = [step(*(each[:rows] if number == 1 else each for each in batch)) for number, batch in enumerate(module.batches)]
    return numbers(losses, module.net)


def eager(seed, rows=None):
    module = drawn(seed, draws=False)
    update, losses = optimizer(module.net), []
    for number, (x, y) in enumerate(module.batches):
        loss = module.loss(module.net(x[:rows] if number == 1 else x), y[:rows] if number == 1 else y)
        update.zero_grad()
        loss.backward()
        update.step()
        losses.append(loss.item())
    return numbers(losses, module.net)


class DrawnModules(unittest.TestCase):
    def each(self, check):
        for seed in SEEDS:
            with self.subTest(seed=seed, layers=drawn(seed, draws=True).layers):
                check(seed)

    def check_near(self, found, expected, tolerance):
        self.assertLess(((found - expected).abs() / (1 + expected.abs())).max().item(), tolerance)

    def test_as_eager_mode(self):
        self.each(lambda seed: self.check_near(trained(seed, draws=False), eager(seed), 1e-7))

    def test_the_same_bits(self):
        def check(seed):
            expected = trained(seed, draws=True)
            for options in {"threads": 3}, {"checkpoint": "full"}, {"check_numerics": True}:
                self.assertTrue(torch.equal(trained(seed, draws=True, **options), expected), options)

        self.each(check)

    def test_in_parts(self):
        def check(seed):
            expected = trained(seed, draws=True)
            for count in 2, 8:
                self.check_near(trained(seed, draws=True, accumulate=count), expected, 1e-8)

        self.each(check)

    def test_fewer_rows(self):
        taken = []

        def check(seed):
            try:
                found = trained(seed, draws=False, rows=5), trained(seed, draws=True, rows=5)
            except gpuc.Error as error:
                return self.assertIn("rows", str(error))
            taken.append(seed)
            self.check_near(found[0], eager(seed, rows=5), 1e-7)
            self.check_near(trained(seed, draws=True, rows=5, accumulate=4), found[1], 1e-8)

        self.each(check)
        self.assertGreater(len(taken), len(SEEDS) // 4)

    def test_gradients_of_what_was_drawn(self):
        def check(seed):
            module = drawn(seed, draws=True)
            weights = list(module.net.parameters())
            step = gpuc.compile(module.net, module.loss, torch.optim.SGD(weights, lr=1), module.batches[0], seed=5, threads=1)
            first = [each.detach().clone() for each in weights]

            def loss(values):
                """Of the first step: the same is drawn once more."""
                with torch.no_grad():
                    for weight, value in zip(weights, values):
                        weight.copy_(value)
                torch.from_dlpack(step.variable("step")).zero_()
                return step(*module.batches[0])

            loss(first)
            gradients = [before - weight.detach() for before, weight in zip(first, weights)]
            direction = [torch.randn_like(each) for each in first]
            slope = sum((each * along).sum().item() for each, along in zip(gradients, direction))

            def measured(size):
                ahead, behind = ([each + sign * size * along for each, along in zip(first, direction)] for sign in (1, -1))
                return (loss(ahead) - loss(behind)) / (2 * size)

            # A relu that turns on the way is no defect; in all three it is not likely.
            nearest = min(abs(measured(size) - slope) for size in (1e-4, 1e-5, 1e-6))
            self.assertLess(nearest, 1e-4 * (1 + abs(slope)))

        self.each(check)


if __name__ == "__main__":
    unittest.main()
