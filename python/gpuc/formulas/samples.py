"""What reads a picture or a volume between its elements."""

import itertools

import torch

from gpuc.formulas.table import aten, formula

NEAREST = 1  # Of PyTorch's ways to interpolate.
BORDER, REFLECTION = 1, 2  # And of those to go beyond the border.


@formula(aten.grid_sampler_3d.default)
def grid_sampler_3d(input, grid, interpolation_mode=0, padding_mode=0, align_corners=False):
    """Each point by the corners of the cell that it lies in. A grid says x, y and z, of which z is the volume's first dimension."""
    extents = input.shape[2:]
    points = [placed(each, extent, padding_mode, align_corners) for each, extent in zip(grid.flip(-1).unbind(-1), extents)]
    if interpolation_mode == NEAREST:
        return corner(input, [each.round() for each in points])
    low = [each.floor() for each in points]
    found = 0
    for sides in itertools.product((0, 1), repeat=len(points)):
        weights = [each - first if side else first + 1 - each for each, first, side in zip(points, low, sides)]
        found = found + corner(input, [first + side for first, side in zip(low, sides)]) * torch.stack(weights).prod(0).unsqueeze(1)
    return found


def placed(point, extent, padding_mode, align_corners):
    """From -1 … 1 to elements."""
    point = (point + 1) / 2 * (extent - 1) if align_corners else ((point + 1) * extent - 1) / 2
    if padding_mode == REFLECTION:
        point = reflected(point, 0.0, extent - 1.0) if align_corners else reflected(point, -0.5, extent - 0.5)
    return point.clamp(0, extent - 1) if padding_mode in (BORDER, REFLECTION) else point


def reflected(point, first, last):
    if first == last:
        return torch.zeros_like(point)
    span = last - first
    away = (point - first).abs()
    rest = torch.fmod(away, span)
    return first + torch.where((away / span).floor() % 2 == 0, rest, span - rest)


def corner(input, places):
    """Elements at whole numbers, 0 beyond."""
    extents = input.shape[2:]
    is_inside, index = True, 0
    for place, extent in zip(places, extents):
        is_inside = (place >= 0) & (place <= extent - 1) & is_inside
        index = index * extent + place.detach().clamp(0, extent - 1).to(torch.int64)
    shape = input.shape[:2]
    values = input.flatten(2).gather(2, index.flatten(1).unsqueeze(1).expand(*shape, -1)).view(*shape, *index.shape[1:])
    return torch.where(is_inside.unsqueeze(1), values, 0.0)


#
# Pictures of another size, each element by all that it covers: antialias=True
#


def linear(x):
    return (1 - x.abs()).clamp(min=0)


def cubic(x):
    x = x.abs()
    near, far = (1.5 * x - 2.5) * x * x + 1, ((x - 5) * x + 8) * x - 4
    return torch.where(x < 1, near, torch.where(x < 2, -0.5 * far, 0.0))


def shares(extent, wanted, scale, align_corners, reach, weight):
    """What each element of the result has of each that there is, [wanted, extent]."""
    if align_corners:
        step = (extent - 1) / (wanted - 1) if wanted > 1 else 0.0
    else:
        step = 1 / scale if scale else extent / wanted
    support, inner = (reach * step, 1 / step) if step >= 1 else (reach, 1.0)
    centre = ((torch.arange(wanted, dtype=torch.float64) + 0.5) * step).unsqueeze(1)
    first, last = (centre - support + 0.5).to(torch.int64).clamp(min=0), (centre + support + 0.5).to(torch.int64).clamp(max=extent)
    places = torch.arange(extent)
    found = torch.where((places >= first) & (places < last), weight((places - centre + 0.5) * inner), 0.0)
    return found / found.sum(1, keepdim=True)


def resized(self, output_size, align_corners, scales, reach, weight):
    rows, columns = (shares(*each, align_corners, reach, weight).to(self.dtype) for each in zip(self.shape[-2:], output_size, scales))
    return ((self @ columns.mT).mT @ rows.mT).mT


@formula(aten._upsample_bilinear2d_aa.default)
def bilinear(self, output_size, align_corners, scales_h=None, scales_w=None):
    return resized(self, output_size, align_corners, (scales_h, scales_w), 1, linear)


@formula(aten._upsample_bicubic2d_aa.default)
def bicubic(self, output_size, align_corners, scales_h=None, scales_w=None):
    return resized(self, output_size, align_corners, (scales_h, scales_w), 2, cubic)
