"""Where a mask of data is true, torch.where(mask) and mask.nonzero(), as an index: x[i, j], out.index_add_(0, i, rows), out[i] = rows.

How many places there are hangs on values. But of all elements of a mask it is known where they stand: so each has its row, of which those count that
the mask chooses (choices.py), and what is taken or written by all of them moves nothing that hangs on values.
"""

import functools
import math

import torch

from gpuc.capture.custom_gradients import refuse_here
from gpuc.formulas.choices import CURE, FUNCTIONS, Choice, Chosen, along, chosen_of, filled, function, of_first
from gpuc.formulas.named import name_of
from gpuc.formulas.whether_any import Count


class Places(Chosen):
    """One coordinate, along a dimension of the mask, of all its elements."""

    def __init__(self, like, extents, dim, counted):
        self.like, self.extents, self.along, self.counted = like, extents, dim, counted

    def count(self):
        return self.counted

    @functools.cached_property
    def coordinates(self):
        shape = [extent if dim == self.along else 1 for dim, extent in enumerate(self.extents)]
        return torch.arange(self.extents[self.along]).view(shape).expand(self.extents).flatten()

    @functools.cached_property
    def rows(self):
        return of_first(self.coordinates, self.like).rows


class Table(Chosen):
    """mask.nonzero(): all coordinates, side by side."""

    def __init__(self, places):
        self.like, self.places = places[0].like, places

    def count(self):
        return self.places[0].counted

    @functools.cached_property
    def rows(self):
        return torch.stack([each.rows for each in self.places], 1)


@function("nonzero", "argwhere")
def nonzero(function, mask, *, as_tuple=False, counted=None):
    if isinstance(mask, Chosen) or mask.dim() == 0:
        refuse_here(f"asks which of the rows that a mask chooses are not 0: {CURE}")
    like = Choice(mask)
    places = tuple(Places(like, tuple(mask.shape), dim, counted) for dim in range(mask.dim()))
    return places if as_tuple else Table(places)


def only(input):
    """Of a mask of one dimension."""
    return input.places[0] if isinstance(input, Table) and len(input.places) == 1 else None


#
# Rows as others count them
#


@function("view", "reshape")
def reshape(function, input, *shape):
    """Of each row by itself: [chosen, …]."""
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    own = input.rows.shape[1:]
    if shape and isinstance(shape[0], Count):  # x.view(x.shape[0], -1)
        rest = [each for each in shape[1:] if each != -1]
        shape = -1, *(each if each != -1 else math.prod(own) // math.prod(rest) for each in shape[1:])
    if not shape or shape[0] != -1 or any(each == -1 for each in shape[1:]) or math.prod(shape[1:]) != math.prod(own):
        refuse_here(f"{name_of(function)} of rows that a mask chooses, but of each by itself, (-1, …): {CURE}")
    if only(input) is not None and shape == (-1,):
        return only(input)
    return input if tuple(shape[1:]) == tuple(own) else Chosen(input.rows.reshape(-1, *shape[1:]), input.like)


@function("flatten")
def flatten(function, input, start_dim=0, end_dim=-1):
    if start_dim % input.rows.dim() == 0:
        if math.prod(input.rows.shape[1:]) != 1:
            refuse_here(f"flatten of rows that a mask chooses, but of each by itself, (1): {CURE}")
        return only(input) or Chosen(input.rows.flatten(), input.like)
    return Chosen(input.rows.flatten(start_dim, end_dim), input.like)


@function("expand")
def expand(function, input, *shape):
    shape = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (list, tuple)) else shape
    if len(shape) != input.rows.dim() or shape[0] != -1:
        refuse_here(f"expand of rows that a mask chooses, but of each by itself, (-1, …): {CURE}")
    return Chosen(input.rows.expand(shape), input.like)


@function("expand_as")
def expand_as(function, input, other):
    if not isinstance(other, Chosen) or not isinstance(input, Chosen):
        refuse_here(f"expand_as of rows that a mask chooses, and of others: {CURE}")
    chosen_of((input, other), {})
    return Chosen(input.rows.expand_as(other.rows), input.like)


@function("squeeze")
def squeeze(function, input, dim=None):
    if only(input) is not None and dim in (None, 1, -1):
        return only(input)
    if dim is None:
        return Chosen(input.rows.reshape(input.rows.shape[0], *[each for each in input.rows.shape[1:] if each != 1]), input.like)
    return Chosen(input.rows.squeeze(along(input, dim)), input.like)


@function("unbind", "chunk", "split")
def parted(function, input, *args, **kwargs):
    dim = kwargs.get("dim", args[-1] if len(args) > (name_of(function) != "unbind") else 0)
    along(input, dim)
    if isinstance(input, Table) and name_of(function) == "unbind":
        return input.places
    return tuple(Chosen(each, input.like) for each in function(input.rows, *args, **kwargs))


@function("cat", "concat", "stack")
def joined(function, tensors, dim=0):
    like = chosen_of(tensors, {})
    if not all(isinstance(each, Chosen) for each in tensors):
        refuse_here(f"{name_of(function)} of rows that a mask chooses, and of others: {CURE}")
    if dim % (like.rows.dim() + (name_of(function) == "stack")) == 0:
        along(like, 0)
    return Chosen(function([each.rows for each in tensors], dim), like.like)


#
# What stands there
#


@function("taken")
def taken(input, index):
    """input[…, places, …]"""
    if isinstance(input, Chosen):
        refuse_here(f"takes some of the rows that a mask chooses: {CURE}")
    places = [each for each in index if isinstance(each, Chosen)]
    first = next(number for number, each in enumerate(index) if isinstance(each, Chosen))
    before, behind = index[:first], index[first + len(places) :]
    others = [each for each in (*before, *behind) if isinstance(each, torch.Tensor)]
    if others or list(index[first : first + len(places)]) != places or not all(each is None for each in before) or len(before) > 1:
        refuse_here(f"takes what stands where a mask is true by other indices, too: move those dimensions to the front, x.transpose(0, 1)[i], or {CURE}")
    found = rows_at(input, places)
    found = Chosen(found.rows[(slice(None), *behind)], found.like) if behind else found
    return Lifted(found) if before else found


class Lifted(Chosen):
    """Behind a dimension of one, x[None, i], as one takes it away again."""

    def __init__(self, chosen):
        self.chosen, self.like = chosen, chosen.like

    @property
    def rows(self):
        refuse_here(f"computes with x[None, i], where a mask chooses i: leave None out, or {CURE}")

    @classmethod
    def applied(cls, function, args, kwargs):
        name, first = name_of(function), args[0]
        if isinstance(first, cls) and (name in ("reshape", "view") or (name == "squeeze" and args[1:] == (0,))):
            return first.chosen if name == "squeeze" else Chosen.applied(function, (first.chosen, *args[1:]), kwargs)
        refuse_here(f"{name} of x[None, i], where a mask chooses i: leave None out, or {CURE}")


def rows_at(tensor, places):
    """Of the first dimensions of a tensor."""
    like, count = chosen_of(places, {}).like, len(places)
    extents = order_of(places, tensor.shape)
    if extents is not None:
        rows = tensor.permute(*extents, *range(count, tensor.dim())).flatten(0, count - 1)
    elif count == 1 and is_along(places[0], tensor.shape[0]):
        whole = places[0].extents
        shape = [extent if dim == places[0].along else 1 for dim, extent in enumerate(whole)]
        rows = tensor.view(*shape, *tensor.shape[1:]).expand(*whole, *tensor.shape[1:]).flatten(0, len(whole) - 1)
    else:
        rows = torch.ops.aten.index(tensor, [coordinates_of(each) for each in places])
    return of_first(rows, like)


def order_of(places, shape):
    """Which of the places is the mask's first dimension, and so on, if they are all of them, and the tensor is as large."""
    if not all(isinstance(each, Places) for each in places) or sorted(each.along for each in places) != list(range(len(places[0].extents))):
        return None
    if any(each.extents[each.along] != extent for each, extent in zip(places, shape)):
        return None
    return [next(number for number, each in enumerate(places) if each.along == dim) for dim in range(len(places))]


def is_along(place, extent):
    return isinstance(place, Places) and place.extents[place.along] == extent


def coordinates_of(place):
    return place.coordinates if isinstance(place, Places) else place.rows


@function("index_select")
def index_select(function, input, dim, index):
    if isinstance(input, Chosen) or dim % input.dim():
        refuse_here(f"index_select by what a mask chooses, but along the first dimension: {CURE}")
    return rows_at(input, [index])


@function("embedding")
def embedding(function, input, weight, padding_idx=None, *args, **kwargs):
    if not isinstance(input, Chosen) or isinstance(weight, Chosen):
        refuse_here(f"an embedding whose table a mask chooses: {CURE}")
    return Chosen(function(input.rows, weight, padding_idx, *args, **kwargs), input.like)


#
# What is written there
#


def result(function, tensor, found):
    """The tensor itself, where its name says that it is written."""
    if name_of(function) not in ("setitem",) and not name_of(function).endswith("_"):
        return found
    tensor.copy_(found)
    return tensor


@function("index_add", "index_add_")
def index_add(function, input, dim, index, source, *, alpha=1):
    if isinstance(input, Chosen) or not isinstance(index, Chosen) or not isinstance(source, Chosen) or dim % input.dim():
        refuse_here(f"adds rows that a mask chooses to others, or along another dimension than the first: {CURE}")
    rows = filled(source.rows, chosen_of((index, source), {}).mask, 0) * alpha
    if is_along(index, input.shape[0]):
        added = by_times(rows, index).sum(0)
    else:
        added = torch.zeros_like(input).index_add(0, coordinates_of(index), rows)
    return result(function, input, input + added)


def by_times(rows, place):
    """[times, extent, …]: as often as other dimensions of the mask have a coordinate of this one."""
    whole = rows.view(*place.extents, *rows.shape[1:]).movedim(place.along, len(place.extents) - 1)
    return whole.reshape(-1, place.extents[place.along], *rows.shape[1:])


@function("scatter_add", "scatter_add_")
def scatter_add(function, input, dim, index, src):
    if isinstance(input, Chosen) or not isinstance(index, Chosen) or not isinstance(src, Chosen) or dim % input.dim():
        refuse_here(f"adds rows that a mask chooses to others, or along another dimension than the first: {CURE}")
    rows = filled(src.rows, chosen_of((index, src), {}).mask, 0)
    return result(function, input, input.scatter_add(0, index.rows, rows))


@function("index_copy", "index_copy_")
def index_copy(function, input, dim, index, source):
    if isinstance(input, Chosen) or dim % input.dim():
        refuse_here(f"writes rows that a mask chooses along another dimension than the first: {CURE}")
    return put(function, input, index, source)


@function("put")
def put(function, tensor, index, value, accumulate=False):
    places = list(index) if isinstance(index, (tuple, list)) else [index]
    if isinstance(tensor, Chosen) or not all(isinstance(each, Chosen) for each in places) or (isinstance(value, torch.Tensor) and value.dim()) or accumulate:
        refuse_here(f"writes where a mask is true, but what it chooses, or by other indices, too: {CURE}")
    like, rest = chosen_of((places, value), {}).like, tensor.shape[len(places) :]
    rows = value.rows if isinstance(value, Chosen) else torch.as_tensor(value)
    rows = rows.to(tensor.dtype).expand(like.mask.shape[0], *rest)
    return result(function, tensor, written(tensor, places, rows, like.mask))


def written(tensor, places, rows, mask):
    """Of what is written to one place the last stays, and each has the gradient, as index_put has it."""
    count = len(places)
    order = order_of(places, tensor.shape)
    if order is not None:
        front = tensor.permute(*order, *range(count, tensor.dim()))
        found = torch.where(mask.view(*front.shape[:count], *[1] * (tensor.dim() - count)), rows.view(front.shape), front)
        return found.permute(*[order.index(number) for number in range(count)], *range(count, tensor.dim()))
    if count == 1 and is_along(places[0], tensor.shape[0]):
        return last_of(tensor, by_times(mask, places[0]), by_times(rows, places[0]))
    extents = tensor.shape[:count]
    flat, place = tensor.flatten(0, count - 1), 0
    for each, extent in zip(places, extents):
        place = place * extent + coordinates_of(each)
    beyond = torch.cat([flat, flat[:1]])  # Whose last row gets what is not chosen.
    found = beyond.index_put((torch.where(mask, place, flat.shape[0]),), rows)
    return found[: flat.shape[0]].view(tensor.shape)


def last_of(tensor, its, own):
    """The last of [times, extent, …] that is there, where one is. Others are zeros that have its gradient."""
    is_later = its.sum(0) - its.to(torch.int64).cumsum(0) > 0
    none = torch.where(own.isfinite(), own - own.detach(), 0) if own.is_floating_point() else torch.zeros_like(own)
    kept = torch.where(behind(its, own), torch.where(behind(is_later, own), none, own), 0)
    return torch.where(behind(its.any(0), tensor), kept.sum(0).to(tensor.dtype), tensor)


def behind(mask, rows):
    """Of their first dimensions."""
    return mask.reshape(*mask.shape, *[1] * (rows.dim() - mask.dim()))
