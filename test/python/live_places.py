"""Where a mask of data is true (gpuc/formulas/chosen_places.py, whether_any.py), and experts (experts.py), next to eager PyTorch. By a Python with torch."""

import copy
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from live_formulas import Case, Net
from modules import eager_losses


def routed(h):
    """Of each row two experts, how much each counts, and by expert where it is meant: [4, 2, rows]."""
    weights, experts = h[:, :4].softmax(1).topk(2)
    return weights, experts, F.one_hot(experts, 4).permute(2, 1, 0)


class Places(Case):
    def test_experts_that_add_their_rows(self):
        """As mixtures of experts are written."""

        def body(net, h):
            weights, experts, masks = routed(h)
            twice, once, lifted = torch.zeros_like(h), torch.zeros_like(h), torch.zeros_like(h)
            for number in range(4):
                which, row = torch.where(masks[number])
                twice.index_add_(0, row, (h[row] * (number + 1)).tanh() * weights[row, which, None])
                own = h[None, row].reshape(-1, 8).sin() * weights[row, which].unsqueeze(-1)
                lifted = lifted.index_add(0, row, own.to(lifted.dtype), alpha=2)
                row, which = torch.where(experts == number)
                once[row] += weights[row, which, None] * F.linear(h[row], h[:5]).cos().sum(1, keepdim=True)
            return twice.square().sum() + once.square().mean() + (lifted * h).sum()

        self.trains(body)

    def test_rows_by_places_of_one_mask(self):
        def body(net, h, labels):
            places = (labels > 0).nonzero().squeeze(-1)
            again, (pairs, columns) = torch.nonzero(labels > 0, as_tuple=True)[0], (h > 0.1).nonzero().unbind(1)
            out, added, copied = torch.zeros_like(h), torch.ones_like(h), h.clone()
            out[places] = h[places].tanh() + labels[places].unsqueeze(1)
            added.scatter_add_(0, places.view(-1, 1).expand(-1, 8), torch.index_select(h, 0, places) * 3)
            copied.index_copy_(0, again, torch.cat([h[again][:, 4:], h[again][:, :4]], 1))
            inside = torch.zeros_like(h)
            inside[pairs, columns] = h[pairs, columns] ** 2
            longer = torch.zeros(11, 8, dtype=h.dtype).index_add(0, places + 2, h[places])
            longer[labels[places] + 2] = h.sin()[places].detach() * h[places]
            found = sum((each * torch.arange(1, each.numel() + 1).view(each.shape)).square().mean() for each in (out, added, copied, inside, longer))
            return found + F.embedding(labels[places], h).sum() + h[places].flatten(1).view(-1, 2, 4).squeeze().amax(2).sum() + h[places, 1].mean()

        self.trains(body, torch.tensor([3, -1, 0, 2, 7, 1, -1, 5]))

    def test_of_places_that_come_twice_the_last_is_written(self):
        """And each has the gradient."""

        def body(net, h, labels):
            row, column = torch.where(h > 0)
            out, narrow, chosen = torch.zeros_like(h), torch.zeros(8, dtype=h.dtype), h.sin()
            out[row] = h[row] * (column + 1).unsqueeze(1)
            narrow[column] = h[row, column].exp()
            chosen[labels[row]] = h[row].cos()
            return (out * h).mean() + (narrow * h).mean() + (chosen * h).mean()

        self.trains(body, torch.tensor([3, 3, 0, 2, 7, 0, 3, 5]))

    def test_values_of_one_place(self):
        """In all the ways to write them, with numbers of all types, by a later batch, too, and whatever other values there are infinite."""
        twice, once = torch.tensor([0, 3, 0, 7, 3, 7, 1, 3]), torch.arange(8)
        for write in (
            lambda h, places: h.index_put((places,), h.sin()),
            lambda h, places: h.index_put((places, torch.tensor([[1], [4]])), h[:2].sin()),
            lambda h, places: h.index_copy(0, places, h.cos()) + h.index_put((torch.where(once > 4, places - 8, places),), h.cos()),
            lambda h, places: h.scatter(0, places[:, None].expand(8, 8), h.exp()),
            lambda h, places: h.scatter(1, places[None, ::2].expand(5, 4), h[:5, :4].exp()),
            lambda h, places: h.put(torch.stack([places, places % 5 + 8]), h[:2].exp()),
            lambda h, places: h.index_put((places,), h[0].exp()) * h.scatter(1, (places % 4)[:, None], 3.0),
            lambda h, places: h.index_put((places,), torch.where((once[:, None] == 0) & (places[2] == 0), torch.inf, h)),
            lambda h, places: h * torch.zeros(8, 1, dtype=torch.int64).index_put((places,), once[:, None]),
            lambda h, places: h * torch.zeros(8, dtype=torch.bool).index_put((places,), once % 3 == 0),
            lambda h, places: h.index_put((h.detach().sum(1).argsort(), places), h[0]),
        ):
            torch.manual_seed(0)
            net = Net(lambda net, h, places, write=write: (write(h, places) * torch.arange(1, 9)).square().mean()).double()
            x, eager = torch.randn(8, 6).double(), copy.deepcopy(net)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                step = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=1e-3), (x, once))
            optimizer = torch.optim.SGD(eager.parameters(), lr=1e-3)
            for places in (once, twice, twice.flip(0)):
                self.assertAlmostEqual(step(x, places), eager_losses(eager, None, optimizer, (x, places), 1)[0], delta=1e-10)
            for name, tensor in eager.state_dict().items():
                self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)

    def test_what_is_refused(self):
        for body, text in (
            (lambda h: h[torch.where(h[:, 0] > 0)[0], 2:3][:2], "takes some of the rows that a mask chooses"),
            (lambda h: h[:, torch.where(h[0] > 0)[0]], r"takes what stands where a mask is true by other indices, too: move those dimensions .*transpose"),
            (lambda h: h[torch.where(h[:, 0] > 0)[0]].view(2, -1), "view of rows that a mask chooses, but of each by itself"),
            (lambda h: h[None, torch.where(h[:, 0] > 0)[0]] * 2, r"computes with x\[None, i\], where a mask chooses i: leave None out|mul of x"),
            (lambda h: torch.cat([h[torch.where(h[:, 0] > 0)[0]], h]), "cat of rows that a mask chooses, and of others"),
            (lambda h: torch.zeros_like(h).index_add(1, torch.where(h[:, 0] > 0)[0], h), "adds rows that a mask chooses to others"),
        ):
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: {text}"):
                self.trains(lambda net, h, body=body: body(h).sum())


class Whether(Case):
    """Masks that are asked whether they choose some rows."""

    def test_where_it_makes_no_difference(self):
        def body(net, h):
            weights, experts, masks = routed(h)
            out = torch.zeros_like(h)
            for number in range(4):
                which, row = torch.where(masks[number])
                if row.numel() > 0:
                    out.index_add_(0, row, h[row].tanh() * weights[row, which, None])
                far = (experts[:, 0] == number).nonzero().squeeze(-1)
                if far.shape[0] == 0 or far.size(0) < 1:
                    continue
                out[far] += h[far].cos()
            for number in range(4):
                large = h[:, number] > 0.5
                if large.sum() > 0:
                    out = out + h[large].sum() * 0.01
                own = (experts == number).any(-1)
                if not own.any():
                    continue
                out[own] = out[own] + h[own].sin() * (number + 1)
            return out.square().mean()

        self.trains(body)
        # What is tried is the example. Here are rows of which no expert but one has any.
        torch.manual_seed(0)
        net, one, other = Net(body).double(), torch.randn(8, 6).double(), torch.full((8, 6), 3.0).double()
        eager = copy.deepcopy(net)
        step = gpuc.compile(net, None, "sgd:lr=0", one)
        for batch in (other, one, -other):
            self.assertAlmostEqual(step(batch), eager(batch).item(), delta=1e-12)

    def test_where_it_makes_one(self):
        """Which is found by emptied masks: the example has rows of each."""

        def one_or_other(h, mask):
            return h[mask].sum() if mask.any() else h.sum()

        def a_mean(h, mask):
            return h.sum() + h[mask].mean() if mask.any() else h.sum()

        def as_many_as_there_are(h, mask):
            found, terms = 0, 0
            for each in (mask, ~mask):
                if each.any():
                    found, terms = found + h[each].sum(), terms + 1
            return found / max(terms, 1)

        def by_its_places(h, mask):
            rows = torch.where(mask)[0]
            return h[rows].sum() if rows.numel() != 0 else h.sum()

        for body in (one_or_other, a_mean, as_many_as_there_are, by_its_places):
            self.is_refused(lambda net, h, body=body: body(h, h[:, 0] > 0))

    def is_refused(self, body):
        with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: asks whether a mask chooses some rows, and a compiled step, which does not, would"):
            self.trains(body)

    def test_where_results_are_the_same_at_first(self):
        """But not their gradients, nor what parameters and buffers of 0 do later."""

        def without_gradients(net, h):
            mask = h[:, 0] > 0
            if not mask.any():
                h = h.detach()
            return h.square().mean() + net.fc.bias.sum()

        def by_a_buffer(net, h):
            mask = h[:, 0] > 0
            return h[mask].sum() + (0 if mask.any() else (net.queue.sum() * h).sum())

        def by_a_number(net, h):
            mask = h[:, 0] > 0
            return h[mask].sum() + (0 if mask.any() else (net.scale * h.detach()).sum())

        self.is_refused(without_gradients)
        self.is_refused(by_a_buffer)
        zero = torch.zeros(8, dtype=torch.float64)
        with self.assertRaisesRegex(gpuc.Error, "asks whether a mask chooses some rows"):
            net = Net(by_a_number).double()
            net.scale = nn.Parameter(zero)
            gpuc.compile(net, None, "sgd:lr=0.1", torch.randn(8, 6).double())

    def test_loops_that_end_with_none(self):
        def halved(h, is_left):
            while is_left.any():
                h = torch.where(is_left[:, None], h / 2, h)
                is_left = h[:, 0] > 0.1
            return h

        with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: goes on as long as a mask chooses some rows, which hangs on values: loop as often"):
            self.trains(lambda net, h: halved(h, h[:, 0] > 0.1).sum() + h[h > 0].sum())

    def test_other_questions(self):
        for body, text in (
            (lambda h: h[torch.where(h[:, 0] > 0)[0]].sum() if torch.where(h[:, 0] > 0)[0].numel() > 2 else h, "asks for the number of rows"),
            (lambda h: h * torch.where(h[:, 0] > 0)[0].shape[0], "asks for the number of rows"),
            (lambda h: torch.zeros(torch.where(h[:, 0] > 0)[0].numel(), 2) + h.sum(), "has a shape that hangs on"),
            (lambda h: h if h[h[:, 0] > 0].shape[0] > 0 else h, "asks for the number of rows"),
            (lambda h: h if (h[:, 0] > 0).sum() > 3 else 2 * h, "which way is taken hangs on a tensor's value"),
        ):
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: .*{text}"):
                self.trains(lambda net, h, body=body: body(h).sum())


class Grouped(nn.Module):
    """Rows by expert, each with a matrix of its own."""

    def __init__(self, count):
        super().__init__()
        self.experts = nn.Parameter(torch.randn(count, 8, 16) / 4)

    def forward(self, x, ends):
        return F.grouped_mm(x, self.experts, offs=ends)


class Experts(unittest.TestCase):
    def test_grouped_products(self):
        """Of few experts, and of many. No row is left out, and some experts have none."""
        for count in (4, 40):
            torch.manual_seed(0)
            net, ends = Grouped(count), torch.linspace(0, 12, count).round().to(torch.int32)
            batch = (torch.randn(12, 8), ends, torch.randn(12, 16))
            eager = copy.deepcopy(net)
            step = gpuc.compile(net, F.mse_loss, torch.optim.SGD(net.parameters(), lr=1.0), batch)
            losses = [step(*batch) for _ in range(3)]
            for ours, theirs in zip(losses, eager_losses(eager, F.mse_loss, torch.optim.SGD(eager.parameters(), lr=1.0), batch, 3)):
                self.assertAlmostEqual(ours, theirs, delta=1e-5)
            self.assertTrue(torch.allclose(net.experts, eager.experts, rtol=0, atol=1e-5))


if __name__ == "__main__":
    unittest.main()
