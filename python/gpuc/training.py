"""gpuc.fit: epochs, evaluation, checkpoints and going on from them, for a step and whatever gives batches.

A run that was stopped and resumed has the bits of one that was not: a checkpoint holds the plan's variables, the place
within the epoch, what the loader draws from, the rates and the scheduler.
"""

import contextlib
import inspect
import io
import json
import math
import pathlib
import pickle
import signal
import sys
import threading
import warnings

from gpuc import _runtime, draws
from gpuc.batches import checksum_of, split_batch
from gpuc.errors import Error
from gpuc.plan import OF_PLAN, Plan, digest
from gpuc.progress import Progress

STATE = "fit"  # In a checkpoint's metadata: what gpuc.fit has beside the variables.
BEST = "best.safetensors"


class Epoch:
    """What one epoch came to: mean losses, of training and of validation (None without `val`)."""

    def __init__(self, epoch, step, loss, val_loss):
        self.epoch, self.step, self.loss, self.val_loss = epoch, step, loss, val_loss

    @property
    def watched(self):
        """The loss that is to fall."""
        return self.loss if self.val_loss is None else self.val_loss

    def __repr__(self):
        validation = "" if self.val_loss is None else f", val_loss={self.val_loss:g}"
        return f"Epoch({self.epoch}, step={self.step}, loss={self.loss:g}{validation})"


class Fit:
    """What gpuc.fit has done: each epoch, resumed ones included, the best of them, and where its variables lie."""

    def __init__(self, epochs, best_path, stopped_early):
        self.epochs, self.best_path, self.stopped_early = epochs, best_path, stopped_early

    @property
    def best(self):
        return best_of(self.epochs)

    def __repr__(self):
        return f"Fit({len(self.epochs)} epochs, best {self.best}{', stopped early' if self.stopped_early else ''})"


def best_of(epochs):
    """The first with the least loss; NaN is never best."""
    numbers = [each for each in epochs if not math.isnan(each.watched)]
    return min(numbers, key=lambda each: each.watched, default=None)


def fit(step, loader, *, epochs=1, val=None, checkpoint_dir=None, checkpoint_every=None, keep=3, resume=False,
        patience=None, scheduler=None, schedule_each="epoch", progress=True):  # fmt: skip
    """Trains for `epochs`, counted from the very start, and returns a `Fit`.

    step: what gpuc.compile or gpuc.load gave. loader, val: a DataLoader, a list, whatever gives batches anew each time
    it is gone through. The loss of `val` is taken after each epoch.
    checkpoint_dir: a folder for checkpoints, one at each epoch's end, with `checkpoint_every` also after so many steps;
    the newest `keep` stay, and "best.safetensors", the variables of the best epoch. resume: go on from the newest.
    patience: training ends when so many epochs in a row have brought no better loss.
    scheduler: a torch scheduler of the step's optimizer, stepped after each "epoch", or each "step".
    Ctrl-C ends a step, saves a checkpoint, and raises KeyboardInterrupt; a second one does so at once.
    Of several ranks each gives its own loaders, and all make the same call; the first speaks and writes.
    """
    for name, value in (("epochs", epochs), ("checkpoint_every", checkpoint_every), ("keep", keep), ("patience", patience)):
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Error(f"{name} is {value!r}: give a whole number of at least 1")
    if checkpoint_dir is None and (resume or checkpoint_every is not None):
        raise Error(f"{'resume' if resume else 'checkpoint_every'} is given, and no checkpoint_dir: name the folder")
    if schedule_each not in ("epoch", "step"):
        raise Error(f"schedule_each is {schedule_each!r}: 'epoch' or 'step'")
    if not isinstance(step, Plan):
        raise Error(f"step is {type(step).__name__}: give what gpuc.compile or gpuc.load has given")
    check_batches("loader", loader)
    if val is not None:
        check_batches("val", val)
    if scheduler is not None:
        check_scheduler(scheduler, step)
    if epochs > 1 or resume:
        for name, batches in (("loader", loader), ("val", val)):
            if hasattr(batches, "__next__"):
                raise Error(f"{name} can be gone through once: give a DataLoader, a list, or what has __iter__")
    if step._ranks:
        check_sampler("loader", loader, step._ranks)
        check_sampler("val", val, step._ranks)
        # Who has another would wait for the others, or have them wait, somewhere on the way.
        step._ranks.agree("gpuc.fit", epochs=epochs, val=val is not None, checkpoint_dir=checkpoint_dir is not None, resume=resume,
                          checkpoint_every=checkpoint_every, patience=patience, schedule_each=scheduler and schedule_each)
    run = Run(step, loader, val, scheduler, schedule_each, Progress(progress and step._is_first, epochs))
    with run.checkpoints_in(checkpoint_dir, keep, checkpoint_every, resume), interrupts() as run.interrupted:
        with step._together():
            return run.train(epochs, patience)


def check_batches(name, batches):
    if isinstance(batches, (str, dict)) or hasattr(batches, "shape") or not hasattr(batches, "__iter__") and not hasattr(batches, "__getitem__"):
        raise Error(f"{name} is {'None' if batches is None else f'of type {type(batches).__name__}'}: give batches, a DataLoader or a list, [(x, y)]")


def check_scheduler(scheduler, step):
    """One of another optimizer would change rates that nobody reads."""
    if not callable(getattr(scheduler, "step", None)):
        raise Error(f"scheduler is {scheduler!r}: give a scheduler of torch's, made of the step's optimizer")
    reader = getattr(step, "_reader", None)
    if not hasattr(scheduler, "optimizer") or (reader and scheduler.optimizer is reader.torch):
        return
    if reader is None:
        raise Error(f"scheduler is a {type(scheduler).__name__}, and the step's rates are its recipe's: compile it with a torch.optim object, and "
                    "make the scheduler of that")  # fmt: skip
    raise Error(f"scheduler is a {type(scheduler).__name__} of another optimizer than the step's, whose rates it would not change: make it of the "
                "one that gpuc.compile was given")  # fmt: skip


def check_sampler(name, loader, of):
    """A DistributedSampler says what ranks it is for."""
    sampler = getattr(loader, "sampler", None)
    known = getattr(sampler, "num_replicas", of.size), getattr(sampler, "rank", of.rank)
    if known != (of.size, of.rank):
        raise Error(f"{name}'s sampler is for rank {known[1]} of {known[0]}, and this is rank {of.rank} of {of.size}: give it "
                    "num_replicas=gpuc.world_size(), rank=gpuc.rank()")  # fmt: skip


@contextlib.contextmanager
def interrupts():
    """A function that says whether Ctrl-C was pressed. Another one does what it always did."""
    pressed = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    former = signal.getsignal(signal.SIGINT)
    if former is None:  # Not Python's, so that it could not be set back.
        yield lambda: False
        return

    def press(*_):
        pressed.append(True)
        signal.signal(signal.SIGINT, former)

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, former)


class Run:
    """One call of fit: where it stands, and what it stands on."""

    def __init__(self, step, loader, val, scheduler, schedule_each, progress):
        self.step, self.loader, self.val = step, loader, val
        self.scheduler, self.schedule_each, self.progress = scheduler, schedule_each, progress
        self.ranks = step._ranks
        self.by_loss = scheduler is not None and "metrics" in inspect.signature(scheduler.step).parameters
        if self.by_loss and schedule_each == "step":
            raise Error(f"{type(scheduler).__name__} looks at an epoch's loss: schedule_each='epoch'")
        self.epochs = []  # Those that are done.
        self.steps = self.in_epoch = 0  # All of them, and those of this epoch.
        self.loss_sum = self.loss_count = 0.0  # Of this epoch.
        self.drawn = None  # The loader's generators, as they were when this epoch began.
        self.batch = None  # The last one that was trained.
        self.checkpoints = self.folder = self.every = self.saved = None
        self.made_of = getattr(step, "_made_of", dict)()  # A loaded plan's is not known.

    #
    # The loop
    #

    def train(self, epochs, patience):
        while len(self.epochs) < epochs and not self.has_no_hope(patience):
            self.train_epoch()
            self.end_epoch()
        stopped = len(self.epochs) < epochs
        if stopped:
            self.progress.note(f"no better loss in {patience} epochs: training ends")
        best_path = self.folder / BEST if self.folder and (self.folder / BEST).exists() else None
        return Fit(self.epochs, best_path, stopped)

    def has_no_hope(self, patience):
        best = best_of(self.epochs)
        since = len(self.epochs) - (best.epoch if best else 0)
        return patience is not None and since >= patience

    def train_epoch(self):
        self.drawn = self.drawn or draws.state_of(self.loader, self.val)
        set_epoch = getattr(getattr(self.loader, "sampler", None), "set_epoch", None)
        if set_epoch:
            set_epoch(len(self.epochs))
        if self.ranks:
            self.ranks.agree("gpuc.fit", number_of_batches=length_of(self.loader))
        self.progress.begin(len(self.epochs) + 1, length_of(self.loader), self.in_epoch)
        batches = iter(self.loader)
        self.pass_over(batches)
        for self.batch in batches:
            args, kwargs = split_batch(self.batch)
            loss = self.step(*args, **kwargs)
            self.loss_sum += self.step._session.number("train_step", 0)
            self.loss_count += self.step._session.number("train_step", 1)
            self.steps += 1
            self.in_epoch += 1
            if self.schedule_each == "step":
                self.schedule()
            self.progress.step(self.in_epoch, loss)
            if self.every and self.steps % self.every == 0:
                self.save()
            if self.is_stop_wanted():
                self.end_by_hand()
        if not self.in_epoch:
            raise Error("the loader gave no batch")

    def pass_over(self, batches):
        """What was trained of this epoch before the run was stopped."""
        if not self.in_epoch:
            return
        for _ in range(self.in_epoch):
            self.batch = next(batches, None)
        if self.batch is None or checksum_of(*split_batch(self.batch)) != self.last_checksum:
            raise Error(f"the loader's batch {self.in_epoch} of epoch {len(self.epochs) + 1} is not the one that was trained: "
                        "draw from random, numpy.random or torch, or give the DataLoader a generator, not one that is "
                        "hidden from gpuc.fit")  # fmt: skip

    def end_epoch(self):
        self.step._check_places()
        val_loss = None if self.val is None else self.step.evaluate(self.val).loss
        epoch = Epoch(len(self.epochs) + 1, self.steps, self.loss_sum / self.loss_count, val_loss)
        self.epochs.append(epoch)
        self.in_epoch, self.loss_sum, self.loss_count, self.drawn, self.batch = 0, 0.0, 0.0, None, None
        if self.schedule_each == "epoch":
            self.schedule(epoch.watched)
        validation = "" if val_loss is None else f"  validation {val_loss:.4f}"
        is_best = best_of(self.epochs) is epoch
        self.progress.note(f"epoch {epoch.epoch}  step {epoch.step}  loss {epoch.loss:.4f}{validation}{'  best so far' if is_best else ''}")
        if self.folder and is_best:
            described = {OF_PLAN: digest(self.step._session.plan), "epoch": str(epoch.epoch), "loss": repr(epoch.watched)}
            self.step._session.save(str(self.folder / BEST), described, writes=self.step._is_first)
        self.save()
        if self.is_stop_wanted():
            self.end_by_hand()

    def is_stop_wanted(self):
        """All ranks stop behind the same step, whichever was asked to."""
        return any(self.ranks.gather(self.interrupted(), "gpuc.fit")) if self.ranks else self.interrupted()

    def schedule(self, loss=None):
        if self.scheduler is None:
            return
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected call of `lr_scheduler.step")  # The optimizer is never stepped.
            self.scheduler.step(*([loss] if self.by_loss else []))

    def end_by_hand(self):
        self.save()
        self.progress.note(f"stopped after step {self.steps}: " + (
            "resume=True goes on from there" if self.folder else "nothing was saved (checkpoint_dir= would let it resume)"))  # fmt: skip
        raise KeyboardInterrupt

    #
    # Checkpoints
    #

    @contextlib.contextmanager
    def checkpoints_in(self, folder, keep, every, resume):
        """Holds the folder, and goes on from what is in it."""
        if folder is None:
            yield
            return
        self.check_state()
        self.folder, self.every = pathlib.Path(folder), every
        self.checkpoints = _runtime.Checkpoints(str(folder), keep, writes=self.step._is_first)
        try:
            if self.checkpoints.warning:
                warnings.warn(self.checkpoints.warning, stacklevel=4)
            last = self.checkpoints.last_step
            if self.ranks:
                self.ranks.agree("gpuc.fit", newest_checkpoint=last)
            if last is not None and not resume:
                raise Error(f"{folder} holds checkpoints of another run, up to step {last}: pass resume=True to go on from "
                            "there, or another checkpoint_dir to begin anew")  # fmt: skip
            if resume:
                self.go_on()
            yield
        finally:
            self.checkpoints.close()

    def save(self):
        if self.checkpoints is None or self.saved == (len(self.epochs), self.in_epoch):
            return
        self.step._check_places()
        self.saved = len(self.epochs), self.in_epoch
        state = self.state_text()
        if not self.step._is_first and not self.step._shares:
            return
        self.checkpoints.save(self.step._session, step=self.steps, epoch=len(self.epochs), step_in_epoch=self.in_epoch,
                              global_batch=self.global_batch(), samples=samples_of(self.loader, self.rows()),
                              metadata={STATE: state})  # fmt: skip

    def rows(self):
        shape = self.step._session.inputs("train_step")[0][2]
        return shape[0] if shape else 1

    def global_batch(self):
        return self.rows() * (self.ranks.size if self.ranks else 1)

    def state_text(self):
        own = {"batch": None if self.batch is None else checksum_of(*split_batch(self.batch)),
               "drawn": self.drawn or draws.state_of(self.loader, self.val)}  # fmt: skip
        state = {
            "epochs": [[each.epoch, each.step, each.loss, each.val_loss] for each in self.epochs],
            "loss_sum": self.loss_sum, "loss_count": self.loss_count,
            "ranks": self.ranks.gather(own, "a checkpoint") if self.ranks else [own],
            "rates": [float(group["lr"]) for group in self.groups()],
            "numbers": self.step._reader.changing_numbers() if self.groups() else [],
            "scheduler": None if self.scheduler is None else packed(self.scheduler.state_dict()),
            "kind_of_scheduler": type(self.scheduler).__name__, "made_of": self.made_of,
            "training": self.step._session.training_digest,
        }  # fmt: skip
        return json.dumps(state)

    def groups(self):
        reader = getattr(self.step, "_reader", None)
        return reader.torch.param_groups if reader else []

    def check_state(self):
        """Before anything runs: what could not be resumed is no checkpoint."""
        if self.scheduler is None:
            return
        try:
            unpacked(packed(self.scheduler.state_dict()))
        except (pickle.PicklingError, pickle.UnpicklingError, TypeError, AttributeError) as error:
            raise Error(f"{type(self.scheduler).__name__} has a state that no checkpoint can hold "
                        f"({str(error).splitlines()[0]}): leave out checkpoint_dir, or step it in a loop of your own") from None  # fmt: skip

    def go_on(self):
        if getattr(self.loader, "persistent_workers", False):
            warnings.warn("what persistent workers draw by themselves goes on otherwise than before: "
                          "persistent_workers=False resumes to the same bits", stacklevel=5)  # fmt: skip
        found = self.checkpoints.restore(self.step._session, self.fits)
        if found is None:
            self.progress.note(f"{self.folder} holds no checkpoint: training begins")
            return
        file, position, metadata, said = found
        for line in said:
            warnings.warn(line, stacklevel=5)
        state = json.loads(metadata[STATE])
        self.epochs = [Epoch(*each) for each in state["epochs"]]
        self.steps, self.in_epoch = position["step"], position["step_in_epoch"]
        self.loss_sum, self.loss_count = state["loss_sum"], state["loss_count"]
        own = state["ranks"][self.ranks.rank if self.ranks else 0]
        self.last_checksum, self.drawn = own["batch"], own["drawn"] if self.in_epoch else None
        if self.scheduler is not None:
            self.load_scheduler(unpacked(state["scheduler"]))
        for group, rate in zip(self.groups(), state["rates"]):
            self.set_number(group, "lr", rate)
        for group, numbers in zip(self.groups(), state.get("numbers", [])):  # Older checkpoints have none.
            for key, value in numbers.items():
                self.set_number(group, key, tuple(value) if isinstance(value, list) else value)
        self.tell_of_changes(file, state.get("made_of", {}), state.get("training", 0))  # Older checkpoints have none.
        self.step.origin = pathlib.Path(file)
        self.step._take_restored()
        draws.restore(own["drawn"], self.loader, self.val)
        self.progress.note(f"going on from {file}, after step {self.steps}")

    def tell_of_changes(self, file, before, training):
        """What goes on with other numbers is meant so at times, and never to be passed over."""
        for key in {**before, **self.made_of} if before and self.made_of else ():
            now, then = (each.get(key) for each in (self.made_of, before))
            if now != then:
                what = (f"the module or the loss computes something else than when {file} was written" if key == "model" else
                        f"going on with {key} {now}, and {file} was trained with {then}")  # fmt: skip
                warnings.warn(f"{what}: begin anew in another checkpoint_dir, if that is not meant", stacklevel=6)
        own = self.step._session.training_digest
        if not (before and self.made_of) and training and own and training != own:  # Of a plan that was loaded all is known by that alone.
            warnings.warn(f"the plan trains something else than when {file} was written, another model, loss, optimizer, schedule or precision: "
                          "begin anew in another checkpoint_dir, if that is not meant", stacklevel=6)  # fmt: skip
        if self.epochs and (self.epochs[-1].val_loss is None) != (self.val is None):
            warnings.warn(f"epochs so far have {'no' if self.val else 'a'} loss of val, and this run {'has one' if self.val else 'has none'}: "
                          "which of them is best is asked of other losses", stacklevel=6)  # fmt: skip

    def load_scheduler(self, stored):
        """Its own numbers are the checkpoint's then, as torch has it."""
        kind, own = type(self.scheduler), self.scheduler.state_dict()
        for key in inspect.signature(kind).parameters:
            if key != "last_epoch" and key in own and key in stored and str(own[key]) != str(stored[key]):
                warnings.warn(f"going on with the checkpoint's {kind.__name__}({key}={stored[key]}), not this one's {own[key]}: begin anew in "
                              "another checkpoint_dir, if that is not meant", stacklevel=6)  # fmt: skip
        self.scheduler.load_state_dict(stored)

    def set_number(self, group, key, stored):
        """The checkpoint's, as in the optimizer's own load_state_dict(). Where no scheduler has changed it, the user may have."""
        if self.scheduler is None and group[key] != stored:
            warnings.warn(f"going on with the checkpoint's {key} of {stored}, not the optimizer's {group[key]}: begin anew in another "
                          "checkpoint_dir, or set it behind the first epoch", stacklevel=6)  # fmt: skip
        group[key] = stored

    def fits(self, file, position, metadata):
        """Whether this run can go on from a checkpoint; nothing of it has been taken yet."""
        if STATE not in metadata:
            raise Error(f"{file} is not of gpuc.fit: gpuc-train --resume goes on from it, or plan.restore(…) takes its variables")
        state = json.loads(metadata[STATE])
        rows, global_batch, kind = self.rows(), self.global_batch(), type(self.scheduler).__name__
        for what, stored, present, cure in (
            ("the seed", position["seed"], self.step._session.seed, f"compile with seed={position['seed']}"),
            ("batches of", position["global_batch"], global_batch, "compile a step of that batch, for as many ranks"),
            ("this many ranks:", len(state["ranks"]), self.ranks.size if self.ranks else 1, "start as many"),
            ("this many samples:", position["samples"], samples_of(self.loader, rows), "give the same loader"),
            ("a scheduler:", state["scheduler"] is not None, self.scheduler is not None, "give it, or none, as then"),
            ("this many groups of the optimizer:", len(state["rates"]), len(self.groups()), "make it as then"),
            ("a scheduler of class", state.get("kind_of_scheduler", kind), kind, "give that"),
        ):  # fmt: skip
            if stored != present:
                raise Error(f"{file} was trained with {what} {stored}, this run has {present}: {cure}, or begin anew in "
                            "another checkpoint_dir")  # fmt: skip


def length_of(loader):
    try:
        return len(loader)
    except TypeError:
        return None


def samples_of(loader, rows):
    """In the training data; 0 where nobody knows."""
    try:
        return len(loader.dataset)
    except (AttributeError, TypeError):
        return (length_of(loader) or 0) * rows


def packed(state):
    """A scheduler's, by torch.save: it has more than JSON does, the counters of MultiStepLR say."""
    import torch

    file = io.BytesIO()
    torch.save(state, file)
    return file.getvalue().hex()


def unpacked(text):
    import torch

    return torch.load(io.BytesIO(bytes.fromhex(text)), weights_only=True)
