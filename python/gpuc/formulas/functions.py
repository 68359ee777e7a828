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
