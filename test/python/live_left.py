"""What a forward pass leaves behind, which torch.export would drop or freeze without a word.

Each module trains as it does in eager PyTorch, or is refused with the reason. By a Python with torch.
"""

import collections
import random
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from live_forward import Case, make, sgd

COUNT = {"n": 0}


class State(Case):
    """What a forward pass leaves behind."""

    def test_a_buffer_that_is_assigned(self):
        def running(net, x):
            net.mean = 0.9 * net.mean + 0.1 * x.detach().mean(0)
            return x - net.mean

        self.trains(running)

        def other_shape(net, x):
            net.mean = net.mean[:4]
            return x

        self.refused("forward\\(\\) gives the buffer 'mean' another shape", other_shape)

        def other_parameter(net, x):
            net.fc2.weight = nn.Parameter(net.fc2.weight.detach() * 0.9)
            return x

        self.refused("fc2: forward\\(\\) gives the parameter 'weight' another tensor", other_parameter)

    def test_dimensions_of_a_range(self):
        """As MONAI's losses have them; and a range that is written is no longer that."""
        self.trains(lambda net, x: x / x.sum(torch.arange(1, x.dim()).tolist(), keepdim=True))
        self.refused("tolist.*: this number hangs on a tensor's value", lambda net, x: x.sum(torch.arange(1).add_(1).tolist()))

    def test_what_counts(self):
        def counter(net, x):
            net.count += 1
            return x / net.count

        def list_that_grows(net, x):
            net.seen.append(x.detach().mean())
            return x * len(net.seen)

        def nested(net, x):
            net.config["of"]["n"] += 1
            return x / net.config["of"]["n"]

        def elsewhere(net, x):
            COUNT["n"] += 1
            return x / COUNT["n"]

        def attribute_that_goes(net, x):
            if hasattr(net, "first"):
                del net.first
                return 2 * x
            return x

        def made_of_a_constant(net, x):
            net.count += 1
            return x * torch.tensor(net.count)

        for between, names, more in (
            (counter, "\\(self.count\\)", {"count": 0}), (list_that_grows, "\\(self.seen\\)", {"seen": []}), (nested, "", {"config": {"of": {"n": 0}}}),
            (elsewhere, "", {}), (attribute_that_goes, "\\(self.first\\)", {"first": 1}), (made_of_a_constant, "\\(self.count\\)", {"count": 0}),
        ):  # fmt: skip
            with self.subTest(between.__name__):
                net = self.refused(rf"/live_(left|forward)\.py:[0-9]+: .* otherwise in the second pass than in the first.*{names}, and a compiled step", between, **more)
                for name in more:
                    self.assertIn(name, vars(net))
                if between is list_that_grows:
                    self.assertEqual(net.seen, [])

    def test_what_counts_up_to_something(self):
        """A branch that the first passes do not take."""
        for most in (5, 700, 50_000):

            def late(net, x, most=most):
                net.steps += 1
                return x if net.steps < most else x.detach()

            with self.subTest(most):
                net, batch = make(late, steps=0)
                with self.assertRaisesRegex(gpuc.Error, r"computed otherwise when there have been some \d+ passes \(steps\)"):
                    gpuc.compile(net, F.mse_loss, sgd(net), batch)
                self.assertEqual(net.steps, 0)

    def test_what_counts_in_a_list_or_a_dict(self):
        """As a module's own attributes do."""
        for kept, place in ({"steps": 0}, "steps"), ([1.5, 0], 1):

            def late(net, x, place=place):
                net.kept[place] += 1
                return x if net.kept[place] < 700 else x.detach()

            with self.subTest(place):
                net, batch = make(late, kept=kept)
                with self.assertRaisesRegex(gpuc.Error, rf"computed otherwise when there have been some 1000 passes \({place}\)"):
                    gpuc.compile(net, F.mse_loss, sgd(net), batch)
                self.assertEqual(net.kept[place], 0)

    def test_what_counts_for_nothing(self):
        def counter(net, x):
            net.count += 1
            net.last = x
            net.sizes.append(tuple(x.shape))
            return x

        self.trains(counter, count=0, last=None, sizes=[])

    def test_a_tensor_that_is_read_in_the_next_step(self):
        def hidden(net, x):
            net.hidden = x.detach() if net.hidden is None else torch.tanh(net.hidden + x.detach())
            return x + net.hidden

        def queue(net, x):
            net.queue.append(x.detach())
            return x - net.queue[0]

        text = "reads a tensor that the step before has left.*register_buffer"
        self.refused(text, hidden, hidden=None)
        self.refused(text, hidden, hidden=torch.zeros(4, 8).double())
        self.refused(text, queue, queue=collections.deque(maxlen=2))

    def test_what_is_kept_of_constants(self):
        def mask(net, x):
            if net.size != x.shape[1]:
                net.size, net.mask = x.shape[1], torch.arange(x.shape[1]) % 2
            return x * net.mask

        self.trains(mask, size=None, mask=None)

    def test_a_first_pass_that_differs(self):
        def scaled(net, x):
            if net.first:
                net.first, x = False, 2 * x
            return x

        net = self.refused("if its first pass alone differs, call the module once before", scaled, first=True)
        self.assertTrue(net.first)
        batch = make(scaled)[1]
        net(batch[0])
        gpuc.compile(net, F.mse_loss, "sgd:lr=0.1", batch)

    def test_a_first_pass_that_differs_beside_a_draw(self):
        """Of what is drawn all the same, as by who checks types, nothing may be known: it may be either."""

        def cached(net, x):
            if net.first:
                net.first, x = False, 2 * x
            return x if random.random() < 2 else 0 * x

        self.refused(r"\(self.first\) \(draws by random\).*: draw by torch.rand\(\(\)\), or, if its first pass alone differs, call", cached, first=True)

    def test_a_layer_that_is_moved(self):
        """To where it is, which is nothing, and elsewhere."""

        def moved(to):
            def forward(net, x):
                net.fc1.to(*to)
                return x

            return forward

        net, batch = make(moved(("cpu",)))
        step, before = gpuc.compile(net, F.mse_loss, sgd(net), batch), torch.nn.Module._apply
        self.assertGreater(step(*batch), step(*batch))
        gpuc.compile(make(moved((torch.float64,)))[0], F.mse_loss, "sgd:lr=0.1", batch)
        for to in ((torch.float32,), ("meta",), ("meta", torch.float64)):
            self.refused("live_left.py:[0-9]+: moves or casts a layer .*: do that before", moved(to))
        self.assertIs(torch.nn.Module._apply, before)

    def test_draws_of_python(self):
        batch = make(None)[1]
        before = random.getstate(), np.random.get_state()[1].tobytes()
        self.refused("draws by random.* torch.rand", lambda net, x: x * random.random())
        self.refused("draws by numpy.random.* torch.rand", lambda net, x: x * float(np.random.rand()))
        gpuc.compile(make(lambda net, x: x if random.random() < 2 else 0 * x)[0], F.mse_loss, "sgd:lr=0.1", batch)
        self.assertEqual(random.getstate(), before[0])
        self.assertEqual(np.random.get_state()[1].tobytes(), before[1])
        self.refused("second pass", lambda net, x: x * net.own.random(), own=random.Random(0))
        self.refused("takes a Generator, which a compiled step cannot", lambda net, x: x * torch.rand((), generator=net.own), own=torch.Generator())

    def test_a_parameter_that_is_changed(self):
        def clamped(net, x):
            with torch.no_grad():
                net.fc2.weight.clamp_(-0.1, 0.1)
            return x

        self.refused("'fc2.weight' is changed in the forward pass, and it is the optimizer that changes parameters", clamped)


if __name__ == "__main__":
    unittest.main()
