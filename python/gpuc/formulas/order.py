"""By order."""

import torch

from gpuc.formulas.table import aten, formula


@formula(aten.kthvalue.default)
def kthvalue(self, k, dim=-1, keepdim=False):
    numbers = (each.narrow(dim, k - 1, 1) for each in self.sort(dim))
    return tuple(each if keepdim else each.squeeze(dim) for each in numbers)


@formula(aten.median.dim)
def median(self, dim, keepdim=False):
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)
    return kthvalue(self, (self.shape[dim] + 1) // 2, dim, keepdim)


@formula(aten.median.default)
def median_of_all(self):
    return kthvalue(self.flatten(), (self.numel() + 1) // 2)[0]


@formula(aten.nanmedian.dim)
def nanmedian(self, dim, keepdim=False):
    """NaN stands behind all numbers, and is what a row of nothing else has."""
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)
    place = ((~self.isnan()).sum(dim, keepdim=True) - 1).clamp(min=0) // 2
    found = (each.gather(dim, place) for each in self.sort(dim))
    return tuple(each if keepdim else each.squeeze(dim) for each in found)


@formula(aten.nanmedian.default)
def nanmedian_of_all(self):
    return nanmedian(self.flatten(), 0)[0]


@formula(aten.mode.default)
def mode(self, dim=-1, keepdim=False):
    """The end of the first longest run of equal ones, in order."""
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)
    values, places = (each.movedim(dim, -1) for each in self.sort(stable=True, dim=dim))
    numbers = torch.arange(values.shape[-1])
    begins = torch.cat([torch.zeros_like(values[..., :1], dtype=torch.bool), values[..., 1:] != values[..., :-1]], -1)
    (starts,) = doubled([torch.where(begins, numbers, 0)], len(numbers), lambda before, now: [torch.maximum(before[0], now[0])])
    end = (numbers - starts).argmax(-1, keepdim=True)
    found = (each.gather(-1, end).movedim(-1, dim) for each in (values, places))
    return tuple(each if keepdim else each.squeeze(dim) for each in found)


@formula(aten.searchsorted.Tensor)
def searchsorted(sequence, self, out_int32=False, right=False, side=None, sorter=None):
    """How many stand before."""
    if sorter is not None:
        return NotImplemented
    sequence, values = (sequence if sequence.dim() == 1 else sequence.unsqueeze(-2)), self.unsqueeze(-1)
    before = sequence <= values if right or side == "right" else sequence < values
    return before.sum(-1).to(torch.int32 if out_int32 else torch.int64)


@formula(aten.bucketize.Tensor)
def bucketize(self, boundaries, out_int32=False, right=False):
    return searchsorted(boundaries, self, out_int32, right)


@formula(aten.histc.default)
def histc(self, bins=100, min=0, max=0):
    """What lies beyond the ends counts nowhere; without ends they are those of the numbers."""
    if self.numel() == 0 or not self.dtype.is_floating_point:
        return NotImplemented
    values = self.detach().flatten()
    low, high = (values.min(), values.max()) if min == max else (values.new_full((), min), values.new_full((), max))
    width = torch.where(low == high, 2.0, high - low)
    low = torch.where(low == high, low - 1, low)
    place = ((values - low) / width * bins).floor().clamp(0, bins - 1)
    is_there = (values >= low) & (values <= low + width)
    return ((place.unsqueeze(1) == torch.arange(bins)) & is_there.unsqueeze(1)).sum(0).to(self.dtype)


@formula(aten.repeat_interleave.Tensor)
def repeat_interleave(repeats, output_size=None):
    """Of so many rows of the result each has the number of the row that it is of."""
    if output_size is None:
        return NotImplemented
    return torch.searchsorted(repeats.cumsum(0), torch.arange(output_size), right=True)


@formula(aten.sort.default)
def sort(self, dim=-1, descending=False):
    return sort_stable(self, stable=False, dim=dim, descending=descending)


@formula(aten.sort.stable)
def sort_stable(self, stable=None, dim=-1, descending=False):
    """Truth values are numbers for the moment."""
    if self.dtype != torch.bool:
        return NotImplemented
    found, places = self.to(torch.int32).sort(stable=bool(stable), dim=dim, descending=descending)
    return found != 0, places


#
# Up to each element: of the last 1, 2, 4, … elements, until that is all
#


def doubled(parts, extent, joined):
    """`joined` takes what stands before and what stands there, each a tensor for each part, along the last dimension."""
    reach = 1
    while reach < extent:
        met = joined([each[..., :-reach] for each in parts], [each[..., reach:] for each in parts])
        parts = [torch.cat([each[..., :reach], own], -1) for each, own in zip(parts, met)]
        reach *= 2
    return parts


def running_extreme(self, dim, takes):
    """Of equal ones the last, and NaN before all; its gradient goes to where it lies."""
    if self.dim() == 0:
        return self.clone(), torch.zeros_like(self, dtype=torch.int64)

    def joined(before, now):
        is_now = takes(now[0], before[0]) | now[0].isnan()
        return [torch.where(is_now, own, other) for own, other in zip(now, before)]

    values = self.detach().movedim(dim, -1)
    _, places = doubled([values, torch.arange(values.shape[-1]).expand(values.shape)], values.shape[-1], joined)
    places = places.movedim(-1, dim)
    return self.gather(dim, places), places


@formula(aten.cummax.default)
def cummax(self, dim):
    return running_extreme(self, dim, torch.ge)


@formula(aten.cummin.default)
def cummin(self, dim):
    return running_extreme(self, dim, torch.le)


@formula(aten.logcumsumexp.default)
def logcumsumexp(self, dim):
    if self.dim() == 0:
        return self.clone()
    values = self.movedim(dim, -1)
    (sums,) = doubled([values], values.shape[-1], lambda before, now: [torch.logaddexp(before[0], now[0])])
    return sums.movedim(-1, dim)
