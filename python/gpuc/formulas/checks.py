"""`assert (x >= 0).all()` and `if x.min() < low: raise …`: what a forward pass checks of values, and a compiled step does not.

It goes on as if the check were passed, and as if numbers were finite where it is asked that, and a warning says so.
"""

import ast
import contextlib
import dis
import functools
import linecache
import traceback
from sys import _getframe

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

from gpuc.capture.custom_gradients import put
from gpuc.errors import Problem
from gpuc.lines import HERE, is_own, user_line

UNCHECKED = "asserts something of a tensor's value, which a compiled step does not check"
FINITE = "goes on as if all numbers were finite, which a compiled step does not ask: check_numerics=True names where one is not"
FAILS = {
    UNCHECKED: "asserts something of a tensor's value that is not so of the example",
    FINITE: "asks whether all numbers are finite, and the example's are not, which a compiled step does not ask: compute both and choose, torch.where(…, a, b)",
}
BOOL = FakeTensor.__bool__


def answer_of(frame):
    """The truth value of what the frame is asking for by which its check is passed, and what to say of it; None: it is none."""
    place = place_of_asked(frame)
    if not place or None in place:
        return None
    place = tuple(place)
    for node in checks_in(frame.f_code.co_filename):
        answer = by_place(node.test, place, isinstance(node, ast.Assert))
        if answer is not None:
            return None if is_caught(frame) else (answer, UNCHECKED)
    asked = next((node for node in calls_in(frame.f_code.co_filename) if place_of(node) == place), None)
    return None if asked is None or (answer := is_of_finite(asked)) is None else (answer, FINITE)


def is_caught(frame):
    """Whether someone goes on where a check raises: then it is a branch."""
    while frame and not frame.f_code.co_filename.startswith(HERE):
        line = frame.f_lineno
        if not is_own(frame.f_code.co_filename) and any(goes_on(node, line) for node in nodes_in(frame.f_code.co_filename)):
            return True
        frame = frame.f_back
    return False


def goes_on(node, line):
    """Behind a `try` around that line."""
    is_around = isinstance(node, ast.Try) and node.body[0].lineno <= line <= node.body[-1].end_lineno
    return is_around and not all(isinstance(each.body[-1], ast.Raise) for each in node.handlers)


def is_of_finite(call):
    """Whether all numbers are finite: isfinite(x).all(), isnan(x).any()."""
    within = call.func.value if isinstance(call.func, ast.Attribute) and not call.args else call.args[0] if len(call.args) == 1 else None
    asks, of = name_in(call), name_in(within) if isinstance(within, ast.Call) else ""
    return True if (asks, of) == ("all", "isfinite") else False if asks == "any" and of in ("isnan", "isinf") else None


def name_in(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def place_of(node):
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def place_of_asked(frame):
    """Of what is computed last before a jump: where the jump itself stands is another matter in each Python."""
    last = None
    for each in dis.get_instructions(frame.f_code):
        if each.offset == frame.f_lasti:
            return (last if "JUMP" in each.opname or each.opname in ("TO_BOOL", "UNARY_NOT") else each).positions
        last = each
    return None


@functools.lru_cache(64)
def nodes_in(file):
    try:
        return list(ast.walk(ast.parse("".join(linecache.getlines(file)))))
    except SyntaxError:
        return []


def calls_in(file):
    return [node for node in nodes_in(file) if isinstance(node, ast.Call)]


def checks_in(file):
    return [node for node in nodes_in(file) if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and is_refusal(node.body))]


def is_refusal(body):
    return isinstance(body[-1], ast.Raise) and all(isinstance(each, (ast.Assign, ast.Expr)) for each in body[:-1])


def by_place(test, place, wanted):
    """Of the part of a condition that stands there, for the whole to be what is wanted: and, or, not."""
    if isinstance(test, ast.BoolOp):
        found = [by_place(each, place, wanted) for each in test.values]
        return next((each for each in found if each is not None), None)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return by_place(test.operand, place, not wanted)
    return wanted if place_of(test) == place else None


@contextlib.contextmanager
def passed_checks(noted=None):
    """Within, tensors without numbers answer what is checked of them. Adds to what is noted."""

    def answer(tensor):
        known = None if tensor.constant is not None else answer_of(_getframe(1))
        if known is None:
            return BOOL(tensor)
        if noted is not None:
            noted.append(Problem(known[1], "", *user_line("".join(traceback.format_stack()))))
        return known[0]

    with contextlib.ExitStack() as undo:
        put(undo, FakeTensor, "__bool__", answer)
        yield


class OfExample(TorchFunctionMode):
    """A pass on the example's numbers: `differ` gets lines whose checks are answered otherwise than passed_checks() does."""

    def __init__(self):
        super().__init__()
        self.differ = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        known = answer_of(_getframe(1)) if function is torch.Tensor.__bool__ else None
        if known is None or out == known[0]:
            return out
        self.differ.append((known[1], *user_line("".join(traceback.format_stack()))))
        return known[0]
