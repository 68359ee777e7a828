"""gpuc.fit by way of NumPy, without torch: epochs, checkpoints, and runs that are stopped and go on with the same bits."""

import pathlib
import random
import signal
import sys
import tempfile
import threading
import unittest
import warnings

import numpy
from recording import Recording

import gpuc


class Shuffled:
    """Six batches, in another order in each epoch. Where it is told to it stops the process, as a person would."""

    def __init__(self, batch, stop_before=None, again=1):
        x, y = batch
        self.batches = [(numpy.ascontiguousarray(x + 0.1 * i), numpy.roll(y, i).copy()) for i in range(6)]
        self.stop_before, self.again, self.given = stop_before, again, 0

    def __len__(self):
        return len(self.batches)

    def __iter__(self):
        order = list(range(len(self.batches)))
        random.shuffle(order)
        for index in order:
            if self.given == self.stop_before:
                for _ in range(self.again):
                    signal.raise_signal(signal.SIGINT)
            self.given += 1
            yield self.batches[index]


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.recording = Recording("mlp")
        cls.batch = cls.recording.batch

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        random.seed(1)

    def plan(self, **options):
        return self.recording.plan(**options)

    def fit(self, plan, loader=None, **options):
        return gpuc.fit(plan, loader or Shuffled(self.batch), progress=False, **options)

    def refused(self, text, *arguments, **options):
        with self.assertRaisesRegex(gpuc.Error, text):
            self.fit(*arguments, **options)


class Epochs(Case):
    def test_losses_are_those_of_a_loop(self):
        plan, val = self.plan(), [self.batch]
        expected = []
        for _ in range(3):
            losses = [plan.step(*batch) for batch in Shuffled(self.batch)]
            expected.append((sum(losses) / len(losses), plan.evaluate(val).loss))
        random.seed(1)
        fit = self.fit(self.plan(), epochs=3, val=val)
        for epoch, (loss, val_loss) in zip(fit.epochs, expected, strict=True):
            self.assertAlmostEqual(epoch.loss, loss, delta=1e-12)
            self.assertEqual(epoch.val_loss, val_loss)
        self.assertEqual([epoch.step for epoch in fit.epochs], [6, 12, 18])
        self.assertIs(fit.best, min(fit.epochs, key=lambda epoch: epoch.val_loss))
        self.assertIsNone(fit.best_path)

    def test_it_ends_early_when_nothing_gets_better(self):
        plan = self.plan()
        numpy.from_dlpack(plan.variable("lr"))[...] = 0
        fit = self.fit(plan, epochs=9, val=[self.batch], patience=2)
        self.assertTrue(fit.stopped_early)
        self.assertEqual(len(fit.epochs), 3)  # One that is best, and two.
        self.assertEqual(fit.best.epoch, 1)

    def test_what_is_no_number_is_never_best(self):
        plan = self.plan()
        numpy.from_dlpack(plan.variable("fc1.weight"))[...] = numpy.nan
        fit = self.fit(plan, epochs=3, patience=2)
        self.assertIsNone(fit.best)
        self.assertEqual(len(fit.epochs), 2)


class Checkpoints(Case):
    def variables(self, plan):
        return {name: numpy.from_dlpack(plan.variable(name)).tobytes() for name, *_ in plan.variables}

    def test_the_best_and_the_newest_are_kept(self):
        plan = self.plan()
        fit = self.fit(plan, epochs=5, val=[self.batch], checkpoint_dir=self.folder, keep=2)
        names = {each.name for each in self.folder.iterdir()}
        self.assertEqual(names, {"best.safetensors", "latest", "step-00000024.safetensors", "step-00000030.safetensors"})
        plan.restore(fit.best_path)
        self.assertEqual(plan.evaluate([self.batch]).loss, fit.best.val_loss)
        self.assertEqual(plan.origin, self.folder / "best.safetensors")

    def test_a_run_that_was_stopped_has_the_bits_of_one_that_was_not(self):
        whole, val = self.plan(), [self.batch]
        expected = self.fit(whole, epochs=4, val=val)
        for stop_before in (3, 6, 15):
            for every in (None, 4):
                with self.subTest(stop_before=stop_before, every=every), tempfile.TemporaryDirectory() as folder:
                    random.seed(1)
                    with self.assertRaises(KeyboardInterrupt):
                        self.fit(self.plan(), Shuffled(self.batch, stop_before), epochs=4, val=val, checkpoint_dir=folder,
                                 checkpoint_every=every)  # fmt: skip
                    random.seed(99)
                    other = self.plan()
                    fit = self.fit(other, epochs=4, val=val, checkpoint_dir=folder, resume=True)
                    self.assertEqual(str(fit.epochs), str(expected.epochs))
                    self.assertEqual([each.loss for each in fit.epochs], [each.loss for each in expected.epochs])
                    self.assertEqual(self.variables(other), self.variables(whole))

    def test_pressed_twice_it_ends_at_once(self):
        with self.assertRaises(KeyboardInterrupt):
            self.fit(self.plan(), Shuffled(self.batch, 3, again=2), checkpoint_dir=self.folder)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_more_epochs_than_before_go_on(self):
        self.fit(self.plan(), epochs=1, checkpoint_dir=self.folder, resume=True)
        fit = self.fit(self.plan(), epochs=2, checkpoint_dir=self.folder, resume=True)
        self.assertEqual([epoch.step for epoch in fit.epochs], [6, 12])
        plan = self.plan()
        self.assertEqual(str(self.fit(plan, epochs=2, checkpoint_dir=self.folder, resume=True).epochs), str(fit.epochs))

    def test_what_does_not_go_on(self):
        self.fit(self.plan(), checkpoint_dir=self.folder)
        self.refused("holds checkpoints of another run, up to step 6: pass resume=True", self.plan(), checkpoint_dir=self.folder)
        go_on = {"epochs": 2, "checkpoint_dir": self.folder, "resume": True}
        plan = self.plan(seed=7)
        before = self.variables(plan)
        self.refused("the seed 0, this run has 7: compile with seed=0", plan, **go_on)
        self.assertEqual(self.variables(plan), before)
        fewer = Shuffled(self.batch)
        del fewer.batches[-1]
        self.refused("this many samples: 24, this run has 20: give the same loader", self.plan(), fewer, **go_on)
        plan.save(self.folder / "other.plan")
        (self.folder / "other.plan").unlink()
        for each in self.folder.glob("step-*"):
            each.write_bytes(each.read_bytes()[:-8])
        self.refused("no checkpoint in .* is whole", self.plan(), **go_on)

    def test_a_plan_that_trains_something_else_is_said(self):
        """One that does the same otherwise is not."""
        self.fit(self.plan(), epochs=1, checkpoint_dir=self.folder)
        (_, optimizer), *others = self.recording.recipe
        for changed, options, is_said in ((optimizer, {}, False), (optimizer, {"check_numerics": True}, False),
                                          (optimizer.replace("momentum=0.9", "momentum=0.5"), {}, True)):  # fmt: skip
            recording = Recording("mlp")
            recording.recipe = [("optimizer", changed), *others]
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                self.fit(recording.plan(**options), epochs=1, checkpoint_dir=self.folder, resume=True)
            self.assertEqual(["trains something else" in str(each.message) for each in said], [True] * is_said)

    def test_a_damaged_one_is_passed_over(self):
        expected = self.fit(self.plan(), epochs=2, checkpoint_dir=self.folder)
        newest = self.folder / "step-00000012.safetensors"
        newest.write_bytes(newest.read_bytes()[:-8])
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            fit = self.fit(self.plan(), epochs=2, checkpoint_dir=self.folder, resume=True)
        self.assertIn("passing over a damaged checkpoint", str(said[0].message))
        self.assertEqual(str(fit.epochs), str(expected.epochs))

    def test_an_order_that_nobody_can_know_is_found_out(self):
        class Hidden(Shuffled):
            drawn = random.Random(3)

            def __iter__(self):
                random.seed(self.drawn.random())
                yield from super().__iter__()

        with self.assertRaises(KeyboardInterrupt):
            self.fit(self.plan(), Hidden(self.batch, 3), checkpoint_dir=self.folder)
        self.refused("batch 4 of epoch 1 is not the one that was trained: draw from random", self.plan(), Hidden(self.batch),
                     checkpoint_dir=self.folder, resume=True)  # fmt: skip

    def test_one_run_at_a_time(self):
        class Second(Shuffled):
            def __iter__(inner):
                text = f"another process is writing to the folder {self.folder}: wait for it to end, or give another checkpoint_dir"
                self.refused(text, self.plan(), checkpoint_dir=self.folder, resume=True)
                yield from super().__iter__()

        self.fit(self.plan(), Second(self.batch), checkpoint_dir=self.folder)

    def test_in_another_thread(self):
        thread = threading.Thread(target=self.fit, args=(self.plan(),), kwargs={"checkpoint_dir": self.folder})
        thread.start()
        thread.join()
        self.assertTrue((self.folder / "step-00000006.safetensors").exists())


class Arguments(Case):
    def test_what_makes_no_sense(self):
        plan = self.plan()
        self.refused("epochs is 0: give a whole number of at least 1", plan, epochs=0)
        self.refused("patience is 1.5", plan, patience=1.5)
        self.refused("resume is given, and no checkpoint_dir", plan, resume=True)
        self.refused("checkpoint_every is given, and no checkpoint_dir", plan, checkpoint_every=3)
        self.refused("schedule_each is 'batch': 'epoch' or 'step'", plan, schedule_each="batch")
        self.refused("loader can be gone through once", plan, iter(Shuffled(self.batch)), epochs=2)
        self.refused("the loader gave no batch", plan, Empty())
        self.refused("step is int: give what gpuc.compile", 3)
        self.refused("takes its inputs in their order: give a tuple", plan, [{"x": self.batch[0]}])

    def test_no_torch_is_loaded(self):
        self.assertNotIn("torch", sys.modules)


class Empty:
    def __iter__(self):
        return iter([])


if __name__ == "__main__":
    unittest.main()
