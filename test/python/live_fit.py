"""gpuc.fit with PyTorch's loaders and schedulers; run by torch_test.py with a Python that has torch."""

import copy
import pathlib
import signal
import sys
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from modules import Mlp, eager_losses  # noqa: E402


class Noisy(Dataset):
    """Samples that are drawn upon; one of them may press Ctrl-C."""

    def __init__(self, stop_at=None):
        generator = torch.Generator().manual_seed(3)
        self.x, self.y = torch.randn(24, 6, generator=generator), torch.randint(0, 3, (24,), generator=generator)
        self.stop_at, self.given = stop_at, 0

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        self.given += 1
        if self.given == self.stop_at:
            signal.raise_signal(signal.SIGINT)
        return self.x[index] + 0.1 * torch.randn(6), self.y[index]


SCHEDULERS = {
    "each epoch": (lambda o: torch.optim.lr_scheduler.MultiStepLR(o, [1, 2], gamma=0.3), "epoch"),
    "each step": (lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, total_steps=99), "step"),
    "by the loss": (lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, patience=0, threshold=0.5), "epoch"),
    "a sequence": (lambda o: torch.optim.lr_scheduler.SequentialLR(o, [
        torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=2), torch.optim.lr_scheduler.CosineAnnealingLR(o, 9)], [2]), "epoch"),
}  # fmt: skip


class Fit(unittest.TestCase):
    def run_of(self, make, each, stop_at=None, seed=0, own=False, workers=0, **options):
        torch.manual_seed(1)
        net = nn.Sequential(nn.Dropout(0.2), Mlp())
        optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
        step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, (torch.randn(4, 6), torch.randint(0, 3, (4,))))
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed) if own else None
        loader = DataLoader(Noisy(stop_at), 4, shuffle=True, drop_last=True, generator=generator, num_workers=workers)
        val = DataLoader(TensorDataset(Noisy().x, Noisy().y), 4)
        fit = gpuc.fit(step, loader, epochs=3, val=val, scheduler=make(optimizer), schedule_each=each, progress=False, **options)
        state = [*net.state_dict().values(), *(slot for each in optimizer.state_dict()["state"].values() for slot in each.values())]
        return fit, optimizer.param_groups[0]["lr"], state

    def test_a_resumed_run_has_the_same_bits(self):
        for name, (make, each) in SCHEDULERS.items():
            for own in (False, True):
                fit, rate, state = self.run_of(make, each, own=own)
                for stop_at in (10, 26, 48):
                    with self.subTest(name, own=own, stop_at=stop_at), tempfile.TemporaryDirectory() as folder:
                        with self.assertRaises(KeyboardInterrupt):
                            self.run_of(make, each, stop_at, own=own, checkpoint_dir=folder)
                        again = self.run_of(make, each, seed=7, own=own, checkpoint_dir=folder, resume=True)
                        self.assertEqual([each.val_loss for each in again[0].epochs], [each.val_loss for each in fit.epochs])
                        self.assertEqual(again[1], rate)
                        for one, other in zip(again[2], state, strict=True):
                            self.assertTrue(torch.equal(one, other))

    def test_workers_draw_the_same(self):
        make, each = SCHEDULERS["each epoch"]
        fit, _, state = self.run_of(make, each, workers=1)
        with tempfile.TemporaryDirectory() as folder:
            self.run_of(make, each, workers=1, checkpoint_dir=folder, keep=9)
            for newest in ("step-00000012", "step-00000018"):
                (pathlib.Path(folder) / f"{newest}.safetensors").unlink()
            (pathlib.Path(folder) / "latest").write_text("step-00000006.safetensors\n")
            again = self.run_of(make, each, seed=7, workers=1, checkpoint_dir=folder, resume=True)
        self.assertEqual([each.loss for each in again[0].epochs], [each.loss for each in fit.epochs])

    def test_the_best_is_taken_back(self):
        torch.manual_seed(0)
        net = Mlp()
        optimizer = torch.optim.SGD(net.parameters(), lr=3.0)
        step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, (torch.randn(4, 6), torch.randint(0, 3, (4,))))
        val = DataLoader(TensorDataset(Noisy().x, Noisy().y), 4)
        with tempfile.TemporaryDirectory() as folder:
            fit = gpuc.fit(step, val, epochs=6, val=val, checkpoint_dir=folder, patience=3, progress=False)
            self.assertIsNot(fit.best, fit.epochs[-1])
            optimizer.param_groups[0]["lr"] = 0.0
            step.restore(fit.best_path)
        self.assertEqual(step.evaluate(val).loss, fit.best.val_loss)
        before = net.fc1.weight.clone()
        step(*next(iter(val)))  # By the rate of the optimizer, not by that of the file.
        self.assertTrue(torch.equal(net.fc1.weight, before))

    def test_a_scheduler_that_is_anothers(self):
        """Its rates are nobody's."""
        net, batch = Mlp(), (torch.randn(4, 6), torch.randint(0, 3, (4,)))
        step = gpuc.compile(net, nn.CrossEntropyLoss(), torch.optim.SGD(net.parameters(), lr=0.1), batch)
        by_text = gpuc.compile(Mlp(), nn.CrossEntropyLoss(), "sgd:lr=0.1", batch)
        other = torch.optim.lr_scheduler.StepLR(torch.optim.SGD(net.parameters(), lr=0.1), 1)
        for text, each in (("a StepLR of another optimizer than the step's", step), ("the step's rates are its recipe's", by_text)):
            with self.assertRaisesRegex(gpuc.Error, text):
                gpuc.fit(each, [batch], scheduler=other, progress=False)

    def test_a_run_that_goes_on_otherwise(self):
        """What does not keep it from going on is said."""

        class Other(Mlp):
            def forward(self, x):
                return self.fc2(torch.tanh(self.fc1(x)))

        data = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(3)]

        def said(folder, epochs, net=Mlp, nesterov=False, kind=torch.optim.lr_scheduler.StepLR, gamma=0.5, val=None, **options):
            module = net()
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, nesterov=nesterov)
            scheduler = kind(optimizer, 1 if kind is torch.optim.lr_scheduler.StepLR else 0.5)
            scheduler.gamma = gamma
            step = gpuc.compile(module, nn.CrossEntropyLoss(), optimizer, data[0], **options)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                gpuc.fit(step, data, epochs=epochs, checkpoint_dir=folder, resume=epochs > 1, scheduler=scheduler, val=val, progress=False)
            return [str(each.message) for each in found]

        for text, otherwise in {
            "the module or the loss computes something else than when ": {"net": Other},
            "going on with the optimizer's nesterov True, and .* was trained with False": {"nesterov": True},
            "going on with clip_norm 1.0, and .* was trained with None": {"clip_norm": 1.0},
            r"going on with the checkpoint's StepLR\(gamma=0.5\), not this one's 0.9": {"gamma": 0.9},
            "epochs so far have no loss of val, and this run has one": {"val": data},
        }.items():
            with self.subTest(text), tempfile.TemporaryDirectory() as folder:
                self.assertEqual([said(folder, 1), said(folder, 2)], [[], []])
                (line,) = said(folder, 3, **otherwise)
                self.assertRegex(line, text)
        with tempfile.TemporaryDirectory() as folder:
            said(folder, 1)
            with self.assertRaisesRegex(gpuc.Error, "was trained with a scheduler of class StepLR, this run has ExponentialLR: give that"):
                said(folder, 2, kind=torch.optim.lr_scheduler.ExponentialLR)

    def test_what_memory_held_is_no_part_of_a_module(self):
        """A mask is drawn into a tensor that was not filled: a run that goes on does not compute something else by that."""

        class Masked(Mlp):
            def forward(self, x):
                return super().forward(x * x.new_empty(4, 1).bernoulli_(0.5))

        def made(is_filled):
            torch.use_deterministic_algorithms(is_filled)  # With NaN.
            try:
                module = Masked()
                optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
                return gpuc.compile(module, nn.CrossEntropyLoss(), optimizer, (torch.ones(4, 6), torch.tensor([0, 1, 2, 0])))._made_of()["model"]
            finally:
                torch.use_deterministic_algorithms(False)

        self.assertEqual(made(True), made(False))

    def test_a_scheduler_that_no_checkpoint_can_hold(self):
        class Odd(torch.optim.lr_scheduler.StepLR):
            def state_dict(self):
                return {"what": lambda: 0}

        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(gpuc.Error, "Odd has a state that no checkpoint can hold"):
            self.run_of(lambda o: Odd(o, 1), "epoch", checkpoint_dir=folder)
        with self.assertRaisesRegex(gpuc.Error, "ReduceLROnPlateau looks at an epoch's loss"):
            self.run_of(SCHEDULERS["by the loss"][0], "step")


class Normed(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.fc, self.norm = nn.Linear(6, 3), norm

    def forward(self, x):
        return self.norm(self.fc(x))


class Centred(nn.Module):
    """Rows that know one another, always or in training alone."""

    def __init__(self, always):
        super().__init__()
        self.fc, self.always = nn.Linear(6, 3), always

    def forward(self, x):
        out = self.fc(x)
        return out - out.mean(0) if self.always or self.training else out


class ByCount(nn.Module):
    """Whose rows know how many they are, not one another."""

    def __init__(self, function):
        super().__init__()
        self.fc, self.function = nn.Linear(6, 3), function

    def forward(self, x):
        return self.function(self.fc(x), x.shape[0])


COUNTS = {
    "divided": lambda out, rows: out / rows,
    "a little": lambda out, rows: out + 1e-3 * rows,
    "a range": lambda out, rows: out + torch.arange(rows, dtype=out.dtype).mean(),
}


class Ragged(unittest.TestCase):
    """A last batch with fewer rows: what PyTorch makes of it, or an error."""

    def setUp(self):
        torch.manual_seed(0)
        self.x, self.y = torch.randn(4, 6).double(), torch.randint(0, 3, (4,))

    def compile(self, net, loss, y=None, lr=0.3):
        return gpuc.compile(net, loss, torch.optim.SGD(net.parameters(), lr=lr), (self.x, self.y if y is None else y))

    def test_it_counts_as_in_pytorch(self):
        targets = {nn.CrossEntropyLoss(): self.y, nn.CrossEntropyLoss(ignore_index=1): self.y, nn.CrossEntropyLoss(reduction="sum"): self.y,
                   nn.MSELoss(): torch.randn(4, 3).double(), nn.BCEWithLogitsLoss(): torch.rand(4, 3).double()}  # fmt: skip
        for loss, y in targets.items():
            for net in (Mlp().double(), Normed(nn.LayerNorm(3)).double(), nn.Sequential(nn.Dropout(0.0), Mlp().double())):
                eager = copy.deepcopy(net)
                there = torch.optim.SGD(eager.parameters(), lr=0.3)
                step = self.compile(net, loss, y)
                for rows in (3, 4, 1, 2):
                    with self.subTest(loss, net=net, rows=rows):
                        batch = self.x[:rows], y[:rows]
                        self.assertAlmostEqual(step(*batch), eager_losses(eager, loss, there, batch, 1)[0], delta=1e-10)
                        for ours, theirs in zip(net.parameters(), eager.parameters()):
                            self.assertLess((ours - theirs).abs().max().item(), 1e-10)
                        self.assertAlmostEqual(step.eval_step(*batch), loss(eager(batch[0]), batch[1]).item(), delta=1e-10)

    def test_a_whole_data_set(self):
        x, y = torch.randn(10, 6).double(), torch.randint(0, 3, (10,))
        net, loss = Mlp().double(), nn.CrossEntropyLoss()
        step = self.compile(net, loss, lr=0.0)
        loader = DataLoader(TensorDataset(x, y), 4)
        mean = loss(net(x), y).item()
        self.assertAlmostEqual(step.evaluate(loader).loss, mean, delta=1e-12)
        self.assertAlmostEqual(gpuc.fit(step, loader, progress=False).epochs[0].loss, mean, delta=1e-12)

    def test_what_cannot_be_padded(self):
        def mean(out, y):
            return ((out - y[:, None]) ** 2).mean() + 0.1 * out.mean()

        cases = {"the loss is no single mean or sum": (Mlp(), mean), "batch norm would count": (Normed(nn.BatchNorm1d(3)), nn.CrossEntropyLoss()),
                 "what one row gives hangs on others": (Centred(True), nn.CrossEntropyLoss()),
                 "the module does other things in training": (Centred(False), nn.CrossEntropyLoss()),
                 "what it gives hangs on how many rows": (Mlp(), lambda out, y: F.cross_entropy(out * out.shape[0], y))}  # fmt: skip
        for why, (net, loss) in cases.items():
            step = self.compile(net.double(), loss)
            before = net.fc.weight.clone() if hasattr(net, "fc") else net.fc1.weight.clone()
            with self.assertRaisesRegex(gpuc.Error, rf"3 rows where 4 were compiled: .* \({why}.*DataLoader\(drop_last=True\)"):
                step(self.x[:3], self.y[:3])
            self.assertTrue(torch.equal(before, net.fc.weight if hasattr(net, "fc") else net.fc1.weight))
        for name, function in COUNTS.items():
            for loss, y in ((nn.MSELoss(), torch.randn(4, 3).double()), (nn.MSELoss(reduction="sum"), torch.randn(4, 3).double())):
                step = self.compile(ByCount(function).double(), loss, y)
                for call in (step, step.eval_step):
                    with self.subTest(name, loss=loss, call=call):
                        self.assertRaisesRegex(gpuc.Error, r"\(what it gives hangs on how many rows there are, x.shape\[0\]", call, self.x[:3], y[:3])
                self.assertRaisesRegex(gpuc.Error, "predict got 3 rows .* what it gives hangs on how many rows", step.predict, self.x[:3])
        # What is frozen in evaluation is padded there.
        net = Normed(nn.BatchNorm1d(3)).double()
        step = self.compile(net, nn.CrossEntropyLoss())
        mean = nn.CrossEntropyLoss()(net.eval()(self.x[:3]), self.y[:3]).item()
        self.assertAlmostEqual(step.eval_step(self.x[:3], self.y[:3]), mean, delta=1e-12)


    def test_a_try_leaves_nothing_behind(self):
        """Of what a pass of the module counts or writes, and of what anybody draws."""

        class Counting(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.passes = nn.Linear(6, 3), 0
                self.register_buffer("seen", torch.zeros(()))

            def forward(self, x):
                self.passes += 1
                self.seen += 1
                return self.fc(x)

        net = Counting().double()
        step = self.compile(net, nn.CrossEntropyLoss())
        passes, seen, draws = net.passes, float(net.seen), torch.get_rng_state()
        step.eval_step(self.x[:3], self.y[:3])
        self.assertEqual((net.passes, net.training), (passes, True))
        self.assertTrue(torch.equal(torch.get_rng_state(), draws))
        self.assertEqual(step.predict(self.x[:2]).shape, (2, 3))
        self.assertEqual(net.passes, passes)
        self.assertEqual(float(net.seen), seen)


if __name__ == "__main__":
    unittest.main()
