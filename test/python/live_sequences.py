"""Packed sequences and the CTC loss (gpuc/formulas/packed.py, gpuc/formulas/alignments.py) next to eager PyTorch. By a Python with torch."""

import copy
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

import gpuc
from modules import eager_losses


def weighted(parts):
    """Each number by a weight of its own."""
    return sum((part * torch.arange(1, part.numel() + 1).double().cos().view(part.shape)).sum() for part in parts) / 9


class Reader(nn.Module):
    """A recurrent layer, and what `body` makes of it."""

    def __init__(self, layer, body):
        super().__init__()
        self.rnn, self.fc, self.body = layer, nn.Linear(4, 4), body

    def forward(self, *args):
        return self.body(self, *args)


class Case(unittest.TestCase):
    def trains(self, net, *batch, said=0):
        """Three steps, evaluation, and how many warnings there are."""
        torch.manual_seed(0)
        for parameter in net.double().parameters():
            nn.init.uniform_(parameter, -0.7, 0.7)
        eager = copy.deepcopy(net)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            step = gpuc.compile(net, None, torch.optim.SGD(net.parameters(), lr=0.05), batch)
        self.assertEqual(len(heard), said, [str(each.message) for each in heard])
        for ours, theirs in zip([step(*batch) for _ in range(3)], eager_losses(eager, None, torch.optim.SGD(eager.parameters(), lr=0.05), batch, 3)):
            self.assertAlmostEqual(ours, theirs, delta=1e-10)
        for name, tensor in eager.state_dict().items():
            self.assertTrue(torch.allclose(tensor, net.state_dict()[name], rtol=0, atol=1e-10), name)
        self.assertAlmostEqual(step.eval_step(*batch), eager.eval()(*batch).item(), delta=1e-10)
        return step


def rows(count, steps, width=4):
    torch.manual_seed(1)
    return torch.randn(count, steps, width).double()


class Packed(Case):
    def test_layers_of_each_kind(self):
        """Outputs and last states of rows in any order, in one direction and in both; what stands behind a row counts for nothing."""

        def body(net, x, lengths):
            packed = pack_padded_sequence(net.fc(x), lengths, batch_first=True, enforce_sorted=False)
            found, states = net.rnn(packed)
            out, counts = pad_packed_sequence(found, batch_first=True, total_length=7)
            return weighted([out, counts.double(), *(states if isinstance(states, tuple) else [states])])

        x, lengths = rows(4, 6), torch.tensor([3, 6, 1, 4])
        x[2, 1:] = 1e6
        for layer in (
            nn.LSTM(4, 3), nn.LSTM(4, 3, 2, bidirectional=True, batch_first=True), nn.LSTM(4, 5, proj_size=2, bidirectional=True, bias=False), nn.GRU(4, 3, 2),
            nn.GRU(4, 3, bidirectional=True), nn.RNN(4, 3, 2, bidirectional=True), nn.RNN(4, 3, nonlinearity="relu"),
        ):  # fmt: skip
            with self.subTest(str(layer)):
                self.trains(Reader(layer, body), x, lengths)

    def test_states_that_are_given(self):
        """Time first; rows in descending order; what one layer gives is packed for the next."""

        def body(net, x, lengths):
            packed = pack_padded_sequence(net.fc(x), lengths.cpu())
            first, (h, c) = net.rnn(packed, (x[:2, :, :3].contiguous(), x[1:3, :, 1:].contiguous()))
            out, _ = pad_packed_sequence(first, padding_value=-0.5, total_length=5)
            again, _ = pad_packed_sequence(packed, total_length=6)
            return weighted([out, h, c, again])

        self.trains(Reader(nn.LSTM(4, 3, bidirectional=True), body), rows(5, 4), torch.tensor([5, 5, 2, 1]))

    def test_as_many_steps_as_the_longest_row_has(self):
        """Of lengths that are known that is seen; of an input's a warning says what has to be so."""

        def known(net, x):
            found, h = net.rnn(pack_padded_sequence(net.fc(x), [4, 2, 3], batch_first=True, enforce_sorted=False))
            listed, _ = net.rnn(pack_sequence([x[0, :2], x[1, :5], x[2, :1]], enforce_sorted=False))
            out, _ = pad_packed_sequence(found, batch_first=True)
            return weighted([out, h, pad_packed_sequence(listed, total_length=5)[0]]) + out.square().mean()

        def given(net, x, lengths):
            found, h = net.rnn(pack_padded_sequence(net.fc(x), lengths, batch_first=True, enforce_sorted=False))
            return pad_packed_sequence(found, batch_first=True)[0].square().mean() + h.mean()

        self.trains(Reader(nn.GRU(4, 3), known), rows(3, 6))
        self.trains(Reader(nn.GRU(4, 3), given), rows(3, 6), torch.tensor([2, 6, 5]), said=1)

    def test_lengths_that_there_cannot_be(self):
        def body(net, x, lengths):
            return net.rnn(pack_padded_sequence(net.fc(x), lengths, batch_first=True, enforce_sorted=False))[1].mean()

        step = self.trains(Reader(nn.GRU(4, 3), body), rows(3, 6), torch.tensor([2, 6, 5]))
        with self.assertRaisesRegex(IndexError, "7"):
            step(rows(3, 6), torch.tensor([2, 7, 5]))

    def test_what_looks_into_a_sequence(self):
        def data(net, x, lengths):
            return net.fc(pack_padded_sequence(x, lengths, batch_first=True).data).mean()  # here

        net = Reader(nn.GRU(4, 3), data).double()
        with self.assertRaisesRegex(gpuc.Error, r"live_sequences.py:\d+: looks into a packed sequence, .*: pad_packed_sequence\(…\) gives padded rows"):
            gpuc.compile(net, None, "sgd:lr=0.1", (rows(3, 6), torch.tensor([6, 2, 1])))


class Alignments(Case):
    def test_each_way(self):
        """Labels that repeat, rows without one, frames that are as many as needed, other blanks; by PyTorch's own gradient where there is no softmax."""
        targets = torch.tensor([[1, 1, 2], [3, 2, 1], [2, -7, 9], [-1, -1, -1]])
        frames, labels = torch.tensor([6, 4, 7, 3]), torch.tensor([3, 3, 1, 0])

        def body(net, x, targets, frames, labels):
            scores = net.fc(x).transpose(0, 1)
            logs = scores.log_softmax(2)
            found = F.ctc_loss(logs, targets, frames, labels) + nn.CTCLoss(reduction="sum")(scores - 2, targets, frames, labels) / 3
            return found + weighted([F.ctc_loss(logs, targets, (6, 4, 7, 3), (3, 3, 1, 0), reduction="none")])

        self.trains(Reader(nn.Identity(), body), rows(4, 7), targets, frames, labels)

        def others(net, x, flat):
            logs = net.fc(x).log_softmax(2)
            alone = F.ctc_loss(logs[0], flat[:2], torch.tensor(5), torch.tensor(2), blank=3)
            return alone + F.ctc_loss(logs.transpose(0, 1), flat, (7, 6, 7, 5), (2, 1, 0, 3), blank=3)

        self.trains(Reader(nn.Identity(), others), rows(4, 7), torch.tensor([1, 1, 0, 2, 2, 0]))

    def test_rows_that_no_alignment_fits(self):
        def body(net, x, targets):
            logs = net.fc(x).log_softmax(2).transpose(0, 1)
            return F.ctc_loss(logs, targets, (2, 3), (2, 2), zero_infinity=True)

        targets = torch.tensor([[1, 1], [1, 1]])
        self.trains(Reader(nn.Identity(), body), rows(2, 4), targets)
        net = Reader(nn.Identity(), lambda net, x: F.ctc_loss(net.fc(x).log_softmax(2).transpose(0, 1), targets, (2, 3), (2, 2))).double()
        self.assertEqual(gpuc.compile(net, None, "sgd:lr=0.1", (rows(2, 4),))(rows(2, 4)), float("inf"))


if __name__ == "__main__":
    unittest.main()
