"""Masks that hang on constants alone, as `~torch.eye(n).bool()` does: what they choose is known before a step runs, and has a shape.

torch.export computes without numbers. What a module makes of numbers alone is noted here, op by op, and computed when a mask of it is an
index, or Python asks for it: x[mask] becomes x[i, j]. A buffer that a pass leaves as it is counts as such a number: a graph, a flag. Who
changes it behind the step is told, as of a constant.
"""

import contextlib
import re
import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from gpuc.capture.unseen import is_write, memory_of
from gpuc.lines import user_line

# What makes tensors of numbers, and of another one's shape.
MAKERS = {torch.arange, torch.eye, torch.full, torch.linspace, torch.ones, torch.tensor, torch.tril_indices, torch.triu_indices, torch.zeros}
LIKE = {torch.ones_like, torch.zeros_like, torch.full_like, torch.Tensor.new_ones, torch.Tensor.new_zeros, torch.Tensor.new_full}
DRAWS = re.compile("rand|bernoulli|multinomial|normal|dropout|uniform|empty|exponential_|geometric_|cauchy_|poisson|shuffle")
NUMBERS = {torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.__bool__, torch.Tensor.__int__, torch.Tensor.__float__, torch.Tensor.__index__}
SELECTS = {torch.masked_select, torch.Tensor.masked_select}
PLACES = {torch.nonzero, torch.Tensor.nonzero, torch.argwhere, torch.Tensor.argwhere}
WHERE = {torch.where, torch.Tensor.where}


@contextlib.contextmanager
def as_outside():
    """With numbers, and nothing of it in the graph."""
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        yield


class Made:
    """A tensor by the call that makes it. `writes`: into its first argument."""

    def __init__(self, function, args, kwargs, writes=False):
        self.call, self.writes, self.known = (function, args, kwargs), writes, None

    def value(self):
        if self.known is None:
            function, args, kwargs = self.call
            args, kwargs = pytree.tree_map(lambda each: each.value() if isinstance(each, Made) else each, (args, kwargs))
            if self.writes:
                args = (args[0].clone(), *args[1:])
            result = function(*args, **kwargs)
            self.known = args[0] if self.writes else result
        return self.known


class KnownMasks(TorchFunctionMode):
    def __init__(self, root=None):
        super().__init__()
        # While a module is captured other tensors are in the places of these.
        self.buffers = [(buffer, module._buffers, name) for module in (root.modules() if root else ()) for name, buffer in module._buffers.items()
                        if buffer is not None and (buffer.numel() == 1 or not buffer.is_floating_point())]  # fmt: skip
        self.made = {}  # By the identity of a tensor: that, and how it is made.
        self.written = {}  # By its identity: one that is real, and is no more what it was.
        self.used_buffers = {}  # By identity: those that have made a difference.
        self.is_used, self.read = False, []  # Tensors that forward() has not made: (tensor, file, line).

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        made = self.described(function, args, kwargs)
        if function is torch.Tensor.__setitem__ and isinstance(args[2], torch.Tensor) and args[2].dim() > 0:
            index = self.index_of_places(*args[:2])
            self.is_used |= index is not None
            args = args if index is None else (args[0], index, args[2])
        out = self.chosen(function, args, kwargs)
        if out is None:
            out = function(*args, **kwargs)
        else:
            self.is_used = True
        self.note(function, args, kwargs, out, made)
        return out

    #
    # What is known
    #

    def described(self, function, args, kwargs):
        """The call with what is known in the place of tensors; None if it hangs on another one, or draws."""
        if function in LIKE:
            if any(isinstance(each, torch.Tensor) for each in pytree.tree_leaves((args[1:], kwargs))):
                return None
            with as_outside():
                like = torch.empty((), dtype=args[0].dtype, device="meta").expand(args[0].shape)
            return Made(function, (like, *args[1:]), {**kwargs, "device": "cpu"})
        if DRAWS.search(getattr(function, "__name__", "")):
            return None
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if not any(isinstance(each, torch.Tensor) for each in leaves) and function not in MAKERS:
            return None
        if any(hasattr(type(each), "__torch_function__") and not isinstance(each, torch.Tensor) for each in leaves):
            return None  # A pair of tensors, which may be data.
        known = [self.of(each) if isinstance(each, torch.Tensor) else each for each in leaves]
        if any(each is None and isinstance(leaf, torch.Tensor) for each, leaf in zip(known, leaves)):
            return None
        args, kwargs = pytree.tree_unflatten(known, structure)
        return Made(function, args, kwargs, writes=is_write(getattr(function, "__name__", "")))

    def of(self, tensor):
        """How a tensor is made. One of a real value is what it is, but a parameter, which is trained."""
        if id(tensor) in self.made:
            return self.made[id(tensor)][1]
        if (buffer := self.buffer_of(tensor)) is not None:
            return Made(lambda: self.noted(buffer), (), {})
        is_real = type(tensor) is torch.Tensor and not tensor.requires_grad and id(tensor) not in self.written
        return Made(lambda: tensor, (), {}) if is_real else None

    def buffer_of(self, tensor):
        """What it is, if this pass has not written it so far."""
        if id(tensor) in self.written:
            return None
        return next((buffer for buffer, store, name in self.buffers if store.get(name) is tensor), None)

    def noted(self, buffer):
        """For it to be looked at from then on."""
        self.used_buffers[id(buffer)] = buffer
        self.read.append((buffer, *user_line("".join(traceback.format_stack()))))
        return buffer.detach()

    def note(self, function, args, kwargs, out, made):
        if is_write(getattr(function, "__name__", "")) or "out" in kwargs:
            written = kwargs.get("out", args[0])
            if isinstance(written, torch.Tensor):
                self.forget(written)
                self.written[id(written)] = written
            out = written if "out" not in kwargs else None
        if made is not None and isinstance(out, torch.Tensor):
            self.made[id(out)] = out, made

    def forget(self, written):
        """And what shares its memory."""
        place = memory_of(written)
        self.made = {key: each for key, each in self.made.items() if memory_of(each[0]) != place}

    def value(self, tensor):
        """Of a tensor that is known, else None."""
        made = self.of(tensor) if isinstance(tensor, torch.Tensor) else None
        if made is None:
            return None
        with as_outside(), torch.no_grad():
            found = made.value()
        if id(tensor) not in self.made and self.buffer_of(tensor) is None:
            self.read.append((tensor, *user_line("".join(traceback.format_stack()))))
        return found

    #
    # What it chooses
    #

    def chosen(self, function, args, kwargs):
        """What the call gives, if a mask that is known says so."""
        if function is torch.Tensor.__getitem__:
            return self.indexed(*args)
        if function in NUMBERS and (known := self.value(args[0])) is not None:
            with as_outside():
                return function(known)
        if function in SELECTS:
            return self.selected(*args, **kwargs)
        if function in PLACES or (function in WHERE and len(args) == 1 and not kwargs):
            return self.places(function, args[0], kwargs.get("as_tuple", function in WHERE))
        return None

    def indexed(self, tensor, index):
        index = self.index_of_places(tensor, index)
        return None if index is None else tensor[index]

    def index_of_places(self, tensor, index):
        """The index by numbers in the place of masks, if it has some, and all of them are known."""
        whole = index if isinstance(index, tuple) else (index,)
        known = [self.value(each) if is_mask(each) else each for each in whole]
        if not any(map(is_mask, whole)) or any(each is None and is_mask(given) for each, given in zip(known, whole)):
            return None
        if any(isinstance(each, torch.Tensor) and not is_mask(each) for each in whole):
            return None
        with as_outside():
            torch.zeros((), dtype=torch.bool).expand(tensor.shape)[tuple(known)]  # Or it says what does not fit.
        return tuple(own for each in known for own in (places_of(each) if is_mask(each) else [each]))

    def selected(self, input, mask):
        known = self.value(mask)
        if known is None:
            return None
        shape = torch.broadcast_shapes(input.shape, mask.shape)
        return input.expand(shape)[places_of(known, shape)]

    def places(self, function, mask, as_tuple):
        known = self.value(mask)
        if known is None:
            return None
        return places_of(known) if as_tuple else torch.stack(places_of(known), 1)


def places_of(mask, shape=None):
    """By dimension."""
    with as_outside():
        numbers = mask.expand(mask.shape if shape is None else shape).nonzero().T.tolist()
    return tuple(torch.tensor(each, dtype=torch.int64) for each in numbers)


def is_mask(value):
    return isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.dim() > 0
