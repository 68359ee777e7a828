"""One pass of torch.export over a module, with torch changed meanwhile."""

import contextlib
import io
import logging
import sys
import traceback

import torch
from torch.overrides import TorchFunctionMode

from gpuc.capture.custom_gradients import custom_gradients, put
from gpuc.capture.forward_state import DetachedData, layers_that_stay, same_random
from gpuc.capture.functional import index_by_tensors
from gpuc.capture.inner_gradients import inner_gradients
from gpuc.formulas import known_sequences, without_questions
from gpuc.lines import is_own


def capture_pass(module, args, kwargs, *within):
    gradients = custom_gradients() if torch.is_grad_enabled() else contextlib.nullcontext()
    with contextlib.ExitStack() as around:
        known = (inner_gradients(), without_questions(), known_sequences(), without_detours())
        for each in (same_random(), *known, gradients, layers_that_stay(), *within, DetachedData()):
            around.enter_context(each)
        return index_by_tensors(torch.export.export(module, args, kwargs))


class Held(TorchFunctionMode):
    """Parameters and buffers that are read from a list, a dict or a variable: `penalty = sum(p.square().sum() for p in weights)`. torch.export
    puts its own in a module's place, and would take these for constants."""

    def __init__(self, root):
        super().__init__()
        self.places = {id(tensor): (tensor, store, name) for owner in root.modules() for store in (owner._parameters, owner._buffers)
                       for name, tensor in store.items() if tensor is not None}  # fmt: skip

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*map(self.current, args), **{key: self.current(each) for key, each in (kwargs or {}).items()})

    def current(self, value):
        if isinstance(value, torch.Tensor):
            _, store, name = self.places.get(id(value), (None, {None: value}, None))
            return store.get(name, value)
        if type(value) in (list, tuple):
            return type(value)(map(self.current, value))
        return value


@contextlib.contextmanager
def held(root):
    """torch.autograd.grad is Python's by now, which no mode sees."""
    mode, grad = Held(root), torch.autograd.grad
    with contextlib.ExitStack() as undo, mode:
        put(undo, torch.autograd, "grad", lambda *args, **kwargs: mode.__torch_function__(grad, (), args, kwargs))
        yield


class UsersLines:
    """In the place of torch's own traceback: the user's frames alone, of which an error says the innermost. torch.export looks up the text of some
    sixty lines for each op, and keeps those that stand in what is called forward(): of what that has put into functions of its own there would be
    none, nor of a loss that is one."""

    @staticmethod
    def extract():
        return UsersLines

    @staticmethod
    def summary():
        frame, found = sys._getframe(2), []
        while frame and frame.f_code is not capture_pass.__code__:
            if not is_own(frame.f_code.co_filename):
                found.append(traceback.FrameSummary(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, line=""))
            frame = frame.f_back
        return traceback.StackSummary.from_list(found[::-1])


class Everything:
    def __contains__(self, _):
        return True


@contextlib.contextmanager
def without_detours():
    """What torch.export does for others than gpuc, and takes a quarter of its time: texts of torch's own lines, and Python's code for the graph
    after each of its passes, which nobody calls. Where a torch has it otherwise, it stays."""
    of_torch, lazy = torch.fx.proxy, getattr(torch.fx._lazy_graph_module, "_use_lazy_graph_module", None)
    with contextlib.ExitStack() as undo:
        if hasattr(of_torch, "CapturedTraceback") and hasattr(of_torch, "_STACK_TRACE_ANCHORS"):
            put(undo, of_torch, "CapturedTraceback", UsersLines)
            put(undo, of_torch, "_STACK_TRACE_ANCHORS", Everything())  # What it keeps beside what is called forward().
        if lazy:
            undo.enter_context(lazy(True))
        yield


@contextlib.contextmanager
def quietly():
    """Where torch.export gives up it writes its graph, and notes of it, on stderr: the error says what is wrong."""
    said = io.StringIO()
    logger = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    logger.addFilter(is_no_note)
    failures = logging.getLogger("torch._subclasses.fake_tensor")  # The error has the same words.
    was_disabled, failures.disabled = failures.disabled, True
    graph = None
    try:
        with contextlib.redirect_stderr(said):
            yield
    except Exception as error:
        graph = getattr(error, "partial_fx_graph", None)
        raise
    finally:
        logger.removeFilter(is_no_note)
        failures.disabled = was_disabled
        text = said.getvalue()  # What the module itself writes stays.
        sys.stderr.write(text if graph is None else text.replace(f"{graph}\n", ""))


def is_no_note(record):
    return not record.msg.startswith("Unable to find user code")
