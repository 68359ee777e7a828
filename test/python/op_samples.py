"""PyTorch's own samples of its operators, compiled and differentiated in f64: which pass, are refused, or fail.

    PYTHONPATH=build/python PYTHON-WITH-TORCH test/python/op_samples.py [--samples N] [NAME …]

An operator passes if loss and gradients of its first samples equal eager's, is refused if gpuc says so, and fails if
anything else comes of it; that is exit code 1. Those that have no gradient in f64, or draw at random, are skipped.
"""

import argparse
import collections
import sys
import warnings

import torch
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import gpuc


class Sampled(nn.Module):
    """Some samples of an operator: what has a gradient is a parameter, other tensors are buffers."""

    def __init__(self, operator, samples):
        super().__init__()
        self.operator, self.samples, self.values = operator.op, [], nn.ParameterList()
        for sample in samples:
            leaves, structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
            kept = []
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor) and leaf.requires_grad:
                    kept.append(("parameter", len(self.values)))
                    self.values.append(nn.Parameter(leaf.detach().clone()))
                elif isinstance(leaf, torch.Tensor):
                    name = f"buffer{len(list(self.buffers()))}"
                    self.register_buffer(name, leaf.detach().clone())
                    kept.append(("buffer", name))
                else:
                    kept.append(("value", leaf))
            self.samples.append((kept, structure))

    def take(self, kind, what):
        return self.values[what] if kind == "parameter" else getattr(self, what) if kind == "buffer" else what

    def forward(self, x):
        total = x.sum()
        for kept, structure in self.samples:
            first, args, kwargs = pytree.tree_unflatten([self.take(*each) for each in kept], structure)
            for value in pytree.tree_leaves(self.operator(first, *args, **kwargs)):
                if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
                    weights = torch.arange(1, value.numel() + 1, dtype=torch.float64).reshape(value.shape)
                    total = total + (value * (weights / value.numel()).to(value.dtype)).sum()
        return total


class SeesDraws(TorchDispatchMode):
    """Whether anything is drawn at random."""

    found = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.found |= torch.Tag.nondeterministic_seeded in function.tags
        return function(*args, **(kwargs or {}))


def usable(operator, count):
    found = []
    for sample in operator.sample_inputs("cpu", torch.float64, requires_grad=True):
        leaves = [each for each in pytree.tree_leaves((sample.input, sample.args, sample.kwargs)) if isinstance(each, torch.Tensor)]
        if sample.kwargs.get("dropout_p"):
            continue
        if leaves and all(each.numel() for each in leaves) and any(each.requires_grad for each in leaves):
            found.append(sample)
        if len(found) == count:
            break
    return found


def outcome(operator, count):
    samples = usable(operator, count)
    if not samples:
        return "skipped", "no sample with a gradient"
    net, x = Sampled(operator, samples), torch.zeros(2, dtype=torch.float64)
    start = [value.detach().clone() for value in net.values]
    try:
        with SeesDraws() as mode:
            net(x).backward()
    except Exception as error:
        return "skipped", f"eager: {error}"
    gradients = [torch.zeros_like(value) if value.grad is None else value.grad.clone() for value in net.values]
    expected = net(x).item()
    if mode.found:
        return "skipped", "draws at random"
    try:
        step = gpuc.compile(net, None, "sgd:lr=1", x)
        loss = step(x)
    except gpuc.Error as error:
        return "refused", str(error).splitlines()[0]
    if not close(torch.tensor(loss), torch.tensor(expected)):
        return "failed", f"loss {loss}, eager {expected}"
    for number, (now, before, gradient) in enumerate(zip(net.values, start, gradients)):
        if not close(now.detach(), before - gradient):
            return "failed", f"gradient {number} differs by {(now.detach() - before + gradient).abs().max().item()}"
    return "passed", ""


def close(ours, theirs):
    return torch.allclose(ours.double(), theirs.double(), rtol=1e-6, atol=1e-7, equal_nan=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--least", type=int, default=0, help="how many have to pass")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = collections.Counter()
    for operator in op_db:
        name = operator.name + (f".{operator.variant_test_name}" if operator.variant_test_name else "")
        if arguments.names and name not in arguments.names:
            continue
        if not operator.supports_autograd or torch.float64 not in operator.supported_dtypes("cpu"):
            continue
        torch.manual_seed(0)
        try:
            result, why = outcome(operator, arguments.samples)
        except Exception as error:
            result, why = "failed", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        counts[result] += 1
        print(result, name, why, flush=True)
    print(", ".join(f"{counts[result]} {result}" for result in ("passed", "refused", "failed", "skipped")))
    return 1 if counts["failed"] or counts["passed"] < arguments.least else 0


if __name__ == "__main__":
    sys.exit(main())
