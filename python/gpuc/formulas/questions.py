"""Functions of PyTorch's that ask for values, or write by strides, and need not."""

import contextlib
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn import functional as F
from torch.nn.modules import transformer

from gpuc.capture.custom_gradients import put
from gpuc.formulas.places import is_on_diagonal


def fill_diagonal(self, value, wrap=False):
    """Of a matrix; wrapped or not, which tells tall ones apart."""
    if self.dim() != 2 or (wrap and self.shape[0] > self.shape[1]):
        raise RuntimeError("fill_diagonal_ is of a matrix here, which does not wrap: give torch.where a mask")
    return self.masked_fill_(is_on_diagonal(*self.shape, 0), value)


def is_said_to_be_causal(mask, is_causal=None, size=None):
    """A mask that says nothing of itself is a mask: whether it is a triangle is seen in the graph."""
    return is_causal is True


def instance_norm(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-5):
    """F.instance_norm, which writes running statistics where no export sees it."""
    if running_mean is None:
        return torch.instance_norm(input, weight, bias, None, None, True, momentum, eps, False)
    if not use_input_stats:
        return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    dims = [*range(2, input.dim())]
    with torch.no_grad():
        for running, own in ((running_mean, input.mean(dims)), (running_var, input.var(dims))):
            running.copy_((1 - momentum) * running + momentum * own.mean(0))
    return torch.instance_norm(input, weight, bias, None, None, True, momentum, eps, False)


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


def cov(input, *, correction=1, fweights=None, aweights=None):
    """torch.cov, which asks whether weights are negative and whether some are there."""
    values = input.reshape(1, -1) if input.dim() < 2 else input
    weights = [each.to(values.dtype) for each in (fweights, aweights) if each is not None]
    if not weights:
        weights = [torch.ones(values.shape[1], dtype=values.dtype)]
    weight = math.prod(weights[1:], start=weights[0])
    count = weight.sum()
    norm = count - correction * ((weight * weights[-1]).sum() / count if aweights is not None else 1)
    centred = values - (values * weight).sum(1, keepdim=True) / count
    return ((centred * weight) @ centred.T / norm.clamp(min=0)).squeeze()


def corrcoef(input):
    own = cov(input)
    if own.dim() == 0:
        return own / own
    scale = own.diagonal().sqrt()
    return (own / scale[:, None] / scale).clip(-1, 1)


ARANGE, TOLIST = torch.arange, FakeTensor.tolist


def arange(*args, **kwargs):
    """Whose numbers are known, as of the dimensions that a loss sums over: torch.arange(2, x.dim()).tolist()."""
    made = ARANGE(*args, **kwargs)
    if args and all(type(each) is int for each in args) and kwargs.keys() <= {"device"}:
        made.numbers_of_range = range(*args)
    return made


def tolist(self):
    known = getattr(self, "numbers_of_range", None)
    return list(known) if known is not None and self._version == 0 else TOLIST(self)


@contextlib.contextmanager
def without_questions():
    with contextlib.ExitStack() as undo:
        put(undo, torch, "arange", arange)
        put(undo, FakeTensor, "tolist", tolist)
        put(undo, torch.Tensor, "fill_diagonal_", fill_diagonal)
        put(undo, transformer, "_detect_is_causal_mask", is_said_to_be_causal)
        put(undo, F, "gaussian_nll_loss", gaussian_nll)
        put(undo, F, "instance_norm", instance_norm)
        for owner in (torch, torch.Tensor):
            put(undo, owner, "cov", cov)
            put(undo, owner, "corrcoef", corrcoef)
        yield
