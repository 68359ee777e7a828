"""Of layers."""

import torch
from torch._decomp import decomposition_table
from torch.nn import functional as F

from gpuc.formulas.reductions import largest_by_index
from gpuc.formulas.table import FORMULAS, aten, formula

# Which PyTorch takes apart, and leaves whole where it exports; and what torch.vmap makes of layers that the compiler knows.
for each in (aten.grid_sampler_2d, aten._softmax, aten._log_softmax, aten.native_group_norm):
    FORMULAS[each.default] = decomposition_table[each.default]


@formula(aten.native_layer_norm.default)
def native_layer_norm(*args, **kwargs):
    """Mean and deviation without gradients, which PyTorch does not pass on: those of native_group_norm it does."""
    out, mean, deviation = decomposition_table[aten.native_layer_norm.default](*args, **kwargs)
    return out, mean.detach(), deviation.detach()


@formula(aten.adaptive_max_pool2d.default)
def adaptive_max_pool2d(self, output_size):
    """Of windows of one size the pooling that there is, else each window's largest."""
    if all(own % wanted == 0 for own, wanted in zip(self.shape[-2:], output_size)):
        window = [own // wanted for own, wanted in zip(self.shape[-2:], output_size)]
        return aten.max_pool2d_with_indices(self, window, window)
    rows, columns = (windows(*each) for each in zip(self.shape[-2:], output_size))
    places = (rows[:, None, :, None] * self.shape[-1] + columns[:, None, :]).flatten(-2)
    largest, found = self.flatten(-2)[..., places].max(-1)
    return largest, places.expand(*found.shape, -1).gather(-1, found.unsqueeze(-1)).squeeze(-1)


def windows(extent, count):
    """Of each the elements, the last one again where another has more."""
    ends = torch.arange(count + 1) * extent
    first, last = ends[:-1] // count, (ends[1:] + count - 1) // count - 1
    return torch.minimum(first[:, None] + torch.arange(-(-extent // count) + 1), last[:, None])


@formula(aten.max_unpool2d.default)
def max_unpool2d(self, indices, output_size):
    zeros = torch.zeros(*self.shape[:-2], output_size[0] * output_size[1], dtype=self.dtype)
    return zeros.scatter(-1, indices.flatten(-2), self.flatten(-2)).unflatten(-1, output_size)


@formula(aten.avg_pool2d.default)
def avg_pool2d(self, kernel_size, stride=(), padding=(0, 0), ceil_mode=False, count_include_pad=True, divisor_override=None):
    """Where what a window counts is neither all of it nor what lies in the image: a window that goes beyond the padding counts as far."""
    if divisor_override is None and not (ceil_mode and count_include_pad):
        return NotImplemented
    kernel, stride, padding = ([*each] * (2 // len(each)) for each in (kernel_size, stride or kernel_size, padding))
    counts, pads = [], []
    for extent, own, step, pad in zip(self.shape[-2:], kernel, stride, padding):
        count = (extent + 2 * pad - own + (step - 1 if ceil_mode else 0)) // step + 1
        count -= ceil_mode and (count - 1) * step >= extent + pad
        starts = torch.arange(count) * step
        counts.append((starts + own).clamp(max=extent + 2 * pad) - starts)
        pads = [pad, max((count - 1) * step + own - extent - pad, 0), *pads]
    mean = F.avg_pool2d(F.pad(self, pads), kernel, stride)
    if divisor_override is not None:
        return mean * (kernel[0] * kernel[1] / divisor_override)
    rows, columns = (own / found.to(self.dtype) for own, found in zip(kernel, counts))
    return mean * (rows[:, None] * columns)


@formula(aten.rrelu_with_noise_functional.default)
def rrelu(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    slope = torch.rand_like(self) * (upper - lower) + lower if training else torch.full_like(self, (lower + upper) / 2)
    slope = torch.where(self <= 0, slope, 1.0)
    return self * slope, slope


@formula(aten.bilinear.default)
def bilinear(input1, input2, weight, bias=None):
    found = torch.einsum("...i,oij,...j->...o", input1, weight, input2)
    return found if bias is None else found + bias


#
# Tables
#


@formula(aten._embedding_bag.default, aten._embedding_bag_forward_only.default)
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq=False, mode=0, sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=-1
):
    """Rows by the bag that they lie in; what stands beside the result is for PyTorch's own gradient."""
    count = offsets.shape[0] - include_last_offset
    bags = (offsets[:count] <= torch.arange(indices.shape[0]).unsqueeze(1)).sum(1) - 1
    rows = aten.embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.unsqueeze(-1)
    is_counted = (indices != padding_idx).to(weight.dtype)
    sizes = torch.zeros(count, dtype=weight.dtype).index_add(0, bags, is_counted)
    zeros = torch.zeros(count, weight.shape[1], dtype=weight.dtype)
    if mode == 2:
        rows = torch.where(is_counted.unsqueeze(-1) != 0, rows, -torch.inf)
        found = largest_by_index(zeros, 0, bags.unsqueeze(-1).expand(rows.shape), rows, False, False)
        found = torch.where(sizes.unsqueeze(-1) == 0, 0, found)
    else:
        found = zeros.index_add(0, bags, rows * is_counted.unsqueeze(-1))
        found = found / sizes.clamp(min=1).unsqueeze(-1) if mode == 1 else found
    return found, bags, sizes.to(torch.int64), torch.zeros(0, dtype=torch.int64)
