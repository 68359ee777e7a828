"""What a compiled step has of a module's attributes, buffers and layers, and somebody changes: the step takes it, or says so.

By a Python with torch.
"""

import collections
import copy
import dataclasses
import dis
import functools
import gc
import types
import unittest

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import prune  # noqa: F401

import gpuc
import live_forward
from gpuc.named_values import globals_in
from modules import eager_losses

BETA = 0.1


def by_global(out, target, scale=1):
    return F.mse_loss(out, target) * BETA * scale


class Kept(live_forward.Case):
    """What a compiled step has of a module's attributes, and somebody changes."""

    def step(self, between, loss=F.mse_loss, **more):
        net, batch = live_forward.make(between, **more)
        return net, gpuc.compile(net, loss, live_forward.sgd(net), batch), batch

    def changed(self, text, change, between=lambda net, x: net.drop(x) / net.tau, **more):
        """By steps alone, and whoever evaluates is told at once, in whatever mode."""

        def evaluated(step, batch):
            step.evaluate([batch])

        for mode, ask in ((True, lambda step, batch: [step(*batch) for _ in range(300)]), (True, evaluated), (False, evaluated)):
            net, step, batch = self.step(between, tau=1.0, drop=nn.Dropout(0.0), **more)
            step(*batch)
            change(net)
            net.train(mode)
            with self.assertRaisesRegex(gpuc.Error, text):
                ask(step, batch)
            self.assertEqual({each.training for each in net.modules()}, {mode})

    def test_parameters_and_buffers_in_a_list(self):
        """Or a variable: they are what the module has, and no constants."""

        class Listed(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(0)
                self.one, self.two = nn.Linear(4, 8).double(), nn.Linear(8, 3).double()
                self.register_buffer("scale", torch.ones(3).double())
                self.held, self.named = [self.one.weight, self.one.bias], {"scale": self.scale}

            def forward(self, x):
                self.scale.mul_(1.25)
                out = self.two(torch.relu(F.linear(x, *self.held))) * self.named["scale"]
                (slope,) = torch.autograd.grad(out.square().sum(), self.held[:1], create_graph=True)
                return out + 0.1 * slope.mean()

        def loss_of(net):
            weights = list(net.parameters())
            return lambda out, target: F.cross_entropy(out, target) + 0.1 * sum(each.square().sum() for each in weights)

        batch = torch.randn(4, 4).double(), torch.tensor([0, 1, 2, 0])
        net, eager = Listed(), Listed()
        step = gpuc.compile(net, loss_of(net), live_forward.sgd(net), batch)
        expected = eager_losses(eager, loss_of(eager), live_forward.sgd(eager), batch, 5)
        for ours, theirs in zip([step(*batch) for _ in range(5)], expected):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertLess((net.state_dict()[name] - tensor).abs().max().item(), 1e-10)

    def test_memory_of_a_parameter_by_a_tensor_that_was_made_before(self):
        for show in (lambda weight: weight.detach(), lambda weight: weight.data, lambda weight: weight.data[1:, 2:]):
            net, batch = live_forward.make(lambda net, x: x)
            shown = show(net.fc1.weight)
            with self.assertRaisesRegex(gpuc.Error, r"live_kept.py:\d+: reads the memory of 'fc1.weight' by a tensor that was made before.*make that in forward"):
                gpuc.compile(net, lambda out, target: F.mse_loss(out, target) + shown.square().sum(), live_forward.sgd(net), batch)  # noqa: B023

    def test_a_number(self):
        self.changed("tau of the module is 0.5, and was 1.0 when the step was compiled: compile again, or set it back", lambda net: setattr(net, "tau", 0.5))
        self.changed("p of 'drop' is 0.5, and was 0.0 when", lambda net: setattr(net.drop, "p", 0.5))
        self.changed("slope of the module is 2, and was 1.0 when", lambda net: setattr(net, "slope", 2), lambda net, x: x * net.slope)

    def test_a_loss(self):
        loss = nn.CrossEntropyLoss()
        net, batch = live_forward.make(lambda net, x: x)
        step = gpuc.compile(net, loss, live_forward.sgd(net), (batch[0], torch.tensor([0, 1, 2, 0])))
        loss.label_smoothing = 0.1
        with self.assertRaisesRegex(gpuc.Error, "label_smoothing of 'loss' is 0.1, and was 0.0 when the step was compiled"):
            step.evaluate([(batch[0], torch.tensor([0, 1, 2, 0]))])

    def test_memory_that_others_have_of_a_buffer(self):
        """What they write there is told, whether the buffer had it when the step was compiled or was assigned; who has none cannot write."""
        base, array = torch.zeros(2, 8).double(), np.zeros(8)
        makes = {"base": lambda: base[0], "whole": lambda: base[0].detach(), "array": lambda: torch.from_numpy(array)}
        text = "h of the module was made of memory that has been written since, .* assign it anew, net.h = …"

        def between(net, x):
            return x + net.h

        def compiled(h):
            net, batch = live_forward.make(between)
            net.register_buffer("h", h)
            return net, gpuc.compile(net, F.mse_loss, live_forward.sgd(net), batch), batch

        for name, make in makes.items():
            for is_assigned in (False, True):
                base.zero_(), array.fill(0)
                net, step, batch = compiled(torch.zeros(8).double() if is_assigned else make())
                step(*batch)
                if is_assigned:
                    net.h = make()
                    step(*batch)
                step.evaluate([batch])
                base[0, 0] = array[0] = 1
                for ask in (lambda: step.evaluate([batch]), lambda: [step(*batch) for _ in range(300)]):  # noqa: B023
                    with self.subTest(name, is_assigned=is_assigned), self.assertRaisesRegex(gpuc.Error, text):
                        ask()
                net.h = make().clone()
                base[0, 0] = array[0] = 2
                step(*batch)
                self.assertEqual(net.h[0], 1)
        net, step, batch = compiled(torch.zeros(3, 8).double()[1])
        net.h = given = base[1]
        given.fill_(3)  # The same memory from the next step on.
        step(*batch)
        given.fill_(4)
        step.evaluate([batch])
        self.assertEqual(net.h[0], 4)

    def test_a_constant_that_numpy_writes(self):
        array = np.ones(8)
        net, step, batch = self.step(lambda net, x: x * net.scale, scale=torch.from_numpy(array))
        step(*batch)
        array[0] = 2
        with self.assertRaisesRegex(gpuc.Error, "scale of the module holds something else than when"):
            step.evaluate([batch])

    def test_options_with_slots(self):
        options = dataclasses.make_dataclass("Options", [("beta", float)], slots=True)(0.1)
        net, batch = live_forward.make(lambda net, x: x)
        step = gpuc.compile(net, lambda out, target: F.mse_loss(out, target) * options.beta, live_forward.sgd(net), batch)
        options.beta = 0.5
        with self.assertRaisesRegex(gpuc.Error, r"options\.beta, which .* reads, is 0\.5, and was 0\.1"):
            step.evaluate([batch])

    def test_what_a_loss_names(self):
        options = types.SimpleNamespace(beta=0.1)

        def by_closure(out, target):
            return F.mse_loss(out, target) * beta

        def by_options(out, target):
            return F.mse_loss(out, target) * options.beta

        def by_key(out, target):
            return F.mse_loss(out, target) * table["beta"]

        class Weighted:
            def __init__(self):
                self.beta = 0.1

            def __call__(self, out, target):
                return F.mse_loss(out, target) * self.beta

        beta, weighted, table = 0.1, Weighted(), {"beta": 0.1, "alpha": 0}

        def of_closure():
            nonlocal beta
            beta = 0.5

        for name, loss, change in (
            ("beta, which .*by_closure reads,", by_closure, of_closure),
            ("options.beta, which .*by_options reads,", by_options, lambda: setattr(options, "beta", 0.5)),
            (r"table\['beta'\], which .*by_key reads,", by_key, lambda: table.update(beta=0.5, alpha=1)),
            ("beta, which .*Weighted.__call__ reads,", weighted, lambda: setattr(weighted, "beta", 0.5)),
            ("BETA, which by_global reads,", lambda out, target: by_global(out, target), lambda: globals().update(BETA=0.5)),
            ("BETA, which by_global reads,", functools.partial(by_global, scale=2), lambda: globals().update(BETA=0.5)),
        ):
            net, step, batch = self.step(lambda net, x: x, loss)
            step.evaluate([batch])
            change()
            with self.subTest(name), self.assertRaisesRegex(gpuc.Error, f"^{name} is 0.5, and was 0.1 when the step was compiled"):
                step.evaluate([batch])
            globals().update(BETA=0.1)

    def test_what_a_module_names(self):
        class Scaled(nn.Linear):
            options = types.SimpleNamespace(rate=2, other=1)

            def forward(self, x):
                return super().forward(x) * self.options.rate

        net = Scaled(5, 3)
        batch = torch.randn(4, 5), torch.randn(4, 3)
        step = gpuc.compile(net, F.mse_loss, live_forward.sgd(net), batch)
        net.options.other = 2
        step.evaluate([batch])
        net.options.rate = 3
        with self.assertRaisesRegex(gpuc.Error, "options.rate, which .*Scaled.forward reads, is 3, and was 2 when the step was compiled"):
            step.evaluate([batch])

    def test_globals_that_code_reads(self):
        """By its bytes, as `dis` has them: in inner functions, and of more names than a byte counts."""
        many = "def outer():\n" + "".join(f"    first{i}, print(other{i}.attribute)\n" for i in range(300)) + "    return lambda: within + outer"
        code = compile("class Body:\n    taken = given\n" + many, "many", "exec")

        def by_dis(code):
            own = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
            return own.union(*(by_dis(each) for each in code.co_consts if isinstance(each, types.CodeType)))

        self.assertEqual(globals_in(code), by_dis(code))
        self.assertLessEqual({"first299", "other299", "print", "within", "outer", "given"}, globals_in(code))

    def test_a_refusal_while_the_compiler_is_at_work(self):
        """Passes run beside it: their error is the one, and the next module is compiled as ever."""
        calls = []
        net, batch = live_forward.make(lambda net, x: x * (calls.append(1) or len(calls)))
        with self.assertRaisesRegex(gpuc.Error, "is computed otherwise in the second pass"):
            gpuc.compile(net, F.mse_loss, live_forward.sgd(net), batch)
        self.assertTrue(gc.isenabled())
        net, step, batch = self.step(lambda net, x: x)
        step(*batch)

    def test_what_holds_numbers(self):
        """In lists and dicts, at any depth, and of tensors and arrays that are no buffers."""
        Rates = collections.namedtuple("Rates", ["of", "other"])
        options = types.SimpleNamespace(model=types.SimpleNamespace(rate=[1.0, 2.0]), table={"of": {"rate": 1.0}})
        for name, change, between in (
            ("list of the module holds something else than when", lambda net: net.list[1].update(rate=net.list[1]["rate"] + 1), lambda net, x: x * net.list[1]["rate"]),
            ("row of the module", lambda net: net.row.mul_(2), lambda net, x: x * net.row),
            ("row of the module", lambda net: setattr(net, "row", torch.ones(8) * 3), lambda net, x: x * net.row),
            ("array of the module", lambda net: np.multiply(net.array, 2, out=net.array), lambda net, x: x * torch.from_numpy(net.array)),
            ("rates of the module", lambda net: net.rates.of[0].add_(1), lambda net, x: x * net.rates.of[0]),
            ("live_kept.py:[0-9]+: a tensor that is read there", lambda net: net.object.tensor.add_(1), lambda net, x: x * net.object.tensor),
            ("options.model.rate, which .* reads,", lambda net: options.model.rate.append(3), lambda net, x: x * sum(options.model.rate)),
            (r"options.table\['of'\]\['rate'\], which .* reads, is [0-9.]+, and was", lambda net: options.table["of"].update(rate=options.table["of"]["rate"] + 1),
             lambda net, x: x * options.table["of"]["rate"]),
        ):  # fmt: skip
            with self.subTest(name):
                self.changed(name, change, between, list=[0, {"rate": 1}], row=torch.ones(8), array=np.ones(8), rates=Rates([torch.ones(1)], 0),
                             object=types.SimpleNamespace(tensor=torch.ones(1)))  # fmt: skip

    def test_what_evaluation_alone_reads(self):
        for tau in (1.0, torch.ones(1), [1.0]):
            net, step, batch = self.step(lambda net, x: x if net.training else x * (net.tau[0] if isinstance(net.tau, list) else net.tau), tau=tau)
            step.evaluate([batch])
            net.tau = [2.0] if isinstance(tau, list) else 2 * tau
            with self.subTest(tau), self.assertRaisesRegex(gpuc.Error, "tau of the module (is 2.0, and was 1.0|holds something else than) when"):
                step.evaluate([batch])

    def test_what_holds_the_same(self):
        """Nor what is not read, or makes no difference, or is made anew in each pass."""
        net, step, batch = self.step(lambda net, x: x * net.tau * torch.tensor([2.0], dtype=x.dtype) + (net.list[1] if net.list[0] > 5 else 0),
                                     tau=torch.ones(8), list=[0, 1], other=torch.ones(1), seen=[])  # fmt: skip
        for index in range(100):
            step(*batch)
            net.tau, net.other, net.list = torch.ones(8), torch.ones(index), [index // 20, index]
            net.seen.append(index)
        step.evaluate([batch])

    def test_what_is_made_anew_where_it_does_not_fit(self):
        def masked(net, x):
            if net.mask.shape[0] != len(x):
                net.mask = row.repeat(len(x), 1)
            return x * (net.mask * (net.scale if len(net.mask) == 4 else 1)).mean(1)[:, None]

        row = torch.linspace(0.5, 1.5, 90, dtype=torch.float64)
        net, step, batch = self.step(masked, mask=row.repeat(4, 1), scale=1.0)
        expected = step(*batch)
        for rows in (5, 4):
            net(torch.zeros(rows, 5).double())
            self.assertLess(step.evaluate([batch]).loss, expected)
        net.mask = torch.zeros(4, 90).double()
        with self.assertRaisesRegex(gpuc.Error, "mask of the module holds something else than when"):
            step.evaluate([batch])

    def test_a_layer(self):
        for change in (
            lambda net: setattr(net, "drop", nn.Tanh()),
            lambda net: setattr(net, "fc2", nn.Linear(8, 3).double()),
            lambda net: nn.utils.prune.l1_unstructured(net.fc1, "weight", 0.5),
            lambda net: nn.utils.parametrizations.weight_norm(net.fc1),
            lambda net: net.fc1.register_forward_hook(lambda module, inputs, out: 2 * out),
            lambda net: setattr(net.fc1, "forward", lambda x: 2 * F.linear(x, net.fc1.weight)),
        ):
            self.changed("(the module|'fc1') has another forward\\(\\), other layers, parameters or hooks than when the step was compiled: compile again", change)

    def test_a_number_that_constants_are_made_with(self):
        """Before they meet data: they are told apart by how they are made."""

        def written(net, x):
            row = torch.zeros(8).double()
            row[2] = net.tau
            return x + row

        for between in (
            lambda net, x: x + torch.ones(8).double() * net.tau,
            lambda net, x: x + torch.linspace(0, net.tau, 8).double(),
            lambda net, x: x.masked_fill(torch.arange(8) < 4 * net.tau, 0),
            lambda net, x: x + torch.tensor([net.tau] * 8).double(),
            lambda net, x: x + (torch.arange(1000.0).double() * net.tau)[:8],
            written,
        ):
            self.changed("tau of the module is 0.5, and was 1.0", lambda net: setattr(net, "tau", 0.5), between)

    def test_layers_that_change_places(self):
        """Of one shape, so that the ops are the same ones; what is replaced may be a parameter in a list, too."""

        def swap(net):
            net.layers[0], net.layers[1] = net.layers[1], net.layers[0]

        def replace(net):
            net.gains[0] = nn.Parameter(torch.zeros(8).double())

        def run(net, x):
            for layer in net.layers:
                x = torch.tanh(layer(x))
            return x

        def gained(net, x):
            return x + net.gains[0] * net.tau

        layers = {"layers": nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]).double()}
        self.changed("'layers' has another forward\\(\\), other layers, parameters or hooks", swap, run, **layers)
        gain = nn.Parameter(torch.ones(8).double())
        self.changed("gains of the module holds something else than", replace, gained, gain=gain, gains=[gain])
        self.changed("tau of the module is 2.0", lambda net: setattr(net, "tau", 2.0), gained, gain=gain, gains=[gain])

    def test_another_tensor_in_the_place_of_one(self):
        """Of a parameter, also by load_state_dict(assign=True), at once; and of a buffer that has another shape, or was put there unseen, but for one that
        holds the same."""

        def assign(net):
            net.load_state_dict({name: tensor.clone() for name, tensor in net.state_dict().items()}, assign=True)

        def zeros(*shape):
            return torch.zeros(*shape).double()

        said = "is another tensor than when the step was compiled, which goes on with that one: write into it"
        self.changed(f"weight of 'fc2' {said}", lambda net: setattr(net.fc2, "weight", nn.Parameter(zeros(3, 8))))
        self.changed(f"weight and bias of 'fc1' {said}|'mean' has other memory", assign)
        less = lambda net, x: x - net.mean  # noqa: E731
        self.changed(f"mean of the module {said}", lambda net: setattr(net, "mean", zeros(1, 8)), less)
        self.changed(f"mean of the module {said}", lambda net: net._buffers.update(mean=zeros(8) + 1), less)
        net, step, batch = self.step(less)
        for _ in range(5):
            step(*batch)
        weight = net.fc1.weight
        net.fc1.weight = nn.Parameter(zeros(8, 5))
        for _ in range(2):
            self.assertRaisesRegex(gpuc.Error, f"weight of 'fc1' {said}", step, *batch)
        net.fc1.weight = weight
        step(*batch)
        net._buffers["mean"], before = zeros(8), net.mean
        for _ in range(4):  # The eighth of all looks at everything.
            step(*batch)
        self.assertIs(net.mean, before)

    def test_a_buffer_that_the_loop_assigns(self):
        """As a hidden state that begins anew; the next step reads it, and what is evaluated."""
        net, step, batch = self.step(lambda net, x: x - net.mean)
        eager, before = copy.deepcopy(net), net.mean
        optimizer = live_forward.sgd(eager)
        for number in range(12):
            if number % 4 == 3:
                given = [torch.full((8,), number / 8).double() for _ in range(2)]
                net.mean, eager.mean = given
            elif number > 3:  # Who has the tensor still goes on writing into it.
                for each in given:
                    each.add_(0.25)
            if number == 7:
                self.assertAlmostEqual(step.eval_step(*batch), F.mse_loss(eager(batch[0]), batch[1]).item(), delta=1e-12)
            self.assertAlmostEqual(step(*batch), eager_losses(eager, F.mse_loss, optimizer, batch, 1)[0], delta=1e-12)
        self.assertIs(net.mean, before)
        self.assertTrue(torch.equal(net.mean, eager.mean))

    def test_one_tensor_in_the_place_of_two_buffers(self):
        for change in (lambda net, given: setattr(net, "mean", net.other), lambda net, given: (setattr(net, "mean", given), setattr(net, "other", given))):
            net, batch = live_forward.make(lambda net, x: x - net.mean - 2 * net.other)
            net.register_buffer("other", torch.ones(8).double())
            step = gpuc.compile(net, F.mse_loss, live_forward.sgd(net), batch)
            step(*batch)
            change(net, torch.zeros(8).double())
            with self.assertRaisesRegex(gpuc.Error, "is another tensor than when the step was compiled, which goes on with that one: write into it"):
                step(*batch)

    def test_a_buffer_that_an_eager_pass_assigns(self):
        def running(net, x):
            net.mean = 0.9 * net.mean + 0.1 * x.detach().mean(0)
            return x - net.mean

        net, step, batch = self.step(running)
        eager = copy.deepcopy(net)
        optimizer = live_forward.sgd(eager)
        for _ in range(6):
            self.assertAlmostEqual(step(*batch), eager_losses(eager, F.mse_loss, optimizer, batch, 1)[0], delta=1e-12)
            for each in (net, eager):
                each(2 * batch[0])

    def test_what_a_loop_changes_each_time(self):
        """It is found in the second step, and what changes between epochs at the latest when there were twice as many."""
        share = 0.3

        def mixed(out, targets):
            return share * F.mse_loss(out, targets[0]) + (1 - share) * F.mse_loss(out, targets[1])

        net, (x, y) = live_forward.make(lambda net, x: x)
        step = gpuc.compile(net, mixed, live_forward.sgd(net), (x, (y, y.clone())))
        step(x, (y, y))
        share = 0.7
        with self.assertRaisesRegex(gpuc.Error, "share, which .*mixed reads, is 0.7, and was 0.3"):
            step(x, (y, y))
        share = 0.3
        for _ in range(10):
            step(x, (y, y))
        net.fc1.requires_grad_(False)
        with self.assertRaisesRegex(gpuc.Error, "requires_grad of 'fc1"):
            for _ in range(6):
                step(x, (y, y))

    def test_what_makes_no_difference_yet(self):
        def between(net, x):
            net.calls += 1
            return x if net.epoch < 3 else 2 * x

        net, step, batch = self.step(between, epoch=0, calls=0, note="")
        for net.epoch in range(3):
            for _ in range(100):
                step(*batch)
            net.note = net(batch[0])
            step.evaluate([batch])
        self.assertEqual(step._next, 300)
        net.epoch = 3
        with self.assertRaisesRegex(gpuc.Error, "epoch of the module is 3, and was 2 when"):
            step.evaluate([batch])
        net.epoch = 1
        step.evaluate([batch])

    def test_the_same_again(self):
        net, step, batch = self.step(lambda net, x: net.act(x) / net.tau, tau=1.0, act=nn.ReLU())
        net.tau, net.fc1, net.act = float("1.0"), net.fc1, nn.ReLU()
        seen = []
        net.fc1.register_forward_hook(lambda module, inputs, out: seen.append(out.shape))
        for _ in range(300):
            step(*batch)


if __name__ == "__main__":
    unittest.main()
