"""The ranks that torchrun, mpirun or srun has started, of which this process is one."""

import atexit
import json
import os
import sys
import warnings

from gpuc import _runtime
from gpuc.errors import Error

_joined = None  # This process's Ranks, once it has joined.


def rank():
    """Which of them this process is, from 0; known before anything was compiled."""
    launched = _runtime.launched()
    return launched[1] if launched else 0


def world_size():
    """How many there are; 1: nobody has started several."""
    launched = _runtime.launched()
    return launched[2] if launched else 1


def join():
    """The ranks, which come together when it is first called; None: this process is alone."""
    global _joined
    if _joined is None and _runtime.launched():
        _joined = Ranks()
    return _joined and _joined.connection


def joined():
    return _joined


def warn(text, stacklevel=2):
    """Rank 0 speaks."""
    if rank() == 0:
        warnings.warn(text, stacklevel=stacklevel + 1)


def check_launched(is_data_parallel):
    """What a launcher and the wish for ranks have to do with one another."""
    launched = _runtime.launched()
    if is_data_parallel and not launched:
        warn("data_parallel=True, and no launcher has started several processes (torchrun --nproc-per-node=4, mpirun -n 4): this "
             "one trains alone", stacklevel=4)  # fmt: skip
    if launched and not is_data_parallel:
        warn(f"{launched[0]} has started {launched[2]} processes, and each trains by itself: data_parallel=True has them train "
             "together", stacklevel=4)  # fmt: skip


class Ranks:
    """What they say to one another beside the sums of a step. All make the same calls in the same order."""

    def __init__(self):
        self.connection = _runtime.Ranks()
        self.rank, self.size = self.connection.rank, self.connection.size
        self.process = os.getpid()  # Of which a fork is no rank.
        self.failure = None
        atexit.register(self._end)

    def gather(self, value, place):
        """Each rank's value, which JSON can say. `place` is what this is a part of: the same of all."""
        self._check()
        everyone = [json.loads(each) for each in self.connection.gather(json.dumps([place, value]).encode())]
        for number, (other, _) in enumerate(everyone):
            if other != everyone[0][0]:
                raise Error(f"rank 0 is in {everyone[0][0]}, and rank {number} in {other}: have all ranks make the same calls, as often")
        return [each for _, each in everyone]

    def agree(self, place, **what):
        """Errors name what ranks do not have alike."""
        first, *others = self.gather(what, place)
        for number, other in enumerate(others, start=1):
            for name, value in first.items():
                if other[name] != value:
                    raise Error(f"ranks 0 and {number} have another {name.replace('_', ' ')}, {value} and {other[name]}: give "
                                "all of them the same")  # fmt: skip

    def fail(self, error):
        """What one rank alone does not do, the others would wait for: they get an error that says why."""
        if not self.failure:
            self.failure = str(error).splitlines()[0] if str(error) else type(error).__name__
            self.connection.give_up(self.failure)

    def _check(self):
        if self.failure:
            raise Error(f"rank {self.rank} has failed before, and trains no further: {self.failure}")

    def _end(self):
        """When the process ends: all wait for one another, or hear why one of them did not come so far."""
        if os.getpid() != self.process:
            return
        try:
            error = getattr(sys, "last_value", None)
            if error is not None:
                self.fail(error)
            if self.failure is None:
                self.connection.end()
                return
        except Error as lost:
            print(f"error: {lost}", file=sys.stderr)
            self.fail(lost)
        self.connection.leave()
