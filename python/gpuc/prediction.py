"""What a module in eval mode gives, for as many rows as there are: in parts as they were compiled, the last filled up."""

import torch

from gpuc.batches import cut, has_rows
from gpuc.errors import Error
from gpuc.padding import HANGS_ON_COUNT, another_row, filled, first_row


class Prediction:
    """Of one step; `most`: rows that a batch has, which are computed in parts if it was compiled so; `eager`: the module."""

    def __init__(self, session, batch, most, shares, eager):
        self.shares, self.eager = shares, eager
        self.session, self.batch, self.most = session, batch, most
        self.shapes = [tuple(shape) for _, _, shape in session.inputs("predict")]
        self.outputs = session.outputs("predict")
        self.mixes = None  # Why padding would be seen, "" if it would not: tried when there are first too few.

    def __call__(self, tensors):
        tensors = [each.detach() if isinstance(each, torch.Tensor) else each for each in tensors]
        rows = self.rows_of(tensors)
        if not rows:
            return self.run(tensors)
        if self.shares:
            raise Error(f"predict got {rows} rows where {self.most} were compiled, and ranks share something out (shard=), so that all of "
                        f"them compute the same parts: give it {self.most}")  # fmt: skip
        self.check(rows)
        parts = [self.run_part(cut(tensors, self.shapes, begin, begin + self.batch), min(self.batch, rows - begin))
                 for begin in range(0, rows, self.batch)]  # fmt: skip
        return [torch.cat(each) for each in zip(*parts)]

    def run(self, tensors):
        self.session.run("predict", *tensors)
        return [torch.from_dlpack(self.session.output("predict", i)).clone() for i in range(len(self.outputs))]

    def rows_of(self, tensors):
        """How many, if those are not just as many as were compiled and all else is; else 0."""
        if len(tensors) != len(self.shapes) or not all(isinstance(each, torch.Tensor) for each in tensors):
            return 0
        found = set()
        for tensor, shape in zip(tensors, self.shapes):
            if has_rows(shape, self.batch) and tensor.dim() and tensor.shape[1:] == shape[1:]:
                found.add(tensor.shape[0])
            elif tensor.shape != shape:
                return 0
        rows = found.pop() if len(found) == 1 else 0
        return 0 if rows == self.batch else rows

    def check(self, rows):
        if rows > self.most:
            raise Error(f"predict got {rows} rows where {self.most} were compiled: give it at most as many at a time")
        without = [name for name, _, shape in self.outputs if not has_rows(shape, self.batch)]
        if without:
            raise Error(f"predict got {rows} rows where {self.batch} were compiled, and {', '.join(without)} has no row for "
                        f"each, so that padding could not be left out: give it {self.batch}")  # fmt: skip

    def run_part(self, tensors, rows):
        if rows == self.batch:
            return self.run(tensors)
        whole = self.run(self.filled(tensors, first_row))
        found = [each[:rows] for each in whole]
        if self.mixes is None:
            self.mixes = self.try_mixing(tensors, whole, found)
        if self.mixes:
            raise Error(f"predict got {rows} rows where {self.batch} were compiled, and {self.mixes}: give it {self.batch}, or call the module in "
                        "eager mode")  # fmt: skip
        return found

    def try_mixing(self, tensors, whole, found):
        others = self.run(self.filled(tensors, another_row))
        if any(not same_bits(one, other[: len(one)]) for one, other in zip(found, others)):
            return "what one row gives hangs on others, so that padding would be seen"
        return HANGS_ON_COUNT if self.eager.differs(tensors, found, self.filled(tensors, first_row), whole) else ""

    def filled(self, tensors, filler):
        return [filled(tensor, shape, filler) for tensor, shape in zip(tensors, self.shapes)]


def same_bits(one, other):
    return torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))
