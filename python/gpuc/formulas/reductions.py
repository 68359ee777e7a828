"""Distances, and reductions by an index."""

import torch

from gpuc.formulas.table import aten, formula


@formula(aten._cdist_forward.default)
def cdist(x1, x2, p, mode=None):
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@formula(aten.dist.default)
def dist(self, other, p=2):
    return torch.linalg.vector_norm(self - other, p)


@formula(aten._pdist_forward.default)
def pdist(self, p=2.0):
    first, second = torch.triu_indices(len(self), len(self), 1)
    return torch.linalg.vector_norm(self[first] - self[second], p, -1)


@formula(aten.scatter_reduce.two)
def scatter_reduce(self, dim, index, src, reduce, include_self=True):
    if self.dim() == 0:
        return scatter_reduce(self.reshape(1), 0, index.reshape(-1), src.reshape(-1), reduce, include_self).reshape(())
    src = src[tuple(slice(extent) for extent in index.shape)]
    if reduce in ("sum", "mean"):
        return sums_by_index(self, dim, index, src, reduce, include_self)
    others = [extent for number, extent in enumerate(self.shape) if number != dim % self.dim()]
    if others != [extent for number, extent in enumerate(index.shape) if number != dim % self.dim()]:
        return NotImplemented
    if reduce == "prod":
        return product_by_index(self, dim, index, src, include_self)
    return largest_by_index(self, dim, index, src, reduce == "amin", include_self)


@formula(aten.index_reduce.default)
def index_reduce(self, dim, index, source, reduce, include_self=True):
    if self.dim() == 0:
        return index_reduce(self.reshape(1), 0, index.reshape(-1), source.reshape(1), reduce, include_self).reshape(())
    index = index.reshape([-1 if number == dim % self.dim() else 1 for number in range(self.dim())]).expand(source.shape)
    return scatter_reduce(self, dim, index, source, reduce, include_self)


def sums_by_index(self, dim, index, src, reduce, include_self):
    zeros = self if include_self else self.scatter(dim, index, 0)
    sums = zeros.scatter_add(dim, index, src)
    if reduce == "sum":
        return sums
    count = torch.full_like(self, float(include_self)).scatter_add(dim, index, torch.ones_like(src))
    return sums / count.clamp(min=1)


def product_by_index(self, dim, index, src, include_self):
    front, index, src = (each.movedim(dim, 0) for each in (self, index, src))
    is_there = index.unsqueeze(0) == torch.arange(front.shape[0]).reshape(-1, *[1] * front.dim())
    found = torch.where(is_there, src.unsqueeze(0), 1.0)
    first = front if include_self else torch.where(is_there.any(1), 1.0, front)
    return torch.cat([first.unsqueeze(1), found], 1).prod(1).movedim(0, dim)


def largest_by_index(self, dim, index, src, is_least, include_self):
    """Of all that is there, what the index has there."""
    front, index, src = (each.movedim(dim, 0) for each in (self, index, src))
    places = torch.arange(front.shape[0]).reshape(-1, *[1] * front.dim())
    is_there, none = index.unsqueeze(0) == places, float("inf") if is_least else float("-inf")
    found = torch.where(is_there, src.unsqueeze(0), none)
    if not include_self:  # It is of those that share the gradient, and gets none.
        best = found.amin(1) if is_least else found.amax(1)
        front, kept = torch.where(front == best, front, none).detach(), front
    found = torch.cat([found, front.unsqueeze(1)], 1)
    best = found.amin(1) if is_least else found.amax(1)
    return (best if include_self else torch.where(is_there.any(1), best, kept)).movedim(0, dim)
