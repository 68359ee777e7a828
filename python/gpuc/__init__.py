"""gpuc: the training of a PyTorch module, compiled ahead of time.

    step = gpuc.compile(net, loss, optimizer, (x, y))
    for x, y in loader:
        print(float(step(x, y)))

docs/python.md says what is supported.
"""

import sys

from gpuc.errors import Error, Problem, RangeError
from gpuc.plan import Evaluation, Plan, load
from gpuc.ranks import rank, world_size
from gpuc.training import Epoch, Fit, fit

__all__ = ["Epoch", "Error", "Evaluation", "Fit", "Plan", "Problem", "RangeError", "compile", "fit", "load", "rank", "world_size"]


def compile(net, loss, optimizer, example, **options):
    """Compiles the training of `net`: see gpuc.step.compile_step, which this loads with torch and the compiler."""
    from gpuc.step import OPTIONS, alone, compile_step

    for name in options:
        if name not in OPTIONS:
            raise Error(f"'{name}' is no option of gpuc.compile: there are {', '.join(OPTIONS)}")
    with alone():
        try:
            return compile_step(net, loss, optimizer, example, **options)
        except Error as error:
            error.__suppress_context__ = not sys.flags.dev_mode  # What it was found by says nothing to who wrote the module.
            raise
