"""`if mask.any():` and `if places.numel() > 0:`, where a mask of data is asked whether it chooses some.

A compiled step goes one way: as if some were chosen. That is what the module means where it makes no difference to go that way with none, as it
mostly does: sums and writes of no rows change nothing. Whether it is so is tried (Trial), by the module itself on the example, with masks that are
emptied: what it gives has to be the same whichever way it goes.
"""

import ast
import traceback
import zlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gpuc.capture.unseen import refuse_here
from gpuc.formulas.checks import nodes_in
from gpuc.formulas.masks import PLACES, WHERE
from gpuc.formulas.named import name_of
from gpuc.lines import user_line

MOST_IN_LOOPS = 100  # Rounds of a `while`.
SHARES = 3  # Of masks: of all of them, of one share and of the others is tried.
EXTREMES = "min max amin amax".split()
COUNTS = "sum count_nonzero".split()
# By how a number that is at least 1 is compared: with what, and the answer.
ANSWERS = {("gt", 0): True, ("ge", 1): True, ("ne", 0): True, ("eq", 0): False, ("lt", 1): False, ("le", 0): False}
DIFFERS = ("asks whether a mask chooses some rows, and a compiled step, which does not, would give something else where there are none: let it be the "
           "same, as a sum over mask.sum().clamp(min=1) is, or compute both and choose, torch.where(mask.any(), a, b)")  # fmt: skip


def asks_places(function, args, kwargs):
    return function in PLACES or (function in WHERE and len(args) == 1 and not kwargs)


def line_here():
    return user_line("".join(traceback.format_stack()))


def refuse_count():
    refuse_here("asks for the number of rows that a mask chooses, which hangs on values, and a compiled step has fixed shapes: count them by mask.sum()")


LOOPS = "goes on as long as a mask chooses some rows, which hangs on values: loop as often as is always enough, and let torch.where keep what is done"


class Asked(list):
    """Lines that ask whether there are some. The answer is yes, by which no loop ends."""

    def note(self, line):
        self.append(line)
        if self.count(line) > MOST_IN_LOOPS and is_in_loop(*line_here()):
            refuse_here(LOOPS)


def is_in_loop(file, line):
    return any(isinstance(node, ast.While) and node.lineno <= line <= node.end_lineno for node in nodes_in(file))


class Count:
    """How many rows a mask chooses. Of places one can ask whether there are some; `asked`: of which line."""

    def __init__(self, asked=None, line=None):
        self.asked, self.line = asked, line

    def __bool__(self):
        return self.compared("gt", 0)

    def compared(self, name, other):
        if self.asked is None or not isinstance(other, int) or (name, other) not in ANSWERS:
            refuse_count()
        self.asked.note(self.line)
        return ANSWERS[name, other]

    def refused(self, *_):
        refuse_count()


for each in {name for name, _ in ANSWERS}:
    setattr(Count, f"__{each}__", lambda self, other, name=each: self.compared(name, other))
for each in "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod pow index int float neg format".split():
    setattr(Count, f"__{each}__", Count.refused)
Count.__hash__ = Count.refused


class Whether:
    """What is known of tensors that say whether a mask chooses some: by identity, (tensor, what it says of how many there are)."""

    def __init__(self):
        self.said = {}

    def note(self, function, args, kwargs, out):
        name = name_of(function)
        if not isinstance(out, torch.Tensor) or out.dim() or not args or not isinstance(args[0], torch.Tensor):
            return
        if len(args) == 1 and not kwargs and args[0].dtype == torch.bool and args[0].dim() and name in ("any", *COUNTS):
            self.said[id(out)] = out, True if name == "any" else None, args[0]
        elif id(args[0]) in self.said and len(args) == 2 and self.said[id(args[0])][1] is None and isinstance(args[1], int):
            answer = ANSWERS.get((name, args[1]))
            if answer is not None:
                self.said[id(out)] = out, answer, self.said[id(args[0])][2]

    def answer(self, function, args):
        """Of a call that asks a tensor for its truth, and the mask: else None."""
        if function is not torch.Tensor.__bool__ or id(args[0]) not in self.said:
            return None
        _, answer, mask = self.said[id(args[0])]
        return (True if answer is None else answer), mask


#
# By the module itself
#


class Some(int):
    """A number that is 0, and says that there are some where it is asked that."""

    def __bool__(self):
        return True

    def compared(self, name, other):
        return ANSWERS.get((name, other), getattr(int, f"__{name}__")(self, other))

    __hash__ = int.__hash__


for each in {name for name, _ in ANSWERS}:
    setattr(Some, f"__{each}__", lambda self, other, name=each: self.compared(name, other))


class Trial(TorchFunctionMode):
    """A pass on numbers. Of the masks that are asked in those lines some are emptied; where they are, it goes on as if they were not (`goes`), or
    as it does by itself."""

    def __init__(self, lines, share, goes):
        super().__init__()
        self.lines, self.share, self.goes, self.known = set(lines), share, goes, Whether()
        self.number = self.emptied = 0
        self.places = {}  # By identity: of emptied masks.

    def is_emptied(self):
        self.number += 1
        is_emptied = zlib.crc32(str(self.number).encode()) % SHARES in self.share
        self.emptied += is_emptied
        return is_emptied

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, first = kwargs or {}, args[0] if args else None
        asked = self.known.answer(function, args)
        if asked and line_here() in self.lines and self.is_emptied():
            answer, mask = asked
            mask.zero_()
            return answer if self.goes else not answer
        if asks_places(function, args, kwargs) and line_here() in self.lines and self.is_emptied():
            out = function(torch.zeros_like(first), *args[1:], **kwargs)
            self.places.update((id(each), each) for each in pytree.tree_leaves(out))
            return out
        if name_of(function) in EXTREMES and len(args) == 1 and not kwargs and first.is_floating_point() and not first.numel():
            return first.new_full((), torch.nan)  # Which a check may ask for, and which shows where else it goes.
        out = function(*args, **kwargs)
        if id(first) in self.places and isinstance(out, torch.Tensor):
            self.places[id(out)] = out
        elif id(first) in self.places and self.goes:
            return tuple(map(seen_as_some, out)) if isinstance(out, torch.Size) else seen_as_some(out)
        self.known.note(function, args, kwargs, out)
        return out


def seen_as_some(number):
    return Some(0) if type(number) is int and number == 0 else number


def makes_no_difference(module, args, kwargs, lines):
    """Whether it gives the same, and the same gradients, with none of the rows of masks that are asked in these lines, by whichever way it goes."""
    for share in (range(SHARES), range(1), range(1, SHARES)):
        try:
            given = [Given(module, args, kwargs, Trial(lines, share, goes)) for goes in (True, False)]
        except Exception:
            return False
        is_tried = given[-1].trial.emptied or len(share) < SHARES
        if not is_tried or not given[0].is_like(given[1]) or differs_elsewhere(module, args, kwargs, lines, share):
            return False
    return True


def differs_elsewhere(module, args, kwargs, lines, share):
    """By other numbers than those that training begins with, many of which are 0."""
    try:
        one, other = (Given(module, args, kwargs, Trial(lines, share, goes), moved) for goes in (True, False))
    except Exception:
        return False  # Of buffers that have to be what they are.
    return not one.is_like(other)


def moved(tensor):
    return tensor + 0.01 * torch.rand_like(tensor) if tensor.is_floating_point() else tensor.clone()


class Given:
    """What a trial gives: results, what parameters and buffers are then, and gradients."""

    def __init__(self, module, args, kwargs, trial, start=torch.clone):
        self.trial = trial
        copies = pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, (args, kwargs))
        with torch.enable_grad(), torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            trained = {name: start(each.detach()).requires_grad_(each.requires_grad) for name, each in module.named_parameters()}
            tensors = {**trained, **{name: start(each.detach()) for name, each in module.named_buffers()}}
            # What is emptied was another mask before.
            with trial, torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone() if each.dtype == torch.bool else each, lambda each: each):
                out = torch.func.functional_call(module, tensors, *copies)
            out = [each for each in pytree.tree_leaves(out) if isinstance(each, torch.Tensor)]
            self.gradients = gradients(out, [each for each in trained.values() if each.requires_grad])
        self.results = [each.detach() for each in (*out, *tensors.values())]

    def is_like(self, other):
        return all(
            len(one) == len(two) and all(map(are_close, one, two)) for one, two in ((self.results, other.results), (self.gradients, other.gradients))
        )


def gradients(out, trained):
    """Of a sum of the results in which each element counts otherwise."""
    terms = [(each * torch.rand_like(each)).sum() for each in out if each.is_floating_point() and each.requires_grad]
    found = torch.autograd.grad(sum(terms), trained, allow_unused=True) if terms and trained else [None] * len(trained)
    return [torch.zeros_like(one) if each is None else each for one, each in zip(trained, found)]


def are_close(one, other):
    if not one.is_floating_point():
        return torch.equal(one, other)
    close = torch.finfo(one.dtype).eps ** 0.75
    scale = one.detach().abs().nan_to_num(0, 0, 0).max().item() if one.numel() else 0
    return one.shape == other.shape and torch.allclose(one, other, rtol=close, atol=close * scale, equal_nan=True)
