"""A ragged last batch, filled up to the rows that were compiled. The loss leaves the padding out.

Where that would not be what PyTorch computes of the rows alone, it is refused: where the loss cannot be masked, and where
what one row gives hangs on the others, or on how many there are.
"""

import torch
from torch.utils import _pytree as pytree

from gpuc.batches import cut, has_rows
from gpuc.capture.forward_state import Attributes, same_random
from gpuc.capture.whole import CAPTURES, in_eval_mode, tensors_of

BATCH_NORM = ("batch_norm", "_native_batch_norm_legit")


def is_dropout(node):
    return "dropout" in node["op"]


def mixes_in_training(functions):
    """Why the padding would be seen in training mode, beside the loss; None: it is not, if evaluation does not see it."""
    by_name = {each["name"]: each for each in functions}
    training, evaluation = by_name["loss"], by_name["evaluate"]
    if any(node["op"].startswith(BATCH_NORM) for node in training["nodes"]):
        return "batch norm would count the padding"
    if training["assigned"]:
        return "buffers that the forward pass changes would hold padding"
    ops = [[node["op"] for node in each["nodes"] if not is_dropout(node)] for each in (training, evaluation)]
    if ops[0] != ops[1]:
        return "the module does other things in training than in evaluation, in which it cannot be tried whether rows mix"
    return None


def first_row(tensor):
    return tensor[:1]


def another_row(tensor):
    """No element of which is that of the first; of labels and tokens it has those that there always are."""
    first = first_row(tensor)
    return first + 1 if first.is_floating_point() else (first == 0).to(first.dtype)


def filled(tensor, shape, filler):
    """A tensor with fewer rows than `shape` has, with more of what `filler` makes of it."""
    missing = shape[0] - tensor.shape[0] if len(shape) else 0
    if not missing:
        return tensor.detach().resolve_neg().contiguous()
    return torch.cat([tensor.detach(), filler(tensor).detach().expand(missing, *tensor.shape[1:])])


class Eager:
    """A module with its loss, beside its plan: what `function` of it gives in evaluation, of however many rows. A pass leaves nothing behind."""

    def __init__(self, module, function, structure):
        self.module, self.function, self.structure = module, function, structure  # Of arguments by their place and by their names.

    def __call__(self, leaves):
        args, kwargs = pytree.tree_unflatten([each.detach() for each in leaves], self.structure)
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        with CAPTURES, in_eval_mode(self.module), torch.no_grad(), Attributes(self.module), same_random(), torch.random.fork_rng(devices=[]):
            out = [each.detach().double().clone() for each in tensors_of(self.function(*args, **kwargs))]
            for buffer, before in buffers:
                if buffer.shape == before.shape and not torch.equal(buffer, before):
                    buffer.copy_(before)
        return out

    def differs(self, few, ours, whole, ours_whole):
        """Whether what the plan gives of some rows, filled up, is another than the module's; as far as of a whole batch counts for nothing."""
        try:
            apart, usual = (farthest(self(leaves), tensors) for leaves, tensors in ((few, ours), (whole, ours_whole)))
        except Exception:
            return False  # It is for whole batches alone, whatever it would say.
        return apart > 1e-4 + 10 * usual


def farthest(theirs, ours):
    """Of all elements, by the largest of their tensor; infinitely where shapes differ."""
    found = 0.0
    for one, other in zip(theirs, ours, strict=True):
        if one.shape != other.shape:
            return float("inf")
        if one.numel():
            apart = (one - other).abs().max() / one.abs().max().clamp(min=1e-5)
            found = max(found, apart.nan_to_num(0).item())
    return found


HANGS_ON_COUNT = "what it gives hangs on how many rows there are, x.shape[0], which a compiled step takes for those of the example"


class Padding:
    """Of one step: fills up batches, and knows whether that may be. `expected`: by program, type and shape of its inputs; `eager`: the module with
    its loss."""

    def __init__(self, session, functions, expected, rank, shares, eager):
        self.session, self.expected, self.rank, self.eager = session, expected, rank, eager
        self.shares = shares
        self.mixes = mixes_in_training(functions)
        self.mixes_in_evaluation = None  # Tried when there is a first ragged batch.

    def batch_of(self, program):
        """Rows that it takes, as the recipe has it; 0: it has none."""
        shape = self.expected[program][0][1] if self.expected[program] else ()
        return shape[0] if shape else 0

    def rows_of(self, program, tensors):
        """How many rows a ragged batch has, 0 if these tensors are none: what has rows of the batch has fewer of them."""
        found, batch = {0}, self.batch_of(program)
        for tensor, (dtype, shape) in zip(tensors, self.expected[program]):
            if not isinstance(tensor, torch.Tensor) or tensor.dtype != dtype or not tensor.is_cpu:
                return 0
            if has_rows(shape, batch) and tensor.dim() and tensor.shape[1:] == shape[1:]:
                found.add(tensor.shape[0])
            elif tensor.shape != shape:
                return 0
        rows = max(found)
        return rows if found == {0, rows} and 0 < rows < batch else 0

    def mean(self, program, tensors, rows):
        """Of the rows that are there; and why it cannot be had, if so."""
        why = self.refusal(program, tensors, rows)
        if why:
            return None, why
        return self.run(program, tensors, rows, first_row), None

    def refusal(self, program, tensors, rows):
        if not self.session.counts_rows(program):
            return "the loss is no single mean or sum, of which rows could be left out"
        if program == "train_step" and self.mixes:
            return self.mixes
        if self.shares:
            return "it takes all ranks that share something out to try whether what one row gives hangs on others"
        if self.mixes_in_evaluation is None:
            self.mixes_in_evaluation = self.try_mixing(tensors, rows)
        return self.mixes_in_evaluation or None

    def try_mixing(self, tensors, rows):
        """Why the loss of evaluation is not that of the rows: it changes with what the padding holds, or is another than the module's. "": it is.
        Where that takes a part of a batch, of one."""
        if not self.session.counts_rows("evaluate"):
            return "what one row gives hangs on others"
        fewer, rows_of_all = min(rows, self.batch_of("evaluate") - 1), self.batch_of("evaluate")
        if not fewer:
            return ""  # One row at a time knows no other.
        part = cut(tensors, [shape for _, shape in self.expected["train_step"]], 0, fewer)
        losses = [self.loss_of(part, fewer, filler) for filler in (first_row, another_row)]
        if repr(losses[0]) != repr(losses[1]):
            return "what one row gives hangs on others"
        whole = self.filled("evaluate", part, first_row)
        is_other = self.eager.differs(part, losses[0], whole, self.loss_of(whole, rows_of_all, first_row))
        return HANGS_ON_COUNT if is_other else ""

    def loss_of(self, tensors, rows, filler):
        """In evaluation: a sum, or a mean."""
        self.run("evaluate", tensors, rows, filler)
        total, count = self.session.number("evaluate", 0), self.session.number("evaluate", 1)
        return [torch.tensor(total if self.session.counts_once("evaluate") else total / count if count else float("nan"), dtype=torch.float64)]

    def filled(self, program, tensors, filler):
        return [filled(tensor, shape, filler) for tensor, (_, shape) in zip(tensors, self.expected[program])]

    def run(self, program, tensors, rows, filler):
        whole = self.filled(program, tensors, filler)
        if program == "train_step":
            rows += self.rank * self.batch_of(program)  # Of all ranks' rows: as if those before had all of theirs.
        return self.session.mean_of_rows(program, rows, *[tensor.data_ptr() for tensor in whole])
