"""Ops of PyTorch as formulas of others, where the compiler has no op and PyTorch takes none apart: draws, diagonals, distances, reductions by an
index.

A formula that gives NotImplemented leaves the op to the compiler.
"""

import contextlib
import math

import torch
from torch._decomp import decomposition_table
from torch.nn import functional as F
from torch.nn.modules import transformer

from gpuc.custom_gradients import put

aten = torch.ops.aten
FORMULAS = {}


def formula(*ops):
    def known(function):
        FORMULAS.update(dict.fromkeys(ops, function))
        return function

    return known


#
# Draws, by torch.rand and torch.randn, which draw by gpuc's generator
#


def integers(uniform, low, high, dtype):
    return (torch.floor(uniform * (high - low)) + low).to(dtype or torch.int64)


@formula(aten.randint.default)
def randint(high, size, dtype=None, **_):
    return integers(torch.rand(size, dtype=torch.float64), 0, high, dtype)


@formula(aten.randint.low)
def randint_from(low, high, size, dtype=None, **_):
    return integers(torch.rand(size, dtype=torch.float64), low, high, dtype)


@formula(aten.randint_like.default)
def randint_like(self, high, dtype=None, **_):
    return integers(torch.rand(self.shape, dtype=torch.float64), 0, high, dtype or self.dtype)


@formula(aten.randint_like.low_dtype)
def randint_like_from(self, low, high, dtype=None, **_):
    return integers(torch.rand(self.shape, dtype=torch.float64), low, high, dtype or self.dtype)


@formula(aten.randperm.default)
def randperm(n, dtype=None, **_):
    return torch.rand(n, dtype=torch.float64).argsort().to(dtype or torch.int64)


@formula(aten.uniform.default)
def uniform(self, low=0.0, high=1.0, generator=None):
    return torch.rand_like(self) * (high - low) + low


@formula(aten.normal_functional.default)
def normal_like(self, mean=0.0, std=1.0, generator=None):
    return torch.randn_like(self) * std + mean


@formula(aten.normal.float_float)
def normal_of_numbers(mean, std, size, dtype=None, **_):
    return torch.randn(size, dtype=dtype) * std + mean


@formula(aten.normal.Tensor_float, aten.normal.Tensor_Tensor)
def normal_around(mean, std=1.0, generator=None):
    shape = torch.broadcast_shapes(mean.shape, getattr(std, "shape", ()))
    return torch.randn(shape, dtype=mean.dtype) * std + mean


@formula(aten.normal.float_Tensor)
def normal_of(mean, std, generator=None):
    return torch.randn_like(std) * std + mean


@formula(aten.exponential.default)
def exponential(self, rate=1.0, generator=None):
    """Never 0, as PyTorch's, whose logarithm is taken."""
    least = torch.finfo(self.dtype).eps / 2
    return torch.clamp(-torch.log1p(-torch.rand_like(self)), min=least) / rate


@formula(aten.multinomial.default)
def multinomial(self, count, replacement=False, generator=None):
    """Who comes first of those that come at these rates."""
    if replacement:
        rates = self.unsqueeze(-2).expand(*self.shape[:-1], count, self.shape[-1])
        return (rates / exponential(rates)).argmax(-1)
    return (self / exponential(self)).topk(count, -1).indices


#
# Diagonals
#


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


@formula(aten.unfold.default)
def unfold(self, dim, size, step):
    front = self.movedim(dim, 0)
    starts = torch.arange(0, front.shape[0] - size + 1, step)
    return front[starts[:, None] + torch.arange(size)].movedim((0, 1), (dim % self.dim(), -1))


#
# By order
#


@formula(aten.kthvalue.default)
def kthvalue(self, k, dim=-1, keepdim=False):
    numbers = (each.narrow(dim, k - 1, 1) for each in self.sort(dim))
    return tuple(each if keepdim else each.squeeze(dim) for each in numbers)


@formula(aten.median.dim)
def median(self, dim, keepdim=False):
    return kthvalue(self, (self.shape[dim] + 1) // 2, dim, keepdim)


@formula(aten.median.default)
def median_of_all(self):
    return kthvalue(self.flatten(), (self.numel() + 1) // 2)[0]


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


#
# Distances, and reductions by an index
#


@formula(aten.hypot.default)
def hypot(self, other):
    return (self * self + other * other).sqrt()


@formula(aten.erfc.default)
def erfc(self):
    return 1 - self.erf()


@formula(aten._cdist_forward.default)
def cdist(x1, x2, p, mode=None):
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), p, -1)


@formula(aten._pdist_forward.default)
def pdist(self, p=2.0):
    first, second = torch.triu_indices(len(self), len(self), 1)
    return torch.linalg.vector_norm(self[first] - self[second], p, -1)


@formula(aten.scatter_reduce.two)
def scatter_reduce(self, dim, index, src, reduce, include_self=True):
    src = src[tuple(slice(extent) for extent in index.shape)]
    if reduce in ("sum", "mean"):
        return sums_by_index(self, dim, index, src, reduce, include_self)
    others = [extent for number, extent in enumerate(self.shape) if number != dim % self.dim()]
    if reduce not in ("amax", "amin") or others != [extent for number, extent in enumerate(index.shape) if number != dim % self.dim()]:
        return NotImplemented
    return largest_by_index(self, dim, index, src, reduce == "amin", include_self)


def sums_by_index(self, dim, index, src, reduce, include_self):
    zeros = self if include_self else self.scatter(dim, index, 0)
    sums = zeros.scatter_add(dim, index, src)
    if reduce == "sum":
        return sums
    count = torch.full_like(self, float(include_self)).scatter_add(dim, index, torch.ones_like(src))
    return sums / count.clamp(min=1)


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


#
# Small matrices, row after row. A row's pivot is the largest that is left, as LAPACK's is
#


MOST_ROWS = 32


def pivot_of(rows, column):
    """The row that has the largest of a column of these, and `rows` with the first one in its place; whether they are two."""
    place = rows[..., column : column + 1].abs().argmax(-2, keepdim=True)
    pivot = rows.gather(-2, place.expand(*place.shape[:-1], rows.shape[-1]))
    is_pivot = torch.arange(rows.shape[-2])[:, None] == place
    return pivot, torch.where(is_pivot, rows[..., :1, :], rows), (place != 0).to(rows.dtype)[..., 0, 0]


def pivots(matrix):
    """And the sign that their exchange has."""
    sign, found = torch.ones(matrix.shape[:-2], dtype=matrix.dtype), []
    while matrix.shape[-1]:
        pivot, matrix, is_other = pivot_of(matrix, 0)
        sign = sign * (1 - 2 * is_other)
        found.append(pivot[..., 0, 0])
        matrix = matrix[..., 1:, 1:] - matrix[..., 1:, :1] * (pivot[..., 1:] / pivot[..., :1])
    return torch.stack(found, -1), sign


def is_large(matrix):
    return not 0 < matrix.shape[-1] <= MOST_ROWS


@formula(aten._linalg_slogdet.default)
def slogdet(self):
    """The factors behind it are for PyTorch's own gradient."""
    if is_large(self):
        return NotImplemented
    found, sign = pivots(self)
    return sign * found.sign().prod(-1), found.abs().log().sum(-1), self, torch.zeros(self.shape[:-1], dtype=torch.int32)


@formula(aten._linalg_det.default)
def det(self):
    if is_large(self):
        return NotImplemented
    found, sign = pivots(self)
    return sign * found.prod(-1), self, torch.zeros(self.shape[:-1], dtype=torch.int32)


#
# Of layers
#


# Which PyTorch takes apart, and leaves whole where it exports.
FORMULAS.update({op: decomposition_table[op] for op in (aten.grid_sampler_2d.default, aten.ldexp.Tensor)})


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


@formula(aten.avg_pool3d.default)
def avg_pool3d(self, kernel_size, stride=(), padding=(0,), ceil_mode=False, count_include_pad=True, divisor_override=None):
    """Of channels that lie side by side, as LocalResponseNorm has it."""
    size, *others = kernel_size
    if others != [1, 1] or list(stride) != [1, 1, 1] or any(padding) or divisor_override:
        return NotImplemented
    first, *behind = (self.narrow(-3, start, self.shape[-3] - size + 1) for start in range(size))
    return sum(behind, first) / size


@formula(aten.rrelu_with_noise_functional.default)
def rrelu(self, noise, lower=1 / 8, upper=1 / 3, training=False, generator=None):
    slope = torch.rand_like(self) * (upper - lower) + lower if training else torch.full_like(self, (lower + upper) / 2)
    slope = torch.where(self <= 0, slope, 1.0)
    return self * slope, slope


#
# What the compiler knows in part
#


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


#
# Functions of PyTorch's that ask for values, or write by strides, and need not
#


def fill_diagonal(self, value, wrap=False):
    """Of a matrix; wrapped or not, which tells tall ones apart."""
    if self.dim() != 2 or (wrap and self.shape[0] > self.shape[1]):
        raise RuntimeError("fill_diagonal_ is of a matrix here, which does not wrap: give torch.where a mask")
    return self.masked_fill_(is_on_diagonal(*self.shape, 0), value)


def is_said_to_be_causal(mask, is_causal=None, size=None):
    """A mask that says nothing of itself is a mask: whether it is a triangle is seen in the graph."""
    return is_causal is True


def gaussian_nll(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """What F.gaussian_nll_loss asks of the variances is an op; their gradient is that of those which are not bounded."""
    var = torch.full_like(input, var) if isinstance(var, float) else var
    torch._assert_async((var >= 0).all(), "var has negative entry/entries")
    if var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    others = [own for its, own in zip(input.shape, var.shape) if its != own]
    if var.dim() != input.dim() or others not in ([], [1]):
        raise ValueError("var is of incorrect size")
    var = var + (var.clamp(min=eps) - var).detach()
    loss = 0.5 * (var.log() + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0)
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


@contextlib.contextmanager
def without_questions():
    with contextlib.ExitStack() as undo:
        put(undo, torch.Tensor, "fill_diagonal_", fill_diagonal)
        put(undo, transformer, "_detect_is_causal_mask", is_said_to_be_causal)
        put(undo, F, "gaussian_nll_loss", gaussian_nll)
        yield
