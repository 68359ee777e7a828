"""What the package makes other ops of (gpuc/formulas), and values that PyTorch asks for: next to eager PyTorch. By a Python with torch."""

import copy
import math
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

    def test_medians_and_modes(self):
        """Of numbers among NaN, of none, and of levels that are there more than once."""

        def body(net, h):
            holes = torch.where(h < h.detach().quantile(torch.tensor(0.3, dtype=h.dtype)), torch.nan, h)
            holes = torch.where((torch.arange(8) == 2)[:, None], torch.nan, holes)
            medians = [holes.nanmedian(), holes.nanmedian(1).values.nan_to_num(0.5), *holes.nanmedian(0, keepdim=True)]
            levels = (2 * h).round().detach() + (h - h.detach())
            modes = [*levels.mode(), *levels.mode(0, keepdim=True), *h.mode(1)]
            return sum((each * torch.arange(1, each.numel() + 1).view(each.shape)).square().sum() for each in (*medians, *modes))

        self.trains(body)

    def test_a_queue_that_is_written_last(self):
        """By indices behind a dimension, of which nobody reads the result, as contrastive losses keep keys of before."""

        def body(net, h):
            places = (net.queue[0, 0].detach().long() + torch.arange(8)) % 10
            loss = (h[:, :3] @ net.queue.clone()).square().mean() + h.square().mean()
            with torch.no_grad():
                net.queue[:, places] = h[:, :3].t()
            return loss

        self.trains(body)

    def test_copies_of_views(self):
        def body(net, h):
            parts = [torch.view_copy(h, (4, 16)), torch.permute_copy(h, (1, 0)), torch.narrow_copy(h, 1, 2, 3), *torch.unbind_copy(h, 1)]
            return sum((part * torch.arange(1, part.numel() + 1).reshape(part.shape)).square().mean() for part in parts)

        self.trains(body)

    def test_reductions_by_an_index(self):
        def body(net, h, index):
            whole, total = index[:, None].expand(8, 8), 0
            for number, way in enumerate(("sum", "mean", "amax", "amin", "prod")):
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

    def test_losses_of_single_numbers(self):
        """Of a batch of one row, which such a number has not either."""
        torch.manual_seed(0)
        net, batch = nn.Linear(6, 3).double(), (torch.randn(1, 6).double(), torch.randn(1, 3).double())
        eager = copy.deepcopy(net)

        def loss(out, target):
            ways = (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss)
            return sum(way(out.square().mean(), target.mean(), reduction=end) for way in ways for end in ("mean", "sum"))

        step = gpuc.compile(net, loss, torch.optim.SGD(net.parameters(), lr=0.001), batch)
        for theirs in eager_losses(eager, loss, torch.optim.SGD(eager.parameters(), lr=0.001), batch, 3):
            self.assertAlmostEqual(step(*batch), theirs, delta=1e-10)

    def test_writes_into_products_of_several_matrices(self):
        """As vision transformers add what places say to all scores but the first token's."""

        def body(net, h):
            scores = h.view(1, 2, 8, 4) @ h.view(1, 2, 4, 8)
            scores[:, :, 1:, 1:] += 2 * scores[:, :, 1:, 1:].flip(-1)
            return scores.softmax(-1).square().sum()

        self.trains(body)

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

    def test_kernels_that_do_not_reach_over_one_dimension(self):
        taps = torch.randn(4, 2, 3, 2).double()

        def body(net, h):
            volumes = h.view(2, 2, 2, 4, 2)
            deep = F.conv3d(volumes, taps.unsqueeze(2), h[0, :4], padding=(0, 1, 1), stride=(1, 2, 1))
            high = F.conv3d(volumes, taps[:, :1].unsqueeze(3), padding=(1, 0, 1), dilation=(1, 3, 1), groups=2)
            wide = F.conv3d(volumes, taps.unsqueeze(4), padding=(2, 1, 0))
            return deep.square().mean() + high.cos().mean() + wide.square().mean()

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

    def test_inverses(self):
        """Of matrices that have to exchange rows, from the left and the right, of triangles, and what a chain of them derives."""

        def body(net, h):
            several, unit = h.view(4, 4, 4), torch.eye(8, dtype=h.dtype)
            found = [
                torch.linalg.inv(several), torch.linalg.solve(several, h[:4, 0]), torch.linalg.solve(several, h.view(4, 4, 4) + 1, left=False),
                torch.linalg.solve(h, h[0]), torch.linalg.solve_triangular(h.tril() + unit, h, upper=False),
                torch.linalg.solve_triangular(h + unit, h, upper=True, left=False, unitriangular=True), torch.inverse(h[:2, 1:3]), torch.linalg.inv(unit.flip(0) + 0 * h),
            ]  # fmt: skip
            (slope,) = torch.autograd.grad(torch.linalg.inv(h + 3 * unit).square().sum(), h, create_graph=True)
            return sum(torch.tanh(each / 9).square().mean() for each in (*found, slope))

        self.trains(body)

    def test_factors(self):
        def body(net, h):
            unit, orders = torch.eye(8, dtype=h.dtype), torch.arange(64).view(8, 8)
            square = h @ h.t() + unit
            lower = torch.linalg.cholesky(square)
            (slope,) = torch.autograd.grad((torch.linalg.cholesky(h @ h.t() + 2 * unit) * orders).sum(), h, create_graph=True)
            q, r = torch.linalg.qr(h[:, :5])
            whole, _ = torch.linalg.qr(h[:3], mode="complete")
            turned = torch.linalg.householder_product(h[:, :4], torch.tanh(h[0, :4]))
            found = [lower, torch.linalg.cholesky(square, upper=True), torch.cholesky_solve(h[:, :3], lower), torch.cholesky_inverse(lower), slope / 99,
                     q, r, whole, turned, torch.linalg.matrix_exp(h.view(4, 4, 4)), torch.linalg.matrix_exp(9 * h[:2, :2])]  # fmt: skip
            return sum(torch.tanh(each).mul(torch.arange(each.numel()).view(each.shape)).mean() for each in found) / 99

        self.trains(body)

    def test_an_exponential_that_is_too_far_away(self):
        """Its terms would give numbers like any other."""

        class Exponential(nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.weight = nn.Parameter(scale * torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double())

            def forward(self, x):
                return x @ torch.linalg.matrix_exp(self.weight)

        x, y = torch.ones(3, 2).double(), torch.zeros(3, 2).double()
        near, far = (float(gpuc.compile(Exponential(scale), nn.MSELoss(), "sgd:lr=0", (x, y))(x, y)) for scale in (2e3, 2e4))
        self.assertAlmostEqual(near, 1.0, delta=1e-9)  # A rotation.
        self.assertTrue(math.isnan(far), far)

    def test_orthogonal_weights(self):
        """As torch.nn.utils.parametrizations makes them, in each of its ways."""
        for way in ("matrix_exp", "cayley", "householder"):
            with self.subTest(way):
                torch.manual_seed(0)
                layer = torch.nn.utils.parametrizations.orthogonal(nn.Linear(8, 8), orthogonal_map=way)
                net, batch = nn.Sequential(nn.Linear(6, 8), layer).double(), (torch.randn(4, 6).double(), torch.randn(4, 8).double())
                eager = copy.deepcopy(net)
                step = gpuc.compile(net, F.mse_loss, torch.optim.SGD(net.parameters(), lr=0.1), batch)
                expected = eager_losses(eager, F.mse_loss, torch.optim.SGD(eager.parameters(), lr=0.1), batch, 3)
                for ours, theirs in zip([step(*batch) for _ in range(3)], expected):
                    self.assertAlmostEqual(ours, theirs, delta=1e-10)

    def test_large_matrices(self):
        for function in (torch.linalg.inv, torch.linalg.cholesky, torch.linalg.det):
            with self.assertRaisesRegex(gpuc.Error, "is not supported"):
                gpuc.compile(Net(lambda net, h: function(torch.eye(33) + h.sum()).sum()), None, "sgd:lr=0.1", (torch.randn(8, 6),))  # noqa: B023

    def test_up_to_each_element(self):
        """Of equal elements the last, along each dimension."""

        def body(net, h):
            level = (h * 2).round() + 0 * h
            found = [*torch.cummax(h, 1), *torch.cummin(h, 0), *torch.cummax(level, 0), *torch.cummin(level, -1), torch.logcumsumexp(3 * h, 1)]
            return sum((each * torch.arange(each.numel()).view(each.shape)).sum() for each in found) / 999 + torch.logcumsumexp(h, 0).square().sum()

        self.trains(body)

    def test_order_of_truth_values(self):
        def body(net, h):
            mask = h > 0
            places = [mask.sort(dim=1, stable=True).indices, mask.argsort(dim=0, stable=True, descending=True), mask.sort(descending=True).values]
            return sum((h.flatten()[: each.numel()].view(each.shape) * each).sum() for each in places) + h.square().mean()

        self.trains(body)

    def test_functions_of_a_number(self):
        """Also where they are large, and below 0."""

        def body(net, h):
            wide = torch.cat([h.flatten() * 9, torch.tensor([1e-3, 1.0, 2.0, 0.5, 50.0, 1e6, -0.25, -30.5]).double() + 0 * h[0]])
            found = [torch.lgamma(wide), torch.digamma(wide), torch.polygamma(1, wide.abs() + 0.1), torch.polygamma(2, wide.abs() + 0.5), torch.erfinv(torch.tanh(h)),
                     torch.special.ndtri(torch.sigmoid(h)), torch.fmax(h, torch.where(h > 0.3, torch.nan, h.flip(0))),
                     torch.copysign(h, h.flip(1)), torch.round(h, decimals=1) * h, torch.angle(h) + h, torch.dist(h, h + 1, 3)]  # fmt: skip
            return sum(torch.tanh(each / 99).sum() for each in found)

        self.trains(body)

    def test_poles(self):
        def body(net, h):
            x = torch.tensor([0.0, -0.0, -1.0, -3.0, torch.inf]).double()
            outside = torch.tensor([1.0, -1.0, 1.5]).double()
            values = torch.cat([torch.lgamma(x), torch.digamma(x), torch.erfinv(outside)])
            return torch.where(values.isnan(), 3.0, values.clamp(-2, 2)).mul(torch.arange(13)).sum() + h.square().mean()

        self.trains(body)

    def test_distributions(self):
        def body(net, h):
            many = F.softplus(h[:, :3]) + 0.1
            found = [torch.distributions.Gamma(many, 2.0, validate_args=False).log_prob(many + 1), torch.distributions.Dirichlet(many).entropy(),
                     torch.distributions.Beta(many, 1.5, validate_args=False).log_prob(torch.sigmoid(h[:, 3:6])),
                     torch.distributions.StudentT(many, validate_args=False).log_prob(h[:, :3]),
                     torch.distributions.Normal(h[:, 0], 1.0).icdf(torch.sigmoid(h[:, 1]))]  # fmt: skip
            return sum(each.mean() for each in found)

        self.trains(body)

    def test_instances_with_running_statistics(self):
        class Norms(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
                self.b = nn.InstanceNorm2d(2, momentum=0.3, track_running_stats=True).eval()

            def forward(self, h):
                return self.b(self.a(h.view(4, 4, 4)).view(4, 2, 2, 4)).square().mul(torch.arange(4)).mean()

        torch.manual_seed(0)
        net, batch = nn.Sequential(nn.Linear(6, 8), Norms()).double(), (torch.randn(8, 6).double(),)
        eager = copy.deepcopy(net)
        step = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=0.1), batch)
        for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, None, torch.optim.SGD(eager.parameters(), lr=0.1), batch, 3)):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)
        net.eval(), eager.eval()
        self.assertAlmostEqual(step.eval_step(*batch), eager(*batch).item(), delta=1e-10)

    def test_pooling_that_counts_otherwise(self):
        def body(net, h):
            image = h.view(2, 1, 4, 8)
            means = [F.avg_pool2d(image, 3, 2, 1, ceil_mode=True), F.avg_pool2d(image, (2, 3), 2, (1, 1), divisor_override=5),
                     F.avg_pool2d(image, 2, 2, 0, True, False), F.avg_pool1d(h, 3, 2, ceil_mode=True),
                     F.avg_pool2d(image, 3, 2, 1, True, False, divisor_override=7)]  # fmt: skip
            return sum((each * torch.arange(each.numel()).view(each.shape)).mean() for each in means)

        self.trains(body)

    def test_bags(self):
        """Of tables: bags of one length and of several, empty ones, and padding."""

        def body(net, h, indices, offsets):
            table, weights = torch.cat([h, h * 2]), h[:2, :6].flatten()
            found = []
            for mode in ("sum", "mean", "max"):
                found += [F.embedding_bag(indices, table, offsets, mode=mode, padding_idx=padding) for padding in (None, 3)]
                found.append(F.embedding_bag(indices.view(3, 4), table, mode=mode))
            found.append(F.embedding_bag(indices, table, offsets[:4], mode="sum", per_sample_weights=weights, include_last_offset=True))
            found.append(F.embedding_bag(indices, table, offsets, scale_grad_by_freq=True))
            found += [F.embedding(indices, table, scale_grad_by_freq=True, padding_idx=3), F.bilinear(h, h + 1, table[:9].view(9, 8, 1) * h, h[0, 0].expand(9))]
            return sum((each * torch.arange(each.numel()).view(each.shape)).square().mean() for each in found) / 9999

        self.trains(body, torch.tensor([1, 3, 3, 0, 15, 9, 3, 3, 2, 1, 1, 14]), torch.tensor([0, 3, 3, 6, 8]))

    def test_sparse_gradients(self):
        torch.manual_seed(0)
        net, batch = nn.Sequential(nn.Embedding(9, 4, sparse=True), nn.Flatten(), nn.Linear(12, 3)).double(), (torch.tensor([[1, 1, 8], [0, 2, 1]]), torch.tensor([0, 2]))
        eager = copy.deepcopy(net)
        step = gpuc.compile(net, F.cross_entropy, torch.optim.SGD(net.parameters(), lr=0.1), batch)
        for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, F.cross_entropy, torch.optim.SGD(eager.parameters(), lr=0.1), batch, 3)):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)

    def test_covariances(self):
        def body(net, h):
            weights, often = torch.arange(1, 9).double(), torch.tensor([1, 2, 0, 1, 3, 1, 1, 2])
            found = [torch.cov(h), h.cov(correction=0), torch.cov(h, fweights=often, aweights=weights), torch.cov(h[0]), torch.corrcoef(h.t()), h[:3].corrcoef()]
            return sum((each * torch.arange(each.numel()).view(each.shape)).mean() for each in found)

        self.trains(body)

    def test_places(self):
        def body(net, h):
            written, other = h.clone(), torch.zeros(8, 8).double()
            written[:, ::3] = h[:, :3] * 2
            written[h[:, 0] > 0] = h[0]
            other[1::2, 1:] = h[:4, 1:]
            joined = torch.masked_scatter(h, h > 0.2, h * 3)
            put = h.put(torch.tensor([5, 60]), h[0, :2]) + h.index_reduce(0, torch.tensor([1, 1, 4]), h[:3], "amax")
            found = [written, other, joined, put, torch.as_strided(h, (3, 4), (8, 2), 1), torch.take(h, torch.tensor([9, 0, 9]))]
            return sum((each * torch.arange(each.numel()).view(each.shape)).square().mean() for each in found) / 999

        self.trains(body)

    def test_shifts(self):
        def body(net, h, many):
            return (h * (((many << 3) >> 1) + (-many >> 2) + torch.bitwise_left_shift(many, many % 5))).mean()

        self.trains(body, torch.tensor([1, -7, 5, 2, 9, -1, 0, 3]))

    def test_at_the_bounds(self):
        """Where functions have no derivative, PyTorch's."""

        def body(net, h):
            at = torch.tensor([0.0, 1.0, 6.0, -1.0, 3.0, -3.0, 0.5, -0.0]).double() + 0 * h[0]
            found = [at.clamp(0, 1), at.clamp(min=1), at.clamp(max=0), F.hardtanh(at), F.relu6(at), F.hardsigmoid(at[4:6]), F.hardswish(at), at.relu(), at.abs(),
                     F.leaky_relu(at), F.elu(at), F.softshrink(at), F.threshold(at, 0, 2), at.clamp(h[0], h[0] + 1), torch.maximum(at, at.flip(0)), at.clamp(3, 1)]  # fmt: skip
            slopes = [torch.autograd.grad(each.sum(), at, retain_graph=True, allow_unused=True)[0] for each in found]
            return sum((slope * torch.arange(8)).sum() * (k + 1) for k, slope in enumerate(slopes)) + h.square().mean() + sum(each.sum() for each in found)

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
            rows = torch.unique(h[:, 0].long().abs())
            return net.fc(h[rows, :6]).sum()

        with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: has a shape that hangs on a tensor's value.*number the groups") as raised:
            self.trains(body)
        self.assertEqual(len(raised.exception.problems), 1)

    def test_rows_by_tensors_of_one_number(self):
        """From either end, and of a parameter."""

        def body(net, h, places):
            rows = [h[places[0]], h[:, places[1]], h[places[2], 2].view(1), net.fc.bias[places[1]].view(1), *[h[place] for place in places]]
            return sum((each * torch.arange(1, len(each) + 1)).square().mean() for each in rows)

        self.trains(body, torch.tensor([3, -2, 0]))
        with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: .*hangs on a tensor's value"):
            self.trains(lambda net, h, places: h.clone()[places[0]].mul_(2).sum(), torch.tensor([3]))

    def test_counts(self):
        """In so many parts of a range; and rows as often as others say, whose number is known."""

        def body(net, h, often):
            counts = [torch.histc(h), torch.histc(h, 5, -0.5, 0.7), torch.histc(h * 0 + 2, 4)]
            rows = [h.repeat_interleave(often, 0, output_size=10), torch.repeat_interleave(h.mT, often, 1, output_size=10)]
            return sum((each * torch.arange(each.numel()).double().cos().view(each.shape)).square().mean() for each in rows) + torch.cat(counts).cos().sum() * h.mean()

        self.trains(body, torch.tensor([1, 0, 2, 3, 1, 1, 0, 2]))

    def test_cures_of_what_hangs_on_values(self):
        """Which errors name."""

        def body(net, h, lengths):
            for _ in range(6):
                h = torch.where(h.norm() > 1, h / 2, h)
            rows = torch.where(h.sum() > 0, h, -h) + torch.where(torch.isclose(h, -h).all(), h, 2 * h)
            inside = torch.arange(8) < lengths.unsqueeze(1)
            counts, sums = torch.zeros(9).index_add(0, lengths, torch.ones(len(lengths))), torch.zeros(9, 8, dtype=h.dtype).index_add(0, lengths, h)
            return (rows * inside).sum() / inside.sum() + (counts[:8] * h).mean() + sums.square().sum() + (F.one_hot(lengths, 8) * h).sum() * lengths.max()

        self.trains(body, torch.tensor([3, 1, 0, 2, 7, 1, 4, 5]))

    def test_pictures_of_another_size(self):
        """By all that an element covers."""

        def body(net, h):
            pictures = h.view(2, 1, 4, 8)
            sizes = [{"size": (3, 5)}, {"size": (7, 3)}, {"size": (1, 9)}, {"scale_factor": (0.6, 1.7)}, {"scale_factor": 0.6, "recompute_scale_factor": True}]
            ways = [(mode, aligned) for mode in ("bilinear", "bicubic") for aligned in (False, True)]
            parts = [F.interpolate(pictures, mode=mode, align_corners=aligned, antialias=True, **size) for mode, aligned in ways for size in sizes]
            return sum((each * torch.arange(each.numel()).double().cos().view(each.shape)).square().mean() for each in parts)

        self.trains(body)

    def test_statistics_of_norms(self):
        """PyTorch passes gradients of a group norm's on, and of a layer norm's none."""

        def body(net, h):
            of_rows = torch.native_layer_norm(h, (8,), None, None, 1e-5)
            of_groups = torch.native_group_norm(h, None, None, 8, 8, 1, 2, 1e-5)
            return sum((each * torch.arange(1, each.numel() + 1).view(each.shape)).square().mean() for each in (*of_rows, *of_groups))

        self.trains(body)

    def test_within_vmap(self):
        """What a layer is of each row; and what is subtracted the other way round, times a number."""

        def body(net, h):
            rows = torch.vmap(lambda row: row.softmax(0) + row.view(2, 4).log_softmax(1).view(8) + F.layer_norm(row, (8,)))(h)
            groups = torch.vmap(lambda row: F.group_norm(row.view(1, 4, 2), 2))(h)
            return (rows * h.detach()).sum() + groups.square().sin().sum() + torch.rsub(h, h.sin(), alpha=2).square().mean() + torch.rsub(h, 3, alpha=2).sum()

        self.trains(body)

    def test_masks_that_are_constants(self):
        """Made in forward() or kept beside it: what they choose is known, and so is how many that are."""

        def written(rows):
            mask = torch.zeros(rows, rows, dtype=torch.bool)
            mask[0], mask[1, 2] = True, True
            return mask.fill_diagonal_(True).logical_or_(torch.arange(rows) == 5)

        kept = torch.arange(8) % 3 > 0

        def body(net, h):
            mask = torch.ones_like(h @ h.T, dtype=torch.bool).triu(1)
            (i, j), pairs = torch.where(mask), mask.nonzero()
            scores = (h @ h.T)[~torch.eye(len(h), dtype=torch.bool)].view(len(h), -1).logsumexp(1)
            if written(8).any():
                scores = scores * h[kept, 1:3].mean() + h[None, ..., kept].std()
            less = h.clone()
            less[kept] -= h[:5].sin()
            less[written(8)] *= 2
            return less.square().mean() + (h[i] * h[j]).sum() / int(mask.sum()) + scores.sum() + h[pairs[:, 0]].mean() + (h @ h)[written(8)].std() + torch.masked_select(h, kept).sin().sum()

        self.trains(body)

    def test_masks_that_are_none(self):
        """What they hang on: data, draws, a parameter, what a view has written."""

        def by_a_view():
            mask = torch.zeros(8, dtype=torch.bool)
            mask[2:4].fill_(True)
            return mask

        for mask in (lambda net, h: torch.ones(8, dtype=torch.bool) & (h[0] > 0), lambda net, h: torch.rand(8) > 0.5,
                     lambda net, h: by_a_view(), lambda net, h: net.fc.weight[:, 0] > 0):  # fmt: skip
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: has a shape that hangs on a tensor's value"):
                self.trains(lambda net, h, mask=mask: h[:, mask(net, h)].mean())
        with self.assertRaisesRegex(gpuc.Error, "The shape of the mask .*3, 3.* does not match the shape of the indexed tensor .*8, 8"):
            self.trains(lambda net, h: h[torch.ones(3, 3, dtype=torch.bool)].mean())

    def test_buffers_that_decide(self):
        """Flags, masks and graphs, which a pass leaves as they are: who changes one is told."""

        def make(body, **buffers):
            torch.manual_seed(0)
            net = Net(body).double()
            for name, buffer in buffers.items():
                net.register_buffer(name, buffer)
            return net, (torch.randn(8, 6).double(),)

        def chosen(net, h):
            if not net.is_ready:
                return h.sum() * torch.nan
            edges = net.edges[:, net.edges[0] != net.edges[1]]
            return (h[:, net.kept].sin().sum() + (h[edges[0]] * h[edges[1]]).sum()) / net.count.item()

        buffers = {"is_ready": torch.tensor(True), "kept": torch.arange(8) % 3 > 0, "edges": torch.tensor([[0, 1, 2, 3], [1, 1, 0, 5]]), "count": torch.tensor(3.0)}
        for name in buffers:
            net, batch = make(chosen, **{name: buffer.clone() for name, buffer in buffers.items()})
            eager = copy.deepcopy(net)
            step = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=1e-4), batch)
            for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, None, torch.optim.SGD(eager.parameters(), lr=1e-4), batch, 3)):
                self.assertAlmostEqual(ours, theirs, delta=1e-10)
            getattr(net, name).view(-1)[0] = getattr(net, name).view(-1)[0] == 0
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: a tensor that is read there holds something else"):
                step.evaluate([batch])

    def test_buffers_that_decide_and_are_written(self):
        """Before or behind, by themselves or by a view, or as another tensor; but not where the first pass alone did."""

        def counts(net, h, write):
            if net.steps < 3:
                h = 2 * h
            write(net)
            return (h * 2 if net.steps < 5 else h).sum()

        def assigned(net):
            net.steps = net.steps + 1

        for write in (lambda net: net.steps.add_(1), lambda net: net.steps.view(-1).mul_(2), assigned):
            net = Net(lambda net, h, write=write: counts(net, h, write)).double()
            net.register_buffer("steps", torch.tensor(1))
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: hangs on the value of a buffer that the forward pass itself changes"):
                gpuc.compile(net, None, "sgd:lr=0.1", (torch.randn(8, 6).double(),))

        def first(net, h):
            if not net.is_ready:
                net.queue[0, :8] = h.mean(0)
                net.is_ready.fill_(True)
            return (h - net.queue[0, :8]).square().sum()

        net, batch = Net(first).double(), (torch.randn(8, 6).double(),)
        net.register_buffer("is_ready", torch.tensor(False))
        with self.assertRaisesRegex(gpuc.Error, "or, if its first pass alone goes another way, call the module once before"):
            gpuc.compile(net, None, "sgd:lr=0", batch)
        net(*batch)
        self.assertAlmostEqual(gpuc.compile(net, None, "sgd:lr=0", batch)(*batch), net(*batch).item(), delta=1e-10)

    def test_a_mask_that_is_kept_is_looked_at(self):
        """Who changes it is told; and what a module counts is found, though its passes ask for values."""
        kept = torch.arange(8) % 3 > 0
        net, batch = Net(lambda net, h: h[:, kept].square().mean()).double(), (torch.randn(8, 6).double(),)
        step = gpuc.compile(net, None, "sgd:lr=0.1", batch)
        step(*batch)
        kept[0] = True
        with self.assertRaisesRegex(gpuc.Error, "kept, which .* reads, holds something else"):
            step.variable("step")
        calls = []
        with self.assertRaisesRegex(gpuc.Error, "is computed otherwise in the second pass"):
            self.trains(lambda net, h: h[:, ~kept].mean() * (calls.append(1) or len(calls)))

    def test_data(self):
        """What reads it has no gradient; by it a buffer is written, as a codebook's mean is, or set."""

        def body(net, h):
            net.queue.data[0] = 0.5 * net.queue.data[1] + 1
            net.queue.data.mul_(0.9).add_(h.data.mean())
            net.queue.data = net.queue + 0.1
            return (h * h.data).sum() + net.fc.weight.data.sum() * h.mean() + net.queue.square().mean() * h.sum()

        self.trains(body)

    def test_losses_of_one_row(self):
        """Each by itself, as programs have it that go over a batch in Python."""

        def body(net, h, labels):
            weight = torch.arange(1, 9).double()
            of_rows = [F.cross_entropy(h[row], labels[row], weight, reduction=("mean", "sum", "none")[row % 3], label_smoothing=0.1) for row in range(4)]
            return sum(of_rows) + F.nll_loss(h[4].log_softmax(0), labels[4]) + F.cross_entropy(h[5], labels[5], ignore_index=0)

        self.trains(body, torch.tensor([1, 5, 0, 7, 2, 3, 1, 1]))

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
