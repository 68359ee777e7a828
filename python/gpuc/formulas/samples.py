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
