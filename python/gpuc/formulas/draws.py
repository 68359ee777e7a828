"""Draws, by torch.rand and torch.randn, which draw by gpuc's generator."""

import torch

from gpuc.formulas.table import aten, formula


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
