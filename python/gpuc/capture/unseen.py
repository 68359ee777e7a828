"""What forward() does to gradients, and torch.export passes over: hooks, parameters that it freezes, writes behind autograd's back. All of that
is refused, but inference_mode, which becomes no_grad."""

import functools
import sys
import traceback

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gpuc.errors import Problem, refuse
from gpuc.lines import is_own, user_line

CURE = "write it with detach(), as in x + (f(x) - x).detach()"


def refuse_here(text):
    file, line = user_line("".join(traceback.format_stack()))
    refuse([Problem(text, "", file, line)])


def enter_saving(hooks):
    """What torch.utils.checkpoint and save_on_cpu do with it changes no number."""
    if type(hooks) is torch.autograd.graph.saved_tensors_hooks and is_asked_by_user():
        refuse_here("saved_tensors_hooks, which a compiled step does not call: leave them out, since what is kept for gradients is the plan's affair, "
                    "checkpoint= and memory_budget=")  # fmt: skip


def refuse_hook(*_):
    refuse_here(f"a hook on a tensor, which a compiled step does not call: {CURE}")


def enter_inference(mode):
    """torch.inference_mode, which the export passes over: as torch.no_grad, which it records. `False` is its contrary."""
    mode.gradients_before = torch.is_grad_enabled()
    torch.set_grad_enabled(not mode.mode)


def leave_inference(mode, *_):
    torch.set_grad_enabled(mode.gradients_before)


NO_WRITES = ("requires_grad_", "detach_", "share_memory_", "rename_", "swapaxes_", "squeeze_", "unsqueeze_", "t_", "transpose_")
OPERATORS = {f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul")}


class Unseen(TorchFunctionMode):
    """Refuses writes that autograd does not see, too: the value is a new one, and the gradient goes on as if it were the old. The export would
    have it be the gradient of what was written."""

    def __init__(self):
        super().__init__()
        self.detached = {}  # By the identity of its memory: a tensor that has none of the gradient of another one there.
        self.beside = {}  # By its identity: what shows the memory of a tensor without a gradient, as a buffer's .data and rows of that do.

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        if name == "requires_grad_" or function == torch.Tensor.requires_grad.__set__:
            check_frozen(*args, **kwargs)
        elif function == torch.Tensor.grad.__get__:
            check_gradient(*args)
        elif function == torch.Tensor.grad_fn.__get__:
            return Node.of(function(*args))
        first = args[0] if args else None
        is_beside = id(first) in self.beside
        if name != "detach" and "out" not in kwargs and not is_write(name):
            out = function(*args, **kwargs)
            if is_beside:
                self.follow(first, out)
            return out
        for written in (first if is_write(name) else None, kwargs.get("out")):
            if is_float(written):
                self.check(written)
        if is_beside and name != "detach":  # The tensor itself gets no gradient by that.
            args, kwargs = pytree.tree_map_only(torch.Tensor, without_gradient, (args, kwargs))
        out = function(*args, **kwargs)
        if name == "detach" and is_float(first) and first.requires_grad:
            self.detached[memory_of(out)] = out
        elif name == "detach" and is_float(first):
            self.beside[id(out)] = out
        return out

    def follow(self, tensor, results):
        for each in results if isinstance(results, (tuple, list)) else (results,):
            if is_float(each) and memory_of(each) == memory_of(tensor):
                self.beside[id(each)] = each

    def check(self, tensor):
        # Whether it is a leaf is asked last: of a product of several matrices torch makes a tensor for that which no graph has.
        if not torch.is_grad_enabled() and tensor.requires_grad and not tensor.is_leaf:
            refuse_here("changes a tensor in place under torch.no_grad, and the gradient would not know: write it as x = x + (new - x).detach()")
        if not tensor.requires_grad and memory_of(tensor) in self.detached:
            refuse_here("changes a tensor in place by what detach() gave, and the gradient would not know: write detach().clone(), or, if the tensor "
                        "itself is to change, x = x + (new - x).detach()")  # fmt: skip


def check_frozen(tensor, requires_grad=True):
    """A parameter that forward() freezes, or thaws, has a gradient or none from then on, in the next pass too; the export goes on as if nothing were."""
    if isinstance(tensor, torch.nn.Parameter) and tensor.requires_grad != requires_grad:
        refuse_here("freezes or unfreezes a parameter, and a compiled step trains what is trained when it is compiled: do that before, or read "
                    "weight.detach(), or the layer under torch.no_grad()")  # fmt: skip


def check_gradient(tensor):
    """What makes tensors without numbers looks there, too."""
    if isinstance(tensor, torch.nn.Parameter) and is_asked_by_user():
        refuse_here("reads the .grad of a parameter, and a compiled step leaves none there: torch.autograd.grad(loss, weights) gives a gradient within "
                    "a step")  # fmt: skip


class Node:
    """A tensor's grad_fn, to look at."""

    def __init__(self, node):
        self.node = node

    @classmethod
    def of(cls, node):
        return node if node is None or not is_asked_by_user() else cls(node)

    def __getattr__(self, name):
        return refuse_hook if name in ("register_hook", "register_prehook") else getattr(self.node, name)


def without_gradient(tensor):
    return tensor.detach() if tensor.requires_grad else tensor


def is_float(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def is_asked_by_user():
    """By a line of theirs, behind this file's functions and other modes'; not by a formula of gpuc's that they call."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__ or frame.f_code.co_name == "__torch_function__":
        frame = frame.f_back
    return not is_own(frame.f_code.co_filename)


@functools.cache
def is_write(name):
    return name == "__setitem__" or name in OPERATORS or (name.endswith("_") and not name.endswith("__") and name not in NO_WRITES)


def memory_of(tensor):
    return tensor.untyped_storage()._cdata


enter_saving_of_torch = torch.autograd.graph.saved_tensors_hooks.__enter__
REPLACED = (  # While a module is captured.
    (torch.Tensor, "register_hook", refuse_hook),
    (torch.Tensor, "register_post_accumulate_grad_hook", refuse_hook),
    (torch.inference_mode, "__enter__", enter_inference),
    (torch.inference_mode, "__exit__", leave_inference),
    (torch.autograd.graph.saved_tensors_hooks, "__enter__", lambda hooks: enter_saving(hooks) or enter_saving_of_torch(hooks)),
)
