"""A module with its loss, as it is captured, and what is looked at before."""

import contextlib
import inspect
import threading
from types import SimpleNamespace

import torch
from torch.nn.modules.batchnorm import _NormBase
from torch.utils import _pytree as pytree

from gpuc.capture.forward_state import AssignedBuffers
from gpuc.errors import Problem, refuse
from gpuc.formulas.choices import Chosen
from gpuc.formulas.complex_numbers import Pair
from gpuc.lines import beginning_of

CAPTURES = threading.RLock()  # Around all that runs a module with torch changed, one thread after another.


class Whole(torch.nn.Module):
    """A module with its loss. Without one its first output, or its output's `loss`, an attribute or a key, is the loss."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *args, **kwargs):
        with AssignedBuffers(self):
            return self.results(*args, **kwargs)

    def results(self, *args, **kwargs):
        if self.loss is None:
            out = self.given(*args, **kwargs)
            if isinstance(out, torch.Tensor):
                return out
            loss = out.get("loss") if isinstance(out, dict) else getattr(out, "loss", None)
            loss = loss if loss is not None else next(iter(tensors_of(out)), None)
            if isinstance(out, dict) and (loss is None or loss.numel() != 1):
                refuse([Problem(f"forward() gives a dict of {', '.join(map(str, out))}, and no tensor as its 'loss', which would be trained: give "
                                "gpuc.compile a loss, a function of that dict and a target", **beginning_of(self.net.forward))])  # fmt: skip
            return loss
        return self.loss_of(self.given(*args[:-1], **kwargs), args[-1])

    def given(self, *args, **kwargs):
        out = self.net(*args, **kwargs)
        if holds_none(out):
            refuse([Problem(f"forward() gives {described(out)}: let it return a tensor", **beginning_of(self.net.forward))])
        return out

    def loss_of(self, out, target):
        if not isinstance(out, torch.Tensor) and type(self.loss).__module__ == "torch.nn.modules.loss":
            refuse([Problem(f"forward() gives a {type(out).__name__}, and {type(self.loss).__name__} takes a tensor: let the loss be a function that "
                            "takes one out, lambda out, target: …(out[…], target)", **beginning_of(self.net.forward))])  # fmt: skip
        loss = self.loss(out, target)
        if holds_none(loss):
            refuse([Problem(f"the loss gives {described(loss)}: let it return a tensor", **beginning_of(self.loss))])
        return loss


def tensors_of(out):
    return [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor)]


def holds_none(value):
    """Of tensors; what is an object of the user's may."""
    return isinstance(value, (bool, int, float, str, bytes, type(None))) or inspect.iscoroutine(value) or inspect.isgenerator(value)


def described(value):
    return "None" if value is None else f"a {type(value).__name__}, and no tensor"


def check_call(function, name, count, kwargs, told):
    """A parameter that the batch has nothing for, or a part of the batch that is none's."""
    forward = function.forward if isinstance(function, torch.nn.Module) else function
    if isinstance(function, torch.nn.Module) and (function._forward_pre_hooks or type(function).__call__ is not torch.nn.Module.__call__):
        return  # Which may give it others.
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return  # Of C.
    try:
        signature.bind(*[None] * count, **kwargs)
    except TypeError as error:
        refuse([Problem(f"{name}{signature}: {error}, where {told}: give the batch what it takes, in its order, or a default", **beginning_of(function))])


class Both(Whole):
    """The loss, and all tensors that the module gives. `seen.others`: whether it gives pairs of these, complex numbers or chosen rows, too."""

    def __init__(self, net, loss):
        super().__init__(net, loss)
        self.seen = SimpleNamespace(others=False)  # Which the export takes for no tensor of the module's.

    def results(self, *args, **kwargs):
        out = self.given(*args[:-1], **kwargs)
        self.seen.others = any(isinstance(each, (Chosen, Pair)) for each in pytree.tree_leaves(out))
        # Copies, or the export takes a loss's own view of one (broadcast_tensors) for it.
        leaves = [leaf.clone() for leaf in tensors_of(out)]
        return [self.loss_of(out, args[-1]), *leaves]


@contextlib.contextmanager
def in_eval_mode(whole):
    modes = [(module, module.training) for module in whole.modules()]
    try:
        whole.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training


def check_layers(net):
    """A backward hook would be dropped by the export; and of some layers it says no more than that they hang on values."""
    problems = []
    for path, module in net.named_modules():
        if isinstance(module, _NormBase) and module.training and module.track_running_stats and module.momentum is None:
            problems.append(Problem("has momentum=None, a mean over all batches so far, which is not supported: give it a momentum (0.1)", path))
        for hook in (*module._backward_hooks.values(), *module._backward_pre_hooks.values()):
            problems.append(Problem("has a backward hook, which a compiled step does not call: remove it", path, **beginning_of(hook)))
        if ".quantized" in type(module).__module__:
            problems.append(Problem("is quantized, and has no weights to train: give the module as it was before", path))
    for name, parameter in net.named_parameters():
        for hooks in (parameter._backward_hooks, parameter._post_accumulate_grad_hooks):
            for hook in (hooks or {}).values():
                problems.append(Problem("has a gradient hook, which a compiled step does not call: remove it", name, **beginning_of(hook)))
    if problems:
        refuse(problems)
