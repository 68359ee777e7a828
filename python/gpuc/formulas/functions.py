"""Functions of a number, and of two."""

import math

import torch
from torch._decomp import decomposition_table

from gpuc.formulas.table import FORMULAS, aten, formula

# Which PyTorch takes apart, and leaves whole where it exports.
FORMULAS.update({op: decomposition_table[op] for op in (aten.ldexp.Tensor, aten.addmv.default)})


@formula(aten.hypot.default)
def hypot(self, other):
    return (self * self + other * other).sqrt()


@formula(aten.erfc.default)
def erfc(self):
    return 1 - self.erf()


@formula(aten.copysign.Tensor, aten.copysign.Scalar)
def copysign(self, other):
    """A gradient passes as where the sign stays; of 0 there is none."""
    other = other if isinstance(other, torch.Tensor) else torch.full_like(self, other)
    is_negative = torch.where(other == 0, 1 / other, other) < 0
    ratio = torch.where(self == 0, 0.0, torch.where(is_negative, -1.0, 1.0) * self.sign()).to(self.dtype)
    return self * ratio


@formula(aten.fmax.default)
def fmax(self, other):
    return extreme_but_nan(self, other, torch.maximum)


@formula(aten.fmin.default)
def fmin(self, other):
    return extreme_but_nan(self, other, torch.minimum)


def extreme_but_nan(self, other, function):
    self, other = torch.broadcast_tensors(self, other)
    return function(torch.where(self.isnan(), other, self), torch.where(other.isnan(), self, other))


@formula(aten.angle.default)
def angle(self):
    return torch.where(self < 0, math.pi, self * 0).to(self.dtype) if self.is_floating_point() else NotImplemented


@formula(aten.round.decimals)
def round_to(self, decimals=0):
    if decimals == 0:
        return self.round()
    scale = 10.0 ** abs(decimals)
    return (self * scale).round() / scale if decimals > 0 else (self / scale).round() * scale


@formula(aten.__lshift__.Scalar, aten.__lshift__.Tensor, aten.bitwise_left_shift.Tensor, aten.bitwise_left_shift.Tensor_Scalar)
def left_shift(self, other):
    return NotImplemented if self.is_floating_point() else self * power_of_two(other, self.dtype)


@formula(aten.__rshift__.Scalar, aten.__rshift__.Tensor, aten.bitwise_right_shift.Tensor, aten.bitwise_right_shift.Tensor_Scalar)
def right_shift(self, other):
    return NotImplemented if self.is_floating_point() else torch.div(self, power_of_two(other, self.dtype), rounding_mode="floor")


def power_of_two(exponent, dtype):
    if isinstance(exponent, torch.Tensor):
        return torch.exp2(exponent.to(torch.float64)).round().to(dtype)
    return 2 ** int(exponent)


#
# The logarithm of the gamma function, by Stirling's series of x + 8, whose terms are B2k / (2k · (2k - 1))
#


STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)
SHIFT = 8


def series(x, terms):
    """Σ terms[k] / x^(2k)"""
    square, total = 1 / (x * x), torch.full_like(x, terms[-1])
    for each in reversed(terms[:-1]):
        total = each + square * total
    return total


def log_gamma_of_positive(x):
    is_large = x > SHIFT
    far = torch.where(is_large, x, x + SHIFT)
    product = torch.ones_like(x)
    for number in range(SHIFT):
        product = product * (torch.where(is_large, 1.0, x) + number)
    log = (far - 0.5) * far.log() - far + 0.5 * math.log(2 * math.pi) + series(far, STIRLING) / far
    return log - torch.where(is_large, 0.0, product.log())


def sine_of_pi(x):
    """By what x is beyond the nearest even number."""
    return torch.sin(math.pi * (x - 2 * (x / 2).round()))


@formula(aten.lgamma.default)
def lgamma(self):
    """Below one half by reflection."""
    if not self.is_floating_point():
        return NotImplemented
    x = self.double()
    is_low = x < 0.5
    found = log_gamma_of_positive(torch.where(is_low, 1 - x, x))
    sine = torch.where(is_low, sine_of_pi(x), 1.0)
    found = torch.where(is_low, math.log(math.pi) - sine.abs().log() - found, found)
    return torch.where(x.isinf(), x.abs(), found).to(self.dtype)


@formula(aten.digamma.default)
def digamma(self):
    """lgamma's derivative. Of 0 it is infinite, of whole numbers below it NaN."""
    if not self.is_floating_point():
        return NotImplemented
    x = self.double()
    is_low, is_whole = x < 0.5, (x <= 0) & (x == x.floor())
    above = torch.where(is_low, 1 - x, x)
    far = above + SHIFT
    found = far.log() - 0.5 / far - series(far, tuple((2 * k + 1) * each for k, each in enumerate(STIRLING))) / (far * far)
    for number in range(SHIFT):
        found = found - 1 / (above + number)
    angle = math.pi * torch.where(is_low & ~is_whole, x - x.round(), 0.25)
    found = torch.where(is_low, found - math.pi / angle.tan(), found)
    pole = torch.where(x == 0, -1 / torch.where(x == 0, x, 1.0), torch.nan)
    return torch.where(is_whole, pole, found).to(self.dtype)


@formula(aten.polygamma.default)
def polygamma(n, self):
    """(-1)^(n + 1) · n! · Σ 1 / (x + k)^(n + 1), the terms beyond the twentieth by Euler and Maclaurin."""
    if n == 0:
        return digamma(self)
    terms, power, x = 20, float(n + 1), self.double()
    total = torch.zeros_like(x)
    for number in range(terms):
        total = total + (x + number) ** -power
    far = x + terms
    tail = far ** (1 - power) / (power - 1) + 0.5 * far**-power
    factor, bernoulli = power, (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
    for number, each in enumerate(bernoulli, 1):
        order = 2 * number
        tail = tail + each / math.factorial(order) * factor * far ** -(power + order - 1)
        factor *= (power + order - 1) * (power + order)
    return ((-1) ** (n + 1) * math.factorial(n) * (total + tail)).to(self.dtype)


#
# The inverse of erf, by Giles' polynomials and two steps of Newton's
#


CENTRAL = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503, -0.00417768164, 0.246640727, 1.50140941)
TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613, 0.00943887047, 1.00167406, 2.83297682)


def polynomial(x, coefficients):
    total = torch.full_like(x, coefficients[0])
    for each in coefficients[1:]:
        total = total * x + each
    return total


@formula(aten.erfinv.default)
def erfinv(self):
    if not self.is_floating_point():
        return NotImplemented
    is_inside = self.abs() < 1
    x = torch.where(is_inside, self.double(), 0.0)
    width = -torch.log1p(-x * x)
    is_central = width < 5
    root = torch.where(is_central, 9.0, width).sqrt()
    y = x * torch.where(is_central, polynomial(width - 2.5, CENTRAL), polynomial(root - 3, TAIL))
    for _ in range(2):
        y = y - (y.erf() - x) / (2 / math.sqrt(math.pi) * torch.exp(-y * y))
    outside = torch.where(self == 1, torch.inf, torch.where(self == -1, -torch.inf, torch.nan)).to(self.dtype)
    return torch.where(is_inside, y.to(self.dtype), outside)


@formula(aten.special_ndtri.default)
def ndtri(self):
    found = erfinv(2 * self - 1)
    return found if found is NotImplemented else math.sqrt(2) * found
