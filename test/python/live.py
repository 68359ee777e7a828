"""What gpuc.compile trains, next to eager PyTorch; run by torch_test.py with a Python that has torch."""

import copy
import gc
import math
import pathlib
import sys
import unittest
import unittest.mock
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from modules import Gpt, Mlp, ResNet, cases, eager_losses  # noqa: E402


def twin(net):
    """A copy with parameters of its own, ties kept."""
    return copy.deepcopy(net)


def largest_difference(one, other):
    return max((a.double() - b.double()).abs().max().item() for a, b in zip(one, other))


class Models(unittest.TestCase):
    def check(self, net, loss, make, batch, steps=20, delta=1e-8):
        eager, here = twin(net), make(net)
        there = make(eager)
        step = gpuc.compile(net, loss, here, batch)
        losses = [step(*batch) for _ in range(steps)]
        for ours, theirs in zip(losses, eager_losses(eager, loss, there, batch, steps)):
            self.assertAlmostEqual(ours, theirs, delta=delta)
        self.assertLess(largest_difference(net.state_dict().values(), eager.state_dict().values()), delta * 100)
        # Both go on in eager mode, from the module and the optimizer as the steps left them.
        ours, theirs = eager_losses(net, loss, here, batch, 5), eager_losses(eager, loss, there, batch, 5)
        for one, other in zip(ours, theirs):
            self.assertAlmostEqual(one, other, delta=delta)
        # And back: the step goes on from what eager mode has left.
        self.assertAlmostEqual(step(*batch), eager_losses(eager, loss, there, batch, 1)[0], delta=delta)
        return step

    def test_cases(self):
        for name, case in cases().items():
            with self.subTest(name):
                self.check(*case)

    def test_optimizers_that_go_on_in_eager_mode(self):
        """And back, with what they keep."""
        for name, delta in (("Adadelta", 1e-8), ("Adafactor", 1e-8), ("Adamax", 1e-8), ("NAdam", 1e-7), ("RAdam", 1e-8), ("ASGD", 1e-7), ("Rprop", 1e-8)):
            with self.subTest(name):
                torch.manual_seed(0)
                batch = torch.randn(4, 6).double(), torch.randint(0, 3, (4,))
                form = getattr(torch.optim, name)
                self.check(Mlp().double(), nn.CrossEntropyLoss(), lambda net: form(net.parameters(), lr=0.01), batch, delta=delta)  # noqa: B023

    def test_bits_of_integers(self):
        class Bits(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding, self.last = nn.Embedding(8, 4), nn.Linear(4, 3)

            def forward(self, tokens):
                mixed = ((tokens & 5) ^ (tokens > 3)) | torch.where(tokens > 1, 2, 0)
                return self.last(self.embedding(mixed).sum(1) * ((tokens > 2) & ~(tokens > 6)).sum(1, keepdim=True))

        torch.manual_seed(0)
        batch = torch.randint(0, 8, (4, 6)), torch.randint(0, 3, (4,))
        self.check(Bits().double(), nn.CrossEntropyLoss(), lambda net: torch.optim.SGD(net.parameters(), lr=0.1), batch)

    def test_f32(self):
        torch.manual_seed(0)
        batch = torch.randn(8, 6), torch.randint(0, 3, (8,))
        for make in (lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True),
                     lambda net: torch.optim.RMSprop(net.parameters(), lr=1e-3, momentum=0.5, centered=True),
                     lambda net: torch.optim.Adagrad(net.parameters(), lr=1e-2),
                     lambda net: torch.optim.Adam(net.parameters(), amsgrad=True)):  # fmt: skip
            self.check(Mlp(), nn.CrossEntropyLoss(), make, batch, delta=1e-5)

    def test_resnet18(self):
        torch.manual_seed(0)
        net = ResNet((64, 128, 256, 512), 2, 10).double()
        batch = torch.randn(2, 3, 64, 64, dtype=torch.float64), torch.tensor([3, 7])
        # Two rows make norms that are all but singular: what rounding does grows with each step.
        self.check(net, nn.CrossEntropyLoss(), lambda n: torch.optim.SGD(n.parameters(), lr=1e-3), batch, steps=5)

    def test_gpt(self):
        torch.manual_seed(0)
        net = Gpt(vocabulary=97, width=48, heads=4, length=32, layers=3).double()
        batch = torch.randint(0, 97, (4, 32)), torch.randint(0, 97, (4, 32))
        self.check(net, None, lambda n: torch.optim.AdamW(n.parameters(), lr=1e-3), batch)


class Masked(nn.Module):
    """Attention with a mask that is a buffer, which someone may change."""

    def __init__(self, mask):
        super().__init__()
        self.qkv = nn.Linear(6, 18)
        self.register_buffer("mask", mask)

    def forward(self, x):
        q, k, v = (part.view(2, 5, 2, 3).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        return F.scaled_dot_product_attention(q, k, v, attn_mask=self.mask)


class Masks(unittest.TestCase):
    def test_a_mask_in_a_buffer_is_read_in_each_step(self):
        triangle = torch.ones(5, 5, dtype=torch.bool).tril()
        for mask, hidden in ((triangle, False), (torch.zeros(5, 5).double().masked_fill(~triangle, -torch.inf), -torch.inf)):
            torch.manual_seed(0)
            net, batch = Masked(mask.clone()).double(), (torch.randn(2, 5, 6).double(), torch.randn(2, 2, 5, 3).double())
            eager = twin(net)
            optimizers = [torch.optim.SGD(each.parameters(), lr=0.1) for each in (net, eager)]
            step = gpuc.compile(net, F.mse_loss, optimizers[0], batch)
            for _ in range(2):
                self.assertAlmostEqual(step(*batch), eager_losses(eager, F.mse_loss, optimizers[1], batch, 1)[0], delta=1e-14)
                net.mask[4, 0] = eager.mask[4, 0] = hidden


class OfOneNet(unittest.TestCase):
    """Tests of a net, a loss, an optimizer and a batch."""

    def setUp(self):
        torch.manual_seed(0)
        self.net, self.loss = Mlp().double(), nn.CrossEntropyLoss()
        self.batch = torch.randn(4, 6, dtype=torch.float64), torch.randint(0, 3, (4,))
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.5)

    def compile(self, **options):
        return gpuc.compile(self.net, self.loss, self.optimizer, self.batch, **options)


class Loop(OfOneNet):
    """What a training loop does around the step."""

    def test_compiled_again(self):
        """What the optimizer keeps goes on, as of another batch size."""
        for make in (lambda net: torch.optim.AdamW(net.parameters()), lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)):
            eager = twin(self.net)
            self.optimizer, there = make(self.net), make(eager)
            expected = eager_losses(eager, self.loss, there, self.batch, 6)
            losses = [step(*self.batch) for step in (self.compile() for _ in range(3)) for _ in range(2)]
            for ours, theirs in zip(losses, expected):
                self.assertAlmostEqual(ours, theirs, delta=1e-10)

    def test_two_steps_of_a_gan(self):
        """The generator's has a copy of the discriminator, which is brought up to date."""

        class Fool(nn.Module):
            def __init__(self, generator, critic):
                super().__init__()
                self.generator, self.critic = generator, critic

            def forward(self, noise):
                return F.softplus(-self.critic(self.generator(noise))).mean()

        def loss(out, sign):
            return F.softplus(-sign * out).mean()

        def optimizers(*nets):
            return [torch.optim.Adam(each.parameters(), lr=0.01) for each in nets]

        x, noise = torch.randn(8, 6).double(), torch.randn(8, 4).double()
        sign = torch.cat([torch.ones(8, 1), -torch.ones(8, 1)]).double()
        generator, judge = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6)).double(), nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 1)).double()
        nets, eager = (generator, judge), copy.deepcopy((generator, judge))
        critic = copy.deepcopy(judge).requires_grad_(False)
        ours, theirs = optimizers(*nets), optimizers(*eager)
        of_judge = gpuc.compile(judge, loss, ours[1], (torch.cat([x, x]), sign))
        of_generator = gpuc.compile(Fool(generator, critic), None, ours[0], (noise,))
        for _ in range(4):
            with torch.no_grad():
                made = [each(noise) for each in (generator, eager[0])]
            self.assertAlmostEqual(of_judge(torch.cat([x, made[0]]), sign), eager_losses(eager[1], loss, theirs[1], (torch.cat([x, made[1]]), sign), 1)[0], delta=1e-12)
            critic.load_state_dict(judge.state_dict())
            self.assertAlmostEqual(of_generator(noise), eager_losses(Fool(*eager), None, theirs[0], (noise,), 1)[0], delta=1e-12)

    def alternate(self, parts, rounds=4):
        """Steps of modules that have layers in common, by turns: (net, optimizer, batch) of each, next to eager ones."""
        eager = copy.deepcopy(parts)
        steps = [gpuc.compile(net, self.loss, optimizer, batch) for net, optimizer, batch in parts]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(rounds):
                for step, (net, optimizer, batch), (_, _, given) in zip(steps, eager, parts):
                    for _ in range(1 + number % 2):
                        expected = eager_losses(net, self.loss, optimizer, batch, 1)[0]
                        self.assertAlmostEqual(step(*given), expected, delta=1e-9)
                    expected = self.loss(net.eval()(batch[0]), batch[1]).item()
                    self.assertAlmostEqual(step.evaluate([given]).loss, expected, delta=1e-9)
                    net.train()
        for (net, optimizer, _), (twin, theirs, _) in zip(parts, eager):
            self.assertLess(largest_difference(net.state_dict().values(), twin.state_dict().values()), 1e-9)
            ours, theirs = (each.state_dict()["state"] for each in (optimizer, theirs))
            for key, state in theirs.items():
                for slot, value in state.items():
                    self.assertLess((ours[key][slot] - value).abs().max().item(), 1e-9)

    def test_steps_with_a_layer_in_common(self):
        """Both train it, each with an optimizer of its own."""
        trunk = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Tanh()).double()
        nets = [nn.Sequential(trunk, nn.Linear(8, 3).double()) for _ in range(2)]
        x, y = self.batch
        for make in (lambda of: torch.optim.AdamW(of, lr=0.01), lambda of: torch.optim.SGD(of, lr=0.1, momentum=0.9)):
            self.alternate([(net, make(net.parameters()), (x * scale, y)) for net, scale in zip(nets, (1, 2))])

    def test_two_shapes_of_batches(self):
        """Of one net and one optimizer, whose state goes with the weights."""
        x, y = self.batch
        for make in (lambda of: torch.optim.AdamW(of, lr=0.01), lambda of: torch.optim.SGD(of, lr=0.1, momentum=0.9, dampening=0.5)):
            optimizer = make(self.net.parameters())
            self.alternate([(self.net, optimizer, (x, y)), (self.net, optimizer, (x[:2], y[:2]))])

    def test_a_gan_without_copies(self):
        """What the generator's step does not train it has from the judge's."""
        judge, generator = nn.Sequential(nn.Linear(6, 9), nn.Tanh(), nn.Linear(9, 3)).double(), nn.Linear(6, 6).double()
        make = lambda net: torch.optim.Adam(net.parameters(), lr=0.01)  # noqa: E731
        self.alternate([(judge, make(judge), self.batch), (nn.Sequential(generator, judge), make(generator), self.batch)])

    def test_a_layer_that_is_unfrozen(self):
        """Adam counts the steps of each parameter, and a compiled step those of all."""
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.net.fc1.requires_grad_(False)
        self.compile()(*self.batch)
        self.net.fc1.requires_grad_(True)
        with self.assertWarnsRegex(UserWarning, "parameters have made 0 to 1 steps of Adam, .*: make a new optimizer when a layer is unfrozen"):
            self.compile()
        self.optimizer = torch.optim.Adam(self.net.parameters())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.compile()

    def test_what_changes_after_compiling(self):
        step = self.compile()
        step(*self.batch)
        self.optimizer.param_groups[0]["momentum"] = 0.5
        with self.assertRaisesRegex(gpuc.Error, "the optimizer's momentum is 0.5, and was 0 when"):
            step(*self.batch)
        self.optimizer.param_groups[0]["momentum"] = 0
        self.net.fc2.bias.requires_grad_(False)
        with self.assertRaisesRegex(gpuc.Error, "requires_grad of 'fc2.bias'"):
            for _ in range(8 * len(step._watched) + 8):
                step(*self.batch)
        self.net.fc2.bias.requires_grad_(True)
        self.optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(1))]})
        with self.assertRaisesRegex(gpuc.Error, "other groups"):
            step(*self.batch)

    def test_modes_that_change_after_compiling(self):
        step = self.compile()
        step(*self.batch)
        self.net.eval()
        with self.assertRaisesRegex(gpuc.Error, "net is in eval mode, .*call net.train"):
            step(*self.batch)
        self.net.train()
        step(*self.batch)
        self.net.fc2.eval()
        with self.assertRaisesRegex(gpuc.Error, "training of 'fc2' is False, and was True"):
            for _ in range(8 * len(step._watched) + 8):
                step(*self.batch)

    def test_groups_that_load_state_dict_has_made(self):
        """Their rates hold from the next step on, and their numbers are checked."""
        step = self.compile()
        step(*self.batch)
        state = self.optimizer.state_dict()
        state["param_groups"][0]["lr"] = 0.0
        self.optimizer.load_state_dict(state)
        before = self.net.fc1.weight.clone()
        step(*self.batch)
        self.assertTrue(torch.equal(self.net.fc1.weight, before))
        self.optimizer.param_groups[0]["lr"] = 0.5
        step(*self.batch)
        self.assertFalse(torch.equal(self.net.fc1.weight, before))
        state["param_groups"][0]["momentum"] = 0.5
        self.optimizer.load_state_dict(state)
        with self.assertRaisesRegex(gpuc.Error, "the optimizer's momentum is 0.5"):
            step(*self.batch)

    def test_a_quick_step_is_as_strict(self):
        """It takes what lies as it was compiled, gives the bits of the other way, and leaves all else to that."""
        step = self.compile()
        if not step._quick:
            self.skipTest("torch has no exchange API of DLPack 1")
        x, y = self.batch
        for made in range(9):
            self.assertEqual(step._quick((x, y)) is None, made in (0, 1, 2, 4, 8), made)  # Else there is one more.
            if step._quick.steps == made:
                step(x, y)
        self.assertIsNotNone(step._quick((torch.cat((x, x))[4:], y)))
        with unittest.mock.patch.object(step, "_call", side_effect=AssertionError):
            self.assertEqual([type(call(x, y)) for call in (step, step.step)], [float, float])
            self.assertRaises(AssertionError, step, x[:3], y)
            self.assertRaises(AssertionError, step, x=x, y=y)

        class Marked(torch.Tensor):
            pass

        pinned = [(x, y, y), (x,), (x[:3], y), (x.float(), y), (x.T.contiguous().T, y), (x, y.int()), (x.to("meta"), y),
                  (x.as_subclass(Marked), y), (x.numpy(), y), (x.tolist(), y), (None, y), (x.expand(1, 4, 6), y)]  # fmt: skip
        made = step._quick.steps
        for each in pinned:
            self.assertIsNone(step._quick(each), each)
        self.assertEqual(step._quick.steps, made)

        start = {name: tensor.clone() for name, tensor in self.net.state_dict().items()}
        losses = [step(x, y) for _ in range(3)]
        state = self.net.state_dict()
        after = {name: tensor.clone() for name, tensor in state.items()}
        for name, tensor in state.items():
            tensor.copy_(start[name])
        self.assertEqual([step._update((x, y), {}) for _ in range(3)], losses)
        self.assertTrue(all(torch.equal(tensor, after[name]) for name, tensor in self.net.state_dict().items()))

    def test_a_step_that_nobody_has_is_gone(self):
        """With the optimizer, whose hooks know it."""
        step = self.compile()
        step(*self.batch)
        seen = weakref.ref(step)
        del step, self.optimizer
        gc.collect()
        self.assertIsNone(seen())

    def test_clip_norm(self):
        eager = twin(self.net)
        there = torch.optim.SGD(eager.parameters(), lr=0.5)
        step = self.compile(clip_norm=0.1)
        for _ in range(5):
            there.zero_grad()
            loss = self.loss(eager(self.batch[0]), self.batch[1])
            loss.backward()
            nn.utils.clip_grad_norm_(eager.parameters(), 0.1)
            there.step()
            self.assertAlmostEqual(step(*self.batch), loss.item(), delta=1e-8)

    def test_evaluation_and_prediction(self):
        step = self.compile()
        step(*self.batch)
        with torch.no_grad():
            expected = self.net(self.batch[0])
        self.assertLess((step.predict(self.batch[0]) - expected).abs().max().item(), 1e-12)
        mean = self.loss(expected, self.batch[1]).item()
        self.assertAlmostEqual(step.eval_step(*self.batch), mean, delta=1e-12)
        self.assertAlmostEqual(step.evaluate([self.batch, self.batch]).loss, mean, delta=1e-12)
        nothing = self.batch[0], torch.full((4,), -100)
        self.assertTrue(all(math.isnan(loss) for loss in (step.eval_step(*nothing), step.evaluate([nothing]).loss)))

    def test_checkpoints_of_torch(self):
        self.optimizer = torch.optim.Adam(self.net.parameters())
        step = self.compile()
        for _ in range(3):
            step(*self.batch)
        saved = copy.deepcopy((self.net.state_dict(), self.optimizer.state_dict()))
        self.assertEqual(saved[1]["state"][0]["step"].item(), 3)
        ahead = [step(*self.batch) for _ in range(3)]
        self.net.load_state_dict(saved[0])
        self.optimizer.load_state_dict(saved[1])
        self.assertEqual([step(*self.batch) for _ in range(3)], ahead)

    def test_report_and_save(self):
        step = self.compile()
        self.assertEqual(step.report["peak_bytes"], step.arena_bytes)
        self.assertIn("train_step", step.report._repr_html_())

    def test_inputs_have_their_names(self):
        names = [name for name, *_ in self.compile().programs["train_step"][0]]
        self.assertEqual(names, ["x", "target"])

    def test_dropout_is_drawn_anew(self):
        self.net = nn.Sequential(nn.Dropout(0.5), Mlp().double())
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.0)
        step = self.compile(seed=1)
        self.assertEqual(len({step(*self.batch) for _ in range(5)}), 5)
        self.assertEqual(step.eval_step(*self.batch), step.eval_step(*self.batch))


def written(a, b):
    """Assignments into parts."""
    c = a * 2
    c[:, 1] = b
    c[1:3] = a[0]
    c[3, 2] += 5
    return c


# By name: the op, and the shapes of its operands, each a parameter. What is no number stands in the lambda.
OPS = {
    "add": (lambda a, b: torch.add(a, b, alpha=2), (3, 4), (4,)),
    "sub": (lambda a, b: 1 - a - b, (3, 4), (3, 1)),
    "mul": (lambda a, b: a * b * 2, (3, 4), (3, 1)),
    "div": (lambda a, b: a / (b + 3) / 2, (3, 4), (3, 1)),
    "pow": (lambda a: (a.abs() + 1) ** 1.5 + a**2 + a**3 + (a.abs() + 1) ** 0.5, (3, 4)),
    "pow_tensor": (lambda a, b: (a.abs() + 1) ** b, (3, 4), (4,)),
    "reciprocal": (lambda a: (a + 3).reciprocal() + a.square(), (5,)),
    "exponentials": (lambda a: a.exp() + a.expm1() + (a + 2).log() + (a + 2).log1p(), (5,)),
    "roots": (lambda a: (a + 2).sqrt() + (a + 2).rsqrt(), (5,)),
    "angles": (lambda a: a.sin() + a.cos() + a.tan() + a.atan() + a.erf(), (5,)),
    "signs": (lambda a: a.abs() + a.neg() + a.sign() + a.floor() + a.ceil() + a.round(), (5,)),
    "extremes": (lambda a, b: torch.maximum(a, b) + torch.minimum(a, b), (5,), (5,)),
    "clamp": (lambda a: a.clamp(-0.1, 0.2) + a.clamp(min=0.1) + a.clamp_max(0.2), (9,)),
    "clamp_tensor": (lambda a, b: a.clamp(b - 0.1, b + 0.1), (9,), (9,)),
    "logarithms": (lambda a: (a + 2).log2() + (a + 2).log10() + a.sinh() + a.cosh(), (5,)),
    "inverses": (lambda a: (a / 9).asin() + (a / 9).acos() + a.asinh() + (a.abs() + 2).acosh() + (a / 9).atanh() + a.exp2(), (5,)),
    "atan2": (lambda a, b: torch.atan2(a, b) + torch.atan2(-a, -b) + torch.atan2(a, b * 1e-3), (9,), (9,)),
    "remainders": (lambda a: a.remainder(0.3) + a.fmod(0.3) + a.trunc() + torch.div(a, 0.3, rounding_mode="trunc"), (9,)),
    "filled": (lambda a: torch.zeros_like(a) + torch.ones_like(a) * a + torch.full_like(a, 2) + a.new_zeros(3).sum()
               + a * ~a.isnan() * ~a.isinf(), (5,)),
    "where": (lambda a, b: torch.where(a > b, a, b * 2) + a.masked_fill(b < 0, 3.0), (9,), (9,)),
    "compare": (lambda a, b: a * ((a >= b) & ~(a == 0) | (b <= 0.1) & (b != 0.5)), (9,), (9,)),
    "types": (lambda a: (a.float() * 2).double() + a.to(torch.float32).to(torch.float64) * torch.arange(5), (5,)),
    "activations": (lambda a: F.relu(a) + F.silu(a) + torch.tanh(a) + torch.sigmoid(a) + F.gelu(a)
                    + F.gelu(a, approximate="tanh"), (9,)),
    "more_activations": (lambda a: F.leaky_relu(a, 0.1) + F.elu(a, 0.7) + F.selu(a) + F.celu(a, 0.8) + F.relu6(a)
                         + F.hardswish(a) + F.hardsigmoid(a) + F.mish(a) + F.softplus(a, 2, 1) + F.logsigmoid(a)
                         + F.hardtanh(a), (9,)),
    "softmax": (lambda a: a.softmax(0) + a.log_softmax(1) + a.cumsum(1), (3, 4)),
    "safe_softmax": (lambda a: torch.ops.aten._safe_softmax(a.masked_fill(torch.tensor([[1], [0], [0]]).bool(), -torch.inf), 1)
                     + a * torch.zeros(()).double().expand(3, 4).index_fill(0, torch.tensor([1]), 2), (3, 4)),
    "sums": (lambda a: a.sum() + a.sum(1) + a.mean() + a.mean((0, 2)).sum() + a.mean(1, keepdim=True).sum(), (3, 4, 4)),
    "variances": (lambda a: a.var() + a.var(1).sum() + a.std(0, unbiased=False).sum() + a.norm() + a.norm(dim=1).sum(), (3, 4)),
    "norms_at_zero": (lambda a: torch.linalg.vector_norm(a * torch.tensor([[0.0], [1], [1]]).double(), 0.5, 1), (3, 4)),
    "extreme_sums": (lambda a: a.amax(1).sum() + a.amin((0, 1)) + a.logsumexp(1).sum(), (3, 4)),
    "extremes_of_dims": (lambda a: a.max(1)[0].sum() + a.min(0, keepdim=True)[0].sum() * 2 + a.max() * 3 + a.min(), (3, 4)),
    "var_mean": (lambda a: sum(part.sum() for part in torch.var_mean(a, 1)), (3, 4)),
    "argmax": (lambda a: a * a.argmax(1, keepdim=True) + a * a.argmin(0) + a.argmin() * a, (3, 4)),
    "products_of_dims": (lambda a: a.prod(1).sum() + a.prod() + a.cumprod(1).sum(1), (3, 4)),
    "norms": (lambda a: a.norm(3) + a.norm(3, 1).sum() + a.norm(float("inf"), 1).sum() + a.norm(0) + a.norm(2, dtype=torch.float64) + (a * 0).norm() + (a * 0).std(), (3, 4)),
    "quantifiers": (lambda a: a * ((a > 0).any(1, keepdim=True) & (a > -9).all()), (3, 4)),
    "integers": (lambda a: a * ((torch.arange(6) - 3) // 2) + a * ((torch.arange(6) - 3) % -2), (6,)),
    "orders": (lambda a: a.sort(1)[0][:, 1] + a.sort(0, descending=True)[0].sum(1) * 2 + a.topk(2, 1)[0][:, 1] * 3
               + a.topk(1, 0, largest=False)[0].sum(), (3, 4)),
    "views": (lambda a: (a.view(4, 6).t() @ a.reshape(4, 6)).flatten() + a.permute(2, 0, 1).reshape(-1)[:1], (2, 3, 4)),
    "squeezes": (lambda a: a.unsqueeze(1).squeeze(1) + a.unsqueeze(-1).squeeze() + a.unflatten(1, (2, 2)).flatten(1), (3, 4)),
    "expands": (lambda a: a.expand(3, 4) * a.repeat(3, 2)[:, :4] + a.expand_as(torch.ones(3, 4)), (4,)),
    "joins": (lambda a, b: torch.cat([a, b], 1).sum(0) + torch.stack([a, b], 1).sum(), (3, 4), (3, 4)),
    "splits": (lambda a: sum(part.sum(1) * (i + 1) for i, part in enumerate([*a.split(2, 1), *a.chunk(3, 1),
               *a.split([1, 4], 1), *a.unbind(1)[:0]])), (3, 5)),
    "slices": (lambda a: a[1:, ::2].sum() + a[-1].sum() * 2 + a[:, 1].sum() * 3 + a.select(0, 0).sum(), (3, 5)),
    "unbind": (lambda a: a.unbind(1)[2] * a.unbind(1)[0], (3, 5)),
    "indices": (lambda a: a.index_select(1, torch.tensor([0, 3, 3])).sum(1) * 2 + a[:, torch.tensor([[0, -1]])].sum((1, 2))
                + a[torch.tensor([0, 2]), torch.tensor([1, -2])].sum(), (3, 4)),
    "gather": (lambda a: a.gather(1, torch.tensor([[0, 3, 3], [1, 2, 0]])) + a.gather(0, torch.tensor([[2, 0, 1], [0, 0, 2]])), (3, 4)),
    "scatter": (lambda a, b: a.scatter(1, torch.tensor([[1, 0], [2, 2]]), 7.0).sum(0) + a.scatter(0, torch.tensor([[1, 2, 0, 1], [0, 1, 1, 2]]), b)
                + a.scatter_add(0, torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]), b) * 2, (3, 4), (2, 4)),
    "infinities": (lambda a: F.pad(a, (1, 1), value=-math.inf).scatter(1, torch.tensor([[1], [0], [2]]), -math.inf).softmax(1)
                   + F.pad(a, (1, 1), value=-math.inf).index_fill(1, torch.tensor([0, 2]), -math.inf).softmax(1)
                   + a.index_put((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.tensor(math.inf).double()).clamp(max=3).sum()
                   + F.pad(a, (0, 0, 1, 0), value=-math.inf).logsumexp(1).clamp(min=-9).sum(), (3, 2)),
    "index_put": (lambda a, b: a.index_put((torch.tensor([0, -1]), torch.tensor([1, 2])), b[0, :2])
                  + a.index_put((torch.tensor([1, 1]),), b, accumulate=True) * 2 + a.index_put((a > 0,), b.sum())
                  + a.index_put((torch.tensor([2, 2]),), b[:1].repeat(2, 1)), (3, 4), (2, 4)),
    "apart": (lambda a: a[torch.tensor([0, 1]), :, torch.tensor([[2], [0]])].sum(0) + a[..., torch.tensor([1])].sum(), (3, 4, 3)),
    "triangles": (lambda a: a.tril(1) + a.triu(), (4, 4)),
    "written": (lambda a, b: written(a, b), (4, 5), (4,)),
    "moves": (lambda a: F.pad(a, (1, 2, 0, -1)).sum(0) * 2 + a.flip(-1, 0)[0].sum() * a.roll(1, 0)[0, 0] + a.roll((1, 2), (0, 1)).sum(), (3, 5)),
    "products": (lambda a, b: a @ b + torch.mm(a, b) + torch.addmm(b[:3], a, b, beta=0.5, alpha=2), (3, 4), (4, 4)),
    "batched": (lambda a, b: a @ b + torch.bmm(a, b) + torch.baddbmm(b[:, :3], a, b), (2, 3, 4), (2, 4, 4)),
    "vectors": (lambda a, b: a @ b + b @ a.t() + torch.dot(b, b), (3, 4), (4,)),
    "einsum": (lambda a, b: torch.einsum("bij,jk->bik", a, b), (2, 3, 4), (4, 5)),
    "linear": (lambda a, b, c: F.linear(a, b, c) + F.linear(a[0], b), (3, 4), (5, 4), (5,)),
    "conv2d": (lambda a, b, c: F.conv2d(a, b, c, stride=2, padding=1, groups=2), (2, 4, 7, 7), (6, 2, 3, 3), (6,)),
    "conv1d": (lambda a, b: F.conv1d(a, b, padding=2, dilation=2), (2, 3, 8), (4, 3, 3)),
    "conv_same": (lambda a, b: F.conv2d(a, b, padding="same") + F.conv2d(a, b[..., :2], padding="same"), (2, 3, 6, 6), (4, 3, 3, 3)),
    # Zeros around images and series, and what is cut off, by hand.
    "conv_padded": (lambda a, b: F.conv2d(F.pad(a, (0, 1, 2, 0)), b, padding=1).sum(1) + F.conv2d(F.pad(F.pad(a, (1, 1)), (0, 0, 2, 0)), b[..., :2], padding=(1, 0)).sum(1)
                    + F.conv2d(F.pad(a, (0, 1, 2, 0), value=2.0), b, padding=1).sum(1), (2, 3, 6, 6), (4, 3, 3, 3)),
    "conv_cut": (lambda a, b, c: F.conv2d(a, b, c, padding=3)[:, :, 2:, :-1].sum(1) + F.conv2d(a, b, c, 2, 5)[..., 2:, 1:9].sum(1).sum()
                 + F.conv_transpose2d(a, b.mT[:3].repeat(1, 4, 1, 1), c.repeat(3), 2)[..., 1:9, :9].sum(1), (2, 3, 6, 6), (4, 3, 3, 3), (4,)),
    "causal": (lambda a, b, c: F.conv1d(a, b, c, padding=4, dilation=2)[..., :-4] + F.conv1d(F.pad(a, (2, 0)), b, c), (2, 3, 9), (4, 3, 3), (4,)),
    "conv_transpose": (lambda a, b, c: F.conv_transpose2d(a, b, c, 2, 1, 1), (2, 4, 5, 5), (4, 3, 3, 3), (3,)),
    "conv_transpose1d": (lambda a, b: F.conv_transpose1d(a, b, stride=2, groups=2), (2, 4, 5), (4, 3, 3)),
    "interpolate": (lambda a: F.interpolate(a, scale_factor=2).sum() + F.interpolate(a, (5, 3)).sum() * 2
                    + (F.interpolate(a, (7, 9), mode="bilinear") ** 2).sum()
                    + (F.interpolate(a, scale_factor=2, mode="bilinear", align_corners=True) ** 2).sum(), (2, 3, 4, 6)),
    # Of 2 rows times 2.05 each comes twice; column 15 is column 15 / 0.6 = 25, which is less only in f64.
    "interpolate_by_factors": (lambda a: F.interpolate(a, scale_factor=(2.05, 0.6)) * F.interpolate(a, (4, 30)), (2, 1, 2, 50)),
    # Whole factors, by sums of slices: borders, halves, three of two, a last group that is cut; each weighs differently.
    "interpolate_phases": (lambda a: (F.interpolate(a, scale_factor=2, mode="bilinear") ** 2).sum()
                           + (F.interpolate(a, scale_factor=(1, 1.5), mode="bilinear") ** 2).sum() * 2
                           + (F.interpolate(a, scale_factor=0.5, mode="bilinear") ** 2).sum() * 3
                           + (F.interpolate(a, (52, 64), mode="bilinear", align_corners=True) ** 2).sum() * 4
                           + (F.interpolate(a, scale_factor=(1, 1.6), mode="nearest") ** 2).sum() * 5
                           + (F.interpolate(a, (34, 17), mode="nearest") ** 2).sum() * 6
                           + (F.interpolate(a, (34, 70), mode="bicubic") ** 2).sum() * 7, (1, 2, 17, 34)),
    # Of long series by gathers.
    "interpolate_long": (lambda a: (F.interpolate(a, 350, mode="linear", align_corners=True) ** 2).sum() + F.interpolate(a, 287)
                         + (F.interpolate(a, scale_factor=2, mode="linear") ** 2).sum() * 2, (2, 2, 300)),
    "interpolate_exact": (lambda a: F.interpolate(a, (7, 9), mode="nearest-exact") * F.interpolate(a, (7, 9))
                          + F.interpolate(a, (2, 3), mode="nearest-exact").sum() + F.interpolate(a[:1, :1, :1, :1], (7, 1), mode="nearest"), (2, 3, 4, 6)),
    "interpolate_smooth": (lambda a: (F.interpolate(a, (7, 4), mode="bilinear", antialias=True) ** 2).sum()
                           + (F.interpolate(a, scale_factor=0.4, mode="bicubic", antialias=True) ** 2).sum() * 2
                           + (F.interpolate(a, (3, 25), mode="bicubic", antialias=True, align_corners=True) ** 2).sum() * 3
                           + (F.interpolate(a, (9, 7), mode="bicubic", align_corners=True) ** 2).sum() * 4, (2, 2, 13, 11)),
    "pools": (lambda a: F.max_pool2d(a, 3, 2, 1).sum() + F.avg_pool2d(a, 2).sum() * 2
              + F.avg_pool2d(a, 3, 2, 1, count_include_pad=False).sum() * 3 + F.max_pool2d(a, 3, 2, ceil_mode=True).sum(), (2, 3, 8, 8)),
    "adaptive": (lambda a: F.adaptive_avg_pool2d(a, (3, 2)).sum(1) + F.adaptive_avg_pool2d(a, 1)[0, 0, 0, 0]
                 + F.adaptive_avg_pool1d(a[:, 0], 3).sum(), (2, 3, 7, 4)),
    "layer_norm": (lambda a, b, c: F.layer_norm(a, (4,), b, c) + F.layer_norm(a, (3, 4)), (2, 3, 4), (4,), (4,)),
    "rms_norm": (lambda a, b: F.rms_norm(a, (4,), b) + F.rms_norm(a, (4,), eps=1e-3), (2, 3, 4), (4,)),
    "group_norm": (lambda a, b, c: F.group_norm(a, 2, b, c), (2, 4, 3, 3), (4,), (4,)),
    "instance_norm": (lambda a: F.instance_norm(a), (2, 4, 3, 3)),
    "batch_norm": (lambda a, b: F.batch_norm(a, None, None, b, training=True), (4, 3, 2, 2), (3,)),
    "embedding": (lambda a: F.embedding(torch.tensor([[0, 2], [1, 2]]), a, padding_idx=1), (3, 4)),
    "attention": (lambda a, b: F.scaled_dot_product_attention(a, b, b, is_causal=True)
                  + F.scaled_dot_product_attention(a, b, b, scale=0.3)
                  + F.scaled_dot_product_attention(a, b, b, attn_mask=torch.ones(5, 5).tril(1).bool())
                  + F.scaled_dot_product_attention(a[:, :1], b[:, :1], b[:, :1]), (2, 2, 5, 4), (2, 2, 5, 4)),
    "written_attention": (lambda a, b: (0.5 * (a @ b.mT)).masked_fill(torch.ones(34, 34).triu(1).bool(), -math.inf).softmax(-1) @ b
                          + (a @ b.mT / 3 + torch.full((34, 34), -math.inf).triu(1)).softmax(-1) @ b
                          + (a @ b.mT + torch.full((34, 34), -1e9).triu(1)[None, None]).softmax(-1) @ b
                          + (a @ b.transpose(-1, -2) + torch.arange(34.0) / 34).softmax(-1) @ b
                          + torch.where(torch.ones(34, 34).tril(2) > 0, a @ b.mT, -1e30).softmax(-1) @ b, (2, 2, 34, 4), (2, 2, 34, 4)),
    "triangles": (lambda a: a * torch.ones(40, 30).tril(-3).double() + a.mT.reshape(2, 40, 30) * torch.ones(2, 40, 30).triu(5)
                  + a.masked_fill(torch.ones(40, 30).tril(-38).bool(), 2.0) + a * torch.full((40, 30), -7.0).triu(-39)
                  + a * torch.eye(40, 30) + a[:, torch.ones(40, 30, dtype=torch.long).tril(28)[:, 0]], (2, 40, 30)),
    "attention3": (lambda a, b: F.scaled_dot_product_attention(a, b, b), (2, 5, 4), (2, 5, 4)),
    "class_losses": (lambda a: F.cross_entropy(a, torch.tensor([0, 2, -100]), weight=torch.tensor([1.0, 2, 3]).double())
                     + F.nll_loss(a.log_softmax(1), torch.tensor([0, 2, 1]), reduction="sum")
                     + F.cross_entropy(a, torch.full((3, 3), 1 / 3).double(), label_smoothing=0.1), (3, 3)),
    "image_loss": (lambda a: F.cross_entropy(a, torch.zeros(2, 4, 4, dtype=torch.long)), (2, 3, 4, 4)),
    "element_losses": (lambda a, b: F.mse_loss(a, b) + F.l1_loss(a, b, reduction="sum") + F.huber_loss(a, b, delta=0.3)
                       + F.smooth_l1_loss(a, b, beta=0.3), (3, 4), (3, 4)),
    "unreduced": (lambda a, b: F.mse_loss(a, b, reduction="none").sum(1) + F.l1_loss(a, b, reduction="none").mean(1), (3, 4), (3, 4)),
    "binary_losses": (lambda a: F.binary_cross_entropy_with_logits(a, torch.full((3, 4), 0.3).double(),
                      pos_weight=torch.tensor([1.0, 2, 3, 4]).double())
                      + F.binary_cross_entropy(a.sigmoid(), torch.full((3, 4), 0.3).double()), (3, 4)),
}  # fmt: skip


class EachOp(nn.Module):
    """All of OPS in one module, each with parameters of its own, so that one compilation says of each what its gradients are."""

    def __init__(self):
        super().__init__()
        for name, (_, *shapes) in OPS.items():
            values = [nn.Parameter(torch.randn(shape, dtype=torch.float64)) for shape in shapes]
            self.register_module(name + "_", nn.ParameterList(values))

    def forward(self, x):
        total = x.sum()
        for name, (op, *_) in OPS.items():
            value = op(*getattr(self, name + "_"))
            weights = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape) / value.numel()
            total = total + (value * weights).sum()
        return total


class Draws(nn.Module):
    """What is drawn, as statistics of a variable each, of which the first step's are seen."""

    COUNT = 1 << 14

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        for name in self.drawn(torch.zeros(1)):
            self.register_buffer(name, torch.zeros(self.COUNT))

    def drawn(self, x):
        like = torch.zeros(len(x) and self.COUNT, dtype=x.dtype)
        return {"rand": torch.rand(self.COUNT, dtype=x.dtype), "rand_like": torch.rand_like(like), "randn": torch.randn(self.COUNT),
                "randn_like": torch.randn_like(like), "bernoulli": torch.bernoulli(like + 0.3),
                "bernoulli_": torch.empty_like(like).bernoulli_(0.8)}  # fmt: skip

    def forward(self, x):
        for name, value in self.drawn(x).items():
            getattr(self, name).copy_(value)
        return (self.scale * x).sum()


class Random(unittest.TestCase):
    def test_draws_have_their_distributions(self):
        """And are other ones in each step, and in each op."""
        torch.manual_seed(0)
        net, x = Draws(), torch.ones(3)
        eager = twin(net)
        step = gpuc.compile(net, None, "sgd:lr=1", x, seed=3)
        eager(x)
        step(x)
        first = {name: value.clone() for name, value in net.named_buffers()}
        step(x)
        for name, value in first.items():
            with self.subTest(name):
                theirs = eager.get_buffer(name)
                self.assertEqual((value.dtype, value.shape), (theirs.dtype, theirs.shape))
                for statistic in (torch.mean, torch.std):
                    self.assertAlmostEqual(statistic(value).item(), statistic(theirs).item(), delta=0.05)
                self.assertAlmostEqual(value.min().item(), theirs.min().item(), delta=0.05 if "randn" not in name else 1.5)
                self.assertFalse(torch.equal(value, net.get_buffer(name)))
        self.assertFalse(torch.equal(first["rand"], first["rand_like"]))


class Ops(unittest.TestCase):
    def test_values_and_gradients(self):
        torch.manual_seed(5)
        net = EachOp()
        eager, x = twin(net), torch.zeros(2, dtype=torch.float64)
        step = gpuc.compile(net, None, "sgd:lr=1", x)
        loss = eager(x)
        loss.backward()
        self.assertAlmostEqual(step(x), loss.item(), delta=1e-9)
        for (name, ours), theirs in zip(net.named_parameters(), eager.parameters()):
            with self.subTest(name):
                # In f32 where the case casts to it; PyTorch's own backward pass rounds some constants so, too.
                delta = {"types_": 1e-6, "more_activations_": 1e-7}.get(name.split(".")[0], 1e-10)
                gradient = 0 if theirs.grad is None else theirs.grad
                self.assertLess((ours - (theirs - gradient)).abs().max().item(), delta)


if __name__ == "__main__":
    unittest.main()
