"""What a compiled step keeps of a module: its layers and hooks, and the numbers, words and truth values that forward and the loss read.

Who changes one of these, a temperature or a rate of dropout, means another training; but an attribute may be read and make no difference,
as the number of an epoch does until the tenth. So what has changed is tried: a pass without numbers has to be the one that was compiled.
"""

import contextlib

import torch
from torch.utils import _pytree as pytree

from gpuc.capture import Whole
from gpuc.errors import Error
from gpuc.forward_state import computes_alike, is_same
from gpuc.named_values import named_values, read


class Made:
    """What a module is made of, as one object until that changes."""

    def __init__(self, module):
        self.module, self.last = module, None
        self.last = self.of

    @property
    def of(self):
        parts = self.module
        forward = getattr(parts.forward, "__func__", parts.forward)
        now = (type(parts), id(forward), *map(id, parts._modules.values()), *parts._parameters, *parts._forward_hooks, *parts._forward_pre_hooks)
        return self.last if now == self.last else now


class Kept:
    """Entries as a step watches them: (what it is, whose attribute, None, attribute, value)."""

    def __init__(self, recorder, structure, leaves, tries):
        """`structure`: of a batch's args and kwargs, which are of the types and shapes of `leaves`. `tries`: else a change is refused untried, as
        where a pass takes all ranks."""
        self.tries = tries
        self.owners, self.ops = (recorder.net, recorder.loss), recorder.ops
        self.structure, self.leaves = structure, leaves
        self.whole = Whole(*self.owners)
        self.modes = [(module, module.training) for module in self.whole.modules()]
        self.parameters = {id(parameter): parameter for parameter in self.whole.parameters()}
        self.entries = list(self.all(recorder.read)) if self.ops is not None else []  # What cannot be tried would be refused for nothing.

    def all(self, attributes):
        for prefix, owner in zip(("", "loss."), self.owners):
            for path, module in owner.named_modules() if isinstance(owner, torch.nn.Module) else ():
                made = Made(module)
                yield called((prefix + path).rstrip(".")), made, None, "of", made.last
        for layer, module, name, value in attributes:
            yield f"{name} of {called(layer)}", module, None, name, value
        for label, owner, name, value in named_values(each for each in self.owners if each is not None):
            yield label, owner, None, name, value

    def check(self, entry):
        """The entry to watch from now on; an error if the step would compute something else."""
        what, owner, _, name, before = entry
        now = read(owner, name)
        if now is before or is_same(before, now):
            return entry
        if not self.is_alike():
            if isinstance(owner, Made):
                raise Error(f"{what} has another forward(), other layers, parameters or hooks than when the step was compiled: compile again, or put back what it had")
            raise Error(f"{what} is {now!r}, and was {before!r} when the step was compiled: compile again, or set it back; what is to change "
                        "from step to step is a buffer, register_buffer(…), or an input")  # fmt: skip
        return self.accept(entry)

    def accept(self, entry):
        """The entry with what is there now."""
        _, owner, _, name, _ = entry
        now = read(owner, name)
        if isinstance(owner, Made):
            owner.last = now
        anew = (*entry[:4], now)
        self.entries = [each if each is not entry else anew for each in self.entries]
        return anew

    def is_alike(self):
        """Whether training, as it is now, is what was compiled."""
        if not self.tries or any(id(parameter) not in self.parameters for parameter in self.whole.parameters()):
            return False
        leaves = [torch.empty(shape, dtype=dtype) for dtype, shape in self.leaves]
        with self.compiled_modes():
            return computes_alike(self.whole, *pytree.tree_unflatten(leaves, self.structure), self.ops)

    @contextlib.contextmanager
    def compiled_modes(self):
        """A module may be in eval mode where it is evaluated."""
        now = [(module, module.training) for module, _ in self.modes]
        try:
            put_into(self.modes)
            yield
        finally:
            put_into(now)


def called(layer):
    return f"'{layer}'" if layer else "the module"


def put_into(modes):
    for module, is_training in modes:
        module.training = is_training
