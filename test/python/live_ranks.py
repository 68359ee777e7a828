"""data_parallel=True under torchrun and mpirun; run by torch_test.py with a Python that has torch."""

import pathlib
import sys
import unittest
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import gpuc  # noqa: E402
from launched import MPIRUN, RANKS, Launched, rank_main  # noqa: E402
from modules import Drawing, Mlp  # noqa: E402

ROWS = 4  # Of one rank.
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}", "--no-python"]


def data_set(samples=6 * RANKS * ROWS):
    generator = torch.Generator().manual_seed(3)
    return TensorDataset(torch.randn(samples, 6, generator=generator).double(), torch.randint(0, 3, (samples,), generator=generator))


def compiled(own_seed=0, example=None, module=Mlp, **options):
    """Each rank begins elsewhere, and the first one's weights count."""
    torch.manual_seed(own_seed)
    net = nn.Sequential(nn.Dropout(0.3), module()).double()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    rows = ROWS * (RANKS if "accumulate" in options else 1)
    step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, example or data_set()[:rows], **options)
    return net, optimizer, step


def state_of(net, optimizer):
    slots = [slot for each in optimizer.state_dict()["state"].values() for slot in each.values()]
    return [each.double().flatten().tolist() for each in (*net.state_dict().values(), *slots)]


class RowsOfRanks:
    """What DistributedSampler gives to each rank, as the rows of one."""

    def __init__(self, loaders):
        self.loaders = loaders

    def __len__(self):
        return len(self.loaders[0])

    def __iter__(self):
        for parts in zip(*self.loaders):
            yield tuple(torch.cat(each) for each in zip(*parts))


def loader_of(data, rank):
    return DataLoader(data, ROWS, sampler=DistributedSampler(data, RANKS, rank, shuffle=True, seed=5), drop_last=True)


def alone():
    """One process that computes the parts of all."""
    net, optimizer, step = compiled(accumulate=RANKS)
    loaders = RowsOfRanks([loader_of(data_set(), rank) for rank in range(RANKS)])
    losses = [step(*batch) for batch in loaders]
    return {"losses": losses, "state": state_of(net, optimizer), "evaluated": step.evaluate(loaders).loss}


def together():
    net, optimizer, step = compiled(own_seed=gpuc.rank(), data_parallel=True)
    loader = loader_of(data_set(), gpuc.rank())
    losses = [step(*batch) for batch in loader]
    return {"losses": losses, "state": state_of(net, optimizer), "evaluated": step.evaluate(loader).loss}


def drawn():
    """A module that draws for rows by itself."""
    data, ranks = data_set(RANKS * ROWS), gpuc.world_size()
    net, optimizer, step = compiled(module=Drawing, **({"data_parallel": True} if ranks > 1 else {"accumulate": RANKS}))
    rows = len(data) // ranks
    mine = data[gpuc.rank() * rows : (gpuc.rank() + 1) * rows]
    return {"losses": [step(*mine) for _ in range(3)], "state": state_of(net, optimizer)}


def ragged():
    """The last batch has less than all rows, which one rank has of the second rank's part alone."""
    data, ranks = data_set(RANKS * ROWS), gpuc.world_size()
    net, optimizer, step = compiled(**({"data_parallel": True} if ranks > 1 else {"accumulate": RANKS}))
    x, y = data[:]
    mine = slice(gpuc.rank() * ROWS, ROWS + gpuc.rank() * (ROWS - 1)) if ranks > 1 else slice(0, 2 * ROWS - 1)
    return {"losses": [step(x[mine], y[mine]) for _ in range(3)], "state": state_of(net, optimizer)}


def said_of(what):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        what()
    return {"said": [str(each.message) for each in said if "gpuc" in str(each.message) or "data_parallel" in str(each.message)]}


def same_batch():
    return said_of(lambda: compiled(data_parallel=True)[2](*data_set()[:ROWS]))


def each_by_itself():
    return said_of(compiled)


def other_rates():
    _, optimizer, step = compiled(data_parallel=True)
    optimizer.param_groups[0]["lr"] = 0.01 + gpuc.rank()
    step(*data_set()[:ROWS])


def other_sampler():
    gpuc.fit(compiled(data_parallel=True)[2], loader_of(data_set(), 0))


TASKS = alone, together, ragged, drawn, same_batch, each_by_itself, other_rates, other_sampler


class Case(Launched):
    script = __file__

    def ranks(self, task, fails=False):
        """What each gave."""
        status, results, said = self.launch(task)
        self.assertEqual((status != 0, len(results)), (fails, RANKS), said)
        return results

    def test_bits_of_one_that_computes_their_parts(self):
        """Dropout on, weights and what the optimizer keeps, and the loss of evaluation to rounding."""
        ours, others = self.ranks("together")
        self.assertEqual(ours, others)
        expected = alone()
        self.assertAlmostEqual(ours.pop("evaluated"), expected.pop("evaluated"), delta=1e-12)
        self.assertEqual(ours, expected)

    def test_ragged_batches_and_what_is_drawn(self):
        for task in (ragged, drawn):
            ours, others = self.ranks(task.__name__)
            self.assertEqual(ours, others)
            self.assertEqual(ours, task())

    def test_what_is_said_once(self):
        first, other = self.ranks("same_batch")
        self.assertIn("ranks 0 and 1 train on the same batch", "".join(first["said"]))
        self.assertEqual(other["said"], [])
        first, other = self.ranks("each_by_itself")
        self.assertIn(f"{self.name} has started 2 processes, and each trains by itself", "".join(first["said"]))
        self.assertEqual(other["said"], [])

    def test_what_is_refused(self):
        for each in self.ranks("other_rates", fails=True):
            self.assertIn("ranks 0 and 1 have another rates of the optimizer, [0.01] and [1.01]", each["error"])
        waiting, failing = self.ranks("other_sampler", fails=True)
        self.assertIn("loader's sampler is for rank 0 of 2, and this is rank 1 of 2: give it num_replicas", failing["error"])
        self.assertIn("rank 1 failed: loader's sampler", waiting["error"])


class Torchrun(Case, unittest.TestCase):
    launcher, name = TORCHRUN, "torchrun"


class OpenMpi(Case, unittest.TestCase):
    launcher, name = MPIRUN, "mpirun"


class Alone(unittest.TestCase):
    def test_without_a_launcher(self):
        with self.assertWarnsRegex(UserWarning, "no launcher has started several processes"):
            compiled(data_parallel=True)[2](*data_set()[:ROWS])


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank_main(TASKS, *sys.argv[2:])
    else:
        unittest.main()
