"""What a compiled step keeps of a module: its layers and hooks, and the numbers, words and truth values that forward and the loss read, in
lists and dicts as well, and the tensors and arrays beside parameters and buffers, which have become constants.

Who changes one of these, a temperature or a rate of dropout, means another training; but an attribute may be read and make no difference,
as the number of an epoch does until the tenth, or be made anew where it does not fit, as a mask is. So what has changed is tried: passes
without numbers, in training and in evaluation, have to be the ones that were compiled. They know no numbers of tensors: where one of these
has changed, the module is recorded once more.
"""

import contextlib

import torch
from torch.utils import _pytree as pytree
from torch.utils.weak import WeakTensorKeyDictionary

from gpuc.capture.forward_state import Attributes, computes_alike, is_same
from gpuc.capture.whole import CAPTURES, Whole
from gpuc.contents import PLACES, Contents, Picture, is_dense, is_placed, is_shared, read
from gpuc.errors import Error
from gpuc.named_values import named_values


OWNERS = WeakTensorKeyDictionary()  # Whose memory a tensor has: one cannot be two buffers, as a module in eager mode has it.


class Made:
    """What a module is made of, as one object until that changes. `lent`: of its buffers, by their names."""

    def __init__(self, module, lent):
        self.module, self.last, self.lent = module, None, lent
        self.tensors = self.own_tensors()
        for name, tensor in self.tensors.items():
            if tensor is not None:
                OWNERS[tensor] = id(module), name
        self.last = self.of

    def own_tensors(self):
        return {**self.module._parameters, **self.module._buffers}

    @property
    def of(self):
        parts = self.module
        forward = getattr(parts.forward, "__func__", parts.forward)
        now = (type(parts), id(forward), *map(id, parts._modules.values()), *parts._parameters, *map(id, self.own_tensors().values()),
               *parts._forward_hooks, *parts._forward_pre_hooks, *(each.is_as_it_was for each in self.lent.values()))  # fmt: skip
        return self.last if now == self.last else now

    def take_buffers(self, whatever=False):
        """Of a buffer that is another tensor, which holds the same or `whatever`, the old one gets the values, and its place; the new one is the
        same memory from then on, for whoever goes on writing into it."""
        for name, now in self.replaced().items():
            before = self.tensors[name]
            owner = id(self.module), name
            if name not in self.module._buffers or now.requires_grad or any(getattr(now, each) != getattr(before, each) for each in ALIKE):
                continue
            if OWNERS.get(now, owner) != owner:
                continue
            if whatever or torch.equal(now, before):
                with torch.no_grad():
                    before.copy_(now)
                self.lent.pop(name, None)
                if lent := Lent.of(now):
                    self.lent[name] = lent
                now.data = before.data
                PLACES[now] = before.data_ptr()
                OWNERS[now] = owner
                self.module._buffers[name] = before

    def replaced(self):
        """What is another tensor than it was, which the plan does not have, by its name."""
        now = self.own_tensors()
        return {name: now[name] for name, before in self.tensors.items()
                if before is not None and now.get(name) is not None and now[name] is not before}  # fmt: skip


    def written_elsewhere(self):
        return [name for name, lent in self.lent.items() if not lent.is_as_it_was]


ALIKE = ("shape", "dtype", "device", "layout")


class Lent:
    """Memory that a buffer had before it got the plan's, and others have: what they write in it, eager mode would see in the buffer."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()
        self.was = Picture(self.tensor)

    @classmethod
    def of(cls, tensor):
        return cls(tensor) if is_dense(tensor) and not is_placed(tensor) and is_shared(tensor) else None

    @property
    def is_as_it_was(self):
        if self.tensor is not None and not is_shared(self.tensor):
            self.tensor = None  # Nobody can write it any more.
        return self.tensor is None or self.was.is_of(self.tensor)


class Constant:
    """A tensor that the export has found."""

    def __init__(self, tensor):
        self.tensor = tensor


class Kept:
    """Entries as a step watches them: (what it is, whose attribute, None, attribute, value)."""

    def __init__(self, recorder, structure, leaves, tries, lent):
        """`structure`: of a batch's args and kwargs, which are of the types and shapes of `leaves`. `tries`: else a change is refused untried, as
        where a pass takes all ranks. `lent`: by the identity of a buffer."""
        self.tries, self.recorder, self.digest = tries, recorder, recorder.digest()
        self.owners, self.passes, self.constants = (recorder.net, recorder.loss), recorder.passes, recorder.captured
        self.structure, self.leaves = structure, leaves
        self.whole = Whole(*self.owners)
        self.modes = [(module, module.training) for module in self.whole.modules()]
        self.parameters = {id(parameter): parameter for parameter in self.whole.parameters()}
        can_try = all(ops is not None for ops, *_ in self.passes)
        self.entries = list(self.all(recorder.read, lent)) if can_try else []  # What cannot be tried would be refused for nothing.
        self.entries += self.other_constants()
        self.ids = {id(entry) for entry in self.entries}

    def all(self, attributes, lent):
        for prefix, owner in zip(("", "loss."), self.owners):
            for path, module in owner.named_modules() if isinstance(owner, torch.nn.Module) else ():
                made = Made(module, {name: lent[id(buffer)] for name, buffer in module._buffers.items() if id(buffer) in lent})
                yield called((prefix + path).rstrip(".")), made, None, "of", made.last
        for layer, module, name, value in attributes:
            if isinstance(value, Contents):
                yield from self.contents(f"{name} of {called(layer)}", value)
            else:
                yield f"{name} of {called(layer)}", module, None, name, value
        for label, owner, name, value in named_values(each for each in self.owners if each is not None):
            if isinstance(owner, Contents):
                yield from self.contents(label, owner)
            else:
                yield label, owner, None, name, value

    def contents(self, label, contents):
        """Of a tensor only if the export has found it."""
        tensors = contents.last.tensors
        if not tensors or any(id(each) in self.constants for each in tensors):
            yield label, contents, None, "of", contents.last

    def other_constants(self):
        """Tensors in no attribute that is watched, as in an object that a list has."""
        known = {id(tensor) for _, owner, *_ in self.entries if isinstance(owner, Contents) for tensor in owner.last.tensors}
        for tensor, file, line in self.constants.values():
            if id(tensor) not in known:
                contents = Contents(Constant(tensor), "tensor")
                yield (f"{file}:{line}: a tensor" if file else "a tensor") + " that is read there", contents, None, "of", contents.last

    def has(self, entry):
        return id(entry) in self.ids

    def take_buffers(self):
        """What someone has just assigned."""
        for _, owner, *_ in self.entries:
            if isinstance(owner, Made):
                owner.take_buffers(whatever=True)

    def check(self, entry):
        """The entry to watch from now on; an error if the step would compute something else."""
        what, owner, _, name, before = entry
        if isinstance(owner, Made):
            owner.take_buffers()
        now = read(owner, name)
        if now is before or is_same(before, now):
            return entry
        if isinstance(owner, Made) and (written := owner.written_elsewhere()):
            raise Error(f"{' and '.join(written)} of {what} was made of memory that has been written since, a view's base, say, or an array of NumPy, "
                        "and the step's is its own: write into the buffer itself, .copy_(…), and not beside it; to go on, assign it anew, net.h = …")  # fmt: skip
        if isinstance(owner, Made) and (others := owner.replaced()):
            raise Error(f"{' and '.join(others)} of {what} is another tensor than when the step was compiled, which goes on with that one: write "
                        "into it, p.copy_(…) under torch.no_grad(), or compile again")  # fmt: skip
        if not self.is_alike(before):
            if isinstance(owner, Made):
                raise Error(f"{what} has another forward(), other layers, parameters or hooks than when the step was compiled: compile again, or put back what it had")
            what = f"{what} holds something else than" if isinstance(owner, Contents) else f"{what} is {now!r}, and was {before!r}"
            raise Error(f"{what} when the step was compiled: compile again, or set it back; what is to change from step to step is an input, "
                        "or a buffer, register_buffer(…), that no branch, mask or size hangs on")  # fmt: skip
        return self.accept(entry)

    def accept(self, entry):
        """The entry with what is there now."""
        _, owner, _, name, _ = entry
        now = read(owner, name)
        if isinstance(owner, (Made, Contents)):
            owner.last = now
        anew = (*entry[:4], now)
        self.entries = [each if each is not entry else anew for each in self.entries]
        self.ids = {id(each) for each in self.entries}
        return anew

    def is_alike(self, before):
        """Whether training and evaluation, as they are now, are what was compiled; `before` is what has changed."""
        if not self.tries or any(id(parameter) not in self.parameters for parameter in self.whole.parameters()):
            return False
        with CAPTURES:
            return self.is_tried_alike(before)

    def is_tried_alike(self, before):
        leaves = [torch.zeros(shape, dtype=dtype) for dtype, shape in self.leaves]
        batch = pytree.tree_unflatten(leaves, self.structure)
        if isinstance(before, Picture) and (before.tensors or before.has_arrays):
            return self.is_recorded_alike(batch)
        return all(self.has_ops(batch, *each) for each in self.passes)

    def is_recorded_alike(self, batch):
        with self.in_modes(self.modes), Attributes(self.whole):
            try:
                return self.recorder.again(*batch).digest() == self.digest
            except Exception:
                return False

    def has_ops(self, batch, ops, is_training, derives):
        with self.in_modes(self.modes if is_training else [(module, False) for module, _ in self.modes]), torch.set_grad_enabled(derives):
            return computes_alike(self.whole, *batch, ops)

    @contextlib.contextmanager
    def in_modes(self, modes):
        now = [(module, module.training) for module, _ in modes]
        try:
            put_into(modes)
            yield
        finally:
            put_into(now)


def called(layer):
    return f"'{layer}'" if layer else "the module"


def put_into(modes):
    for module, is_training in modes:
        module.training = is_training
