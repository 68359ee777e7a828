"""data_parallel=True under torchrun and mpirun; run by torch_test.py with a Python that has torch."""

import copy
import pathlib
import pickle
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


def summed():
    """Unequal shares, of which the first has a ragged batch at its end: parts of the batches of one that has all rows."""
    data, ranks, size = data_set(6 * ROWS), gpuc.world_size(), RANKS * ROWS
    torch.manual_seed(0)
    net = Mlp().double()
    step = gpuc.compile(net, nn.CrossEntropyLoss(reduction="sum"), torch.optim.SGD(net.parameters(), lr=0.01), data[: size // ranks],
                        **({"data_parallel": True} if ranks > 1 else {"accumulate": RANKS}))  # fmt: skip
    whole = [data[at:at + size] for at in (0, size)] + [data[2 * size:2 * size + 3]]
    mine = slice(gpuc.rank() * ROWS, (gpuc.rank() + 1) * ROWS) if ranks > 1 else slice(None)
    batches = [batch for batch in ((x[mine], y[mine]) for x, y in whole) if len(batch[0])]
    training = step(*batches[0])
    return {"loss": training, "evaluated": step.evaluate(batches).loss, "fitted": gpuc.fit(step, batches[:2], val=batches, progress=False).best.val_loss}


def shared_out():
    """As `together` and `alone`, with eager mode in between: the module and the optimizer are read, written, copied, and go on."""
    on_ranks = gpuc.world_size() > 1
    net, optimizer, step = compiled(own_seed=gpuc.rank(), **({"data_parallel": True, "shard": "optimizer"} if on_ranks else {"accumulate": RANKS}))
    loaders = [loader_of(data_set(), rank) for rank in range(RANKS)]
    loader = loaders[gpuc.rank()] if on_ranks else RowsOfRanks(loaders)
    start, first = state_of(net, optimizer), [step(*batch) for batch in loader]
    x, y = data_set()[:ROWS]
    net[0].p = 0.0
    whole = net(x).double().sum().item()
    copied = pickle.loads(pickle.dumps(net))(x).sum().item()
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net[0].p = 0.3
    between = state_of(net, optimizer)
    saved = copy.deepcopy((net.state_dict(), optimizer.state_dict()))
    second = [step(*batch) for batch in loader]
    net.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    third = [step(*batch) for batch in loader]
    return {"start": start, "losses": [first, second, third], "eager": [whole, copied], "between": between,
            "state": state_of(net, optimizer), "predicted": step.predict(data_set()[: step._rows][0])[:ROWS].tolist()}  # fmt: skip


def shared_gradients():
    on_ranks = gpuc.world_size() > 1
    options = {"data_parallel": True, "shard": "gradients", "accumulate": 2} if on_ranks else {"accumulate": 2 * RANKS}
    data = data_set(RANKS * ROWS)
    mine = slice(gpuc.rank() * ROWS, (gpuc.rank() + 1) * ROWS) if on_ranks else slice(None)
    net, optimizer, step = compiled(example=data[mine], **options)
    return {"losses": [step(*data[mine]) for _ in range(5)], "state": state_of(net, optimizer)}


def refused_of_shares():
    """What takes all ranks, and what would be lost."""
    net, _, step = compiled(data_parallel=True, shard="optimizer")
    x, y = data_set()[gpuc.rank() * ROWS : (gpuc.rank() + 1) * ROWS]
    step(x, y)
    errors = []
    for what in (lambda: step.eval_step(x[:3], y[:3]), lambda: step.predict(x[:3]), lambda: step.evaluate([(x, y)] * (1 + gpuc.rank())),
                 lambda: (net[1].fc1.weight.detach().mul_(2), step.variable("step"))):  # fmt: skip
        try:
            what()
        except gpuc.Error as error:
            errors.append(str(error))
    return {"errors": errors}


def said_of(what):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        what()
    return {"said": [str(each.message) for each in said if "gpuc" in str(each.message) or "data_parallel" in str(each.message)]}


def same_batch():
    return said_of(lambda: compiled(data_parallel=True)[2](*data_set()[:ROWS]))


def each_by_itself():
    return said_of(compiled)


def ends_at_once():
    if gpuc.rank() == 0:
        compiled(data_parallel=True)
    return {}


def other_rates():
    _, optimizer, step = compiled(data_parallel=True)
    optimizer.param_groups[0]["lr"] = 0.01 + gpuc.rank()
    step(*data_set()[:ROWS])


def other_sampler():
    gpuc.fit(compiled(data_parallel=True)[2], loader_of(data_set(), 0))


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = nn.Conv1d(1, 4, 3), nn.BatchNorm1d(4), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(torch.relu(self.norm(self.conv(x.unsqueeze(1)))).flatten(1))


def normed(rows, begin, **options):
    """Three steps of some rows of the same batches."""
    torch.manual_seed(0)
    net = Normed().double()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    all_x, all_y = data_set()[:]
    batches = [(all_x[at:at + rows], all_y[at:at + rows]) for at in range(begin, begin + 3 * RANKS * ROWS, RANKS * ROWS)]
    step = gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, batches[0], **options)
    return {"losses": [step(*batch) for batch in batches], "state": state_of(net, optimizer)}


def synchronised():
    return normed(ROWS, gpuc.rank() * ROWS, data_parallel=True, sync_batch_norm=True)


def each_with_its_own_statistics():
    return normed(ROWS, gpuc.rank() * ROWS, data_parallel=True)


TASKS = (alone, together, ragged, drawn, summed, ends_at_once, shared_out, shared_gradients, refused_of_shares, same_batch, each_by_itself,
         other_rates, other_sampler, synchronised, each_with_its_own_statistics)  # fmt: skip


class OnRanks(Launched):
    script = __file__

    def ranks(self, task, fails=False):
        """What each gave."""
        status, results, said = self.launch(task)
        self.assertEqual((status != 0, len(results)), (fails, RANKS), said)
        return results

    def alike(self, task):
        """What all ranks gave, the same."""
        ours, others = self.ranks(task)
        self.check_same(others, ours)
        return ours


class Case(OnRanks):
    def test_bits_of_one_that_computes_their_parts(self):
        """Dropout on, weights and what the optimizer keeps, and the loss of evaluation to rounding."""
        ours, expected = self.alike("together"), alone()
        self.assertAlmostEqual(ours.pop("evaluated"), expected.pop("evaluated"), delta=1e-12)
        self.check_same(ours, expected)

    def test_ragged_batches_and_what_is_drawn(self):
        for task in (ragged, drawn):
            self.check_same(self.alike(task.__name__), task())

    def test_a_loss_by_sum(self):
        """Is evaluated as in one process whose batches are those of all ranks: it is no mean of the ranks' own sums."""
        found, expected = self.alike("summed"), summed()
        for name, value in expected.items():
            self.assertAlmostEqual(found[name], value, delta=1e-12 * abs(value), msg=name)

    def test_what_is_said_once(self):
        first, other = self.ranks("same_batch")
        self.assertIn("ranks 0 and 1 train on the same batch", "".join(first["said"]))
        self.assertEqual(other["said"], [])
        first, other = self.ranks("each_by_itself")
        self.assertIn(f"{self.name} has started 2 processes, and each trains by itself", "".join(first["said"]))
        self.assertEqual(other["said"], [])

    def test_what_is_refused(self):
        for each in self.ranks("other_rates", fails=True):
            self.assertIn("ranks 0 and 1 have another rates of the optimizer, [0.01, 0.9, 0.999, 0.01] and [1.01, 0.9, 0.999, 0.01]", each["error"])
        waiting, failing = self.ranks("other_sampler", fails=True)
        self.assertIn("loader's sampler is for rank 0 of 2, and this is rank 1 of 2: give it num_replicas", failing["error"])
        self.assertIn("rank 1 failed: loader's sampler", waiting["error"])


def flat(value):
    """All numbers of it."""
    if isinstance(value, dict):
        value = value.values()
    return [value] if isinstance(value, float) else [number for each in value for number in flat(each)]


class WhatRanksShareOut(OnRanks, unittest.TestCase):
    launcher = TORCHRUN

    def test_bits_of_one_that_computes_their_parts(self):
        """Of weights and what the optimizer keeps, before, in and after eager mode."""
        self.check_same(self.alike("shared_out"), shared_out())

    def test_gradients(self):
        """To rounding: sums over microbatches are taken in another order."""
        ours, expected = flat(self.alike("shared_gradients")), flat(shared_gradients())
        self.assertEqual(len(ours), len(expected))
        self.assertLess(max(abs(one - other) for one, other in zip(ours, expected)), 1e-12)

    def test_what_is_refused(self):
        ragged, few, unequal, stale = self.alike("refused_of_shares")["errors"]
        self.assertIn("cannot be padded (it takes all ranks that share something out", ragged)
        self.assertIn("predict got 3 rows where 4 were compiled, and ranks share something out", few)
        self.assertIn("rank 0 has fewer batches than rank 1 to evaluate", unequal)
        self.assertIn("'1.fc1.weight' was written where it was not what the last step had left", stale)
        with self.assertRaisesRegex(gpuc.Error, "shard='optimizer' is what ranks do that train together: give data_parallel=True"):
            compiled(shard="optimizer")
        with self.assertWarnsRegex(UserWarning, "this one trains alone"):
            compiled(data_parallel=True, shard="optimizer")


class BatchNorms(OnRanks, unittest.TestCase):
    launcher = TORCHRUN

    def test_rows_of_all_ranks(self):
        """A whole batch's training, which that by own statistics is not."""
        expected = flat(normed(RANKS * ROWS, 0))
        ours = flat(self.alike("synchronised"))
        self.assertLess(max(abs(one - other) for one, other in zip(ours, expected, strict=True)), 1e-12)
        own = flat(self.alike("each_with_its_own_statistics"))
        self.assertGreater(max(abs(one - other) for one, other in zip(own, expected, strict=True)), 1e-3)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(gpuc.Error, "sync_batch_norm=True is what ranks do that train together: give data_parallel=True"):
            normed(ROWS, 0, sync_batch_norm=True)
        with self.assertRaisesRegex(gpuc.Error, "shard is 'optimiser': give 'optimizer' or 'gradients'"):
            normed(ROWS, 0, data_parallel=True, shard="optimiser")
        with self.assertRaisesRegex(gpuc.Error, "'norm' is a SyncBatchNorm, and ranks would each have statistics of their own"):
            net = nn.SyncBatchNorm.convert_sync_batchnorm(Normed().double())
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            gpuc.compile(net, nn.CrossEntropyLoss(), optimizer, data_set()[:ROWS], data_parallel=True)
        with self.assertRaisesRegex(gpuc.Error, "the model has no batch norm over the batch"), warnings.catch_warnings(action="ignore"):
            compiled(data_parallel=True, sync_batch_norm=True)


class Torchrun(Case, unittest.TestCase):
    launcher, name = TORCHRUN, "torchrun"

    def test_who_ends_without_having_come_is_named(self):
        waiting, ended = self.ranks("ends_at_once", fails=True)
        self.assertEqual(ended, {})
        self.assertIn("rank 1 has ended, and has not come to the others: all ranks have to train", waiting["error"])


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
