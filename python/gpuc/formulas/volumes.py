"""Of layers whose data have three dimensions: planes by the layers of pictures, and depth by itself."""

import torch
from torch.nn import functional as F

from gpuc.formulas.table import aten, formula


def triples(*options):
    return [[*each] * (3 // len(each)) for each in options]


def as_batch(function):
    """Of a volume without a batch, as of a batch of one."""
    def with_batch(input, *args, **kwargs):
        if input.dim() == 5:
            return function(input, *args, **kwargs)
        found = function(input.unsqueeze(0), *args, **kwargs)
        return tuple(each.squeeze(0) for each in found) if isinstance(found, tuple) else found.squeeze(0)

    return with_batch


#
# Convolutions. Planes of all volumes are one batch, depth in front, so that those that one tap of the depth reads lie side by side.
#


@formula(aten.conv3d.default)
@as_batch
def conv3d(input, weight, bias=None, stride=(1,), padding=(0,), dilation=(1,), groups=1):
    stride, padding, dilation = triples(stride, padding, dilation)
    alone = next((axis for axis in range(3) if weight.shape[2 + axis] == 1 and stride[axis] == 1 and not padding[axis]), None)
    if alone is not None:
        return over_two_dimensions(input, weight, bias, alone, *(each[:alone] + each[alone + 1 :] for each in (stride, padding, dilation)), groups)
    planes = F.pad(input.movedim(2, 0), (0, 0, 0, 0, 0, 0, 0, 0, padding[0], padding[0]))
    taps, count = weight.shape[2], (planes.shape[0] - dilation[0] * (weight.shape[2] - 1) - 1) // stride[0] + 1
    found = None
    for tap in range(taps):
        first = tap * dilation[0]
        read = planes[first : first + (count - 1) * stride[0] + 1 : stride[0]]
        part = F.conv2d(read.flatten(0, 1), weight[:, :, tap], None if tap else bias, stride[1:], padding[1:], dilation[1:], groups)
        found = part if found is None else found + part
    return found.unflatten(0, (count, input.shape[0])).movedim(0, 2)


def over_two_dimensions(input, weight, bias, alone, stride, padding, dilation, groups):
    """By kernels that do not reach over one of the dimensions: that is part of the batch."""
    pictures = input.movedim(2 + alone, 1)
    found = F.conv2d(pictures.flatten(0, 1), weight.squeeze(2 + alone), bias, stride, padding, dilation, groups)
    return found.unflatten(0, pictures.shape[:2]).movedim(1, 2 + alone)


@formula(aten.conv3d.padding)
def conv3d_by_word(input, weight, bias=None, stride=(1,), padding="valid", dilation=(1,), groups=1):
    if padding == "valid":
        return conv3d(input, weight, bias, stride, (0,), dilation, groups)
    beyond = [extent * (size - 1) for extent, size in zip(*triples(dilation), weight.shape[2:])]
    pads = [pad for each in reversed(beyond) for pad in (each // 2, each - each // 2)]
    return conv3d(F.pad(input, pads), weight, bias, stride, (0,), dilation, groups)


@formula(aten.conv_transpose3d.input)
@as_batch
def conv_transpose3d(input, weight, bias=None, stride=(1,), padding=(0,), output_padding=(0,), groups=1, dilation=(1,)):
    stride, padding, output_padding, dilation = triples(stride, padding, output_padding, dilation)
    depth, taps, step, gap = input.shape[2], weight.shape[2], stride[0], dilation[0]
    planes = input.movedim(2, 0).flatten(0, 1)
    parts = [F.conv_transpose2d(planes, weight[:, :, tap], None, stride[1:], padding[1:], output_padding[1:], groups, dilation[1:]) for tap in range(taps)]
    parts = [part.unflatten(0, (depth, input.shape[0])) for part in parts]
    end = (depth - 1) * step + gap * (taps - 1) + 1 + output_padding[0] - padding[0]
    if (taps, gap) == (step, 1):  # Each plane is of one tap.
        whole = lengthened(torch.stack(parts, 1).flatten(0, 1), 0, end)
    else:
        whole = sum(lengthened(spread(part, step), tap * gap, end + padding[0]) for tap, part in enumerate(parts))
    found = whole[padding[0] : end].movedim(0, 2)
    return found if bias is None else found + bias.view(-1, 1, 1, 1)


def spread(planes, step):
    """With zeros between."""
    if step == 1:
        return planes
    return F.pad(planes.unsqueeze(1), [0] * 2 * (planes.dim() - 1) + [0, step - 1]).flatten(0, 1)[: (planes.shape[0] - 1) * step + 1]


def lengthened(planes, before, least):
    """By zeros, to so many planes or more."""
    behind = max(least - before - planes.shape[0], 0)
    return F.pad(planes, [0] * 2 * (planes.dim() - 1) + [before, behind]) if before or behind else planes


#
# Pools: of each plane, with its depth in the place of channels, and then of what that gave, along the depth
#


def of_planes(volumes):
    return volumes.flatten(0, 1)


def along_depth(planes, volumes):
    return planes.flatten(2).unflatten(0, volumes.shape[:2])


@formula(aten.max_pool3d_with_indices.default)
@as_batch
def max_pool3d(input, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    options = triples(kernel_size, stride or kernel_size, padding, dilation)
    largest, within = aten.max_pool2d_with_indices(of_planes(input), *(each[1:] for each in options), ceil_mode)
    found, places = aten.max_pool2d_with_indices(along_depth(largest, input), *([each[0], rest] for each, rest in zip(options, (1, 1, 0, 1))), ceil_mode)
    return by_planes(input, largest, within, found, places)


def by_planes(input, largest, within, found, places):
    """With the place in the volume: a plane, and one within it."""
    extent = largest.shape[-2:]
    plane = places // (extent[0] * extent[1])
    inside = along_depth(within, input).flatten(2).gather(2, places.flatten(2)).view(places.shape)
    return found.unflatten(-1, extent), (plane * (input.shape[-2] * input.shape[-1]) + inside).unflatten(-1, extent)


@formula(aten.max_pool3d.default)
def max_pool3d_alone(self, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode=False):
    return max_pool3d(self, kernel_size, stride, padding, dilation, ceil_mode)[0]


@formula(aten.adaptive_max_pool3d.default)
@as_batch
def adaptive_max_pool3d(input, output_size):
    largest, within = aten.adaptive_max_pool2d(of_planes(input), output_size[1:])
    depths = along_depth(largest, input)
    return by_planes(input, largest, within, *aten.adaptive_max_pool2d(depths, [output_size[0], depths.shape[-1]]))


@formula(aten.avg_pool3d.default)
@as_batch
def avg_pool3d(input, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    kernel, stride, padding = triples(kernel_size, stride or kernel_size, padding)
    if kernel[1:] == stride[1:] == [1, 1] and stride[0] == 1 and not any(padding) and not divisor_override:
        first, *behind = (input.narrow(2, start, input.shape[2] - kernel[0] + 1) for start in range(kernel[0]))
        return sum(behind, first) / kernel[0]  # Of channels that lie side by side, as LocalResponseNorm has it.
    divisors = (1, divisor_override) if divisor_override else (None, None)
    means = aten.avg_pool2d(of_planes(input), kernel[1:], stride[1:], padding[1:], ceil_mode, count_include_pad, divisors[0])
    depths = along_depth(means, input)
    found = aten.avg_pool2d(depths, [kernel[0], 1], [stride[0], 1], [padding[0], 0], ceil_mode, count_include_pad, divisors[1])
    return found.unflatten(-1, means.shape[-2:])


@formula(aten._adaptive_avg_pool3d.default, aten.adaptive_avg_pool3d.default)
@as_batch
def adaptive_avg_pool3d(input, output_size):
    means = aten.adaptive_avg_pool2d(of_planes(input), output_size[1:])
    depths = along_depth(means, input)
    return aten.adaptive_avg_pool2d(depths, [output_size[0], depths.shape[-1]]).unflatten(-1, means.shape[-2:])


@formula(aten.max_unpool3d.default)
def max_unpool3d(self, indices, output_size, stride, padding):
    depth, rows, columns = output_size
    zeros = torch.zeros(*self.shape[:-3], depth * rows * columns, dtype=self.dtype)
    return zeros.scatter(-1, indices.flatten(-3), self.flatten(-3)).unflatten(-1, output_size)
