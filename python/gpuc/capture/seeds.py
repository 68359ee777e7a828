"""torch.manual_seed within a pass: what is drawn behind it is the same in each pass, where a compiled step draws other numbers each time."""

import contextlib
import sys
import traceback

import torch

from gpuc.capture.custom_gradients import put
from gpuc.errors import Problem, refuse
from gpuc.lines import HERE, is_own, user_line

SEEDS = ("seeds what is drawn, or sets it back, and so draws the same in each pass, where a compiled step draws other numbers each time: draw it once, "
         "into a buffer")  # fmt: skip


@contextlib.contextmanager
def noted_seeds():
    """Gives the lines that do so."""
    lines = []

    def noting(function):
        def seed(*args, **kwargs):
            if is_of_the_user():
                lines.append(user_line("".join(traceback.format_stack())))
            return function(*args, **kwargs)

        return seed

    with contextlib.ExitStack() as undo:
        for name in ("manual_seed", "set_rng_state"):
            known = noting(getattr(torch, name))
            put(undo, torch, name, known)
            put(undo, torch.random, name, known)
        yield lines


def is_of_the_user():
    """And not torch's own around a pass, or gpuc's."""
    frame = sys._getframe(2)
    while frame and is_own(frame.f_code.co_filename) and not frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame is not None and not frame.f_code.co_filename.startswith(HERE)


def check_seeds(program, lines):
    """Refuses them where something is drawn."""
    ops = [node.target for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    if lines and any(torch.Tag.nondeterministic_seeded in op.tags for op in ops):
        refuse([Problem(SEEDS, "", *line) for line in dict.fromkeys(lines)])
