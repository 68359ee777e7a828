"""What a loop does beside a compiled step as beside an eager one, and torch would say nothing of: it clips gradients that are not there, has
another optimizer step without them, or makes one that the step was not compiled with."""

import functools
import weakref

import torch
from torch.nn.utils import clip_grad
from torch.optim.optimizer import register_optimizer_step_pre_hook

from gpuc import ranks

STEPS = weakref.WeakSet()  # All that there are.


def steps_of(parameters):
    """That train some of these."""
    ids = set(map(id, parameters))
    return [step for step in STEPS if not step._beside.trained.isdisjoint(ids)]


def parameters_of(optimizer):
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def have_stepped(parameters):
    """Whether a step has updated them, and they have no gradients."""
    return all(each.grad is None for each in parameters) and any(step._steps_made for step in steps_of(parameters))


def told_of_norms(clip):
    """torch gives a norm of 0."""

    @functools.wraps(clip)
    def told(parameters, *args, **kwargs):
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        if have_stepped(parameters):
            warn_of_clipping("clip_grad_norm_", "clip_norm", stacklevel=6)
        return clip(parameters, *args, **kwargs)

    return told


def told_of_values(clip):
    """torch fails of an empty list."""

    @functools.wraps(clip)
    def told(parameters, *args, **kwargs):
        parameters = [parameters] if isinstance(parameters, torch.Tensor) else list(parameters)
        if have_stepped(parameters):
            return warn_of_clipping("clip_grad_value_", "clip_value", stacklevel=4)
        return clip(parameters, *args, **kwargs)

    return told


def warn_of_clipping(name, option, stacklevel):
    ranks.warn(f"{name} finds no gradients, since a compiled step makes its updates by itself: give gpuc.compile {option}=1.0, say, and "
               "leave it out", stacklevel=stacklevel)  # fmt: skip


def watched(make):
    """Optimizer.__init__: who makes one of what a step trains may mean it for that step."""

    @functools.wraps(make)
    def made(self, *args, **kwargs):
        make(self, *args, **kwargs)
        for step in steps_of(parameters_of(self)):
            step._beside.see_optimizer(self)

    return made


def look_at_gradients(optimizer, *_):
    """Before a step() of any optimizer."""
    parameters = parameters_of(optimizer)
    if all(each.grad is None for each in parameters):
        for step in steps_of(parameters):
            step._beside.see_idle(optimizer)


class Beside:
    """What a step says of optimizers that are not the one it was compiled with. `trained`: the identities of its parameters."""

    def __init__(self, step, trained):
        self.step, self.trained = weakref.ref(step), frozenset(trained)
        self.newer, self.was_told = None, False

    def see_optimizer(self, optimizer):
        """One was made of what this trains, and may be for another step, or for eager ones: it counts if this goes on."""
        self.newer = weakref.ref(optimizer)
        self.step()._look_next()

    def tell_of_newer(self):
        newer, self.newer = self.newer and self.newer(), None
        if newer is not None and not is_of_a_step(newer):
            ranks.warn(f"an optimizer, {type(newer).__name__}, has been made of what this step trains, which goes on with the one that it was "
                       "compiled with, its rates and what it keeps: if it is to train with the new one, compile again", stacklevel=6)  # fmt: skip

    def see_idle(self, optimizer):
        """It steps without gradients, as if it were this that made the update."""
        if self.step()._steps_made and not self.was_told and not is_of_a_step(optimizer):
            self.was_told = True
            ranks.warn(f"{type(optimizer).__name__}.step() finds no gradients, since a compiled step makes its updates by itself, with the "
                       "optimizer that it was compiled with: compile it with this one, or leave its step() out", stacklevel=6)  # fmt: skip


def is_of_a_step(optimizer):
    return any(step._has_optimizer(optimizer) for step in STEPS)


# What clip_grad_norm_ calls, under whatever name a program has that.
if hasattr(clip_grad, "_clip_grads_with_norm_"):
    clip_grad._clip_grads_with_norm_ = told_of_norms(clip_grad._clip_grads_with_norm_)
torch.nn.utils.clip_grad_value_ = clip_grad.clip_grad_value_ = told_of_values(clip_grad.clip_grad_value_)
torch.optim.Optimizer.__init__ = watched(torch.optim.Optimizer.__init__)
register_optimizer_step_pre_hook(look_at_gradients)
