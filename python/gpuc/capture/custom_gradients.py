"""Gradients that a module gives by itself, which torch.export drops without a word: torch.autograd.Function.

Of a Function the export keeps forward() and forgets backward(). So each call is tried on random numbers first. If its backward() is the
derivative of its forward(), nothing is lost. Else it has to be linear in what it is given, as derivatives are, and then

    y = detach(forward(x)) + B'(x - detach(x)),  where backward(g) = B(g) and B' is B transposed

has forward's value, since what is added is 0, and backward's gradient, since that of B' is B. What is neither is refused.
"""

import contextlib
import functools
import re

import torch
from torch.autograd import grad
from torch.autograd.function import FunctionCtx, FunctionMeta, once_differentiable
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.checkpoint import CheckpointFunction

from gpuc.capture.unseen import CURE, REPLACED, Unseen, is_float, refuse_here

SCALES = (1e-2, 1.0, 1e2)  # Of what a function is tried on: where it saturates, it should be seen to.
ONCE = once_differentiable(lambda ctx: None).__code__
OF_WRITES = "modified by an inplace operation"  # torch's words.
OF_VALUES = re.compile("data-dependent|DataDependent|unbacked|local_scalar_dense|FakeTensor")  # torch's words.


class Context(FunctionCtx):
    """The `ctx` of a forward() that nothing but a backward() called here will see."""

    to_save = ()

    def __init__(self, needs_input_grad):
        self.needs_input_grad = needs_input_grad

    @property
    def saved_tensors(self):
        return tuple(self.to_save)


class Call:
    """One call of a Function: `forward` is its own, whatever stands in its place meanwhile."""

    def __init__(self, function, forward, args):
        self.function, self.forward, self.args = function, forward, args
        self.wanted = tuple(isinstance(each, torch.Tensor) and each.requires_grad for each in args)
        self.backward = function.backward
        if getattr(self.backward, "__code__", None) is ONCE:  # It forbids to look at its derivative.
            self.backward = self.backward.__wrapped__

    def run(self, args):
        """The context, and the outputs as a tuple."""
        ctx = Context(self.wanted)
        if has_setup(self.function):
            out = self.forward(*args)
            self.function.setup_context(ctx, args, out)
        else:
            out = self.forward(ctx, *args)
        return ctx, out if isinstance(out, tuple) else (out,)

    def gradients(self, ctx, cotangents):
        """What backward() gives for the inputs that want something, None where it gives nothing."""
        found = self.backward(ctx, *cotangents)
        found = found if isinstance(found, tuple) else (found,)
        return [each for each, wanted in zip(found, self.wanted) if wanted]


def has_setup(function):
    return function.setup_context is not torch.autograd.Function.setup_context


#
# What a backward() is, by random numbers
#


class Trial:
    """A call's forward() and backward() on tensors of the same shapes and types, filled at random."""

    def __init__(self, call, scale, fill):
        self.call = call
        self.args = tuple(self.like(each, scale, fill) for each in call.args)
        with torch.no_grad():
            _, self.outputs = self.run()

    def run(self):
        """Of copies, which forward() may change in place. What it draws is the same each time."""
        torch.manual_seed(0)
        return self.call.run(tuple(each.clone() if isinstance(each, torch.Tensor) else each for each in self.args))

    def gradients(self, cotangents):
        with torch.no_grad():
            return self.call.gradients(self.run()[0], cotangents)

    @staticmethod
    def like(value, scale=1.0, fill=torch.randn):
        if not isinstance(value, torch.Tensor):
            return value
        if not value.is_floating_point():
            return torch.zeros(value.shape, dtype=value.dtype)  # An index that there is.
        return scale * fill(value.shape, dtype=value.dtype)

    def cotangents(self, scale=1.0):
        return [self.like(each, scale) if is_float(each) else None for each in self.outputs]

    def is_derivative(self):
        """Whether backward() is what autograd makes of forward()."""
        leaves = [each.requires_grad_() for each, wanted in zip(self.args, self.call.wanted) if wanted]
        with torch.enable_grad():
            _, outputs = self.run()
        if not any(is_float(out) and out.requires_grad for out in outputs):
            return False
        for scale in SCALES:
            cotangents = self.cotangents(scale)
            pairs = [(out, each) for out, each in zip(outputs, cotangents) if is_float(out) and out.requires_grad]
            try:
                expected = grad([out for out, _ in pairs], leaves, [each for _, each in pairs], retain_graph=True, allow_unused=True)
            except RuntimeError as error:
                if OF_WRITES not in str(error):
                    raise
                return False  # It writes over what autograd would have needed, and has its backward() for that.
            if not all(map(are_close, self.gradients(cotangents), expected)):
                return False
        return True

    def is_linear(self):
        """Whether backward() of a sum is the sum of what it gives of each part, small and large."""
        for scale in SCALES:
            one, other = self.cotangents(scale), self.cotangents(scale)
            both = [a if a is None else 2 * a - 3 * b for a, b in zip(one, other)]
            parts = zip(self.gradients(one), self.gradients(other))
            expected = [None if a is None else 2 * a - 3 * b for a, b in parts]
            if not all(map(are_close, self.gradients(both), expected)):
                return False
        return True


def are_close(found, expected):
    if found is None or expected is None:
        given = expected if found is None else found
        return given is None or not bool(given.any())
    largest = max(found.abs().max(), expected.abs().max()) if found.numel() else 0
    tolerance = torch.finfo(found.dtype).eps ** 0.5
    distance = float((tolerance * torch.as_tensor(largest)).nan_to_num(0, 0))
    return found.shape == expected.shape and torch.allclose(found, expected, rtol=tolerance, atol=distance, equal_nan=True)


@contextlib.contextmanager
def apart():
    """Out of the export's sight, and with the user's random numbers left alone."""
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        yield


def kind_of(call):
    """"derivative", "linear", or why it is neither."""
    why = ""
    for fill, scales in ((torch.randn, SCALES), (torch.rand, (1.0,))):  # In the place of probabilities there can be nothing else.
        try:
            with apart():
                return kind_by([Trial(call, scale, fill) for scale in scales])
        except Exception as error:
            said = (str(error).strip().splitlines() or [type(error).__name__])[0]
            why = why or ("it asks for the value of a tensor of the module's" if OF_VALUES.search(said) else said)
    return f"is no derivative that gpuc could try ({why})"


def kind_by(trials):
    if all(trial.is_derivative() for trial in trials):
        return "derivative"
    return "linear" if all(trial.is_linear() for trial in trials) else "is not linear in the gradient that it is given"


#
# While a module is captured
#


def is_recording_gradients():
    """By the graph: apply() has switched them off already, without a word to the export."""
    tracer = torch._ops._get_dispatch_mode_pre_dispatch(torch._C._TorchDispatchModeKey.PROXY).tracer
    switches = [node for node in tracer.graph.nodes if node.target is torch._C._set_grad_enabled]
    return not switches or switches[-1].args[0]


@contextlib.contextmanager
def grad_mode():
    """On, and not seen by the export: a forward() that switches gradients off and back would leave them off for all that comes after."""
    with torch._C.DisableTorchFunction():
        before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(True)
    try:
        yield
    finally:
        with torch._C.DisableTorchFunction():
            torch._C._set_grad_enabled(before)


def with_gradient(call):
    """The outputs, so that their gradient is backward()'s."""
    with torch._C.DisableTorchFunction():  # What forward() does to them is not looked at.
        plain = tuple(each.detach() if wanted else each for each, wanted in zip(call.args, call.wanted))
    ctx, outputs = call.run(plain)
    if getattr(ctx, "dirty_tensors", None):
        refuse_here(f"{call.function.__name__} changes its input in place, and has a gradient of its own: {CURE}")
    moves = [each - same for each, same, wanted in zip(call.args, plain, call.wanted) if wanted]
    cotangents = [torch.zeros_like(each).requires_grad_() if is_float(each) else None for each in outputs]
    gradients = call.gradients(ctx, cotangents)
    pairs = [(gradient, move) for gradient, move in zip(gradients, moves) if gradient is not None and gradient.requires_grad]
    sought = [each for each in cotangents if each is not None]
    with torch._C.DisableTorchFunction():  # Or it would ask for torch.autograd.grad by its name, behind which another one stands.
        found = iter(grad([each for each, _ in pairs], sought, [move for _, move in pairs], allow_unused=True)
                     if pairs else [None] * len(sought))  # fmt: skip
    sums = [None if each is None else next(found) for each in cotangents]
    return tuple(out if added is None else out + added for out, added in zip(outputs, sums))


def captured(function, forward):
    """What stands in the place of `forward` while the module is captured."""

    def run(*given):
        call = Call(function, forward, given if has_setup(function) else given[1:])
        if not any(call.wanted) or not is_recording_gradients():
            return forward(*given)
        kind = kind_of(call)
        if kind not in ("derivative", "linear"):
            refuse_here(f"{function.__name__}.backward() {kind}, and torch.export would drop it: {CURE}")
        with grad_mode():
            if kind == "derivative":
                return forward(*given)
            outputs = with_gradient(call)
        return outputs if len(outputs) > 1 else outputs[0]

    return run


def checkpointed(ctx, run_function, preserve_rng_state, *args):
    """torch.utils.checkpoint: what is computed again is the plan's to choose."""
    if not is_recording_gradients():
        return run_function(*args)
    if not any(isinstance(each, torch.Tensor) and each.requires_grad for each in args):  # PyTorch warns that there are no gradients then.
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, run_function(*args))
    with grad_mode():
        return run_function(*args)


def all_functions(base=torch.autograd.Function):
    for each in base.__subclasses__():
        yield each
        yield from all_functions(each)


@contextlib.contextmanager
def custom_gradients():
    """Within, modules that are exported keep the gradients that they give by themselves."""
    known = [(each, each.forward) for each in all_functions() if not each.__module__.startswith("torch.")]
    with contextlib.ExitStack() as undo:
        for function, forward in known:
            put(undo, function, "forward", staticmethod(captured(function, forward)))
        put(undo, CheckpointFunction, "forward", staticmethod(checkpointed))
        make = FunctionMeta.__init__

        def make_captured(function, *args):
            """A class that forward() itself makes."""
            make(function, *args)
            put(undo, function, "forward", staticmethod(captured(function, function.forward)))

        put(undo, FunctionMeta, "__init__", make_captured)
        for owner, name, replacement in REPLACED:
            put(undo, owner, name, replacement)
        undo.enter_context(Unseen())
        yield


def put(undo, owner, name, value):
    """Sets an attribute of a class or a module until `undo` ends."""
    before = vars(owner).get(name)
    undo.callback(lambda: delattr(owner, name) if before is None else setattr(owner, name, before))
    setattr(owner, name, value)
