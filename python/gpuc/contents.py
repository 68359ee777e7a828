"""What lies in a value that a compiled step keeps: the numbers of tensors and arrays, and of lists and dicts what they hold, at any depth."""

import sys
import zlib

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils.weak import WeakTensorKeyDictionary

from gpuc.batches import bytes_of

SIMPLE = (bool, int, float, str, type(None))
HOLDERS = (list, tuple, dict, set)
MOST_PARTS = 10000  # That are looked at of a list; what is longer is that list.
NONE = object()
PLACES = WeakTensorKeyDictionary()  # Where in a plan's memory a tensor lies.


def read(owner, attribute):
    """An object where there is none: others' __getattr__ may fail in any way."""
    try:
        return getattr(owner, attribute)
    except Exception:
        return NONE


def is_array(value):
    return "numpy" in sys.modules and isinstance(value, sys.modules["numpy"].ndarray) and value.dtype != object


def has_contents(value):
    """Whether it may be the same object and hold something else."""
    return isinstance(value, HOLDERS) or is_array(value) or is_dense(value)


def is_dense(value):
    return isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor) and value.layout == torch.strided and value.device.type == "cpu"


def is_of_others(tensor):
    """Whether its memory is NumPy's, say, which writes it without a word."""
    return not tensor.untyped_storage().resizable() and not is_placed(tensor)


def is_placed(tensor):
    """Whether it lies where a step has put it."""
    return tensor.data_ptr() == PLACES.get(tensor)


def is_shared(tensor):
    """Whether others may write its memory: one that is no tensor's, or that is another tensor's, too."""
    if is_of_others(tensor):
        return True
    holders = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata) - 2  # Itself, and what was asked for here.
    return holders - (tensor._base is not None and sys.getrefcount(tensor._base) <= 2) > 0  # A base that nobody else has.


METADATA = ("torchvision", "monai")  # Packages whose tensors carry something along, and compute what torch's do.


def why_not_plain(tensor):
    """What a tensor is that a plan does not hold as it stands, and the cure; None: it is one."""
    kind = type(tensor)
    if tensor.is_nested:
        return "is nested, and gpuc's tensors are dense: pad its rows, .to_padded_tensor(0)"
    if computes_otherwise(kind):
        return f"is a {kind.__name__}, which computes by functions of its own, and a compiled step by torch's: make it a plain tensor"
    if tensor.layout != torch.strided:
        return "is sparse, and gpuc's tensors are dense: make it .to_dense()"
    return None


def computes_otherwise(kind):
    """A class of tensors that has torch's functions or ops do something else."""
    if kind in (torch.Tensor, torch.nn.Parameter) or kind.__module__.partition(".")[0] in METADATA:
        return False
    function = getattr(kind.__torch_function__, "__func__", kind.__torch_function__)
    known = torch.Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl
    return function not in known or kind.__torch_dispatch__ is not torch._C._disabled_torch_dispatch_impl


class Contents:
    """Of an attribute, as one object until that changes."""

    def __init__(self, owner, attribute):
        self.owner, self.attribute, self.last = owner, attribute, None
        self.last = self.of

    @property
    def of(self):
        now = read(self.owner, self.attribute)
        return self.last if self.last and self.last.is_of(now) else Picture(now)


class Picture:
    """A value as it was. Tensors that nobody has written since are taken by their word."""

    def __init__(self, value):
        self.versions, self.held = {}, []  # By the identity of a tensor: itself, its version, its numbers. What is known by identity alone.
        self.has_arrays, self.parts = False, 0
        self.form = self.form_of(value)

    def is_of(self, value):
        held, self.parts = len(self.held), 0
        is_same = self.form_of(value) == self.form
        del self.held[held:]
        return is_same

    @property
    def tensors(self):
        return [tensor for tensor, _, _ in self.versions.values()]

    def form_of(self, value):
        self.parts += 1
        if isinstance(value, SIMPLE):
            return type(value), repr(value)
        if self.parts > MOST_PARTS:
            return self.identity_of(value)
        if isinstance(value, (list, tuple)):
            return type(value), *map(self.form_of, value)
        if isinstance(value, dict):
            return type(value), *((self.form_of(key), self.form_of(each)) for key, each in value.items())
        if isinstance(value, set):
            return type(value), frozenset(map(self.form_of, value))
        if is_dense(value) and not isinstance(value, torch.nn.Parameter):  # Which training changes.
            return self.form_of_tensor(value)
        if is_array(value):
            self.has_arrays = True
            return value.shape, str(value.dtype), zlib.crc32(value.tobytes())
        return self.identity_of(value)

    def identity_of(self, value):
        self.held.append(value)  # So that no other object gets it.
        return id(value)

    def form_of_tensor(self, tensor):
        version = None if tensor.is_inference() or is_of_others(tensor) else tensor._version
        known = self.versions.get(id(tensor))
        if known and version is not None and known[1] == version:
            return known[2]
        form = tuple(tensor.shape), str(tensor.dtype), zlib.crc32(bytes_of(tensor.detach()))
        self.versions[id(tensor)] = tensor, version, form
        return form
