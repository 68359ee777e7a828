"""A pass on the example's numbers, of a module that does what a compiled step does not do alike whatever the numbers are."""

import traceback

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from gpuc.capture.forward_state import Attributes, same_random
from gpuc.errors import Problem, refuse
from gpuc.formulas.checks import FAILS, OfExample
from gpuc.lines import user_line

WRITES = "index_put index_copy scatter put".split()
TWICE = ("writes several values to one place, which PyTorch calls undefined: a compiled step writes their mean, or the last where a mask says the places, and "
         "PyTorch on a CPU the last: add them up, or let no index come twice")  # fmt: skip


def writes_by_places(program):
    return any(written_by(node.target) for node in program.graph.nodes if node.op == "call_function")


def written_by(op):
    """The name of an op that writes values by indices; None: it is none."""
    name = op._schema.name.removeprefix("aten::").removeprefix("_").removesuffix("_").removesuffix("_impl") if isinstance(op, torch._ops.OpOverload) else ""
    return name if name in WRITES and (name != "scatter" or op._overloadname == "src") else None


def check_example(module, args, kwargs, unchecked, writes):
    """What is left out as a check has to be passed by the example. Warns where it writes something twice, if it writes."""
    if not unchecked and not writes:
        return
    tensors = {name: each.detach().clone() for name, each in (*module.named_parameters(), *module.named_buffers())}
    copies = pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, (args, kwargs))
    with Attributes(module), same_random(), torch.no_grad(), OfExample() as found, Writes() as twice:
        try:
            torch.func.functional_call(module, tensors, *copies)
        except Exception:
            return  # The example does not say anything.
    if found.differ:
        refuse([Problem(FAILS[found.differ[0][0]], "", *found.differ[0][1:])])
    unchecked += [Problem(TWICE, "", *line) for line in dict.fromkeys(twice.lines)]


class Writes(TorchDispatchMode):
    """`lines`: which write several values to one place."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = written_by(function)
        if name and comes_twice(name, *args, **(kwargs or {})):
            self.lines.append(user_line("".join(traceback.format_stack())))
        return function(*args, **(kwargs or {}))


def comes_twice(name, tensor, *args, **_):
    if name == "scatter":
        dim, index = args[:2]
        found = index.sort(dim).values if index.dim() else index.reshape(1)
        return bool((found.diff(dim=dim) == 0).any()) if index.dim() else False
    if name == "index_copy":
        return len(args[1].unique()) < args[1].numel()
    places, values = args[:2]
    accumulates = len(args) > 2 and args[2]
    places = [each for each in (places if isinstance(places, (list, tuple)) else [places]) if each is not None]
    if accumulates or values.numel() == 1 or any(each.dtype in (torch.bool, torch.uint8) for each in places):
        return False
    rows = torch.stack([each.flatten() for each in torch.broadcast_tensors(*places)])
    return rows.unique(dim=1).shape[1] < rows.shape[1]
