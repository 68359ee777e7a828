"""Complex numbers within a step, which has real ones: two tensors, and Fourier transforms as products with cosines and sines.

A module that makes complex tensors is captured a second time, within ComplexNumbers: what would be one is a Pair then, which is no tensor of
torch's, but is taken by its functions.
"""

import functools
import itertools
import math

import torch
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gpuc.capture.custom_gradients import refuse_here
from gpuc.formulas.named import name_of
from gpuc.formulas.stand_ins import StandIn

TYPES = {torch.float32: torch.complex64, torch.float64: torch.complex128, torch.float16: torch.complex32}
REAL = {own: real for real, own in TYPES.items()}
LONGEST = 4096  # Transforms are products: their matrices have the square of this.
FUNCTIONS = {}  # By name: of what has a Pair, or makes one.
MAKERS = set()


def function(*names, makes=False):
    def known(body):
        FUNCTIONS.update(dict.fromkeys(names, body))
        MAKERS.update(names if makes else ())
        return body

    return known


class Pair(StandIn):
    """re + i · im, which are tensors, or numbers."""

    def __init__(self, re, im):
        self.re, self.im = re, im

    @staticmethod
    def applied(function, args, kwargs):
        name = name_of(function)
        known = FUNCTIONS.get(name)
        if (known is None or is_question(function)) and not any(isinstance(each, Pair) for each in pytree.tree_leaves((args, kwargs))):
            return function(*args, **kwargs)  # Of a table that the module keeps.
        if known is None:
            refuse_here(f"{name} of complex numbers is not supported: write it by their real and imaginary parts, z.real and z.imag")
        args, kwargs = pytree.tree_map(as_pair, (args, kwargs))
        return known(*args, **kwargs)

    real = property(lambda self: self.re)
    imag = property(lambda self: self.im)
    shape = property(lambda self: self.re.shape)
    ndim = property(lambda self: self.re.dim())
    device = property(lambda self: self.re.device)
    dtype = property(lambda self: TYPES[self.re.dtype])
    requires_grad = property(lambda self: self.re.requires_grad or self.im.requires_grad)
    mT = property(lambda self: self.transpose(-1, -2))
    T = property(lambda self: each_part(self, lambda part: part.T))
    H = property(lambda self: self.mT.conj())
    mH = H

    def __len__(self):
        return len(self.re)

    def __iter__(self):
        return iter(self.unbind(0))

    def size(self, dim=None):
        return self.re.shape if dim is None else self.re.shape[dim]


Pair.add_operators("add radd sub rsub mul rmul truediv rtruediv matmul rmatmul pow neg abs getitem setitem iadd isub imul itruediv".split())


class ComplexNumbers(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        dtype = kwargs.get("dtype")
        makes = name_of(function) in MAKERS or (isinstance(dtype, torch.dtype) and dtype.is_complex)
        if makes or any(map(is_complex, pytree.tree_leaves((args, kwargs)))):
            return Pair.applied(function, args, kwargs)
        return function(*args, **kwargs)


def is_complex(value):
    if isinstance(value, torch.dtype):
        return value.is_complex
    return isinstance(value, (Pair, complex)) or (isinstance(value, torch.Tensor) and value.dtype.is_complex)


def is_question(function):
    return function.__name__ == "__get__" and name_of(function) not in ("real", "imag", "T", "mT", "H", "mH")


def as_pair(value):
    if isinstance(value, complex):
        return Pair(value.real, value.imag)
    if isinstance(value, torch.Tensor) and value.dtype.is_complex:
        parts = torch.view_as_real(value.resolve_conj())
        return Pair(parts[..., 0], parts[..., 1])
    return value


def parts(value):
    return (value.re, value.im) if isinstance(value, Pair) else (value, None)


def each_part(pair, body):
    return Pair(body(pair.re), body(pair.im))


#
# What is the same of both parts
#


def by_parts(call):
    """Of the first argument, which may be a list."""

    def run(first, *args, **kwargs):
        if isinstance(first, (list, tuple)):
            whole = [each if isinstance(each, Pair) else Pair(each, torch.zeros_like(each)) for each in first]
            return Pair(call([each.re for each in whole], *args, **kwargs), call([each.im for each in whole], *args, **kwargs))
        if not isinstance(first, Pair):
            return call(first, *args, **kwargs)
        re, im = (call(part, *args, **kwargs) for part in (first.re, first.im))
        return Pair(re, im) if isinstance(re, torch.Tensor) else type(re)(map(Pair, re, im))

    return run


for each in (
    "reshape view permute transpose t flatten unflatten unsqueeze squeeze expand repeat contiguous clone detach narrow select index_select gather chunk "
    "split tensor_split unbind roll flip tile movedim moveaxis swapaxes swapdims tril triu diagonal repeat_interleave unfold broadcast_to "
    "take_along_dim diff sum mean cumsum cat concat stack zeros_like hstack vstack"
).split():
    FUNCTIONS[each] = by_parts(getattr(torch.Tensor, each, None) or getattr(torch, each))
FUNCTIONS["pad"] = by_parts(F.pad)


@function("getitem")
def getitem(self, index):
    return each_part(self, lambda part: part[index]) if isinstance(self, Pair) else self[index]


@function("setitem")
def setitem(self, index, value):
    if not isinstance(self, Pair):
        raise RuntimeError("a complex number is written into a real tensor")
    re, im = parts(value)
    self.re[index], self.im[index] = re, 0.0 if im is None else im


@function("where")
def where(condition, self, other):
    (a, b), (c, d) = parts(self), parts(other)
    return Pair(torch.where(condition, a, c), torch.where(condition, 0.0 if b is None else b, 0.0 if d is None else d))


@function("masked_fill")
def masked_fill(self, mask, value):
    return where(mask, value, self)


@function("expand_as", "view_as", "reshape_as")
def expand_as(self, other):
    return each_part(self, lambda part: part.expand(other.shape) if part.numel() != other.numel() else part.reshape(other.shape))


#
# Into and out of them
#


@function("complex", makes=True)
def complex_of(real, imag):
    return Pair(real, imag)


@function("polar", makes=True)
def polar(abs, angle):
    return Pair(abs * angle.cos(), abs * angle.sin())


@function("view_as_complex", makes=True)
def view_as_complex(input):
    return Pair(input[..., 0], input[..., 1])


@function("view_as_real")
def view_as_real(input):
    return torch.stack([input.re, input.im], -1)


@function("zeros", "empty")
def zeros(*size, dtype, **kwargs):
    made = torch.zeros(*size, dtype=REAL[dtype], **{key: value for key, value in kwargs.items() if key != "out"})
    return Pair(made, torch.zeros_like(made))


@function("new_zeros")
def new_zeros(self, *size, dtype=None, **_):
    made = self.re.new_zeros(*size) if isinstance(self, Pair) else self.new_zeros(*size, dtype=REAL[dtype])
    return Pair(made, torch.zeros_like(made))


@function("to", "type", "cfloat", "cdouble", "cpu")
def to(self, *args, **kwargs):
    wanted = next((each for each in (*args, *kwargs.values()) if isinstance(each, torch.dtype)), None)
    if wanted is None:
        return self
    re, im = parts(self)
    if not wanted.is_complex:
        return re.to(wanted)
    re = re.to(REAL[wanted])
    return Pair(re, torch.zeros_like(re) if im is None else im.to(REAL[wanted]))


FUNCTIONS.update({
    "real": lambda self: parts(self)[0], "imag": lambda self: self.im, "is_complex": lambda self: isinstance(self, Pair),
    "is_floating_point": lambda self: False, "numel": lambda self: self.re.numel(), "dim": lambda self: self.re.dim(), "ndim": lambda self: self.re.dim(),
    "shape": lambda self: self.re.shape, "size": Pair.size, "dtype": lambda self: self.dtype, "device": lambda self: self.re.device,
    "resolve_conj": lambda self: self, "resolve_neg": lambda self: self, "stride": lambda self, *dim: self.re.stride(*dim),
    "is_contiguous": lambda self, **_: self.re.is_contiguous(), "requires_grad": lambda self: self.requires_grad,
})  # fmt: skip


#
# Arithmetic
#


@function("add", "radd", "iadd")
def add(self, other, *, alpha=1):
    (a, b), (c, d) = parts(self), parts(other)
    c, d = (c, d) if alpha == 1 else (c * alpha, d if d is None else d * alpha)
    return Pair(a + c, like(d, a + c) if b is None else like(b, a + c) if d is None else b + d)


def like(part, whole):
    """As large as the other part has become."""
    return part + torch.zeros_like(whole) if isinstance(whole, torch.Tensor) and getattr(part, "shape", None) != whole.shape else part


@function("sub", "subtract", "isub")
def sub(self, other, *, alpha=1):
    return add(self, neg(other), alpha=alpha)


@function("rsub")
def rsub(self, other, *, alpha=1):
    return add(other, neg(self), alpha=alpha)


@function("neg", "negative")
def neg(self):
    return each_part(self, lambda part: -part) if isinstance(self, Pair) else -self


def product_of(call, *operands):
    """Of something that is linear in each of them: the sum over which part of each, by powers of i."""
    found = [None, None]
    for chosen in itertools.product(*([0, 1] if isinstance(each, Pair) else [0] for each in operands)):
        term = call(*(parts(each)[number] for each, number in zip(operands, chosen)))
        power = sum(chosen)
        term = -term if power % 4 in (2, 3) else term
        before = found[power % 2]
        found[power % 2] = term if before is None else before + term
    return Pair(*found)


@function("mul", "multiply", "rmul", "imul")
def mul(self, other):
    return product_of(lambda a, b: a * b, self, other)


@function("div", "divide", "true_divide", "truediv", "itruediv")
def div(self, other):
    if not isinstance(other, Pair):
        return each_part(self, lambda part: part / other)
    return mul(self, reciprocal(other))


@function("rtruediv", "rdiv")
def rdiv(self, other):
    return div(other, self)


@function("reciprocal")
def reciprocal(self):
    square = self.re * self.re + self.im * self.im
    return Pair(self.re / square, -self.im / square)


@function("conj", "conj_physical")
def conj(self):
    return Pair(self.re, -self.im) if isinstance(self, Pair) else self


@function("abs", "absolute")
def absolute(self):
    """At 0 the gradient is 0."""
    square = self.re * self.re + self.im * self.im
    return torch.where(square == 0, 0.0, torch.where(square == 0, 1.0, square).sqrt())


@function("angle")
def angle(self):
    return torch.atan2(self.im, self.re)


@function("exp")
def exp(self):
    return polar(self.re.exp(), self.im) if isinstance(self.re, torch.Tensor) else polar(math.exp(self.re), self.im)


@function("log")
def log(self):
    return Pair(absolute(self).log(), angle(self))


@function("sqrt")
def sqrt(self):
    return polar(absolute(self).sqrt(), angle(self) / 2)


@function("square")
def square(self):
    return mul(self, self)


@function("pow")
def power(self, exponent):
    if isinstance(exponent, int) and 0 < exponent <= 8:
        return functools.reduce(mul, [self] * exponent)
    if isinstance(self, Pair):
        return exp(mul(log(self), exponent))
    return exp(mul(exponent, self.log() if isinstance(self, torch.Tensor) else math.log(self)))


@function("sgn")
def sgn(self):
    size = absolute(self)
    return each_part(self, lambda part: part / torch.where(size == 0, 1.0, size))


@function("norm", "linalg_vector_norm", "linalg_norm")
def norm(self, *args, **kwargs):
    return torch.linalg.vector_norm(absolute(self), *args, **kwargs)


@function("l1_loss")
def l1_loss(input, target, *args, **kwargs):
    size = absolute(sub(input, target))
    return F.l1_loss(size, torch.zeros_like(size), *args, **kwargs)


for each in ("matmul", "bmm", "mm", "outer", "dot", "mv"):
    FUNCTIONS[each] = functools.partial(product_of, getattr(torch, each))
FUNCTIONS["rmatmul"] = lambda self, other: product_of(torch.matmul, other, self)


@function("einsum")
def einsum(equation, *operands):
    operands = operands[0] if isinstance(operands[0], (list, tuple)) else operands
    return product_of(lambda *given: torch.einsum(equation, *given), *operands)


@function("linear")
def linear(input, weight, bias=None):
    found = product_of(F.linear, input, weight)
    return found if bias is None else add(found, bias)


#
# Fourier transforms
#


def waves(count, frequencies, dtype):
    """cos and sin of 2π · j · k / count, [count, frequencies]."""
    if count > LONGEST:
        refuse_here(f"a Fourier transform of {count} numbers, and those of a compiled step are products with matrices, of up to {LONGEST}")
    turns = torch.arange(count).unsqueeze(1) * torch.arange(frequencies) % count
    angles = turns.to(torch.float64) * (2 * math.pi / count)
    cosines = torch.where((4 * turns % count == 0) & (2 * turns % count != 0), 0.0, angles.cos())  # A real number is to stay one, whose angle is 0 or π.
    return cosines.to(dtype), torch.where(2 * turns % count == 0, 0.0, angles.sin()).to(dtype)


def scaled(pair, count, norm, is_inverse):
    factor = {"ortho": count**-0.5, "forward": 1 if is_inverse else 1 / count}.get(norm, 1 / count if is_inverse else 1)
    return pair if factor == 1 else each_part(pair, lambda part: part * factor)


def last_of(value, dim, count):
    """That dimension last, with so many numbers of it, zeros behind those that there are."""
    value = value.movedim(dim, -1)
    own = value.shape[-1]
    return value if own == count else value[..., :count] if own > count else F.pad(value, (0, count - own))


def as_float(value):
    return value if isinstance(value, Pair) or value.is_floating_point() else value.float()


def transform(value, count, dim, norm, is_inverse, frequencies=None):
    value = as_float(value)
    count = count or value.shape[dim]
    re, im = (None if part is None else last_of(part, dim, count) for part in parts(value))
    cosines, sines = waves(count, frequencies or count, re.dtype)
    found = Pair(re @ cosines, re @ sines if is_inverse else re @ -sines)
    if im is not None:
        turned = im @ sines
        found = Pair(found.re - turned if is_inverse else found.re + turned, found.im + im @ cosines)
    return each_part(scaled(found, count, norm, is_inverse), lambda part: part.movedim(-1, dim))


@function("fft_fft", makes=True)
def fft(input, n=None, dim=-1, norm=None):
    return transform(input, n, dim, norm, False)


@function("fft_ifft", makes=True)
def ifft(input, n=None, dim=-1, norm=None):
    return transform(input, n, dim, norm, True)


@function("fft_rfft", makes=True)
def rfft(input, n=None, dim=-1, norm=None):
    count = n or input.shape[dim]
    return transform(input, count, dim, norm, False, count // 2 + 1)


@function("fft_irfft", makes=True)
def irfft(input, n=None, dim=-1, norm=None):
    """Each frequency but the first, and the one of a half, is there twice."""
    count = n or 2 * (input.shape[dim] - 1)
    frequencies = count // 2 + 1
    re, im = (None if part is None else last_of(part, dim, frequencies) for part in parts(input))
    cosines, sines = (each.T for each in waves(count, frequencies, re.dtype))
    times = torch.full((frequencies, 1), 2.0, dtype=re.dtype)
    is_once = (torch.arange(frequencies) == 0) | (2 * torch.arange(frequencies) == count)
    times = torch.where(is_once.unsqueeze(1), 1.0, times)
    found = re @ (times * cosines)
    found = found if im is None else found - im @ (times * sines)
    return scaled(Pair(found, found), count, norm, True).re.movedim(-1, dim)


def sizes(input, s, dim):
    """(dimension, length or None) of each, the last one last."""
    if dim is None:
        dim = range(-len(s), 0) if s is not None else range(-input.ndim, 0)
    dims = [dim] if isinstance(dim, int) else list(dim)
    return list(zip(dims, [None if each == -1 else each for each in s] if s is not None else [None] * len(dims)))


def several(first, others, is_last_first):
    def run(input, s=None, dim=None, norm=None):
        *rest, (last, extent) = sizes(input, s, dim)
        value = first(input, extent, last, norm) if is_last_first else input
        for own, count in rest[::-1]:
            value = others(value, count, own, norm)
        return value if is_last_first else first(value, extent, last, norm)

    return run


for name, first, others, is_last_first in (
    ("fft", fft, fft, True), ("ifft", ifft, ifft, True), ("rfft", rfft, fft, True), ("irfft", irfft, ifft, False),
):  # fmt: skip
    whole = several(first, others, is_last_first)
    function(f"fft_{name}n", makes=True)(whole)
    function(f"fft_{name}2", makes=True)(lambda input, s=None, dim=(-2, -1), norm=None, whole=whole: whole(input, s, dim, norm))


def shifted(input, dim, way):
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return FUNCTIONS["roll"](input, [way(input.shape[each]) for each in dims], list(dims))


@function("fft_fftshift")
def fftshift(input, dim=None):
    return shifted(input, dim, lambda extent: extent // 2)


@function("fft_ifftshift")
def ifftshift(input, dim=None):
    return shifted(input, dim, lambda extent: -(extent // 2))


def window_of(window, n_fft, win_length, dtype):
    length = win_length or n_fft
    window = torch.ones(length, dtype=dtype) if window is None else window
    before = (n_fft - length) // 2
    return F.pad(window, (before, n_fft - length - before))


@function("stft", makes=True)
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
         return_complex=None, align_to_window=None):  # fmt: skip
    if isinstance(input, Pair) or isinstance(window, Pair):
        refuse_here("stft of complex numbers is not supported: take it of their real and imaginary parts")
    rows = input if input.dim() == 2 else input.unsqueeze(0)
    if center:
        rows = F.pad(rows.unsqueeze(1), (n_fft // 2, n_fft // 2), mode=pad_mode).squeeze(1)
    frames = rows.unfold(-1, n_fft, hop_length or n_fft // 4) * window_of(window, n_fft, win_length, input.dtype)
    found = (fft if onesided is False else rfft)(frames, norm="ortho" if normalized else None)
    found = each_part(found, lambda part: part.transpose(1, 2) if input.dim() == 2 else part.transpose(1, 2).squeeze(0))
    return found if return_complex else view_as_real(found)


@function("istft", makes=True)
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
          return_complex=False):  # fmt: skip
    input = input if isinstance(input, Pair) else view_as_complex(input)
    if return_complex or onesided is False:
        refuse_here("istft is supported of what is onesided, as a real signal")
    hop, own = hop_length or n_fft // 4, window_of(window, n_fft, win_length, input.re.dtype)
    rows = input if input.ndim == 3 else each_part(input, lambda part: part.unsqueeze(0))
    frames = irfft(rows, n_fft, 1, "ortho" if normalized else None) * own.unsqueeze(1)
    whole = (1, n_fft + hop * (frames.shape[2] - 1))
    envelope = own.square().view(1, -1, 1).expand(1, -1, frames.shape[2])
    signal, weight = (F.fold(each, whole, (1, n_fft), stride=(1, hop)).flatten(1) for each in (frames, envelope))
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else whole[1] - first
    signal, weight = signal[:, first:last], weight[:, first:last]
    signal = signal / torch.where(weight.abs() > 1e-11, weight, 1.0)
    signal = signal if length is None or signal.shape[1] == length else F.pad(signal, (0, length - signal.shape[1]))
    return signal if input.ndim == 3 else signal.squeeze(0)
