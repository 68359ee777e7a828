"""Plans without torch: what gpuc.load gives, and what a compiled step is made of."""

import contextlib
import hashlib
import pathlib

from gpuc import _runtime, ranks
from gpuc.batches import split_batch
from gpuc.errors import Error
from gpuc.pages import Memory


OWN, INITIAL = "own", "initial"  # What gpuc.load takes for a state, beside a path.
OF_PLAN = "gpuc.plan_sha256"  # In a file of variables: of which plan they are.


def digest(file):
    return hashlib.sha256(file).hexdigest()


class Together:
    """What is raised within has the other ranks know it."""

    def __init__(self, of):
        self.ranks = of

    def __enter__(self):
        self.ranks._check()

    def __exit__(self, kind, error, trace):
        if error is not None:
            self.ranks.fail(error)


ALONE = contextlib.nullcontext()


def mean_of(total, count):
    """NaN, as PyTorch has it, where all labels are ignored."""
    return total / count if count else float("nan")


class Evaluation:
    """The mean loss of a data set, and how many batches it had."""

    def __init__(self, loss, batches):
        self.loss, self.batches = loss, batches

    def __repr__(self):
        return f"Evaluation(loss={self.loss:g}, batches={self.batches})"


class Plan:
    """A plan and the state of its variables.

    Tensors are whatever has DLPack or is a buffer (NumPy's arrays, torch's tensors) and lies, row-major and dense, in
    the host's memory.
    """

    def __init__(self, file, *, device="auto", threads=0, seed=None):
        self._session = _runtime.Session(file, device=device, threads=threads, seed=seed, join=ranks.join)
        self._session.initialize()
        self._ranks = None if self._session.ranks is None else ranks.joined()
        self._shares = frozenset(self._session.shares())  # What ranks share out.
        self.origin = None  # The file that the variables come from; None: they began as the recipe says.
        if self._ranks:
            self._ranks.agree("gpuc.compile or gpuc.load", plan=digest(file), seed=self._session.seed)

    def step(self, *batch, **named):
        """One update; returns the mean loss of the batch, a float. Of several ranks each has its rows of the batch."""
        with self._together(), self._session:
            return self._mean_of("train_step", batch, named)

    def _check_places(self):
        """Before the state is read or written: a module's step looks whether that is still the module's."""

    def _together(self):
        """Around what ranks do together: who fails alone tells the others."""
        return Together(self._ranks) if self._ranks else ALONE

    __call__ = step

    def eval_step(self, *args, **kwargs):
        """The mean loss of a batch, without dropout and the like."""
        self._check_places()
        with self._session:  # Its results are there until another thread runs something.
            total, count = self._evaluate(args, kwargs)
        return mean_of(total, count)

    def evaluate(self, batches):
        """Of all batches of a data set, each of the shapes that were compiled; of several ranks each has its own batches."""
        self._check_places()
        if batches is None or hasattr(batches, "shape"):
            raise Error(f"evaluate got a {type(batches).__name__}: give batches, a loader or a list, [(x, y)]")
        total = count = number = 0
        for batch in self._in_step(batches):
            with self._session:
                its_total, its_count = self._evaluate(*split_batch(batch))
            total += its_total
            count += its_count
            number += 1
        if self._ranks:
            with self._together():
                totals, counts, numbers = zip(*self._ranks.gather([total, count, number], "evaluate"))
            # Of a loss that is a sum the ranks' k-th batches are parts of one.
            total, number, count = sum(totals), sum(numbers), max(counts) if self._is_sum else sum(counts)
        if not number:
            raise Error("there is no batch to evaluate")
        return Evaluation(mean_of(total, count), number)

    def _in_step(self, batches):
        """Of ranks that share something out, which takes all of them to evaluate a batch: an error if one has more."""
        if not self._shares or not self._ranks:
            yield from batches
            return
        batches = iter(batches)
        while True:
            batch = next(batches, None)
            have = self._ranks.gather(batch is not None, "evaluate")
            if True not in have:
                return
            if False in have:
                raise Error(f"rank {have.index(False)} has fewer batches than rank {have.index(True)} to evaluate, and ranks share out "
                            "what each of them takes (shard=): give all of them as many")  # fmt: skip
            yield batch

    def run(self, program, *tensors):
        """Runs a program of the plan by its name, and returns copies of its outputs, NumPy arrays."""
        import numpy

        self._check_places()
        with self._session:
            self._session.run(program, *tensors)
            count = len(self._session.outputs(program))
            return [numpy.from_dlpack(self._session.output(program, i)).copy() for i in range(count)]

    def variable(self, name):
        """The variable itself, which shares its memory: numpy.from_dlpack and torch.from_dlpack take it. Of what ranks share
        out a copy, for which all of them ask at once."""
        self._check_places()
        return self._session.read(name) if name in self._shares else self._session.variable(name)

    def restore(self, path):
        """Takes all variables from a file that `save` or gpuc.fit has written, or gpuc-train; it has to fit the plan."""
        self._check_places()
        self._session.restore(str(path))
        self.origin = pathlib.Path(path)
        self._take_restored()

    def _take_restored(self):
        """What a module's step has to know when variables have come from a file."""

    @property
    def variables(self):
        """Name, element type, shape, kind and whether it is trained, of each variable."""
        return self._session.variables

    @property
    def programs(self):
        """By name: the names, element types and shapes of inputs and outputs."""
        return {name: (self._session.inputs(name), self._session.outputs(name)) for name in self._session.programs}

    @property
    def arena_bytes(self):
        """All memory that the plan has."""
        return self._session.arena_bytes

    @property
    def memory(self):
        """The arena while programs run; a notebook draws it."""
        return Memory(self._session)

    def save(self, path):
        """Writes the plan, and its variables as safetensors beside it; gpuc.load reads both, without torch. Of several ranks
        the first writes; where they share something out, all of them call it."""
        path = pathlib.Path(path)
        if path.suffix == ".safetensors":
            raise Error(f"'{path}' is where the variables go: give a name that ends in .plan")
        if path.is_dir():
            raise Error(f"cannot write {path}: Is a directory")
        self._check_places()
        with self._together() if self._shares else ALONE:
            self._write(path)

    def _write(self, path):
        variables, described = str(path.with_suffix(".safetensors")), {OF_PLAN: digest(self._session.plan)}
        if not self._is_first:
            self._session.save(variables, described, writes=False)
            return
        whole = path.with_name(path.name + ".partial")  # Until it is complete, and its variables are written.
        try:
            whole.write_bytes(self._session.plan)
            self._session.save(variables, described, writes=True)
            whole.replace(path)
        except OSError as error:
            raise Error(f"cannot write {path}: {error.strerror}") from None
        finally:
            whole.unlink(missing_ok=True)

    @property
    def _is_first(self):
        return not self._ranks or self._ranks.rank == 0

    @property
    def _evaluation(self):
        """A module's own, or what gpuc-compile has made of the loss."""
        return "evaluate" if "evaluate" in self._session.programs else "eval_step"

    @property
    def _is_sum(self):
        """Whether the loss is a sum over the rows of a batch, and no mean."""
        return self._session.counts_once(self._evaluation)

    def _evaluate(self, args, kwargs):
        """The sum of a batch's loss in evaluation, and what it is divided by."""
        self._mean_of(self._evaluation, args, kwargs)
        return self._session.number(self._evaluation, 0), self._session.number(self._evaluation, 1)

    def _mean_of(self, program, args, kwargs):
        if kwargs:
            raise Error(f"the batch has names ({', '.join(kwargs)}), and a plan takes its inputs in their order: give a tuple")
        return self._mean(program, args)

    def _mean(self, program, tensors):
        self._session.run(program, *tensors)
        return self._session.number(program, 0) / self._session.number(program, 1)


def load(path, *, state=OWN, device="auto", threads=0):
    """A plan that `save` has written, where that left it; one that gpuc-compile made begins as its recipe says.

    `state` names another file of variables, which has to fit the plan, or is "initial": as the recipe says. What was
    taken is the plan's `origin`.
    """
    path = pathlib.Path(path)
    try:
        file = path.read_bytes()
    except OSError as error:
        raise Error(f"cannot read {path}: {error.strerror}") from None
    variables = variables_for(path, file, state)
    try:
        plan = Plan(file, device=device, threads=threads)
    except Error as error:
        raise Error(f"{path}: {error}") from None
    if variables:
        plan.restore(variables)
    plan._session.share_variables()
    return plan


def variables_for(path, file, state):
    """The file that the plan's variables are read from; None: there is none."""
    if state == INITIAL:
        return None
    if state != OWN:
        return pathlib.Path(state)
    beside = path.with_suffix(".safetensors")
    if not beside.exists():
        return None
    if _runtime.metadata(str(beside)).get(OF_PLAN) != digest(file):
        raise Error(f"{beside} lies beside {path.name}, and was not saved with it: give state='{beside}' to take it all the "
                    "same if it fits, or state='initial' to begin as the recipe says")  # fmt: skip
    return beside
