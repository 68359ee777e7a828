"""What a compiled step keeps of a module: its layers, and the numbers, words and truth values that its forward pass and the loss read.

Who changes one of these, a temperature or a rate of dropout, means another training; but an attribute may be read and make no difference,
as the number of an epoch does until the tenth. So what has changed is tried: a pass without numbers, as it was and as it is.
"""

import contextlib

import torch
from torch.utils import _pytree as pytree

from gpuc.capture import Whole
from gpuc.errors import Error
from gpuc.forward_state import computes_alike, is_same
from gpuc.named_values import named_values, read


class Kept:
    """Entries as a step watches them: (what it is, whose attribute, None, attribute, value)."""

    def __init__(self, recorder, structure, leaves):
        """`structure`: of a batch's args and kwargs, which are of the types and shapes of `leaves`."""
        self.owners = recorder.net, recorder.loss
        self.structure, self.leaves = structure, leaves
        self.modes = [(module, module.training) for module in Whole(*self.owners).modules()]
        self.entries = [*self.layers(), *((f"{name} of {called(layer)}", module, None, name, value) for layer, module, name, value in recorder.read),
                        *((label, owner, None, *kept) for label, owner, *kept in named_values(each for each in self.owners if each is not None))]  # fmt: skip

    def layers(self):
        """Each as an attribute of the one that has it."""
        for prefix, owner in zip(("", "loss."), self.owners):
            for path, module in owner.named_modules() if isinstance(owner, torch.nn.Module) else ():
                for name, layer in module._modules.items():
                    if layer is not None:
                        yield f"{name} of {called((prefix + path).rstrip('.'))}", module, None, name, layer

    def check(self, entry):
        """The entry to watch from now on; an error if the step would compute something else."""
        what, module, _, name, before = entry
        now = read(module, name)
        if now is before or is_same(before, now):
            return entry
        if isinstance(before, torch.nn.Module):
            raise Error(f"{what} is another layer than when the step was compiled: compile again, or put that back")
        with self.compiled_modes():
            is_alike = computes_alike(*self.batch(), module, name, before)
        if not is_alike:
            raise Error(f"{what} is {now!r}, and was {before!r} when the step was compiled: compile again, or set it back; what is to change "
                        "from step to step is a buffer, register_buffer(…), or an input")  # fmt: skip
        anew = (*entry[:4], now)
        self.entries = [each if each is not entry else anew for each in self.entries]
        return anew

    @contextlib.contextmanager
    def compiled_modes(self):
        """A module may be in eval mode where it is evaluated."""
        now = [(module, module.training) for module, _ in self.modes]
        try:
            put_into(self.modes)
            yield
        finally:
            put_into(now)

    def batch(self):
        """The module with its loss, and a batch of which the shapes alone count."""
        leaves = [torch.empty(shape, dtype=dtype) for dtype, shape in self.leaves]
        return Whole(*self.owners), *pytree.tree_unflatten(leaves, self.structure)


def called(layer):
    return f"'{layer}'" if layer else "the module"


def put_into(modes):
    for module, is_training in modes:
        module.training = is_training
