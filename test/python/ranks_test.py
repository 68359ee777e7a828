"""Several ranks by way of NumPy, without torch, started as torchrun and mpirun do: the bits of one that computes their parts."""

import hashlib
import pathlib
import random
import sys
import tempfile
import unittest

import numpy
from launched import MPIRUN, RANKS, Launched, rank_main
from recording import Recording

import gpuc

HERE = pathlib.Path(__file__).resolve()
TORCHRUN = [sys.executable, "-B", str(HERE.parent.parent / "end-to-end" / "start_ranks.py"), "-n", str(RANKS)]


#
# What one rank does, or one process that computes the parts of all
#


def variables_of(plan):
    digest = hashlib.sha256()
    for name, *_ in plan.variables:
        if name not in ("rank", "world_size"):
            digest.update(numpy.from_dlpack(plan.variable(name)).tobytes())
    return digest.hexdigest()


def rows_of(number, batch):
    """The global batch `number`, all ranks' rows behind one another."""
    return [numpy.concatenate([numpy.roll(each, 3 * number + rank, 0) for rank in range(RANKS)]) for each in batch]


class Loader:
    """This rank's rows of each batch, in an order that is drawn alike."""

    def __init__(self, batch):
        self.batch = batch

    def __len__(self):
        return 5

    def __iter__(self):
        for number in random.sample(range(5), 5):
            whole = rows_of(number, self.batch)
            if gpuc.world_size() == 1:
                yield whole
            else:
                rows = len(self.batch[0])
                yield [each[gpuc.rank() * rows :][:rows].copy() for each in whole]


def plan_of(recording, shard=None):
    recording.recipe.append(("data_parallel", "true") if gpuc.world_size() > 1 else ("accumulate", str(RANKS)))
    if shard and gpuc.world_size() > 1:
        recording.recipe += [("shard", shard), ("world_size", str(RANKS))]
    return recording.plan()


def train(name, shard=None, **_):
    recording = Recording(name)
    plan = plan_of(recording, shard)
    losses = [plan.step(*batch) for batch in Loader(recording.batch)]
    return {"losses": losses, "variables": variables_of(plan)}


def fit(folder, epochs, shard=None, **options):
    recording = Recording("mlp")
    plan = plan_of(recording, shard)
    done = gpuc.fit(plan, Loader(recording.batch), epochs=epochs, checkpoint_dir=folder, checkpoint_every=2, **options)
    plan.restore(done.best_path)
    return {"losses": [each.loss for each in done.epochs], "variables": variables_of(plan)}


def fit_in_two_goes(folder, shard=None, **_):
    fit(folder, 1, shard)
    random.seed(99)
    return fit(folder, 3, shard, resume=True)


def save(folder, shard=None, **_):
    recording = Recording("mlp")
    plan = plan_of(recording, shard)
    path = pathlib.Path(folder) / "saved.plan"
    plan.step(*next(iter(Loader(recording.batch))))
    plan.save(path)
    plan._ranks.gather(None, "save")  # Until it is written.
    loaded = gpuc.load(path)
    return {"losses": [loaded.step(*batch) for batch in Loader(recording.batch)]}


def load(folder, **_):
    gpuc.load(pathlib.Path(folder) / "saved.plan")


def evaluate_other_lengths(shard=None, **_):
    recording = Recording("mlp")
    plan_of(recording, shard).evaluate(list(Loader(recording.batch))[gpuc.rank() :])


def fail(**_):
    """The second rank's third batch is none."""
    recording = Recording("mlp")
    plan = plan_of(recording)
    for number, (x, y) in enumerate(Loader(recording.batch)):
        plan.step(x[:1] if number == 2 and gpuc.rank() == 1 else x, y)


def end_early(**_):
    recording = Recording("mlp")
    plan = plan_of(recording)
    for number, batch in enumerate(Loader(recording.batch)):
        if number == 2 and gpuc.rank() == 1:
            return {}
        plan.step(*batch)


def other_seed(**_):
    recording = Recording("mlp")
    recording.recipe.append(("data_parallel", "true"))
    gpuc.Plan(recording.file(), seed=gpuc.rank())


def other_lengths(**_):
    recording = Recording("mlp")
    gpuc.fit(plan_of(recording), list(Loader(recording.batch))[gpuc.rank() :])


def fit_otherwise(folder, **others):
    """The second rank alone has these arguments; a validation that is there is that of the loader."""
    plan = plan_of(Recording("mlp"))
    loader = list(Loader(Recording("mlp").batch))
    own = {"val": loader, "checkpoint_dir": folder}
    gpuc.fit(plan, loader, **{name: own.get(name, value) for name, value in others.items() if gpuc.rank() == 1})


def evaluate_alone(**_):
    plan = plan_of(Recording("mlp"))
    batches = list(Loader(Recording("mlp").batch))
    plan._ranks.gather(1, "step") if gpuc.rank() else plan.evaluate(batches)


TASKS = fit_otherwise, evaluate_alone, train, fit, fit_in_two_goes, save, load, evaluate_other_lengths, fail, end_early, other_seed, other_lengths


#
# What comes of it
#


class Case(Launched):
    script = str(HERE)

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def on_ranks(self, task, **options):
        status, results, said = self.launch(task, **options)
        self.assertEqual((status, len(results)), (0, RANKS), said)
        self.check_same(results[1], results[0])
        return results[0], said

    def alone(self, task, **options):
        status, (result,), said = self.launch(task, launcher=(), **options)
        self.assertEqual(status, 0, said)
        return result

    def test_bits_of_one_that_computes_their_parts(self):
        for name in "mlp", "gpt", "recurrent":
            with self.subTest(name):
                self.assertEqual(self.on_ranks("train", name=name)[0], self.alone("train", name=name))

    def test_fit(self):
        alone = self.alone("fit", folder=str(self.folder / "alone"), epochs=3)
        together, said = self.on_ranks("fit", folder=str(self.folder / "together"), epochs=3)
        self.assertEqual(together, alone)
        self.assertEqual(said.count("epoch 2  step 10  loss "), 1, said)  # The first rank speaks.
        self.assertEqual(self.on_ranks("fit_in_two_goes", folder=str(self.folder / "twice"))[0], alone)

    def test_saved_and_loaded(self):
        self.on_ranks("save", folder=str(self.folder))

    def test_what_ranks_share_out(self):
        """Weights and what the optimizer keeps: the same bits, and whole files, which only so many ranks load."""
        for name in "mlp", "gpt":
            with self.subTest(name):
                self.assertEqual(self.on_ranks("train", name=name, shard="optimizer")[0], self.alone("train", name=name))
        alone = self.alone("fit", folder=str(self.folder / "alone"), epochs=3)
        for task in "fit", "fit_in_two_goes":
            self.assertEqual(self.on_ranks(task, folder=str(self.folder / task), epochs=3, shard="optimizer")[0], alone)
        saved, _ = self.on_ranks("save", folder=str(self.folder), shard="optimizer")
        self.assertEqual(saved, self.on_ranks("save", folder=str(self.folder))[0])
        self.on_ranks("save", folder=str(self.folder), shard="optimizer")
        status, _, said = self.launch("load", launcher=(), folder=str(self.folder))
        self.assertNotEqual(status, 0)
        self.assertRegex(said, "saved.plan: .*2 ranks.* 1")
        for error in self.errors("evaluate_other_lengths", shard="optimizer"):
            self.assertIn("rank 1 has fewer batches than rank 0 to evaluate, and ranks share out", error)

    def errors(self, task, **options):
        """Of each rank."""
        status, results, said = self.launch(task, **options)
        self.assertNotEqual(status, 0, said)
        self.assertEqual(len(results), RANKS, said)
        return [result.get("error") for result in results]

    def test_who_fails_has_the_others_know(self):
        why = "program 'train_step', input 'x': got 1x6xf64, expected 4x6xf64"
        waiting, failing = self.errors("fail")
        self.assertEqual(failing, why)
        self.assertRegex(waiting, "^rank 0 waits in collective [0-9]+, but rank 1 failed: " + why)
        waiting, ending = self.errors("end_early")
        self.assertIsNone(ending)
        self.assertRegex(waiting, "^rank 0 .*rank 1 ")

    def test_what_ranks_do_not_have_alike(self):
        self.assertEqual(self.errors("other_seed"), ["ranks 0 and 1 have another seed, 0 and 1: give all of them the same"] * 2)
        self.assertEqual(self.errors("other_lengths"),
                         ["ranks 0 and 1 have another number of batches, 5 and 4: give all of them the same"] * 2)  # fmt: skip
        for name, value, shown in (("epochs", 2, "1 and 2"), ("val", True, "False and True"), ("patience", 3, "None and 3"),
                                   ("checkpoint_dir", True, "False and True")):  # fmt: skip
            with self.subTest(name):
                said = f"ranks 0 and 1 have another {name.replace('_', ' ')}, {shown}: give all of them the same"
                self.assertEqual(self.errors("fit_otherwise", folder=str(self.folder), **{name: value}), [said] * 2)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual(self.errors("evaluate_alone"),
                         ["rank 0 is in evaluate, and rank 1 in step: have all ranks make the same calls, as often"] * 2)  # fmt: skip


class Torchrun(Case, unittest.TestCase):
    launcher = TORCHRUN


class OpenMpi(Case, unittest.TestCase):
    launcher = MPIRUN


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        random.seed(1)
        rank_main(TASKS, *sys.argv[2:])
    else:
        unittest.main()
