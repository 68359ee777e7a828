"""What moves elements: diagonals, windows, writes."""

import torch

from gpuc.formulas.table import FORMULAS, aten, formula


def is_on_diagonal(rows, columns, offset):
    return torch.arange(columns) - torch.arange(rows)[:, None] == offset


def length_of_diagonal(rows, columns, offset):
    return max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))


@formula(aten.diagonal.default, aten.diagonal_copy.default)
def diagonal(self, offset=0, dim1=0, dim2=1):
    """Each so many elements of the rows behind one another."""
    front = self.movedim((dim1, dim2), (0, 1))
    rows, columns, *rest = front.shape
    length = length_of_diagonal(rows, columns, offset)
    if not length:
        return NotImplemented
    first = offset if offset >= 0 else -offset * columns
    flat = front.reshape(rows * columns, *rest)
    return flat[first : first + (length - 1) * (columns + 1) + 1 : columns + 1].movedim(0, -1)


@formula(aten.diagonal_scatter.default)
def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    front = self.movedim((dim1, dim2), (0, 1))
    rows, columns = front.shape[:2]
    length = length_of_diagonal(rows, columns, offset)
    if not length:
        return NotImplemented
    numbers = (torch.arange(rows) - max(-offset, 0)).clamp(0, length - 1)
    by_rows = src.movedim(-1, 0)[numbers].unsqueeze(1)
    mask = is_on_diagonal(rows, columns, offset).reshape(rows, columns, *[1] * (front.dim() - 2))
    return torch.where(mask, by_rows, front).movedim((0, 1), (dim1, dim2))


# Copies of what others show.
FORMULAS.update({
    aten.view_copy.default: lambda self, size: self.reshape(size),
    aten.permute_copy.default: lambda self, dims: self.permute(dims),
    aten.narrow_copy.default: lambda self, dim, start, length: self.narrow(dim, start, length),
    aten.unbind_copy.int: lambda self, dim=0: self.unbind(dim),
})  # fmt: skip


@formula(aten.as_strided.default, aten.as_strided_copy.default)
def as_strided(self, size, stride, storage_offset=None):
    """Of a tensor that has its memory for itself."""
    places = torch.full((), storage_offset or 0, dtype=torch.int64)
    for extent, step in zip(size, stride):
        places = places.unsqueeze(-1) + torch.arange(extent) * step
    last = (storage_offset or 0) + sum((extent - 1) * step for extent, step in zip(size, stride))
    if not self.is_contiguous() or self.storage_offset() or not all(size) or last >= self.numel():
        return NotImplemented
    return aten.index(self.reshape(-1), [places])


@formula(aten.unfold.default)
def unfold(self, dim, size, step):
    if self.dim() == 0:
        return self.reshape(1)[:size]
    front = self.movedim(dim, 0)
    starts = torch.arange(0, front.shape[0] - size + 1, step)
    return front[starts[:, None] + torch.arange(size)].movedim((0, 1), (dim % self.dim(), -1))


@formula(aten.scatter.src, aten.scatter.value)
def scatter(self, dim, index, source):
    """Truth values are numbers for the moment."""
    if self.dtype != torch.bool:
        return NotImplemented
    source = source.to(torch.int64) if isinstance(source, torch.Tensor) else int(bool(source))
    return self.to(torch.int64).scatter(dim, index, source) != 0


@formula(aten.index_put.default)
def index_put(self, indices, values, accumulate=False):
    """Truth values are numbers for the moment. Indices of later dimensions stand in front."""
    before = next((number for number, each in enumerate(indices) if each is not None), 0)
    given = indices[before:]
    if any(each is not None and each.dtype == torch.bool for each in given):
        return NotImplemented
    if self.dtype == torch.bool:
        return aten.index_put(self.to(torch.int64), indices, values.to(torch.int64), accumulate) != 0
    if not before or any(each is None for each in given):
        return NotImplemented
    of_index = len(torch.broadcast_shapes(*(each.shape for each in given)))
    whole = self[(*[slice(None)] * before, *given)]
    values = values.expand(whole.shape).movedim(tuple(range(before, before + of_index)), tuple(range(of_index)))
    sources, front = tuple(range(before, before + len(given))), tuple(range(len(given)))
    return self.movedim(sources, front).index_put(tuple(given), values, accumulate).movedim(front, sources)


@formula(aten.slice_scatter.default)
def slice_scatter(self, source, dim=0, start=None, end=None, step=1):
    """Into every few elements."""
    if step == 1:
        return NotImplemented
    places = torch.arange(*slice(start, end, step).indices(self.shape[dim]))
    return self.movedim(dim, 0).index_put((places,), source.movedim(dim, 0)).movedim(0, dim)


@formula(aten.masked_scatter.default)
def masked_scatter(self, mask, source):
    """Behind so many that the mask has."""
    mask, self = torch.broadcast_tensors(mask, self)
    place = (mask.flatten().to(torch.int64).cumsum(0) - 1).clamp(0, source.numel() - 1)
    return torch.where(mask, aten.index(source.flatten(), [place]).reshape(self.shape), self)


@formula(aten.take.default)
def take(self, index):
    return aten.index(self.flatten(), [index])


@formula(aten.put.default)
def put_elements(self, index, source, accumulate=False):
    return self.flatten().index_put((index,), source, accumulate).reshape(self.shape)
