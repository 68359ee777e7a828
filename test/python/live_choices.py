"""Rows that masks of data choose (gpuc/formulas/choices.py) next to eager PyTorch. By a Python with torch."""

import unittest

import torch
from torch import nn
from torch.nn import functional as F

import gpuc
from live_formulas import Case


def rewritten(h):
    """By a mask that is another one meanwhile."""
    mask = h[:, 0] > 0
    before = h[mask]
    mask &= h[:, 1] > 0
    return before.sum() + (before * h[mask]).sum()


class Choices(Case):
    def test_losses_of_chosen_rows(self):
        def body(net, h, labels, target):
            mask, tokens = labels > 0, h.view(2, 4, 8) > 0.1
            scores, other = h[mask], (2 * h).sin()
            found = F.cross_entropy(scores, labels[mask]) + nn.CrossEntropyLoss(reduction="sum", label_smoothing=0.1)(scores, labels[mask]) / 9
            found = found + F.mse_loss(scores, target[mask]) + F.nll_loss(scores.log_softmax(1), labels[mask], reduction="none").square().mean()
            found = found + ((scores - other[mask]) ** 2).mean() + (h[tokens.view(8, 8)] * 3 + 1).log().sum() / 9 + h.view(2, 4, 8)[tokens].exp().mean()
            found = found + (h[mask] / h[mask].norm(dim=1, keepdim=True)).abs().sum(1).mean() + torch.masked_select(h, target > 0).sqrt().nan_to_num(0.5).sum() / 9
            return found + scores.mean(0).square().sum() + F.binary_cross_entropy_with_logits(scores[:, 0], target[mask][:, 1].sigmoid(), reduction="mean")

        self.trains(lambda net, h, *more: body(net, h.abs() + 0.1, *more), torch.tensor([3, -1, 0, 2, 7, 1, -1, 5]), torch.randn(8, 8).double())

    def test_what_is_finite_of_chosen_rows_alone(self):
        """Nor has what is not chosen a gradient, where its formula has no number."""

        def body(net, h, wanted):
            return torch.sqrt(h[wanted] * 0 + h.detach()[wanted].abs() * h[wanted].square()).mean() + (1 / h[h.abs() > 0.3]).mean() + h[h > 0.2].log().sum()

        self.trains(body, torch.tensor([True, False] * 4))

    def test_rows_that_are_written_back(self):
        def body(net, h, labels):
            mask, out = labels > 0, torch.zeros_like(h)
            out[mask] = net.fc(h[mask][:, :6]).tanh() * 2
            area = torch.zeros_like(h)
            inside = (h > 0) & (h.flip(1) > -0.5)
            area[inside] = h[inside] * h.flip(1)[inside]
            return out.square().mean() + area.sum()

        self.trains(body, torch.tensor([3, -1, 0, 2, 7, 1, -1, 5]))

    def test_what_goes_along_all_rows(self):
        """Or within each."""

        def body(net, h, labels):
            mask, inside = labels > 0, h > 0.2
            rows, numbers = h[mask], h[inside]
            whole = [numbers.max(), numbers.amin(), numbers.prod(), numbers.norm(), numbers.norm(1), numbers.std(), numbers.var(unbiased=False), numbers.median(),
                     numbers.logsumexp(0), (numbers > 0.5).any(), (numbers > 0.3).all(), (numbers > 0.5).count_nonzero(), rows.max(), labels[mask].min()]  # fmt: skip
            along = [rows.amax(0), rows.amin(0, keepdim=True), rows.std(0), rows.var(0, correction=0, keepdim=True), rows.norm(dim=0), rows.logsumexp(0), rows.prod(0)]
            within = [rows.amax(1), rows.max(1)[0], rows.min(dim=1).values, rows.std(1), rows.median(1).values, torch.max(rows, 2 * rows), rows.norm(dim=-1)]
            return sum((each * each).sum() for each in (*whole, *along)) + sum(each.mean() for each in within)

        self.trains(body, torch.tensor([3, -1, 0, 2, 7, 1, -1, 5]))

    def test_masks_that_are_written_twice(self):
        """Made alike of the same tensors, and of no others."""

        def body(net, h, labels):
            target = labels.view(2, 4)
            found = F.cross_entropy(h[labels != -1], labels[labels != -1]) + F.mse_loss(h[h.view(-1, 8) > 0], h.sin()[h.view(-1, 8) > 0])
            rows = h.view(2, 4, 8)[(target > 0) & (target < 6)] * target[(target > 0) & (target < 6)].unsqueeze(1)
            twice = torch.zeros_like(h)
            twice[labels > 0] = h[labels > 0] * 2
            return found + rows.sum() + twice.square().sum()

        self.trains(body, torch.tensor([3, -1, 0, 2, 7, 1, -1, 5]))

        def written(h):
            labels = h[:, 0].detach() * 2
            before = h[labels > 0]
            labels.neg_()
            return (before * h[labels > 0]).sum()

        for other in (lambda h: F.mse_loss(h[h > 0], h[h > 0.1]), lambda h: F.mse_loss(h[h > 0], h[h.detach().clone() > 0]), written):
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: puts together what two masks choose: choose both by the same variable"):
                self.trains(lambda net, h, other=other: other(h))

    def test_splines(self):
        """As flows have them: chosen rows beside others' columns, written within, padded, gathered, and checked."""

        def body(net, h, wanted):
            inside, out = h.abs() < 0.8, torch.zeros_like(h)
            out[~inside] = h[~inside]
            if torch.any(inside):
                numbers, widths = h[inside], net.fc.weight.expand(8, 8, 6)[inside, 1:]
                if torch.min(numbers) < -1 or not (numbers <= 1).all():
                    raise ValueError("outside")
                edges = F.pad(widths.softmax(-1).cumsum(-1), (1, 0)) * 2 - 1
                edges[..., 0], edges[..., -1] = -1.0, 1.0 + 1e-6
                place = ((numbers[..., None] >= edges).sum(-1) - 1)[..., None]
                low, width = edges.gather(-1, place)[..., 0], (edges[..., 1:] - edges[..., :-1]).gather(-1, place)[..., 0]
                assert widths.shape[-1] == 5 and (width > 0).all(), "no width"
                out[inside] = ((numbers - low) / width).square()
            return (out * wanted).sum() + h[h[:, 0] > 0].view(-1, 2, 4).square().sum()

        said = self.trains(body, torch.randn(8, 8).double())
        self.assertEqual(len([each for each in said if "asserts something of a tensor's value, which a compiled step does not check" in each]), 2)

    def test_whether_numbers_are_finite(self):
        """As models of the DETR family ask."""

        def body(net, h):
            if not torch.isfinite(h).all():
                h = torch.clamp(h, min=-1e10, max=1e10)
            if torch.isnan(h).any() or torch.any(torch.isinf(h)):
                h = h.nan_to_num()
            return h.square().mean()

        said = self.trains(body)
        self.assertEqual(len([each for each in said if "goes on as if all numbers were finite, which a compiled step does not ask: check_numer" in each]), 2)

    def test_none(self):
        """Whose sum is 0."""
        torch.manual_seed(0)
        net, batch = nn.Linear(6, 3).double(), (torch.randn(4, 6).double(), torch.tensor([1, 0, 2, 1]))
        step = gpuc.compile(net, lambda out, labels: out[labels > 0].sum(), "sgd:lr=0", batch)
        self.assertEqual(step(batch[0], torch.zeros(4, dtype=torch.int64)), 0)

    def test_gradients_of_none(self):
        """Of formulas that have no number for what is not chosen."""

        def body(net, h, wanted):
            more, less = wanted[:, None] & (h > 0), wanted[:, None] & (h < 0)
            return h.square().mean() + h[more].sqrt().sum() + (1 / h[more]).log().sum() + (-h[less]).sqrt().sum()

        def below(net, h, wanted):
            return h.square().mean() + F.linear(h[wanted].abs(), -h[:3].abs()).sqrt().sum()

        none = torch.zeros(8, dtype=torch.bool)
        self.trains(body, torch.tensor([True, False] * 4))
        self.trains(body, none)
        self.trains(below, none)

    def test_what_is_no_check(self):
        """Since someone goes on where it raises, or it fails of the example."""

        def caught(h):
            try:
                if h.max() > 0.1:
                    raise ValueError
                return h
            except ValueError:
                return h * 2

        def infinite(h):
            h = h.masked_fill(h > 0, float("-inf"))
            if torch.isinf(h).any():
                h = h.clamp(min=-1)
            return h

        def failed(h):
            assert (h > 0).all()
            return h

        for body, text in (
            (caught, "h.max.. > 0.1: which way is taken hangs on a tensor's value"),
            (infinite, "asks whether all numbers are finite, and the example's are not"),
            (failed, "asserts something of a tensor's value that is not so of the example"),
        ):
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: {text}"):
                self.trains(lambda net, h, body=body: body(h).sum())

    def test_what_is_refused(self):
        """By the line, and what of chosen rows it is."""
        for body, text in (
            (lambda h: h[h[:, 0] > 0] @ h[h[:, 0] > 0].T, "T of rows that a mask chooses, whose number hangs on values"),
            (lambda h: h[h > 0].shape[0] * h, "asks for the number of rows that a mask chooses.*: count them by mask.sum()"),
            (lambda h: h[h[:, 0] > 0].sort(0)[0], "sort of rows that a mask chooses.*: use torch.where, or multiply by the mask"),
            (lambda h: h[h[:, 0] > 0].max(0).values, "asks at which of the rows that a mask chooses something stands: amax and amin"),
            (lambda h: h[h[:, 0] > 0] + h[h[:, 1] > 0], "puts together what two masks choose"),
            (rewritten, "puts together what two masks choose"),
            (lambda h: h[h[:, 0] > 0].flatten()[:3], "flatten of rows that a mask chooses"),
        ):
            with self.assertRaisesRegex(gpuc.Error, f"{__file__}:[0-9]+: {text}"):
                self.trains(lambda net, h, body=body: body(h).sum())


if __name__ == "__main__":
    unittest.main()
