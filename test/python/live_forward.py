"""What torch.export would drop or freeze without a word: gradients that a module gives by itself, layers in two places, what has no elements.

Each module trains as it does in eager PyTorch, or is refused with the reason. By a Python with torch.
"""

import copy
import functools
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import gpuc
from gpuc.capture.recorder import Recorder
from modules import eager_losses


class Sign(torch.autograd.Function):
    """A straight-through estimator."""

    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Reverse(torch.autograd.Function):
    """Gradient reversal, with an argument that is no tensor."""

    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.strength * gradient, None


class Spike(torch.autograd.Function):
    """A step function with a surrogate's gradient, which is not to be differentiated again."""

    @staticmethod
    def forward(ctx, x, threshold):
        ctx.save_for_backward(x, threshold)
        return (x > threshold).to(x.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        x, threshold = ctx.saved_tensors
        slope = gradient / (1 + (x - threshold) ** 2)
        return slope, -slope.sum(0)


def doubled(backward):
    @functools.wraps(backward)
    def twice(ctx, gradient):
        return 2 * backward(ctx, gradient)

    return twice


class Decorated(torch.autograd.Function):
    """What is wrapped around backward() is a part of it."""

    @staticmethod
    def forward(ctx, x):
        return torch.sign(x)

    @staticmethod
    @doubled
    def backward(ctx, gradient):
        return gradient


class Quantized(torch.autograd.Function):
    """A product by rounded weights whose gradient is the exact weights': no gradient of one element by another's."""

    @staticmethod
    def forward(x, weight):
        return x @ (weight * 4).round().t() / 4

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight, gradient.t() @ x


class Arc(torch.autograd.Function):
    """Of a part of all numbers alone: beyond, its gradient is NaN."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (2 * x).acos()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient / (1 - 4 * x * x).sqrt()


class Applied(torch.autograd.Function):
    """Of a function that reads what it likes."""

    @staticmethod
    def forward(ctx, function, x):
        return function(x)

    @staticmethod
    def backward(ctx, gradient):
        return None, 3 * gradient


class Swish(torch.autograd.Function):
    """Its backward() is its derivative, which saves memory in eager mode."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        sigmoid = torch.sigmoid(x)
        return gradient * sigmoid * (1 + x * (1 - sigmoid))


class Halves(torch.autograd.Function):
    """Two outputs, each with a gradient of its own."""

    @staticmethod
    def forward(ctx, x):
        return x[:, :4] * 1, x[:, 4:].abs()

    @staticmethod
    def backward(ctx, first, second):
        return torch.cat([first * 3, second], 1)


class Tanh(torch.autograd.Function):
    """forward() switches gradients off by itself, and on for what comes after."""

    @staticmethod
    def forward(ctx, x):
        with torch.no_grad():
            y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * (1 - ctx.saved_tensors[0] ** 2)


class Certain(torch.autograd.Function):
    """A draw by probabilities, which can be nothing else."""

    @staticmethod
    def forward(ctx, x):
        return torch.bernoulli((x > 0.5).to(x.dtype) + 0 * torch.bernoulli(x))

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def sign_made_here(x):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.sign(x)

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    return Made.apply(x)


class MaskedSoftmax(torch.autograd.Function):
    """forward() writes over what autograd would have kept, as that of DeBERTa's does."""

    @staticmethod
    def forward(ctx, x, mask):
        y = torch.softmax(x.masked_fill(mask, -1e9), -1)
        y.masked_fill_(mask, 0)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        (y,) = ctx.saved_tensors
        return torch._softmax_backward_data(gradient, y, -1, y.dtype), None


class Masked(torch.autograd.Function):
    """What is drawn in forward() is what backward() has kept."""

    @staticmethod
    def forward(ctx, x):
        mask = torch.bernoulli(torch.full_like(x, 0.5))
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0]


class Double(torch.autograd.Function):
    """In place, by another gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, gradient):
        return 3 * gradient


class Clip(torch.autograd.Function):
    """Not linear in the gradient."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        return gradient.clamp(-0.01, 0.01)


class Net(nn.Module):
    """Two layers, and `between` of the module and what the first has given."""

    slope = 1.0

    def __init__(self, between, **more):
        super().__init__()
        self.fc1, self.fc2, self.between = nn.Linear(5, 8), nn.Linear(8, 3), between
        self.register_buffer("mean", torch.zeros(8))
        for name, value in more.items():
            setattr(self, name, value)

    def forward(self, x):
        return self.fc2(self.between(self, self.fc1(x)))


def make(between, **more):
    torch.manual_seed(0)
    return Net(between, **more).double(), (torch.randn(4, 5).double(), torch.randn(4, 3).double())


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)


class Case(unittest.TestCase):
    def trains(self, between, **more):
        net, batch = make(between, **more)
        eager = copy.deepcopy(net)
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
        expected = eager_losses(eager, F.mse_loss, sgd(eager), batch, 5)
        for loss, theirs in zip([step(*batch) for _ in range(5)], expected):
            self.assertAlmostEqual(loss, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)

    def refused(self, text, between, net=None, **more):
        made, batch = make(between, **more)
        net = net or made
        with self.assertRaisesRegex(gpuc.Error, text):
            gpuc.compile(net, F.mse_loss, "sgd:lr=0.1", batch)
        return net


class Gradients(Case):
    """torch.autograd.Function, and hooks."""

    def test_a_gradient_of_ones_own(self):
        held = Sign.apply  # As modules often keep it.
        for name, between in {
            "straight through": lambda net, x: held(x),
            "of a part of all numbers": lambda net, x: Arc.apply(x.sigmoid() / 2),
            "reversal": lambda net, x: Reverse.apply(x, 0.5),
            "surrogate": lambda net, x: Spike.apply(x, net.fc1.bias),
            "decorated": lambda net, x: Decorated.apply(x),
            "a product's": lambda net, x: Quantized.apply(x, net.fc1.weight @ net.fc1.weight.t()),
            "two outputs": lambda net, x: torch.cat(Halves.apply(x), 1),
            "twice": lambda net, x: Sign.apply(torch.tanh(Sign.apply(x)) + x),
            "without gradients within": lambda net, x: Tanh.apply(x),
            "in place": lambda net, x: MaskedSoftmax.apply(x, x > 1),
            "of a class made there": lambda net, x: sign_made_here(x),
            "of probabilities": lambda net, x: Certain.apply(torch.sigmoid(x)),
            "of no parameter": lambda net, x: x + Sign.apply(x.detach()),
        }.items():
            with self.subTest(name):
                self.trains(between)

    def test_one_that_asks_for_values(self):
        """Is refused in gpuc's own words."""
        net, batch = make(lambda net, x: Applied.apply(lambda z: z if x.detach().sum().item() > 0 else -z, x))
        with self.assertRaisesRegex(gpuc.Error, r"Applied.backward\(\) is no derivative that gpuc could try \(it asks for the value of a tensor"):
            gpuc.compile(net, F.mse_loss, "sgd:lr=1", batch)

    def test_a_derivative_is_left_as_it_is(self):
        self.trains(lambda net, x: Swish.apply(x))
        net, batch = make(lambda net, x: Swish.apply(x))
        recorded = Recorder(net, F.mse_loss, set())
        recorded.record_training(batch, {})
        ops = [node["op"] for node in recorded.functions[0]["nodes"]]
        self.assertNotIn("detach.default", ops)

    def test_what_is_computed_again(self):
        for reentrant in (False, True):
            self.trains(lambda net, x, way=reentrant: checkpoint(torch.tanh, x, use_reentrant=way))

    def test_what_a_reentrant_checkpoint_has_no_gradient_of(self):
        """Eager mode warns, and trains no layer that takes no gradient's argument."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.trains(lambda net, x: x + checkpoint(net.inner, x.detach(), use_reentrant=True), inner=nn.Linear(8, 8))

    def test_inference_mode_is_without_gradients(self):
        @torch.inference_mode()
        def decorated(layer, x):
            return layer(x)

        def within(net, x):
            with torch.inference_mode():
                y = net.inner(x)
            return x + y.clone()

        def undone(net, x):
            with torch.no_grad(), torch.inference_mode(False):
                return net.inner(x)

        for between in (within, lambda net, x: x + decorated(net.inner, x).clone(), undone):
            self.trains(between, inner=nn.Linear(8, 8))

    def test_what_is_written_into_a_buffer_has_no_gradient(self):
        """Under no_grad, or by its .data, also where that is a row of it: what reads it afterwards in the same pass gets none."""
        writes = {
            "as a whole": lambda mean, rows, x: mean.mul_(0.9).add_(0.1 * x.mean(0)),
            "in part": lambda mean, rows, x: mean[:3].copy_(x.mean(0)[:3]),
            "a row": lambda mean, rows, x: rows[1].mul_(0.9).add_(x.sum(0)),
            "by an index": lambda mean, rows, x: rows.__setitem__(torch.tensor([2, 0]), x[:2]),
            "turned": lambda mean, rows, x: rows.t().add_(x[:3].t()),
            "one by another": lambda mean, rows, x: (mean.copy_(x.mean(0)), rows[0].copy_(mean)),
        }

        def under_no_grad(net, x):
            with torch.no_grad():
                net.write(net.mean, net.rows, x)
            return x.sigmoid() + net.mean + net.rows.sum(0)

        def by_data(net, x):
            net.write(net.mean.data, net.rows.data, x)
            return x.sigmoid() + net.mean + net.rows.sum(0)

        for name, write in writes.items():
            for between in (under_no_grad, by_data):
                with self.subTest(name, between=between.__name__), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # Evaluation leaves them as they are.
                    self.trains(between, write=write, rows=nn.Buffer(torch.zeros(3, 8)))

    def test_parameters_that_lie_between_others(self):
        """Each second row: their memory reaches over one another's, and is none of it the same."""
        both = torch.randn(8, 8, dtype=torch.float64)
        self.trains(lambda net, x: x @ net.even @ net.odd.t(), even=nn.Parameter(both[:, ::2]), odd=nn.Parameter(both[:, 1::2]))

    def test_writes_that_autograd_does_not_see(self):
        def halved(net, x):
            with torch.no_grad():
                x.mul_(0.5)
            return x

        def set_to_none(net, x):
            with torch.no_grad():
                x[:, 0] = 0
            return x

        def by_detached(net, x):
            same = x.detach()
            same += 1
            return x

        def by_out(net, x):
            with torch.no_grad():
                torch.clamp(x, -0.1, 0.1, out=x)
            return x

        def seen(net, x):
            with torch.no_grad():
                net.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
                scale = x.abs().sum(1, keepdim=True).clamp_(min=0.5)
            bounded = x.detach().clone().clamp_(-0.1, 0.1)
            x = x + (bounded - x).detach()
            x[:, 0] = 0.5
            return x / scale

        for wrong, line, text in ((halved, 2, "under torch.no_grad"), (set_to_none, 2, "under torch.no_grad"), (by_detached, 2, "by what detach\\(\\) gave"),
                                  (by_out, 2, "under torch.no_grad")):  # fmt: skip
            self.refused(f"{__file__}:{wrong.__code__.co_firstlineno + line}: changes a tensor in place {text}", wrong)
        self.trains(seen)

    def test_what_is_no_derivative(self):
        line = self.test_what_is_no_derivative.__func__.__code__.co_firstlineno + 2
        between = lambda net, x: Clip.apply(x)  # noqa: E731
        self.refused(rf"{__file__}:{line}: Clip.backward\(\) is not linear in the gradient that it is given, .*detach\(\)", between)

    def test_a_draw_is_one(self):
        """Of ones, with a loss that counts those that stay: by twice as many the weights sink."""

        class Ones(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(1000))

            def forward(self, x):
                return Masked.apply(self.weight).sum() + 0 * x.sum()

        net = Ones()
        loss = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=1), (torch.zeros(1),))(torch.zeros(1))
        self.assertTrue(400 < loss < 600, loss)
        self.assertEqual(net.weight.sum().item(), 1000 - 2 * loss)

    def test_a_large_gradient_that_is_clipped(self):
        class Clipped(Clip):
            @staticmethod
            def backward(ctx, gradient):
                return gradient.clamp(-10, 10)

        self.refused("Clipped.backward\\(\\) is not linear", lambda net, x: Clipped.apply(x))

    def test_what_changes_its_input(self):
        self.refused("Double changes its input in place, and has a gradient of its own", lambda net, x: Double.apply(x * 1))

    def test_hooks_on_tensors(self):
        def hooked(net, x):
            if x.requires_grad:
                x.register_hook(lambda gradient: 0.1 * gradient)
            return x

        line = hooked.__code__.co_firstlineno + 2
        self.refused(rf"{__file__}:{line}: a hook on a tensor, which a compiled step does not call", hooked)

    def test_nothing_stays_behind(self):
        before = Sign.forward, torch.Tensor.register_hook, torch.get_rng_state()
        net, batch = make(lambda net, x: Sign.apply(x))
        before = *before[:2], torch.get_rng_state()
        gpuc.compile(net, F.mse_loss, "sgd:lr=0.1", batch)
        self.assertEqual((Sign.forward, torch.Tensor.register_hook), before[:2])
        self.assertTrue(torch.equal(torch.get_rng_state(), before[2]))

    def test_hooks_that_come_after_compiling(self):
        net, batch = make(lambda net, x: x)
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
        net.fc1.weight.register_hook(lambda gradient: gradient)
        with self.assertRaisesRegex(gpuc.Error, "fc1.weight: has a gradient hook"):
            step(*batch)

    def test_hooks_that_come_after_a_step(self):
        def doubled(*_):
            return None

        class Judge(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = nn.Parameter(torch.ones(()))

            def forward(self, out, target):
                return F.mse_loss(out * self.scale, target)

        for name, change, text in (
            ("layer", lambda net, loss, optimizer: net.fc2.register_full_backward_hook(doubled), "fc2: has a backward hook"),
            ("before a layer", lambda net, loss, optimizer: net.fc2.register_full_backward_pre_hook(doubled), "fc2: has a backward hook"),
            ("parameter", lambda net, loss, optimizer: net.fc1.weight.register_hook(doubled), "fc1.weight: has a gradient hook"),
            ("behind a gradient", lambda net, loss, optimizer: net.fc1.weight.register_post_accumulate_grad_hook(doubled), "fc1.weight: has a grad"),
            ("loss", lambda net, loss, optimizer: loss.scale.register_hook(doubled), "scale: has a gradient hook"),
            ("optimizer", lambda net, loss, optimizer: optimizer.register_step_pre_hook(doubled), "the optimizer has a step hook"),
        ):
            for steps in (0, 1, 3):
                with self.subTest(name, steps=steps):
                    net, batch = make(lambda net, x: x)
                    loss, optimizer = Judge(), sgd(net)
                    step = gpuc.compile(net, loss, optimizer, batch)
                    for _ in range(steps):
                        step(*batch)
                    change(net, loss, optimizer)
                    with self.assertRaisesRegex(gpuc.Error, text):
                        for _ in range(steps + 1):  # Looked for after 1, 2, 4, 8, … steps.
                            step(*batch)
                    step.evaluate([batch])  # Which takes no gradients.

    def test_hooks_of_the_optimizer(self):
        def patched(optimizer):
            step = optimizer.step
            optimizer.step = lambda *args: step(*args)

        for name, change, text in (
            ("before", lambda optimizer: optimizer.register_step_pre_hook(lambda *_: None), "has a step hook, .*lambda"),
            ("behind", lambda optimizer: optimizer.register_step_post_hook(lambda *_: None), "has a step hook"),
            ("instead", patched, "step\\(\\) is another than its class has"),
        ):
            with self.subTest(name):
                net, batch = make(lambda net, x: x)
                optimizer = sgd(net)
                change(optimizer)
                with self.assertRaisesRegex(gpuc.Error, text):
                    gpuc.compile(net, F.mse_loss, optimizer, batch)
        net, batch = make(lambda net, x: x)
        optimizer = sgd(net)
        torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1)
        for _ in range(2):  # A scheduler wraps step(), and a compiled step has hooks of its own.
            gpuc.compile(net, F.mse_loss, optimizer, batch)

    def test_autocast_around_a_step(self):
        net, batch = make(lambda net, x: x)
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
        step(*batch)
        for expected in (1, 0, 0):  # Said once, of whichever step has it first.
            with torch.autocast("cpu", dtype=torch.bfloat16), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                step(*batch)
            self.assertEqual(sum("autocast is on, and a compiled step computes as it was compiled: give gpuc.compile precision='bf16'" in str(each.message)
                                 for each in said), expected)


    def test_gradients_that_a_loop_still_clips(self):
        net, batch = make(lambda net, x: x)
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)

        def clip(of, by):
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                by(of.parameters(), 1.0)
            return said

        clips = {nn.utils.clip_grad_norm_: "clip_grad_norm_ .* gpuc.compile clip_norm=1.0", nn.utils.clip_grad_value_: "clip_grad_value_ .* clip_value=1.0"}
        self.assertEqual(clip(net, nn.utils.clip_grad_norm_), [])
        step(*batch)
        for by, text in clips.items():
            (said,) = clip(net, by)
            self.assertRegex(str(said.message), text)
            self.assertEqual(said.filename, __file__)
        self.assertEqual(clip(copy.deepcopy(net), nn.utils.clip_grad_norm_), [])
        F.mse_loss(net(batch[0]), batch[1]).backward()
        for by in clips:
            self.assertEqual(clip(net, by), [])


class Nothing(Case):
    """Tensors without elements, as of a vision transformer with no register tokens."""

    def test_parameters_and_slices(self):
        def registers(net, x):
            return torch.cat([x[:, :4], net.registers.expand(x.shape[0], -1), x[:, 4:], x[:, 8:].relu()], 1)

        self.trains(registers, registers=nn.Parameter(torch.zeros(1, 0)))
        net, batch = make(registers, registers=nn.Parameter(torch.zeros(1, 0)))
        groups = [{"params": [net.fc1.weight, net.fc2.weight]}, {"params": [net.registers, net.fc1.bias], "lr": 0.2}]
        step = gpuc.compile(net, F.mse_loss, torch.optim.SGD(groups, lr=0.1), batch)
        self.assertGreater(step(*batch), step(*batch))
        self.assertEqual(net.state_dict()["registers"].shape, (1, 0))


class Modules(unittest.TestCase):
    def test_a_layer_in_two_places(self):
        """Its tensors are the module's own afterwards."""
        torch.manual_seed(0)
        layer = nn.Linear(5, 5)
        net, batch = nn.Sequential(layer, nn.BatchNorm1d(5), nn.Tanh(), layer).double(), (torch.randn(4, 5).double(), torch.randn(4, 5).double())
        eager, held = copy.deepcopy(net), dict(net.named_parameters(remove_duplicate=False))
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
        for loss, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, F.mse_loss, sgd(eager), batch, 3)):
            self.assertAlmostEqual(loss, theirs, delta=1e-10)
        for name, tensor in net.named_parameters(remove_duplicate=False):
            self.assertIs(tensor, held[name])
            self.assertTrue(torch.allclose(tensor, eager.state_dict()[name], rtol=0, atol=1e-10), name)

    def test_what_a_layer_in_two_places_writes(self):
        """As a norm's running mean, or a slice of a buffer, seen by later layers."""

        class Cache(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.register_buffer("held", torch.zeros(width), persistent=False)
                self.scale = nn.Parameter(torch.ones(width))

            def forward(self, x):
                self.held[:3] = x.detach().mean(0)[:3]
                return x * self.scale + self.held

        for make_layer in (nn.BatchNorm1d, Cache):
            torch.manual_seed(0)
            layer = make_layer(5)
            blocks = [nn.Sequential(layer, nn.Linear(5, 5), nn.Tanh()) for _ in range(2)]
            net, batch = nn.Sequential(*blocks, layer, nn.Linear(5, 5)).double(), (torch.randn(4, 5).double(), torch.randn(4, 5).double())
            eager, held = copy.deepcopy(net), dict(net.named_buffers(remove_duplicate=False))
            step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
            for loss, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, F.mse_loss, sgd(eager), batch, 3)):
                self.assertAlmostEqual(loss, theirs, delta=1e-10)
            for (name, tensor), theirs in zip(net.named_buffers(remove_duplicate=False), dict(eager.named_buffers(remove_duplicate=False)).values()):
                self.assertIs(tensor, held[name])
                self.assertTrue(torch.allclose(tensor, theirs, rtol=0, atol=1e-10), name)

    def test_running_statistics_that_a_pass_reads_again(self):
        """By a layer that is in eval mode for the moment: they have no gradient."""

        class Twice(nn.Sequential):
            def forward(self, x):
                norm, seen = self[1], super().forward(x)
                norm.eval()
                again = super().forward(x + 1)
                norm.train()
                return seen * again + norm.running_var * x

        torch.manual_seed(0)
        net, batch = Twice(nn.Linear(5, 5), nn.BatchNorm1d(5)).double(), (torch.randn(4, 5).double(), torch.randn(4, 5).double())
        eager = copy.deepcopy(net)
        step = gpuc.compile(net, F.mse_loss, sgd(net), batch)
        for loss, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, F.mse_loss, sgd(eager), batch, 3)):
            self.assertAlmostEqual(loss, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(net.state_dict()[name], tensor, rtol=0, atol=1e-10), name)

    def test_running_statistics_in_a_segment(self):
        """Of torch.utils.checkpoint, whatever its way: a step counts a batch once, and says so. Where there are none it says nothing."""

        class Segment(nn.Sequential):
            def forward(self, x):
                return checkpoint(super().forward, self[0](x), use_reentrant=self.is_reentrant)

        for is_reentrant in (True, False):
            for norm, count in ((nn.BatchNorm1d(5), 1), (nn.BatchNorm1d(5, track_running_stats=False), 0), (nn.LayerNorm(5), 0)):
                net = Segment(nn.Linear(5, 5), norm)
                net.is_reentrant = is_reentrant
                with warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    gpuc.compile(net, F.mse_loss, sgd(net), (torch.zeros(4, 5), torch.ones(4, 5)))
                self.assertEqual(sum("keeps running statistics within torch.utils.checkpoint" in str(each.message) for each in said), count)

    def test_what_a_pass_in_eval_mode_changes(self):
        """Is said where it makes a difference: a step's evaluation changes nothing."""

        class Counts(nn.Linear):
            def __init__(self):
                super().__init__(5, 5)
                self.register_buffer("count", torch.zeros(()))
                self.register_buffer("seen", torch.zeros(5))

        def counts_and_reads(net, x):
            net.count += 1
            return x * net.count

        def counts(net, x):
            net.count += 1
            net.seen = x.detach().mean(0)
            return x

        def counts_in_training(net, x):
            if net.training:
                net.count += 1
            return x * net.count

        for forward, said_of in ((counts_and_reads, ["count"]), (counts, []), (counts_in_training, [])):
            net = Counts()
            net.forward = lambda x, net=net, forward=forward: forward(net, F.linear(x, net.weight, net.bias))
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                gpuc.compile(net, F.mse_loss, sgd(net), (torch.zeros(4, 5), torch.ones(4, 5)))
            found = [str(each.message) for each in said if "is changed by a pass in eval mode, too, and evaluation" in str(each.message)]
            self.assertEqual([each.split("'")[1] for each in found], said_of)

    def test_a_loss_that_keeps_something_of_targets(self):
        """The centre of each class, which predict() has no targets for."""

        class Centres(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("centres", torch.zeros(3, 3))

            def forward(self, out, target):
                with torch.no_grad():
                    for number in range(3):
                        share = (target == number).to(out.dtype)[:, None]
                        self.centres[number].mul_(0.9).add_(0.1 * (out * share).sum(0))
                return (out - self.centres[target]).square().mean()

        net, (x, _) = make(lambda net, x: x)
        loss, target = Centres().double(), torch.tensor([0, 2, 1, 2])
        eager, eager_loss = copy.deepcopy((net, loss))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # A pass in eval mode changes them, too.
            step = gpuc.compile(net, loss, sgd(net), (x, target))
        for ours, expected in zip([step(x, target) for _ in range(5)], eager_losses(eager, eager_loss, sgd(eager), (x, target), 5)):
            self.assertAlmostEqual(ours, expected, delta=1e-12)
        self.assertTrue(torch.allclose(loss.centres, eager_loss.centres, rtol=0, atol=1e-12))
        self.assertTrue(torch.allclose(torch.as_tensor(step.predict(x)), eager(x).detach(), rtol=0, atol=1e-12))

    def test_without_shapes(self):
        with self.assertRaisesRegex(gpuc.Error, "'0.weight' has no shape before the first forward pass: call the module once"):
            gpuc.compile(nn.Sequential(nn.LazyLinear(3)), F.mse_loss, "sgd:lr=0.1", (torch.zeros(4, 5), torch.zeros(4, 3)))

    def test_torchscript(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # It is going away.
            net = torch.jit.script(nn.Linear(5, 3))
        with self.assertRaisesRegex(gpuc.Error, "net is a module of TorchScript"):
            gpuc.compile(net, F.mse_loss, "sgd:lr=0.1", (torch.zeros(4, 5), torch.zeros(4, 3)))


if __name__ == "__main__":
    unittest.main()
