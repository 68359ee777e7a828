"""What the package makes other ops of (decompositions.py), and values that PyTorch asks for: next to eager PyTorch. By a Python with torch."""

import copy
import unittest
import warnings

import torch
from torch import nn
from torch.distributions import Categorical, Normal
from torch.nn import functional as F

import gpuc
from modules import eager_losses


class Net(nn.Module):
    """A layer, and what `body` makes of it."""

    def __init__(self, body):
        super().__init__()
        self.fc, self.body = nn.Linear(6, 8), body
        self.register_buffer("queue", torch.zeros(3, 10))

    def forward(self, *args):
        return self.body(self, self.fc(args[0]), *args[1:])


class Case(unittest.TestCase):
    def trains(self, body, *more):
        """Three steps, and the warnings that were said."""
        torch.manual_seed(0)
        net, batch = Net(body).double(), (torch.randn(8, 6).double(), *more)
        eager = copy.deepcopy(net)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            step = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=1e-4), batch)
        for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, None, torch.optim.SGD(eager.parameters(), lr=1e-4), batch, 3)):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)
        return [str(each.message) for each in said]


class Formulas(Case):
    def test_diagonals(self):
        def body(net, h):
            written = h.clone()
            torch.diagonal(written, 1).mul_(2)
            torch.diagonal(written, -3).copy_(h[:5, 0])
            parts = [h.diagonal(), h.diagonal(2), h.diagonal(-3), h.view(8, 2, 4).diagonal(0, 2, 1), torch.diag(h), h.clone().fill_diagonal_(0.5), written]
            return sum((part * torch.arange(1, part.numel() + 1).reshape(part.shape)).square().mean() for part in parts)

        self.trains(body)

    def test_distances_and_order(self):
        def body(net, h):
            near = torch.cdist(h, h[:5] + 0.1, p=1).min(1).values.sum() + torch.cdist(h, h).amax(1).sum() + F.pdist(h).mean()
            order = h.median(1).values.sum() + h.median() + h.kthvalue(3, 0, keepdim=True).values.square().sum() + h.unfold(1, 3, 2).prod(-1).mean()
            edges = torch.linspace(-1, 1, 5, dtype=h.dtype)
            places = torch.bucketize(h, edges, right=True) + torch.searchsorted(edges.expand(8, 5).contiguous(), h.contiguous())
            return near + order + (h * places).mean() + torch.hypot(h, h + 1).mean() + torch.erfc(h).mean()

        self.trains(body)

    def test_reductions_by_an_index(self):
        def body(net, h, index):
            whole, total = index[:, None].expand(8, 8), 0
            for number, way in enumerate(("sum", "mean", "amax", "amin")):
                for kept in (True, False):
                    total = total + (number + 1) * h[:4].scatter_reduce(0, whole, h, way, include_self=kept).square().sum()
            return total + h.t()[:, :4].scatter_reduce(1, whole.t(), h.t(), "amax").sum()

        self.trains(body, torch.tensor([0, 1, 1, 2, 0, 0, 1, 2]))

    def test_writes_by_later_indices(self):
        def body(net, h, index):
            net.queue[:, index] = h.detach()[:, :3].t()
            held = torch.zeros(2, 4, 5, dtype=h.dtype)
            held[:, index[:2] % 4, index[2:4] % 5] = h[:2, :2]
            return h.square().mean() + net.queue.mean() + (held * torch.arange(40).view(2, 4, 5)).sum()

        self.trains(body, torch.tensor([0, 9, 3, 4, 8, 1, 2, 6]))

    def test_writes_of_truth_values(self):
        def body(net, h, index):
            positive, none = h > 0, torch.zeros(8, 8, dtype=torch.bool)
            taken = none.clone().scatter_(1, index, True)
            both = positive.scatter(1, index, h[:, 2:5] > 0)
            rows = positive.index_fill(1, index[0], False)
            picked = positive.clone()
            picked[torch.arange(8), index[:, 1]] = True
            picked[index[2]] = False
            more = none.index_put((index[:, :1], index), both[:, :3], accumulate=True)
            return sum(torch.where(mask, h, -1.5 * h).square().sum() * k for k, mask in enumerate((taken, both, rows, picked, more), 1)) / 99

        self.trains(body, torch.tensor([[1, 5, 2], [0, 4, 7], [3, 4, 5], [6, 1, 0], [2, 7, 3], [7, 5, 0], [1, 3, 5], [4, 6, 2]]))

    def test_adaptive_pooling_by_the_largest(self):
        """Windows of one size and of several, and where they lie."""
        weights = torch.arange(1, 14).double()

        def body(net, h):
            pooled = [F.adaptive_max_pool2d(h.view(2, 1, 4, 8).repeat(1, 2, 1, 1) * weights[:2, None, None], size) for size in (1, (2, 4), (3, 5), (4, 7))]
            values, places = F.adaptive_max_pool2d(h.view(2, 4, 8), (3, 5), return_indices=True)
            flat = F.adaptive_max_pool1d(h, 3)
            return sum((each * torch.arange(each.numel()).view(each.shape)).square().mean() for each in (*pooled, values, flat)) / 99 + places.sum() / 9

        self.trains(body)

    def test_responses_beside_others(self):
        """LocalResponseNorm, as AlexNet has it, over an odd and an even number of channels."""

        def body(net, h):
            channels = h.view(2, 8, 2, 2)
            normed = [F.local_response_norm(channels, size, alpha=0.5, beta=0.6, k=2.0) for size in (5, 4, 1)]
            flat = F.local_response_norm(h.view(2, 4, 8), 3)
            return sum((each * torch.arange(each.numel()).view(each.shape)).square().mean() for each in (*normed, flat)) / 99

        self.trains(body)

    def test_samples_of_a_grid(self):
        def body(net, h):
            picture, turned = h.view(2, 2, 4, 4), torch.tensor([[0.9, 0.3, 0.1], [-0.2, 1.1, 0.0]], dtype=h.dtype).expand(2, 2, 3)
            grid = F.affine_grid(turned, (2, 2, 3, 5), align_corners=False) + 0.1 * torch.tanh(h[:2, :2]).view(2, 1, 1, 2)
            ways = [("bilinear", "zeros", False), ("bilinear", "border", True), ("bicubic", "zeros", True), ("nearest", "reflection", False)]
            return sum(F.grid_sample(picture, grid, mode, padding, aligned).square().mean() for mode, padding, aligned in ways)

        self.trains(body)

    def test_slopes_that_are_drawn(self):
        """One that is fixed is eager mode's; others lie between the two."""
        self.trains(lambda net, h: F.rrelu(h, 0.2, 0.2, training=True).square().mean() + F.rrelu(h).mean())
        torch.manual_seed(0)
        net = Net(lambda net, h: F.rrelu(torch.full_like(h, -1.0), 0.1, 0.3, training=True).mean() + 0 * h.sum()).double()
        step = gpuc.compile(net, None, "sgd:lr=0", (torch.randn(8, 6).double(),))
        drawn = {step(torch.randn(8, 6).double()) for _ in range(5)}
        self.assertEqual(len(drawn), 5)
        self.assertTrue(all(-0.23 < each < -0.17 for each in drawn))

    def test_determinants(self):
        """Of matrices that have to exchange rows, of one row, and of several at once."""
        def body(net, h):
            several = h.view(4, 4, 4)
            sign, logarithm = torch.linalg.slogdet(several)
            return (sign * torch.arange(1, 5)).sum() + logarithm.square().sum() / 9 + torch.det(several).sum() + torch.logdet(h @ h.t() + torch.eye(8)) + h[:1, :1].det()

        self.trains(body)

    def test_draws(self):
        """What they are on the average, and where they lie."""

        def draws(net, h):
            many = h.new_zeros(20000)
            whole = torch.randint(3, 7, (20000,))
            yield whole.amin(), 3, 0
            yield whole.amax(), 6, 0
            yield whole.double().mean(), 4.5, 0.05
            yield torch.randint_like(many, 10).mean(), 4.5, 0.1
            yield (torch.randperm(1000).sort().values - torch.arange(1000)).abs().sum(), 0, 0
            yield many.clone().uniform_(-1, 3).mean(), 1, 0.05
            yield many.clone().normal_(2, 3).mean(), 2, 0.1
            yield torch.normal(many + 1, 2.0).std(), 2, 0.1
            yield torch.normal(2.0, many + 3).std(), 3, 0.1
            yield torch.normal(1.0, 2.0, (20000,)).mean(), 1, 0.1
            yield many.clone().exponential_(2.0).mean(), 0.5, 0.02
            yield torch.multinomial(torch.tensor([0.2, 0.0, 0.8]), 20000, replacement=True).double().mean(), 1.6, 0.05
            yield torch.multinomial(torch.tensor([0.2, 0.0, 0.8]).expand(500, 3), 2).sort().values.double().mean(), 1, 0
            yield F.gumbel_softmax(torch.tensor([[0.0, 1.0]]).expand(20000, 2), hard=True)[:, 1].mean(), 0.7311, 0.02

        def body(net, h):
            off = [((value.double() - mean).abs() > delta).double() * 2.0**number for number, (value, mean, delta) in enumerate(draws(net, h))]
            return sum(off) + 0 * h.sum()

        net = Net(body).double()
        self.assertEqual(gpuc.compile(net, None, "sgd:lr=0.1", torch.zeros(8, 6).double())(torch.zeros(8, 6).double()), 0)


class Values(Case):
    def test_what_is_asserted_is_said_to_be_unchecked(self):
        def policy(net, h, action):
            scores = Categorical(logits=h)
            return -(scores.log_prob(action) * Normal(h[:, 0], 1.0).entropy()).mean() - scores.entropy().mean() + F.one_hot(action, 8).mul(h).mean()

        said = self.trains(policy, torch.arange(8))
        self.assertTrue(said and all("asserts something of a tensor's value, which a compiled step does not check" in each for each in said), said)
        self.assertTrue(any(f"{__file__}:" in each for each in said), said)

    def test_variances(self):
        def body(net, h):
            return F.gaussian_nll_loss(h, h.flip(0), h.flip(1).exp() - 0.8 * h.flip(1).exp().detach(), full=True, eps=0.2)

        self.assertEqual(len(self.trains(body)), 1)
        with self.assertRaisesRegex(gpuc.Error, "var is of incorrect size"):
            self.trains(lambda net, h: F.gaussian_nll_loss(h, h, h[:, :3].exp()))

    def test_a_mask_that_says_nothing_of_itself(self):
        net = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True).double()

        class Translate(nn.Module):
            def __init__(self):
                super().__init__()
                self.net = net

            def forward(self, x, y):
                return self.net(x, y, tgt_mask=nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)).square().mean()

        module, batch = Translate(), (torch.randn(2, 4, 8).double(), torch.randn(2, 5, 8).double())
        eager = copy.deepcopy(module)
        step = gpuc.compile(module, None, torch.optim.SGD(module.parameters(), lr=0.1), batch)
        for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, None, torch.optim.SGD(eager.parameters(), lr=0.1), batch, 3)):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)

    def test_a_loss_by_its_key(self):
        class Keyed(nn.Linear):
            def forward(self, x, y):
                out = super().forward(x)
                return {"logits": out, "loss": F.mse_loss(out, y)}

        net, batch = Keyed(6, 3), (torch.randn(8, 6), torch.randn(8, 3))
        expected = net(*batch)["loss"].item()
        self.assertAlmostEqual(gpuc.compile(net, None, "sgd:lr=0.1", batch)(*batch), expected, delta=1e-6)

    def test_what_hangs_on_values_is_said_once(self):
        def body(net, h):
            rows = torch.where(h[:, 0] > 0)[0]
            return net.fc(h[rows, :6]).sum()

        with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: has a shape that hangs on a tensor's value.*torch.where") as raised:
            self.trains(body)
        self.assertEqual(len(raised.exception.problems), 1)

    def test_losses_over_other_rows_than_the_batch(self):
        """A ragged batch would need to leave rows of the padding out."""

        def body(net, h, y):
            return F.cross_entropy(h[:5], y[:5]) + F.mse_loss(h[:3], h[3:6].detach()) + F.binary_cross_entropy_with_logits(h[:2], h[:2].detach().abs().clamp(max=1))

        self.trains(body, torch.arange(8))
        net = Net(lambda net, h, y: F.cross_entropy(h[:5], y[:5])).double()
        step = gpuc.compile(net, None, "sgd:lr=0.1", (torch.randn(8, 6).double(), torch.arange(8)))
        with self.assertRaisesRegex(gpuc.Error, "ragged"):
            step(torch.randn(6, 6).double(), torch.arange(6))


if __name__ == "__main__":
    unittest.main()
