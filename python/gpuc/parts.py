"""A batch and its rows: what has them, and the parts that are computed one after the other (accumulate=)."""

from torch.utils import _pytree as pytree

from gpuc.errors import Error


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
    leaves, structure = pytree.tree_flatten((args, kwargs))
    rows = leaves[0].shape[0] if leaves and leaves[0].dim() else 0
    if not rows or rows % parts:
        raise Error(f"accumulate is {parts}, and the example has {rows} rows, which are not so many equal parts: give it a "
                    f"multiple of {parts}")  # fmt: skip
    return pytree.tree_unflatten(cut(leaves, [each.shape for each in leaves], 0, rows // parts), structure)
