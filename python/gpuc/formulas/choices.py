"""Rows that a mask of data chooses, x[mask]: as many as there are of x, of which those count that are chosen.

A shape that hangs on values is none of a compiled step's. But what is done with chosen rows is mostly a loss of each, and their sum or mean, or
that they are written back where they stood: that asks for no shape. The rows that are not chosen are copies of the first that is, so that whatever
is finite of that one is so of them.
"""

import math

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gpuc.capture.unseen import refuse_here
from gpuc.formulas.masks import SELECTS, WHERE, is_mask
from gpuc.formulas.named import name_of
from gpuc.formulas.stand_ins import StandIn
from gpuc.formulas.whether_any import Asked, Count, Whether, asks_places, line_here, refuse_count

FUNCTIONS = {}  # By name: of what has chosen rows.
CURE = "use torch.where, or multiply by the mask"


def function(*names):
    def known(body):
        FUNCTIONS.update(dict.fromkeys(names, body))
        return body

    return known


class Choice:
    """A mask as it was when it chose, [all]; which is the user's, and how often that had been written."""

    def __init__(self, given):
        is_number = given.dtype != torch.bool  # Of which those count that are not 0.
        self.given, self.version, self.mask = given, given._version, given.flatten() != 0 if is_number else given.flatten().clone()

    def is_of(self, mask):
        return (mask is self.given and mask._version == self.version) or (self.given._version == self.version and are_alike(mask, self.given))

    def is_like(self, other):
        if self.given is other.given:
            return self.version == other.version
        return other.given._version == other.version and self.is_of(other.given)


# What masks are made by: whoever writes `labels != -100` twice has one mask.
MAKERS = set("eq ne lt le gt ge and or xor invert bitwise_and bitwise_or bitwise_not logical_and logical_or logical_not isnan isfinite bool view reshape "
             "flatten squeeze unsqueeze getitem select detach".split())  # fmt: skip


class Made:
    """A tensor by the call that makes it, as it was then."""

    def __init__(self, function, args, kwargs, out):
        self.name = name_of(function)
        leaves, self.structure = pytree.tree_flatten((args, kwargs))
        self.leaves = [(each, each._version if isinstance(each, torch.Tensor) else 0) for each in leaves]
        self.version = out._version


def are_alike(one, other):
    """Of two tensors: whether they are one, or made by the same calls of the same ones."""
    if one is other:
        return True
    a, b = (getattr(each, "made", None) for each in (one, other))
    if a is None or b is None or (one._version, other._version) != (a.version, b.version) or (a.name, a.structure) != (b.name, b.structure):
        return False
    return all(own[1] == its[1] and are_same(own[0], its[0]) for own, its in zip(a.leaves, b.leaves))


def are_same(one, other):
    if isinstance(one, torch.Tensor) or isinstance(other, torch.Tensor):
        return isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor) and are_alike(one, other)
    return type(one) is type(other) and one == other


class Chosen(StandIn):
    """Rows, [all, …], of those that a mask chooses."""

    def __init__(self, rows, like):
        self.rows, self.like = rows, like

    @staticmethod
    def applied(function, args, kwargs):
        known = FUNCTIONS.get(name_of(function))
        if known is None:
            refuse_here(f"{name_of(function)} of rows that a mask chooses, whose number hangs on values, and a compiled step has fixed shapes: {CURE}")
        return known(function, *args, **kwargs)

    mask = property(lambda self: self.like.mask)
    dtype = property(lambda self: self.rows.dtype)
    device = property(lambda self: self.rows.device)
    ndim = property(lambda self: self.rows.dim())
    requires_grad = property(lambda self: self.rows.requires_grad)

    @property
    def shape(self):
        return self.count(), *self.rows.shape[1:]

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        return self.count()

    nelement = numel

    def count(self):
        return Count()

    def dim(self):
        return self.rows.dim()

    def refused(self, *_, **__):
        refuse_count()

    tolist = item = __len__ = __iter__ = __bool__ = refused


ARITHMETIC = "add radd sub rsub mul rmul truediv rtruediv rdiv floordiv mod pow rpow neg abs and or xor invert eq ne lt le gt ge".split()
Chosen.add_operators([*ARITHMETIC, "getitem", "setitem", "matmul"])


class Choices(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.whether, self.asked = Whether(), Asked()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if asked := self.whether.answer(function, args):
            self.asked.note(line_here())
            return asked[0]
        if function is torch.Tensor.__getitem__ and not isinstance(args[0], Chosen):
            mask, *rest = args[1] if isinstance(args[1], tuple) and args[1] else (args[1],)
            if is_mask(mask) and not any(isinstance(each, (torch.Tensor, Chosen)) for each in rest):
                found = choose(args[0], mask)
                return Chosen(found.rows[(slice(None), *rest)], found.like) if rest else found
        if function in SELECTS:
            return selected(*args, **kwargs)
        if asks_places(function, args, kwargs):
            return FUNCTIONS["nonzero"](function, *args, **{"as_tuple": function in WHERE, **kwargs}, counted=Count(self.asked, line_here()))
        if any(isinstance(each, Chosen) for each in pytree.tree_leaves((args, kwargs))):
            return Chosen.applied(function, args, kwargs)
        out = function(*args, **kwargs)
        if name_of(function) in MAKERS and isinstance(out, torch.Tensor):
            out.made = Made(function, args, kwargs, out)
        self.whether.note(function, args, kwargs, out)
        return out


def choose(tensor, mask):
    if mask.shape != tensor.shape[: mask.dim()]:
        raise IndexError(f"The shape of the mask {list(mask.shape)} does not match the shape of the indexed tensor {list(tensor.shape)}")
    return of_first(tensor.flatten(0, mask.dim() - 1), Choice(mask))


def of_first(rows, like):
    """With the first that is chosen in the place of those that are not, which has no gradient of theirs; with none, a harmless number."""
    first = rows.detach().index_select(0, like.mask.to(torch.int32).argmax().unsqueeze(0))
    return Chosen(torch.where(beside(rows, like.mask), rows, or_harmless(first, like)), like)


def or_harmless(rows, like):
    """Of none that are chosen nothing counts: but NaN would, times a gradient of 0."""
    return torch.where(like.mask.any(), rows, 0.5 if rows.is_floating_point() else 0).to(rows.dtype)


def selected(input, mask):
    shape = torch.broadcast_shapes(input.shape, mask.shape)
    return choose(input.expand(shape), mask if mask.shape == shape else mask.expand(shape))


def chosen_of(args, kwargs):
    """The rows of all that are among the arguments, and of which mask they are."""
    found = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, Chosen)]
    if not all(each.like.is_like(found[0].like) for each in found):
        refuse_here("puts together what two masks choose: choose both by the same variable, or use torch.where")
    return found[0]


def rows_of(value):
    return pytree.tree_map(lambda each: each.rows if isinstance(each, Chosen) else each, value)


# What has no number, or no derivative, at some.
SINGULAR = set("sqrt rsqrt log log1p log2 log10 reciprocal pow rpow truediv rtruediv div divide true_divide".split())


def before(function, value):
    """What a function of rows is given."""
    if name_of(function) not in SINGULAR:
        return value
    return pytree.tree_map(lambda each: Chosen(or_harmless(each.rows, each.like), each.like) if isinstance(each, Chosen) else each, value)


def by_rows(function, *args, **kwargs):
    """Of each row by itself: others among the arguments are the same for all."""
    like = chosen_of(args, kwargs)
    own = like.rows.dim()
    for each in pytree.tree_leaves((args, kwargs)):
        if isinstance(each, torch.Tensor) and each.dim() >= own and each.dim() > 0 and not (each.dim() == own and each.shape[0] == 1):
            refuse_here(f"puts rows that a mask chooses beside a tensor that has as many by itself: choose from that, too, or {CURE}")
    return Chosen(function(*rows_of(before(function, args)), **rows_of(kwargs)), like.like)


for each in ARITHMETIC + (
    "multiply subtract divide true_divide negative absolute exp log log1p log2 log10 expm1 sqrt rsqrt square reciprocal sin cos tanh sigmoid relu gelu "
    "silu softplus elu leaky_relu logsigmoid clamp clamp_min clamp_max clip sign floor ceil round trunc maximum minimum where to float double half long int "
    "bool detach clone contiguous type_as logical_not logical_and logical_or isnan isinf isfinite nan_to_num div erf"
).split():
    FUNCTIONS[each] = by_rows


@function("linear")
def linear(function, input, weight, bias=None):
    if not isinstance(input, Chosen) or isinstance(weight, Chosen) or input.rows.dim() < 2:
        refuse_here(f"linear of weights that a mask chooses: {CURE}")
    return Chosen(F.linear(input.rows, weight, bias), input.like)


@function("matmul")
def matmul(function, input, other):
    if not isinstance(input, Chosen) or isinstance(other, Chosen) or input.rows.dim() != 2 or other.dim() > 2:
        refuse_here(f"a product of rows that a mask chooses with one another: {CURE}")
    return Chosen(input.rows @ other, input.like)


def along(input, dim):
    """A dimension within rows."""
    if dim is None or dim % input.rows.dim() == 0:
        refuse_here(f"goes along rows that a mask chooses, whose number hangs on values: {CURE}")
    return dim


@function("softmax", "log_softmax", "argmax", "normalize", "cumsum")
def within_rows(function, input, *args, **kwargs):
    dim = kwargs.get("dim", next((each for each in args if isinstance(each, int)), None))
    along(input, 1 if dim is None and function.__name__ == "normalize" else dim)
    return Chosen(function(input.rows, *args, **kwargs), input.like)


@function("getitem")
def getitem(function, input, index):
    whole = index if isinstance(index, tuple) else (index,)
    if any(isinstance(each, Chosen) for each in whole):
        return FUNCTIONS["taken"](input, whole)
    if not isinstance(input, Chosen) or not (whole[0] is Ellipsis or whole[0] == slice(None)) or any(isinstance(each, (torch.Tensor, Chosen)) for each in whole):
        refuse_here(f"takes some of the rows that a mask chooses: {CURE}")
    if whole[0] is Ellipsis and sum(each is not None for each in whole) > input.rows.dim():
        refuse_here(f"takes some of the rows that a mask chooses: {CURE}")
    return Chosen(input.rows[index], input.like)


@function("gather")
def gather(function, input, dim, index):
    if not isinstance(input, Chosen) or not isinstance(index, Chosen):
        refuse_here(f"gather of rows that a mask chooses, and of others: {CURE}")
    like = chosen_of((input, index), {}).like
    return Chosen(input.rows.gather(along(input, dim), index.rows), like)


@function("pad")
def pad(function, input, pad, *args, **kwargs):
    if len(pad) // 2 >= input.rows.dim():
        along(input, 0)
    return Chosen(function(input.rows, pad, *args, **kwargs), input.like)


@function("unsqueeze")
def unsqueeze(function, input, dim):
    if dim % (input.rows.dim() + 1) == 0:
        along(input, dim)
    return Chosen(function(input.rows, dim), input.like)


#
# All rows as one
#


def beside(rows, mask):
    return mask.view(-1, *[1] * (rows.dim() - 1))


def filled(rows, mask, value):
    """With that number in the place of rows that are not chosen."""
    return torch.where(beside(rows, mask), rows, torch.full_like(rows, value))


def total(rows, mask):
    return filled(rows, mask, 0).sum()


def mean(rows, mask):
    count = mask.sum() * (rows.numel() // rows.shape[0])
    return total(rows, mask) / count.to(rows.dtype)


@function("sum", "mean")
def reduced(function, input, dim=None, keepdim=False, *, dtype=None):
    rows, mask = (input.rows if dtype is None else input.rows.to(dtype)), input.mask
    if rows.dtype == torch.bool:
        rows = rows.to(torch.int64)
    if dim is None or (isinstance(dim, (list, tuple)) and len(dim) == rows.dim()):
        return total(rows, mask) if function.__name__ == "sum" else mean(rows, mask)
    dims = [each % rows.dim() for each in (dim if isinstance(dim, (list, tuple)) else [dim])]
    if 0 not in dims:
        return Chosen(function(rows, dim, keepdim), input.like)
    if dims != [0]:
        refuse_here(f"goes along rows that a mask chooses, and others: {CURE}")
    found = filled(rows, mask, 0).sum(0, keepdim)
    return found if function.__name__ == "sum" else found / mask.sum().to(rows.dtype)


# What a row that is not chosen has to be, to make no difference: by the function that goes along rows.
NEUTRAL = {
    "max": float("-inf"), "amax": float("-inf"), "min": float("inf"), "amin": float("inf"), "prod": 1, "any": 0, "all": 1, "count_nonzero": 0,
    "norm": 0, "linalg_vector_norm": 0, "logsumexp": float("-inf"), "median": float("nan"),
}  # fmt: skip
EXTREMES = ("max", "amax", "min", "amin")
GIVES_PLACES = ("max", "min", "median")  # Along a dimension, which are those among all rows.


def dims_of(input, dim):
    every = range(input.rows.dim()) if dim is None else dim if isinstance(dim, (list, tuple)) else [dim]
    return [each % input.rows.dim() for each in every]


@function(*NEUTRAL)
def folded(function, input, *args, **kwargs):
    name = name_of(function)
    if any(isinstance(each, (torch.Tensor, Chosen)) for each in args):
        return by_rows(function, input, *args, **kwargs)  # The larger one of two.
    first = 1 if "norm" in name else 0
    dim = kwargs.get("dim", args[first] if len(args) > first else None)
    if 0 not in dims_of(input, dim):
        if name in GIVES_PLACES:
            return type(found := function(input.rows, *args, **kwargs))(Chosen(each, input.like) for each in found)
        return Chosen(function(input.rows, *args, **kwargs), input.like)
    if name in GIVES_PLACES and dim is not None:
        refuse_here(f"asks at which of the rows that a mask chooses something stands: amax and amin give the number alone, or {CURE}")
    if name == "median" and not input.dtype.is_floating_point:
        refuse_here("median of whole numbers that a mask chooses: take it of .double()")
    # Of whole numbers, which have no gradients, one twice makes no difference, and there is no infinity.
    is_itself = name in EXTREMES and not input.dtype.is_floating_point
    rows = input.rows if is_itself else filled(input.rows, input.mask, NEUTRAL[name])
    return (torch.nanmedian if name == "median" else function)(rows, *args, **kwargs)


@function("var", "std")
def spread(function, input, dim=None, unbiased=None, keepdim=False, *, correction=1):
    dim, unbiased = (None, dim) if isinstance(dim, bool) else (dim, unbiased)
    correction = correction if unbiased is None else int(unbiased)
    dims = dims_of(input, dim)
    if 0 not in dims:
        return Chosen(function(input.rows, dim, correction=correction, keepdim=keepdim), input.like)
    if len(dims) not in (1, input.rows.dim()):
        refuse_here(f"goes along rows that a mask chooses, and others: {CURE}")
    count = input.mask.sum() * math.prod(input.rows.shape[each] for each in dims[1:])
    centre = filled(input.rows, input.mask, 0).sum(dims, keepdim=True) / count
    found = filled(input.rows - centre, input.mask, 0).square().sum(dims, keepdim=keepdim) / (count - correction).clamp(min=0)
    return found if function.__name__ == "var" else found.sqrt()


@function("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "kl_div")
def loss_of_numbers(function, input, target, *args, reduction="mean", **kwargs):
    like = chosen_of((input, target), {})
    if args or kwargs.get("weight") is not None or kwargs.get("pos_weight") is not None or not (isinstance(input, Chosen) and isinstance(target, Chosen)):
        refuse_here(f"{function.__name__} of rows that a mask chooses takes both of them, no weights, and its options by name: {CURE}")
    each = function(input.rows, target.rows, reduction="none", **kwargs)
    if reduction == "batchmean":
        return total(each, like.mask) / like.mask.sum().to(each.dtype)
    return {"none": lambda rows, mask: Chosen(rows, like.like), "sum": total, "mean": mean}[reduction](each, like.mask)


@function("cross_entropy", "nll_loss")
def loss_of_classes(function, input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0):
    like = chosen_of((input, target), {})
    if not (isinstance(input, Chosen) and isinstance(target, Chosen)) or input.rows.dim() != 2 or target.rows.dim() != 1 or weight is not None:
        refuse_here(f"{function.__name__} of rows that a mask chooses takes both of them, [rows, classes] and [rows], and no weights: {CURE}")
    # What is ignored counts for nothing in the mean: so do rows that are not chosen.
    target = torch.where(like.mask, target.rows, ignore_index)
    options = {"label_smoothing": label_smoothing} if function.__name__ == "cross_entropy" else {}
    found = function(input.rows, target, ignore_index=ignore_index, reduction=reduction, **options)
    return Chosen(found, like.like) if reduction == "none" else found


#
# Back to where they stood
#


def write_within(input, index, value):
    """The same elements of each row."""
    whole = index if isinstance(index, tuple) else (index,)
    if not (whole[0] is Ellipsis or whole[0] == slice(None)) or any(isinstance(each, (torch.Tensor, Chosen)) for each in whole):
        refuse_here(f"writes some of the rows that a mask chooses: {CURE}")
    if isinstance(value, Chosen):
        chosen_of((input, value), {})
    input.rows[index] = rows_of(value)


@function("setitem", "index_put", "index_put_")
def put_back(function, tensor, index, value, *rest):
    index = index[0] if isinstance(index, (tuple, list)) and len(index) == 1 else index
    if any(isinstance(each, Chosen) for each in (index if isinstance(index, (tuple, list)) else [index])):
        return FUNCTIONS["put"](function, tensor, index, value, *rest)
    if isinstance(tensor, Chosen) and name_of(function) == "setitem":
        return write_within(tensor, index, value)
    if isinstance(tensor, Chosen) or not isinstance(value, Chosen) or not value.like.is_of(index) or rest:
        refuse_here(f"writes rows that a mask chooses to others: {CURE}")
    rows = value.rows.to(tensor.dtype).expand(value.rows.shape[0], *tensor.shape[index.dim() :]).view(tensor.shape)
    found = torch.where(index.view(*index.shape, *[1] * (tensor.dim() - index.dim())), rows, tensor)
    if name_of(function) == "index_put":
        return found
    tensor.copy_(found)
    return tensor
