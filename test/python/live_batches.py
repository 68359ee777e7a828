"""Batches in parts, and such as have fewer rows than were compiled; run by torch_test.py with a Python that has torch."""

import collections
import copy
import dataclasses
import math
import pathlib
import sys
import threading
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from modules import Drawing, Mlp, eager_losses  # noqa: E402

ROWS = 8


def drawing():
    torch.manual_seed(2)
    return Drawing().double()


class Batches(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(ROWS, 6).double(), torch.randint(0, 3, (ROWS,))

    def compiled(self, net=None, loss=None, **options):
        torch.manual_seed(1)
        net = net or nn.Sequential(nn.Dropout(0.3), Mlp()).double()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
        return net, gpuc.compile(net, loss or nn.CrossEntropyLoss(), optimizer, (self.x, self.y), **options)


class Both(nn.Module):
    """Of two inputs, and a buffer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 3)
        self.register_buffer("scale", torch.rand(ROWS, 6))

    def forward(self, x, y):
        return (self.a(x * self.scale) - 2 * self.b(y)).square().mean()


@dataclasses.dataclass
class Sample:
    x: torch.Tensor


class Threads(Batches):
    """A step has one arena: calls of several threads wait for one another."""

    def together(self, count, call):
        found = [None] * count

        def kept(number):
            try:
                found[number] = call(number)
            except Exception as error:
                found[number] = error

        threads = [threading.Thread(target=kept, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found

    def test_one_step(self):
        """As many updates of one batch as one thread makes; and what others ask for meanwhile is of their own rows."""
        net, step = self.compiled(Mlp().double())
        eager = copy.deepcopy(net)
        self.assertEqual(self.together(4, lambda _: sum(math.isfinite(step(self.x, self.y)) for _ in range(50))), [50] * 4)
        eager_losses(eager, nn.CrossEntropyLoss(), torch.optim.SGD(eager.parameters(), lr=0.5, momentum=0.9), (self.x, self.y), 200)
        for ours, theirs in zip(net.parameters(), eager.parameters()):
            self.assertTrue(torch.allclose(ours, theirs, rtol=0, atol=1e-8))
        batches = [torch.randn(ROWS, 6).double() for _ in range(4)]
        expected = [(net(x).tolist(), F.cross_entropy(net(x), self.y).item()) for x in batches]

        def ask(number):
            asked = [(step.predict(batches[number]), step.eval_step(batches[number], self.y)) for _ in range(50)]
            logits, loss = expected[number]
            return max(max((out - torch.tensor(logits, dtype=torch.float64)).abs().max().item(), abs(mean - loss)) for out, mean in asked)

        self.assertLess(max(self.together(4, ask)), 1e-12)

    def test_several_that_compile(self):
        nets = [Mlp().double() for _ in range(3)]
        expected = [eager_losses(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.5), (self.x, self.y), 2)
                    for net in copy.deepcopy(nets)]  # fmt: skip

        def trained(number):
            step = gpuc.compile(nets[number], nn.CrossEntropyLoss(), "sgd:lr=0.5", (self.x, self.y))
            return [step(self.x, self.y) for _ in range(2)]

        for ours, theirs in zip(self.together(3, trained), expected):
            self.assertEqual([round(loss, 10) for loss in ours], [round(loss, 10) for loss in theirs])


class Examples(Batches):
    def test_what_is_none(self):
        for example, text in (
            ((self.x[:0], self.y[:0]), r"is empty, \[0, 6\]: give an example as the loader makes them"),
            ((self.x.numpy(), self.y), r"an array of NumPy: torch.from_numpy\(…\) makes it one"),
            ((Sample(self.x), self.y), "but a Sample: give its tensors as a dict or a tuple"),
        ):
            with self.assertRaisesRegex(gpuc.Error, text):
                gpuc.compile(Mlp().double(), nn.CrossEntropyLoss(), "sgd:lr=0.1", example)

    def test_one_tensor_twice(self):
        """They are two inputs, whatever the example has: of an autoencoder, of two towers, and where it is the module's own."""
        x, y = torch.randn(ROWS, 6).double(), torch.randn(ROWS, 6).double()
        net = Both().double()
        for example in ((x, x), (net.scale, x), {"x": x, "y": x}):
            step = gpuc.compile(net, None, "sgd:lr=0", example)
            batch = dict(zip("xy", (x, y)))
            given = ((), batch) if isinstance(example, dict) else ((x, y), {})
            self.assertAlmostEqual(step(*given[0], **given[1]), net(x, y).item(), delta=1e-14)
            self.assertAlmostEqual(step.eval_step(*given[0], **given[1]), net(x, y).item(), delta=1e-14)
        # Keys in whatever order, and of what is as good as a dict.
        mapped = collections.UserDict(x=x, y=y)
        expected = net(x, y).item()
        self.assertAlmostEqual(step.evaluate([mapped]).loss, expected, delta=1e-14)
        self.assertAlmostEqual(step(y=y, x=x), net(x, y).item(), delta=1e-14)
        with self.assertRaisesRegex(gpuc.Error, r"other parts than the one .*: give its keys by their names, step\(\*\*batch\)"):
            step({"x": x, "y": y})
        self.assertAlmostEqual(gpuc.compile(net, None, "sgd:lr=0", mapped)(**mapped), expected, delta=1e-14)
        linear = nn.Linear(6, 6).double()
        step = gpuc.compile(linear, nn.MSELoss(), "sgd:lr=0", (x, x))
        self.assertAlmostEqual(step(x, y), nn.functional.mse_loss(linear(x), y).item(), delta=1e-14)
        self.assertLess((step.predict(x) - linear(x)).abs().max().item(), 1e-14)


class Parts(Batches):
    def test_parts_train_as_the_whole(self):
        """Dropout draws by an element's place in the whole batch."""
        whole, step = self.compiled()
        sizes = ROWS, 5, 1
        losses = [step(self.x[:rows], self.y[:rows]) for rows in sizes]
        for count in 2, 4, 8:
            net, parts = self.compiled(accumulate=count)
            for rows, loss in zip(sizes, losses):
                self.assertAlmostEqual(parts(self.x[:rows], self.y[:rows]), loss, delta=1e-12)
            for ours, theirs in zip(net.parameters(), whole.parameters()):
                self.assertLess((ours - theirs).abs().max().item(), 1e-12)
            self.assertLess(parts.arena_bytes, 2 * step.arena_bytes)

    def check_as_whole(self, make, counts, steps, **options):
        """Of as many parts: losses and what is trained."""
        whole, step = self.compiled(make(), **options)
        losses = [step(self.x, self.y) for _ in range(steps)]
        for count in counts:
            net, parts = self.compiled(make(), accumulate=count, **options)
            for loss in losses:
                self.assertAlmostEqual(parts(self.x, self.y), loss, delta=1e-12)
            for ours, theirs in zip(net.parameters(), whole.parameters()):
                self.assertLess((ours - theirs).abs().max().item(), 1e-12)

    def test_what_is_drawn_for_rows_is_that_of_the_whole(self):
        """Stochastic depth, as others write it, and noise: by an element's place in the whole batch."""
        self.check_as_whole(drawing, (2, 4), 3)

    def test_what_is_drawn_where_rows_do_not_stand_in_front(self):
        """No two rows get the same, whichever part they are in; where rows lie behind one another they get what the whole has there."""

        class Noised(nn.Module):
            def __init__(self, noised):
                super().__init__()
                self.w, self.noised = nn.Parameter(torch.ones(1).double()), noised

            def forward(self, x):
                return self.noised(x) * self.w

        def time_first(x):
            steps = x.view(-1, 2, 3).transpose(0, 1)
            return (steps + torch.rand(steps.shape).double()).transpose(0, 1).reshape(x.shape)

        def flat(x):
            tokens = x.reshape(-1, 3)
            return (tokens + torch.rand_like(tokens)).view(x.shape)

        def beside(x):
            tokens = x.reshape(-1, 3)
            return torch.cat([tokens, torch.rand(tokens.shape[0], 1).double()], 1)[:, 1:].reshape(x.shape)

        def drawn(noised, loss, count):
            """A number of each row, by what it gets."""
            step = gpuc.compile(Noised(noised), loss, "sgd:lr=0", (self.x, self.x), accumulate=count)
            found = []
            for row in range(ROWS):
                far, near = torch.zeros(2, ROWS, 6).double()
                far[row] = -1
                torch.from_dlpack(step.variable("step")).zero_()
                found.append(step(far, -far if noised is beside else near))
            return found

        distance = nn.L1Loss(reduction="sum")
        of_noise = lambda out, _: F.l1_loss(-out.reshape(-1, 3), torch.rand(out.numel() // 3, 3).double(), reduction="sum")  # noqa: E731
        for noised, loss in (time_first, distance), (flat, distance), (beside, distance), (lambda x: x, of_noise):
            whole = drawn(noised, loss, 1)
            for count in 4, ROWS:
                parts = drawn(noised, loss, count)
                self.assertEqual(len({round(each, 9) for each in parts}), ROWS)
                if noised is not time_first:
                    for ours, theirs in zip(parts, whole):
                        self.assertAlmostEqual(ours, theirs, delta=1e-12)
        # What is repeated over the rows is the same for all of them, also where a part has one alone.
        alike = drawn(lambda x: x + torch.rand(6).double(), distance, ROWS)
        self.assertEqual(len({round(each, 9) for each in alike}), 1)

    def test_extents_that_a_part_of_the_batch_has(self):
        """Noise along steps, a table's or a mask's, of which there are as many as a part has rows, is no row's; what is for rows is."""

        class Noised(nn.Module):
            def __init__(self, noised):
                super().__init__()
                torch.manual_seed(3)
                self.last, self.row, self.noised = nn.Linear(3, 3), nn.Parameter(torch.linspace(-1, 1, 3)), noised

            def forward(self, x):
                return self.last(self.noised(self, x.view(-1, 2, 3)) * self.row).mean(1)

        def drop(x):
            return F.dropout(x, 0.5)

        attention = F.scaled_dot_product_attention
        for number, noised in enumerate((
            lambda net, x: x + torch.randn(2, 3).double(),
            lambda net, x: (x.transpose(0, 1) + torch.randn(2, 1, 3).double()).transpose(0, 1),
            lambda net, x: torch.einsum("rtd,td->rtd", x, torch.rand(2, 3).double()),
            lambda net, x: x + torch.randn(2, 3).double()[(x.sum(-1) > 0).long()],
            lambda net, x: x + drop(net.row.expand(2, 3)),
            lambda net, x: x[:, torch.randperm(2)[:1]],
            lambda net, x: attention(x, x, x, attn_mask=torch.randn(2, 2).double()),
            lambda net, x: x * torch.rand(1).double(),
            lambda net, x: x + drop(net.row.expand(len(x), 2, 3)),
            lambda net, x: x + torch.randn(len(x), 5).double()[:, None, :3],
            lambda net, x: torch.where(torch.rand(len(x), 1, 1) > 0.5, x, net.row),
        )):  # fmt: skip
            for count in 4, ROWS:
                with self.subTest(number=number, count=count):
                    self.check_as_whole(lambda noised=noised: Noised(noised).double(), [count], 2, predict=False)

    def test_inputs_that_all_parts_have(self):
        """Of as many rows as a part has, or not."""

        class Weighed(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(6, 3)

            def forward(self, x, weights):
                return self.last(x * weights.sum())

        for rows in 1, 2, 3:
            given, losses = (self.x, torch.rand(rows).double(), self.y), []
            for count in 1, 4, ROWS:
                torch.manual_seed(1)
                net = Weighed().double()
                step = gpuc.compile(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.5), given, accumulate=count)
                losses.append([step(*given), step(*given), step.eval_step(*given)])
            for parts in losses[1:]:
                self.assertLess(max(abs(ours - theirs) for ours, theirs in zip(parts, losses[0])), 1e-12)

    def test_parts_are_evaluated_and_predict(self):
        net, step = self.compiled(accumulate=4)
        net.eval()
        for rows in ROWS, 5, 1:
            x, y = self.x[:rows], self.y[:rows]
            expected = net(x)
            self.assertLess((step.predict(x) - expected).abs().max().item(), 1e-12)
            self.assertAlmostEqual(step.eval_step(x, y), F.cross_entropy(expected, y).item(), delta=1e-12)
        loss = F.cross_entropy(net(torch.cat([self.x, self.x[:3]])), torch.cat([self.y, self.y[:3]])).item()
        self.assertAlmostEqual(step.evaluate([(self.x, self.y), (self.x[:3], self.y[:3])]).loss, loss, delta=1e-12)

    def test_what_has_no_rows_is_the_same_in_each_part(self):
        class Scaled(Mlp):
            def forward(self, x, scale):
                return super().forward(x * F.dropout(scale, 0.5, self.training))

        scale, made = torch.full((6,), 2.0).double(), []
        for count in 1, 2:
            torch.manual_seed(1)
            net = Scaled().double()
            step = gpuc.compile(net, nn.CrossEntropyLoss(), "sgd:lr=0.1", (self.x, scale, self.y), accumulate=count)
            made.append([step(self.x, scale, self.y) for _ in range(3)])
        for one, other in zip(*made):
            self.assertAlmostEqual(one, other, delta=1e-12)

    def test_parts_whose_losses_are_not_that_of_the_whole(self):
        """Tried on the example, and said; of what is drawn nothing can be."""
        weight = torch.tensor([0.2, 1.0, 3.0]).double()

        def said(loss):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                self.compiled(loss=loss, accumulate=2)
            return [str(each.message) for each in found]

        for loss in (
            nn.CrossEntropyLoss(weight=weight), nn.CrossEntropyLoss(reduction="sum"), lambda out, y: F.cross_entropy(out, y) + out.square().mean(),
            lambda out, y: F.cross_entropy(out, y, reduction="sum") / len(y), lambda out, _: (out + torch.randn_like(out)).square().sum(),
        ):  # fmt: skip
            self.assertEqual(said(loss), [])
        for loss in (
            lambda out, y: F.cross_entropy(out, y, weight) + out.square().mean(), lambda out, y: F.cross_entropy(out, y, reduction="sum") / ROWS,
            lambda out, y: (F.cross_entropy(out, y, reduction="none") * y).sum() / y.sum(), lambda out, _: (out - out.mean(0)).square().mean(),
        ):  # fmt: skip
            (line,) = said(loss)
            self.assertRegex(line, r"accumulate=2 trains the mean of its parts' losses, which is [0-9.]+ of the example, where that of the whole is")

    def test_rows_that_are_none(self):
        """An input of as many rows as the batch has, and rows that know one another, under a loss that is one mean."""

        class Mixed(Mlp):
            def __init__(self, mixed):
                super().__init__()
                self.mixed = mixed

            def forward(self, x, table):
                return super().forward(x) + self.mixed(x, table)

        table, y = torch.randn(ROWS, 3).double(), self.y.clone()
        y[: ROWS // 2 + 1] = -100  # Parts that count otherwise, the first of them nothing.
        for mixed, is_said in (
            (lambda x, table: table, False), (lambda x, table: table[:, :1], False), (lambda x, table: table.mean(0), True),
            (lambda x, table: table[0], True), (lambda x, table: (x[:, :3] @ table.T).softmax(-1) @ table, True), (lambda x, table: x.mean(0)[:3], True),
        ):  # fmt: skip
            for labels in (self.y, y):
                with warnings.catch_warnings(record=True) as found:
                    warnings.simplefilter("always")
                    gpuc.compile(Mixed(mixed).double(), nn.CrossEntropyLoss(), "sgd:lr=0.1", (self.x, table, labels), accumulate=2)
                self.assertEqual([str(each.message)[:60] for each in found], ["accumulate=2 trains the mean of its parts' losses, which is "[:60]] * is_said)

    def test_what_cannot_be_cut(self):
        with self.assertRaisesRegex(gpuc.Error, "accumulate is 3, and the example has 8 rows, which are not so many equal parts"):
            self.compiled(accumulate=3)
        with self.assertRaisesRegex(gpuc.Error, "f64 .9, 6. where f64 .8, 6. was compiled"):
            self.compiled(accumulate=2)[1].eval_step(torch.zeros(9, 6).double(), torch.zeros(9).long())


class Between(nn.Module):
    """Rows know one another."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 3)

    def forward(self, x):
        return self.fc(x - x.mean(0))


class Mean(Between):
    def forward(self, x):
        return self.fc(x), self.fc(x).mean(0)


class FewerRows(Batches):
    def test_predict_gives_a_row_for_each(self):
        net, step = self.compiled()
        for rows in 5, 1, ROWS:
            found = step.predict(self.x[:rows])
            self.assertEqual(found.shape, (rows, 3))
            self.assertLess((found - net.eval()(self.x[:rows])).abs().max().item(), 1e-12)

    def test_what_predict_refuses(self):
        with self.assertRaisesRegex(gpuc.Error, "predict got 9 rows where 8 were compiled: give it at most"):
            self.compiled()[1].predict(torch.zeros(9, 6).double())
        with self.assertRaisesRegex(gpuc.Error, "predict got 5 rows .* what one row gives hangs on others"):
            self.compiled(Between().double())[1].predict(self.x[:5])
        with self.assertRaisesRegex(gpuc.Error, "predict got 5 rows .* output1 has no row for each"):
            self.compiled(Mean().double(), lambda out, y: F.cross_entropy(out[0], y))[1].predict(self.x[:5])


if __name__ == "__main__":
    unittest.main()
