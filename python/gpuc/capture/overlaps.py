"""Which tensors share memory, as two parameters do of which one was given the other's `.data`."""

import torch


def extent_of(tensor):
    """From its first byte to behind its last one."""
    begin = tensor.data_ptr()
    return begin, begin + (1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))) * tensor.element_size()


def overlaps(tensors):
    """The pairs of names, of a dict of tensors that are none of them empty: the one that is named first stands in front."""
    order = {name: number for number, name in enumerate(tensors)}
    open_ones = []  # (end, name) of those that began before.
    for begin, end, name in sorted((*extent_of(tensor), name) for name, tensor in tensors.items()):
        open_ones = [each for each in open_ones if each[0] > begin]
        for _, other in open_ones:
            if share_elements(tensors[name], tensors[other]):
                yield tuple(sorted((name, other), key=order.get))
        open_ones.append((end, name))


def share_elements(one, other):
    """Of two whose extents overlap: the rows of one may lie between those of the other."""
    size = one.element_size()
    begin = min(one.data_ptr(), other.data_ptr())
    if (is_whole(one) and is_whole(other)) or other.element_size() != size or (one.data_ptr() - other.data_ptr()) % size:
        return True
    elements = torch.arange((max(extent_of(one)[1], extent_of(other)[1]) - begin) // size)
    return bool(torch.isin(*(elements.as_strided(each.shape, each.stride(), (each.data_ptr() - begin) // size) for each in (one, other))).any())


def is_whole(tensor):
    """Whether it has all that lies between its ends."""
    begin, end = extent_of(tensor)
    return end - begin == tensor.numel() * tensor.element_size()
