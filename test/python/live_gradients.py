"""torch.autograd.grad within a module: trains as in eager PyTorch, or is refused with its line. By a Python with torch."""

import copy
import unittest
import warnings

import torch
from torch import func, nn
from torch.autograd import functional
from torch.autograd import grad as imported
from torch.nn import functional as F

import gpuc

STEPS = 4


class By(nn.Module):
    """Modules, and a function of them and of the inputs."""

    def __init__(self, loss, **parts):
        super().__init__()
        self.loss = loss
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *given):
        return self.loss(self, *given)


def mlp(features=3, results=1):
    return nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, results))


def grad(y, x, *given, **how):
    """By the name that it had before anything was captured, as most modules have it."""
    return imported(y, x, *given, create_graph=True, **how)


def sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


class Straight(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.sign()

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        self.addCleanup(torch.set_default_dtype, before)

    def trains(self, loss, *shapes, batches=None, **parts):
        net = By(loss, **(parts or {"net": mlp()}))
        eager = copy.deepcopy(net)
        batches = batches or [tuple(torch.randn(*shape) for shape in shapes or [(6, 3)]) for _ in range(STEPS)]
        optimizer = sgd(eager)
        expected = []
        for batch in batches:
            optimizer.zero_grad()
            value = eager(*(each.clone() for each in batch))
            value.backward()
            optimizer.step()
            expected.append(value.item())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of what no derivative hangs on, such as the last bias.
            step = gpuc.compile(net, None, sgd(net), batches[0])
        for batch, theirs in zip(batches, expected):
            self.assertAlmostEqual(float(step(*batch)), theirs, delta=1e-10 * max(1, abs(theirs)))
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)
        eager.eval()
        self.assertAlmostEqual(float(step.evaluate(batches[:1]).loss), eager(*(each.clone() for each in batches[0])).item(), delta=1e-10)
        return step


class Derivatives(Case):
    def test_of_third_order(self):
        def loss(net, x):
            x = x.clone().requires_grad_(True)
            y = net.net(x)
            for _ in range(3):
                (y,) = grad(y.sum(), x)
            return y.square().mean()

        self.trains(loss)

    def test_an_equation(self):
        """Burgers', by two inputs."""

        def loss(net, x, t):
            x, t = x.requires_grad_(True), t.requires_grad_(True)
            u = net.net(torch.cat([x, t], 1))
            u_x, u_t = grad(u, (x, t), torch.ones_like(u))
            (u_xx,) = grad(u_x, x, torch.ones_like(u_x))
            return (u_t + u * u_x - 0.01 * u_xx).square().mean()

        self.trains(loss, (6, 1), (6, 1), net=mlp(2))

    def test_a_penalty(self):
        """Of convolutions, norms and pooling."""

        def loss(net, x):
            x = (0.5 * x).requires_grad_(True)
            y = net.net(x)
            (slope,) = grad(y.sum(), x)
            return y.mean() + (slope.flatten(1).norm(dim=1) - 1).square().mean()

        for norm in (nn.GroupNorm(2, 4), nn.BatchNorm2d(4), nn.InstanceNorm2d(4)):
            with self.subTest(type(norm).__name__):
                layers = nn.Conv2d(3, 4, 3, 1, 1), norm, nn.LeakyReLU(0.2), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.Flatten(), nn.Linear(16, 1)
                self.trains(loss, (3, 3, 8, 8), net=nn.Sequential(*layers))

    def test_forces(self):
        """A module that gives an energy and its derivative, in evaluation too, under torch.enable_grad."""

        class Energy(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = mlp()

            def forward(self, places):
                with torch.enable_grad():
                    places.requires_grad_(True)
                    energy = self.net(places).sum((1, 2))
                    (slope,) = torch.autograd.grad(energy.sum(), places, create_graph=self.training)
                return energy, -slope

        def loss(found, target):
            return F.mse_loss(found[0], target) + found[1].square().mean()

        net, x, y = Energy(), torch.randn(4, 5, 3), torch.randn(4)
        eager, step = copy.deepcopy(net), gpuc.compile(net, loss, sgd(net), (x, y))
        optimizer = sgd(eager)
        for _ in range(STEPS):
            optimizer.zero_grad()
            value = loss(eager(x.clone()), y)
            value.backward()
            optimizer.step()
            self.assertAlmostEqual(step(x, y), value.item(), delta=1e-10)
        for found, theirs in zip(step.predict(x), eager.eval()(x.clone())):
            self.assertTrue(torch.allclose(torch.as_tensor(found), theirs.detach(), rtol=0, atol=1e-10))

    def test_in_evaluation_alone(self):
        def loss(net, x):
            if net.training:
                return net.net(x).square().mean()
            with torch.enable_grad():
                x = x.requires_grad_(True)
                return torch.autograd.grad(net.net(x).sum(), x)[0].square().mean()

        self.trains(loss)

    def test_recurrence(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            y, _ = net.net(x)
            (slope,) = grad(y.square().sum(), x)
            return y.mean() + slope.square().mean()

        self.trains(loss, (2, 4, 3), net=nn.GRU(3, 4, batch_first=True))

    def test_attention(self):
        """PyTorch's on the CPU has no such derivative: by hand it has."""

        def by_hand(q, k, v):
            return torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, -1) @ v

        def loss_by(attend):
            def loss(net, x):
                x = x.requires_grad_(True)
                y = attend(net.net(x), x, x)
                (slope,) = grad(y.square().sum(), x)
                return y.mean() + slope.square().mean()

            return loss

        nets = [By(loss_by(attend), net=nn.Linear(4, 4)) for attend in (F.scaled_dot_product_attention, by_hand)]
        nets[1].load_state_dict(nets[0].state_dict())
        batch = (torch.randn(2, 3, 5, 4),)
        steps = [gpuc.compile(net, None, sgd(net), batch) for net in nets]
        for _ in range(STEPS):
            self.assertAlmostEqual(*[float(step(*batch)) for step in steps], delta=1e-10)


    def test_the_third_of_a_norm(self):
        """PyTorch's takes mean and deviation for constants there: by hand they vary."""

        class ByHand(nn.LayerNorm):
            def forward(self, x):
                apart = x - x.mean(-1, keepdim=True)
                return apart / (apart.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight + self.bias

        def loss(net, x):
            x = x.requires_grad_(True)
            (slope,) = grad(net.last(net.norm(net.first(x)).tanh()).sum(), x)
            return grad(slope[:, 0].sum(), x)[0].square().mean()

        nets = [By(loss, first=nn.Linear(3, 4), norm=norm(4), last=nn.Linear(4, 1)) for norm in (nn.LayerNorm, ByHand)]
        nets[1].load_state_dict(nets[0].state_dict())
        batch = (torch.randn(6, 3),)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            steps = [gpuc.compile(net, None, sgd(net), batch) for net in nets]
        for _ in range(STEPS):
            self.assertAlmostEqual(*[float(step(*batch)) for step in steps], delta=1e-10)


class Steps(Case):
    """Along a gradient, within a step."""

    def test_of_the_weights(self):
        def loss(net, x, y):
            fast = dict(net.net.named_parameters())
            for _ in range(2):
                inner = F.mse_loss(torch.func.functional_call(net.net, fast, (x,)), y)
                slopes = grad(inner, list(fast.values()))
                fast = {name: value - 0.1 * slope for (name, value), slope in zip(fast.items(), slopes)}
            return F.mse_loss(torch.func.functional_call(net.net, fast, (-x,)), y)

        self.trains(loss, (6, 3), (6, 1))

    def test_of_the_input(self):
        def loss(net, x):
            attack = x.clone()
            for _ in range(2):
                attack = attack.detach().requires_grad_(True)
                (slope,) = torch.autograd.grad(net.net(attack).square().mean(), attack)
                attack = torch.clamp(attack + 0.05 * slope.sign(), x - 0.1, x + 0.1)
            return net.net(attack).square().mean()

        self.trains(loss)


class Meaning(Case):
    """What is derived, and by what."""

    def test_a_copy_is_another_variable(self):
        def loss(net, x):
            hidden = net.first(x)
            for same in (hidden.clone(), hidden.view(hidden.shape), hidden.to(hidden.dtype)):
                if same is not hidden:
                    (slope,) = grad((net.net(same) * net.other(hidden)).sum(), same)
                    hidden = hidden + slope
            return hidden.square().mean()

        self.trains(loss, first=nn.Linear(3, 3), net=mlp(), other=mlp())

    def test_a_seed_is_given(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            y, z = net.net(x), net.other(x)
            (slope,) = grad([y, z.sum()], x, [y.tanh(), None])
            return slope.square().mean()

        self.trains(loss, net=mlp(), other=mlp())

    def test_what_is_unused(self):
        def loss(net, x, y):
            x, y = x.requires_grad_(True), y.requires_grad_(True)
            given = net.net(x).sum()
            slope, none = grad(given, (x, y), allow_unused=True)
            again, zero = grad(given, (x, y), materialize_grads=True)
            assert none is None
            return (slope * again).mean() + zero.sum()

        self.trains(loss, (6, 3), (6, 3))

    def test_without_a_graph(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            y = net.net(x)
            (slope,) = torch.autograd.grad(y.sum(), x, retain_graph=True)
            return (y * slope.mean()).mean()

        self.trains(loss)

    def test_an_input_twice(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            one, other = grad(net.net(x).sum(), (x, x))
            return (one * other).mean()

        self.trains(loss)

    def test_no_grad_and_gradients_of_ones_own(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            with torch.no_grad():
                scale = net.net(x)
            (slope,) = grad((net.other(Straight.apply(net.first(x))) * scale).sum(), x)
            return slope.square().mean()

        self.trains(loss, first=nn.Linear(3, 3), net=mlp(), other=mlp())

    def test_by_functional(self):
        def loss(net, x):
            hessian = functional.hessian(lambda x: net.net(x).sum(), x, create_graph=True)
            return hessian.square().mean() + functional.jacobian(net.net, x, create_graph=True).square().mean()

        self.trains(loss, (2, 3))

    def test_dropout_draws_once(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            y = F.dropout(x, 0.5, True) * net.weight
            (slope,) = grad(y.sum(), x)
            return (y - x * slope).square().sum()

        net = By(loss, weight=nn.Parameter(torch.ones(3)))
        self.assertEqual(float(gpuc.compile(net, None, sgd(net), (torch.randn(6, 3),))(torch.randn(6, 3))), 0)


class Transforms(Case):
    """torch.func's, which become the same."""

    def test_grad(self):
        def of_second_order(net, x):
            once = lambda y: func.grad(lambda x: net.net(x).square().sum())(y).square().sum()  # noqa: E731
            return 100 * func.grad(once)(3 * x).square().mean()

        def with_its_value(net, x):
            (one, other), (value, last) = func.grad_and_value(lambda a, b: ((net.net(a) * net.net(b)).mean(), net.net(a)), (0, 1), True)(x, x + 1)
            return value + last.square().mean() + (one.square() + 2 * other.square()).sum()

        def unused_and_detached(net, x):
            none, = func.grad(lambda a, b: net.net(a).sum(), argnums=(1,))(x, x)
            return net.net(x + func.grad(lambda x: net.net(x).sum())(x).detach() + none).square().mean()

        for loss in (of_second_order, with_its_value, unused_and_detached):
            with self.subTest(loss.__name__):
                self.trains(loss)

    def test_of_the_weights(self):
        def loss(net, x):
            weights = dict(net.net.named_parameters())
            gradients = func.grad(lambda weights: func.functional_call(net.net, weights, (x,)).square().mean())(weights)
            return func.functional_call(net.net, {name: weights[name] - 0.5 * gradients[name] for name in weights}, (-x,)).square().mean()

        self.trains(loss)

    def test_without_gradients(self):
        def loss(net, x):
            with torch.no_grad():
                move = func.grad(lambda x: net.net(x).square().sum())(x)
            return net.net(x + move).square().mean()

        self.trains(loss)

    def test_products(self):
        def backward(net, x):
            out, product = func.vjp(net.net, x)
            return out.square().mean() + product(out.cos())[0].square().sum()

        def forward(net, x):
            out, product = func.jvp(lambda a, b: net.net(a) * b, (x, x[:, :2]), (x.sin(), x[:, 1:]))
            return out.square().mean() + product.square().sum()

        for loss in (backward, forward):
            with self.subTest(loss.__name__):
                self.trains(loss, net=mlp(results=2))


class Training(Case):
    def test_precision(self):
        """What is derived computes in bf16 as well."""

        def loss(net, x):
            x = x.requires_grad_(True)
            return grad(net.net(x).sum(), x)[0].square().mean()

        net = By(loss, net=mlp()).float()
        batch = (torch.randn(6, 3, dtype=torch.float32),)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            losses = [float(gpuc.compile(each, None, sgd(each), batch, precision=precision)(*batch))
                      for each, precision in ((copy.deepcopy(net), "f32"), (net, "bf16"))]  # fmt: skip
        self.assertNotAlmostEqual(*losses, delta=1e-6 * losses[0])
        self.assertAlmostEqual(*losses, delta=2e-2 * losses[0])


class Refused(Case):
    def refused(self, text, loss):
        before = torch.autograd.grad, torch.Tensor.backward
        net = By(loss, net=mlp())
        line = loss.__code__.co_firstlineno + 2
        with self.assertRaisesRegex(gpuc.Error, rf"{__file__}:{line}: .*{text}"):
            gpuc.compile(net, None, sgd(net), (torch.randn(6, 3),))
        self.assertEqual((torch.autograd.grad, torch.Tensor.backward), before)

    def test_backward(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            net.net(x).sum().backward(create_graph=True)
            return x.grad.square().mean()

        self.refused(r"backward\(\) is not supported within a module: torch.autograd.grad", loss)

    def test_rows_by_themselves(self):
        def of_each(net, x):
            by_hand = lambda x: net.net(x).sum()  # noqa: E731
            return func.vmap(func.grad(by_hand))(x).square().mean()

        def of_all(net, x):
            by_hand = net.net
            return func.jacrev(by_hand)(x).square().mean()

        for loss in (of_each, of_all):
            self.refused("a gradient by torch.func within torch.vmap is not supported within a module: of a sum over the batch torch.autograd.grad", loss)

    def test_many_at_once(self):
        def loss(net, x):
            x = x.requires_grad_(True)
            return torch.autograd.grad(net.net(x), x, torch.ones(2, 6, 1), is_grads_batched=True)[0].square().mean()

        self.refused(r"torch.autograd.grad\(is_grads_batched=True\) is not supported: call it once for each vector", loss)

    def test_what_pytorch_refuses(self):
        def unused(net, x):
            other = torch.zeros_like(x).requires_grad_(True)
            return torch.autograd.grad(net.net(x).sum(), other, create_graph=True)[0].sum()

        def of_several(net, x):
            x = x.requires_grad_(True)
            return torch.autograd.grad(net.net(x), x, create_graph=True)[0].sum()

        self.refused("appears to not have been used in the graph", unused)
        self.refused("grad can be implicitly created only for scalar outputs", of_several)


if __name__ == "__main__":
    unittest.main()
