"""A batch as a loader gives it, and its bytes."""

import sys
import zlib
from collections.abc import Mapping


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
