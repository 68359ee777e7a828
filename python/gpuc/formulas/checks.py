"""`assert (x >= 0).all()` and `if x.min() < low: raise …`: what a forward pass checks of values, and a compiled step does not.

It goes on as if the check were passed, and a warning says so.
"""

import ast
import contextlib
import dis
import functools
import linecache
import traceback
from sys import _getframe

from torch._subclasses.fake_tensor import FakeTensor

from gpuc.capture.custom_gradients import put
from gpuc.errors import Problem
from gpuc.lines import user_line

UNCHECKED = "asserts something of a tensor's value, which a compiled step does not check"
BOOL = FakeTensor.__bool__


def answer_of(frame):
    """The truth value of what the frame is asking for by which its check is passed; None: it is none."""
    place = place_of_asked(frame)
    if not place or None in place:
        return None
    for node in checks_in(frame.f_code.co_filename):
        answer = by_place(node.test, tuple(place), isinstance(node, ast.Assert))
        if answer is not None:
            return answer
    return None


def place_of_asked(frame):
    """Of what is computed last before a jump: where the jump itself stands is another matter in each Python."""
    last = None
    for each in dis.get_instructions(frame.f_code):
        if each.offset == frame.f_lasti:
            return (last if "JUMP" in each.opname or each.opname in ("TO_BOOL", "UNARY_NOT") else each).positions
        last = each
    return None


@functools.lru_cache(64)
def checks_in(file):
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and is_refusal(node.body))]


def is_refusal(body):
    return isinstance(body[-1], ast.Raise) and all(isinstance(each, (ast.Assign, ast.Expr)) for each in body[:-1])


def by_place(test, place, wanted):
    """Of the part of a condition that stands there, for the whole to be what is wanted: and, or, not."""
    if isinstance(test, ast.BoolOp):
        found = [by_place(each, place, wanted) for each in test.values]
        return next((each for each in found if each is not None), None)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return by_place(test.operand, place, not wanted)
    return wanted if (test.lineno, test.end_lineno, test.col_offset, test.end_col_offset) == place else None


@contextlib.contextmanager
def passed_checks(noted=None):
    """Within, tensors without numbers answer what is checked of them. Adds to what is noted."""

    def answer(tensor):
        known = None if tensor.constant is not None else answer_of(_getframe(1))
        if known is None:
            return BOOL(tensor)
        if noted is not None:
            noted.append(Problem(UNCHECKED, "", *user_line("".join(traceback.format_stack()))))
        return known

    with contextlib.ExitStack() as undo:
        put(undo, FakeTensor, "__bool__", answer)
        yield
