"""A tensor as plain data, but for its numbers."""

import torch
from torch.utils import _pytree as pytree

from gpuc.errors import Error
from gpuc.formulas.cures import cure_of_shape, cure_of_type

TYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int8: "i8", torch.uint8: "ui8", torch.bool: "i1",
}  # fmt: skip


class HangsOnValue(Error):
    """A shape or a number of which only a tensor's value decides."""


def spec_of(tensor, op=""):
    if tensor.dtype not in TYPES:
        raise Error(f"{tensor.dtype} is an element type that gpuc does not have: {cure_of_type(tensor.dtype)}")
    if not all(isinstance(extent, int) for extent in tensor.shape):
        raise HangsOnValue(f"has a shape that hangs on a tensor's value, and a compiled step has fixed shapes: {cure_of_shape(op)}")
    return {"type": TYPES[tensor.dtype], "shape": list(tensor.shape)}


def references_of(node):
    """What stands for tensors among the arguments of a recorded node."""
    return [each for each in pytree.tree_leaves(list(node["arguments"].values()), is_leaf=is_reference) if is_reference(each)]


def is_reference(value):
    return isinstance(value, dict)
