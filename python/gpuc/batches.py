"""A batch as a loader gives it, its bytes, its rows, and the parts of it that are computed one after the other (accumulate=)."""

import sys
import zlib
from collections.abc import Mapping

from gpuc.errors import Error


def split_batch(example):
    """Positional and keyword arguments of a batch. What a tokenizer gives is no dict, and has keys all the same."""
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, (tuple, list)):
        return tuple(example), {}
    return (example,), {}


def checksum_of(args, kwargs):
    """Of all tensors' bytes."""
    checksum = 0
    for each in leaves_of((args, kwargs)):
        checksum = zlib.crc32(bytes_of(each), checksum)
    return checksum


def bytes_of(tensor):
    import numpy

    if hasattr(tensor, "detach"):  # NumPy does not have all of torch's types.
        tensor = tensor.detach().resolve_neg().contiguous().reshape(-1).view(sys.modules["torch"].uint8)
    return numpy.ascontiguousarray(tensor).tobytes()


def leaves_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for each in value for leaf in leaves_of(each)]
    return [value]


def has_rows(shape, batch):
    """Whether a tensor of this shape has a row for each of the batch."""
    return len(shape) > 0 and shape[0] == batch


def cut(tensors, shapes, begin, end):
    """Rows of what has them: of the tensors that were compiled with the first one's first dimension."""
    batch = shapes[0][0]
    return [each[begin:end] if has_rows(shape, batch) else each for each, shape in zip(tensors, shapes)]


def first_part(args, kwargs, parts):
    """Of an example in as many equal parts."""
    if parts == 1:
        return args, kwargs
    from torch.utils import _pytree as pytree

    leaves, structure = pytree.tree_flatten((args, kwargs))
    rows = leaves[0].shape[0] if leaves and leaves[0].dim() else 0
    if not rows or rows % parts:
        raise Error(f"accumulate is {parts}, and the example has {rows} rows, which are not so many equal parts: give it a "
                    f"multiple of {parts}")  # fmt: skip
    return pytree.tree_unflatten(cut(leaves, [each.shape for each in leaves], 0, rows // parts), structure)


def twice(args, kwargs):
    """A batch with each row twice."""
    import torch
    from torch.utils import _pytree as pytree

    leaves, structure = pytree.tree_flatten((args, kwargs))
    rows = leaves[0].shape[0] if leaves and leaves[0].dim() else None
    return pytree.tree_unflatten([torch.cat([each, each]) if has_rows(each.shape, rows) else each for each in leaves], structure)
