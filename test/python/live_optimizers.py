"""What a torch.optim object says, and schedulers change between steps, next to eager PyTorch; run by torch_test.py with a Python that has
torch."""

import collections
import copy
import pathlib
import sys
import unittest
import warnings

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from live import OfOneNet, largest_difference, twin  # noqa: E402
from modules import Mlp, eager_losses  # noqa: E402


class Optimizers(OfOneNet):
    def test_a_scheduler(self):
        eager = twin(self.net)
        there = torch.optim.SGD(eager.parameters(), lr=0.5)
        schedulers = [torch.optim.lr_scheduler.StepLR(o, 2, gamma=0.1) for o in (self.optimizer, there)]
        step = self.compile()
        for _ in range(6):
            self.assertAlmostEqual(step(*self.batch), eager_losses(eager, self.loss, there, self.batch, 1)[0], delta=1e-8)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # The optimizer is never stepped.
                for scheduler in schedulers:
                    scheduler.step()

    def follow(self, make, change, steps=8, delta=1e-12):
        """Steps between which `change`, made of an optimizer, is called, beside eager ones."""
        net, eager = twin(self.net), twin(self.net)
        ours, theirs = make(net), make(eager)
        changes = [change(each) for each in (ours, theirs)]
        step = gpuc.compile(net, self.loss, ours, self.batch)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The optimizer is never stepped.
            for _ in range(steps):
                self.assertAlmostEqual(step(*self.batch), eager_losses(eager, self.loss, theirs, self.batch, 1)[0], delta=delta)
                for each in changes:
                    each()
        self.assertLess(largest_difference(net.state_dict().values(), eager.state_dict().values()), delta)

    def test_schedulers_of_momentum(self):
        """OneCycleLR and CyclicLR change momentum, or Adam's first beta, unless told otherwise."""
        one_cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9).step  # noqa: E731
        cyclic = lambda o: torch.optim.lr_scheduler.CyclicLR(o, 0.01, 0.1, step_size_up=3).step  # noqa: E731
        optimizers = {
            "SGD": dict(momentum=0.9, dampening=0.1), "Nesterov": dict(momentum=0.9, nesterov=True), "Adam": {}, "AdamW": dict(amsgrad=True),
            "RMSprop": dict(momentum=0.9, centered=True),
        }  # fmt: skip
        for name, numbers in optimizers.items():
            form = getattr(torch.optim, name.replace("Nesterov", "SGD"))
            for change in (one_cycle, cyclic) if "A" not in name else (one_cycle,):
                with self.subTest(name, change=change):
                    self.follow(lambda net: form(net.parameters(), lr=0.05, **numbers), change)  # noqa: B023

    def test_decay_that_changes(self):
        """Down to 0, of each group by itself; of a group without it stays so."""

        def change(optimizer):
            left = iter(range(7, -1, -1))

            def next_decay():
                part = next(left) / 8
                for number, group in enumerate(optimizer.param_groups[:2]):
                    group["weight_decay"] = part * (0.3 - 0.1 * number)

            return next_decay

        def groups_of(net):
            return [{"params": [net.fc1.weight]}, {"params": [net.fc2.weight], "weight_decay": 0.1},
                    {"params": [net.fc1.bias, net.fc2.bias], "weight_decay": 0.0}]  # fmt: skip

        for form in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            with self.subTest(form.__name__):
                self.follow(lambda net: form(groups_of(net), lr=0.05, weight_decay=0.3), change)  # noqa: B023

    def test_up_the_slope(self):
        for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
            with self.subTest(name):
                form = getattr(torch.optim, name)
                self.follow(lambda net: form(net.parameters(), lr=0.01, maximize=True), lambda _: lambda: None)  # noqa: B023

    def test_adadelta(self):
        for numbers in ({}, dict(rho=0.5, eps=1e-3, weight_decay=0.1)):
            decays = lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9).step  # noqa: E731
            self.follow(lambda net: torch.optim.Adadelta(net.parameters(), **numbers), decays)  # noqa: B023

    def test_adamax(self):
        for numbers in ({}, dict(betas=(0.8, 0.9), weight_decay=0.1)):
            one_cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9).step  # noqa: E731
            self.follow(lambda net: torch.optim.Adamax(net.parameters(), **numbers), one_cycle)  # noqa: B023

    def test_nadam(self):
        for numbers in ({}, dict(betas=(0.8, 0.9), momentum_decay=0.1, weight_decay=0.1),
                        dict(weight_decay=0.1, decoupled_weight_decay=True)):  # fmt: skip
            one_cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9).step  # noqa: E731
            # PyTorch keeps the product of momenta in f32.
            self.follow(lambda net: torch.optim.NAdam(net.parameters(), **numbers), one_cycle, delta=1e-6)  # noqa: B023

    def test_adafactor(self):
        """Of matrices, by rows and columns, and of vectors."""
        for numbers in ({}, dict(lr=0.05, beta2_decay=-0.5, eps=(1e-3, 0.1), d=2.0, weight_decay=0.1)):
            decays = lambda o: torch.optim.lr_scheduler.ExponentialLR(o, 0.9).step  # noqa: E731
            self.follow(lambda net: torch.optim.Adafactor(net.parameters(), **numbers), decays)  # noqa: B023
        self.optimizer = torch.optim.Adafactor(self.net.parameters(), eps=(0.0, 1e-3))
        self.assertRaisesRegex(gpuc.Error, r"Adafactor\(eps=\(0, …\)\) is not supported: eps=\(None", self.compile)

    def test_radam(self):
        for numbers in ({}, dict(betas=(0.8, 0.9), weight_decay=0.1), dict(weight_decay=0.1, decoupled_weight_decay=True)):
            one_cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9).step  # noqa: E731
            self.follow(lambda net: torch.optim.RAdam(net.parameters(), **numbers), one_cycle)  # noqa: B023

    def test_asgd(self):
        """A step goes by the rate that the one before it has read."""
        for numbers in ({}, dict(lr=0.05, lambd=0.1, alpha=0.5, t0=3, weight_decay=0.1, maximize=True)):
            warm_up = lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1).step  # noqa: E731
            # PyTorch keeps eta in f32.
            self.follow(lambda net: torch.optim.ASGD(net.parameters(), **numbers), warm_up, delta=1e-7)  # noqa: B023

    def test_rprop(self):
        """Its rate is the size of the first steps, and what becomes of it later says nothing."""
        for numbers in ({}, dict(lr=0.05, etas=(0.3, 1.5), step_sizes=(1e-3, 0.1), maximize=True)):
            warm_up = lambda o: torch.optim.lr_scheduler.LinearLR(o, 0.1).step  # noqa: E731
            self.follow(lambda net: torch.optim.Rprop(net.parameters(), **numbers), warm_up)  # noqa: B023

    def test_a_decay_that_the_optimizer_does_not_know(self):
        """PyTorch's groups may say anything, and its Rprop reads no weight_decay."""
        make = lambda net: torch.optim.Rprop([{"params": net.parameters(), "weight_decay": 5.0}], lr=0.05)  # noqa: E731
        self.follow(make, lambda optimizer: lambda: optimizer.param_groups[0].update(weight_decay=7.0))

    def test_those_that_are_none_of_them(self):
        """It is the class that counts, whatever its name, and each has its cure."""

        class Adam(torch.optim.Adam):
            def step(self, closure=None):
                return None

        class Lion(torch.optim.Optimizer):
            pass

        weights = [nn.Parameter(torch.zeros(3, 3))]
        for optimizer, text in (
            (torch.optim.Muon(weights), r'Muon iterates in bf16: the recipe.s text "muon:lr=0.02"'),
            (torch.optim.SparseAdam(weights), "SparseAdam moves the rows alone that a batch reads, .*: take Adam"),
            (torch.optim.LBFGS(weights), "LBFGS calls the loss .*: step an LBFGS in eager mode"),
            (Adam(weights), r"Adam is a class of its own, which may step otherwise than torch.optim.Adam, .*: give that one"),
            (Lion(weights, {}), r'Lion is not supported: the recipe.s text "lion:lr=1e-4" is nearest'),
            (torch.optim.Adam, "is the class Adam: give a torch.optim object, .* or a recipe's text"),
            (None, "is None: give"),
            ([torch.optim.Adam(weights)], "is a list: give"),
        ):
            self.optimizer = optimizer
            self.assertRaisesRegex(gpuc.Error, f"^the optimizer .*{text}", self.compile)

    def test_numbers_that_may_not_change(self):
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.5, momentum=0.9)
        step, group = self.compile(), self.optimizer.param_groups[0]
        step(*self.batch)
        for key, value, before in (("momentum", 0, 0.9), ("dampening", 0.5, 0), ("weight_decay", 0.1, 0), ("nesterov", True, False)):
            group[key] = value
            with self.subTest(key), self.assertRaisesRegex(gpuc.Error, f"the optimizer's {key} is {value}, and was .*compile.* again"):
                step(*self.batch)
            group[key] = before
            step(*self.batch)

    def test_parameters_that_leave_a_group(self):
        step, parameters = self.compile(), self.optimizer.param_groups[0]["params"]
        step(*self.batch)
        self.optimizer.param_groups[0]["params"] = parameters[1:]
        with self.assertRaisesRegex(gpuc.Error, "group 0 of the optimizer has other parameters than when the step was compiled"):
            step(*self.batch)
        self.optimizer.param_groups[0]["params"] = parameters
        step(*self.batch)

    def test_state_that_is_cleared(self):
        """What an optimizer keeps begins anew, in whatever way it was taken out, also where nobody had looked at it before."""
        makes = {
            "SGD": lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, dampening=0.3),
            "AdamW": lambda net: torch.optim.AdamW(net.parameters(), lr=0.05),
            "Rprop": lambda net: torch.optim.Rprop(net.parameters(), lr=0.05),
        }

        def by_clear(optimizer):
            optimizer.state.clear()

        def by_another(optimizer):
            optimizer.state = collections.defaultdict(dict)

        def one_by_one(optimizer):
            for parameter in list(optimizer.state):
                del optimizer.state[parameter]

        def within(optimizer):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    optimizer.state[parameter].clear()

        def by_loading(optimizer):
            optimizer.load_state_dict({**optimizer.state_dict(), "state": {}})

        for name, make in makes.items():
            for clear in (by_clear, by_another, one_by_one, within, by_loading):
                with self.subTest(name, clear=clear.__name__):
                    self.follow(make, lambda optimizer: self.in_third(lambda: clear(optimizer)))  # noqa: B023

    @staticmethod
    def in_third(change):
        calls = []
        return lambda: (calls.append(1), change() if len(calls) == 5 else None)

    def test_state_that_is_written(self):
        """By whoever looks at opt.state, without a state_dict() before."""

        def halved(optimizer):
            for state in optimizer.state.values():
                state["exp_avg"].mul_(0.5)
                state["exp_avg_sq"] = state["exp_avg_sq"] * 2

        make = lambda net: torch.optim.Adam(net.parameters(), lr=0.05)  # noqa: E731
        self.follow(make, lambda optimizer: lambda: halved(optimizer))
        self.follow(make, lambda optimizer: self.in_third(lambda: [each["step"].fill_(2) for each in optimizer.state.values()]))

    def test_state_is_there_for_who_looks(self):
        self.optimizer = torch.optim.Adam(self.net.parameters())
        step = self.compile()
        self.assertEqual(len(self.optimizer.state), 0)
        for made in range(1, 6):
            step(*self.batch)
            self.assertEqual({float(each["step"]) for each in self.optimizer.state.values()}, {made})
        copied = copy.deepcopy(self.optimizer)
        self.assertIs(type(copied.state), collections.defaultdict)
        self.assertEqual(len(copied.state), 4)

    def test_state_that_is_loaded_as_it_is(self):
        """It is taken once: steps count on from there, whoever looked at it before."""
        makes = {"Adam": lambda net: torch.optim.Adam(net.parameters(), lr=0.05), "Adamax": lambda net: torch.optim.Adamax(net.parameters(), lr=0.05)}
        loads = {
            "saved": lambda optimizer: optimizer.load_state_dict(optimizer.state_dict()),
            "seen": lambda optimizer: (len(optimizer.state), optimizer.load_state_dict(optimizer.state_dict()), len(optimizer.state)),
        }
        for name, make in makes.items():
            for way, load in loads.items():
                with self.subTest(name, way=way):
                    self.follow(make, lambda optimizer: self.in_third(lambda: load(optimizer)), steps=18)  # noqa: B023

    def test_a_state_dict_that_is_no_copy(self):
        """It shows the state as it is, and to load it later changes nothing, as in eager mode."""

        def keep_and_load(optimizer):
            kept, calls = {}, []

            def change():
                calls.append(1)
                if len(calls) == 2:
                    kept.update(optimizer.state_dict())
                if len(calls) == 5:
                    optimizer.load_state_dict(kept)

            return change

        for name in ("Adam", "SGD", "NAdam"):
            numbers = dict(momentum=0.9) if name == "SGD" else {}
            with self.subTest(name):
                make = lambda net: getattr(torch.optim, name)(net.parameters(), lr=0.05, **numbers)  # noqa: E731, B023
                self.follow(make, keep_and_load, steps=10, delta=1e-7 if name == "NAdam" else 1e-12)

    def test_state_that_is_written_before_a_layer_changes(self):
        """Which has the step look at all layers anew, beside a state that it has not taken yet."""
        eager = twin(self.net)
        self.optimizer, theirs = (torch.optim.Adam(net.parameters(), lr=0.05) for net in (self.net, eager))
        step = self.compile()
        for number in range(8):
            self.assertAlmostEqual(step(*self.batch), eager_losses(eager, self.loss, theirs, self.batch, 1)[0], delta=1e-12)
            if number == 4:
                for optimizer in (self.optimizer, theirs):
                    for state in optimizer.state.values():
                        state["exp_avg"] = state["exp_avg"] * 0.5
                self.net.fc1.register_forward_hook(lambda *_: None)
                step.eval_step(*self.batch)

    def test_what_is_drawn_behind_a_state_that_was_seen(self):
        """SGD's state has no number of steps, which draws go by: they go on, whoever looked at it, or saved it, in between."""
        looks = {
            "saved": lambda optimizer: optimizer.state_dict(),
            "seen": lambda optimizer: len(optimizer.state),
            "loaded": lambda optimizer: optimizer.load_state_dict(optimizer.state_dict()),
        }

        def losses(look):
            torch.manual_seed(0)
            net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)).double()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
            step = gpuc.compile(net, self.loss, optimizer, self.batch)
            return [(step(*self.batch), look(optimizer))[0] for _ in range(6)]

        undisturbed = losses(lambda optimizer: None)
        self.assertEqual(len(set(undisturbed)), 6)
        for way, look in looks.items():
            with self.subTest(way):
                self.assertEqual(losses(look), undisturbed)

    def test_state_of_some_that_is_cleared(self):
        self.optimizer = torch.optim.Adam(self.net.parameters())
        step = self.compile()
        step(*self.batch)
        del self.optimizer.state[self.net.fc1.weight]
        with self.assertWarnsRegex(UserWarning, "parameters have made 0 to 1 steps of Adam"):
            step(*self.batch)

    def told(self, call):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call()
        return [(str(each.message), each.filename) for each in said]

    def test_another_optimizer_after_compiling(self):
        step = self.compile()
        step(*self.batch)
        others = torch.optim.AdamW(Mlp().parameters())
        self.assertEqual(self.told(lambda: step(*self.batch)), [])
        newer = torch.optim.AdamW(self.net.parameters())
        ((text, file),) = self.told(lambda: step(*self.batch))
        self.assertRegex(text, "an optimizer, AdamW, has been made of what this step trains, which goes on with the one .* compile again")
        self.assertEqual(file, __file__)
        self.assertEqual(self.told(lambda: step(*self.batch)), [])
        del others, newer
        torch.optim.AdamW(self.net.parameters())
        self.assertEqual(self.told(lambda: step(*self.batch)), [])
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        again = self.compile()
        self.assertEqual(self.told(lambda: again(*self.batch)), [])

    def test_an_optimizer_that_steps_beside(self):
        """Without gradients, as in a loop that still has its step(); with gradients it is an eager update."""
        mine = torch.optim.AdamW(self.net.parameters())
        step = gpuc.compile(self.net, self.loss, "sgd:lr=0.1", self.batch)
        self.assertEqual(self.told(mine.step), [])
        step(*self.batch)
        ((text, file),) = self.told(lambda: mine.step())
        self.assertRegex(text, r"AdamW.step\(\) finds no gradients, .* compile it with this one, or leave its step\(\) out")
        self.assertEqual(file, __file__)
        self.assertEqual(self.told(mine.step), [])
        step = self.compile()
        step(*self.batch)
        self.assertEqual(self.told(self.optimizer.step), [])
        self.loss(self.net(self.batch[0]), self.batch[1]).backward()
        self.assertEqual(self.told(mine.step), [])

    def test_groups_with_a_name(self):
        self.follow(lambda net: torch.optim.SGD([{"params": net.parameters(), "name": "all", "lr_scale": 0.5}], lr=0.1), lambda _: lambda: None)

    def test_a_first_group_without_a_gradient(self):
        """Its decay is nobody's."""

        class Detached(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(6, 4), nn.Linear(4, 3)

            def forward(self, x):
                return self.b(self.a(x).detach())

        self.net = Detached().double()
        self.follow(lambda net: torch.optim.SGD([{"params": net.a.parameters(), "weight_decay": 0.1}, {"params": net.b.parameters()}], lr=0.1),
                    lambda _: lambda: None)  # fmt: skip

    def test_later_groups_without_a_gradient(self):
        """By themselves, and beside what has one, whose rate goes on."""

        class Auxiliary(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.aside = nn.Linear(6, 4), nn.Linear(4, 3), nn.Linear(6, 3)

            def forward(self, x):
                return self.b(self.a(x)) + self.aside(x).detach()

        def groups_of(*groups):
            return lambda net: torch.optim.SGD([{"params": [p for name in names for p in getattr(net, name).parameters()], "momentum": momentum}
                                                for names, momentum in groups], lr=0.1, weight_decay=0.1)  # fmt: skip

        self.net = Auxiliary().double()
        cycle = lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=9).step  # noqa: E731
        for groups in ([(["a"], 0.9), (["aside"], 0.5), (["b"], 0.7)], [(["a"], 0.9), (["aside", "b"], 0.5)], [(["aside"], 0.9), (["b", "a"], 0.5)]):
            self.follow(groups_of(*groups), cycle)

    def test_groups_of_which_nothing_is_trained(self):
        """Empty ones, frozen ones, and what the loss does not read: the rates of others stay theirs."""

        def groups_of(net):
            unused = nn.Linear(2, 2).double()
            net.fc2.bias.requires_grad_(False)
            net.unused = unused
            groups = [[net.fc1.weight], [], [net.fc2.bias], list(unused.parameters()), [net.fc2.weight, net.fc1.bias]]
            return torch.optim.AdamW([{"params": each, "lr": 0.1 / (number + 1)} for number, each in enumerate(groups)])

        eager = twin(self.net)
        self.optimizer, there = groups_of(self.net), groups_of(eager)
        step = self.compile()
        for rate in (0.2, 0.01, 0.05):
            self.assertAlmostEqual(step(*self.batch), eager_losses(eager, self.loss, there, self.batch, 1)[0], delta=1e-10)
            for optimizer in (self.optimizer, there):
                optimizer.param_groups[4]["lr"] = optimizer.param_groups[2]["lr"] = rate

    def test_decay_of_adam(self):
        """Apart from the gradient or not, for all groups alike, and as it was."""
        self.follow(lambda net: torch.optim.Adam(net.parameters(), lr=0.05, weight_decay=0.3, decoupled_weight_decay=True), lambda _: lambda: None)
        self.follow(lambda net: torch.optim.Adam([{"params": net.parameters(), "decoupled_weight_decay": True}], lr=0.05, weight_decay=0.3),
                    lambda _: lambda: None)  # fmt: skip
        self.optimizer = torch.optim.Adam([{"params": self.net.fc1.parameters(), "decoupled_weight_decay": True},
                                           {"params": self.net.fc2.parameters()}], weight_decay=0.3)  # fmt: skip
        self.assertRaisesRegex(gpuc.Error, "groups differ in decoupled_weight_decay", self.compile)
        self.optimizer = torch.optim.Adam(self.net.parameters(), weight_decay=0.3)
        step = self.compile()
        self.optimizer.param_groups[0]["decoupled_weight_decay"] = True
        self.assertRaisesRegex(gpuc.Error, "the optimizer's decoupled_weight_decay is True, and was False", step, *self.batch)


if __name__ == "__main__":
    unittest.main()
