"""Records a module's training as plain data, by torch.export: what frontend/torch/Graph.h describes.

The graph that torch.export makes is kept functional and otherwise whole: what the compiler knows as a layer stays one.
What it does not know is taken apart by PyTorch's own decompositions.
What it would drop without a word is put in or refused: backward hooks, torch.no_grad, what a buffer becomes, gradients and
state of one's own (custom_gradients.py, forward_state.py). What hangs on constants alone is computed here, by torch.
"""

import contextlib
import functools
import inspect
import io
import json
import logging
import operator
import sys
import threading
import traceback
import warnings
import zlib
from types import SimpleNamespace

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException
from torch.export.graph_signature import InputKind, OutputKind
from torch.nn.modules.batchnorm import _NormBase
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from gpuc.batches import checksum_of
from gpuc.contents import has_contents, is_dense, why_not_plain
from gpuc.custom_gradients import custom_gradients, put
from gpuc.errors import Error, Problem, refuse
from gpuc.forward_state import AssignedBuffers, DetachedData, check_repetition, reads_of, same_random, layers_that_stay
from gpuc.formulas import Choices, ComplexNumbers, KnownMasks, known_sequences, without_questions
from gpuc.formulas.choices import Chosen
from gpuc.formulas.complex_numbers import Pair
from gpuc.formulas.cures import cure_of_type, cured
from gpuc.functional import Rules, functional, name_of
from gpuc.inner_gradients import has_gradients, inner_gradients, mark_inputs
from gpuc.lines import beginning_of, is_own, own_name, user_line
from gpuc.triangles import Triangle

TYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int8: "i8", torch.uint8: "ui8", torch.bool: "i1",
}  # fmt: skip
RESERVED = {"accuracy", "evaluate", "init", "loss", "lr", "predict", "seed", "step", "updates"}
MOST_CONSTANT_ELEMENTS = 1 << 16  # Larger ones are variables, so that the text stays small.
LEAST_TRIANGLE_ELEMENTS = 1 << 10  # Smaller ones are written out.


CAPTURES = threading.RLock()  # Around all that runs a module with torch changed, one thread after another.


class HangsOnValue(Error):
    """A shape or a number of which only a tensor's value decides."""


class Whole(torch.nn.Module):
    """A module with its loss. Without one its first output, or its output's `loss`, an attribute or a key, is the loss."""

    def __init__(self, net, loss):
        super().__init__()
        self.net, self.loss = net, loss

    def forward(self, *args, **kwargs):
        with AssignedBuffers(self):
            return self.results(*args, **kwargs)

    def results(self, *args, **kwargs):
        if self.loss is None:
            out = self.given(*args, **kwargs)
            if isinstance(out, torch.Tensor):
                return out
            loss = out.get("loss") if isinstance(out, dict) else getattr(out, "loss", None)
            loss = loss if loss is not None else next(iter(tensors_of(out)), None)
            if isinstance(out, dict) and (loss is None or loss.numel() != 1):
                refuse([Problem(f"forward() gives a dict of {', '.join(map(str, out))}, and no tensor as its 'loss', which would be trained: give "
                                "gpuc.compile a loss, a function of that dict and a target", **beginning_of(self.net.forward))])  # fmt: skip
            return loss
        return self.loss_of(self.given(*args[:-1], **kwargs), args[-1])

    def given(self, *args, **kwargs):
        out = self.net(*args, **kwargs)
        if holds_none(out):
            refuse([Problem(f"forward() gives {described(out)}: let it return a tensor", **beginning_of(self.net.forward))])
        return out

    def loss_of(self, out, target):
        if not isinstance(out, torch.Tensor) and type(self.loss).__module__ == "torch.nn.modules.loss":
            refuse([Problem(f"forward() gives a {type(out).__name__}, and {type(self.loss).__name__} takes a tensor: let the loss be a function that "
                            "takes one out, lambda out, target: …(out[…], target)", **beginning_of(self.net.forward))])  # fmt: skip
        loss = self.loss(out, target)
        if holds_none(loss):
            refuse([Problem(f"the loss gives {described(loss)}: let it return a tensor", **beginning_of(self.loss))])
        return loss


def tensors_of(out):
    return [leaf for leaf in pytree.tree_leaves(out) if isinstance(leaf, torch.Tensor)]


def holds_none(value):
    """Of tensors; what is an object of the user's may."""
    return isinstance(value, (bool, int, float, str, bytes, type(None))) or inspect.iscoroutine(value) or inspect.isgenerator(value)


def described(value):
    return "None" if value is None else f"a {type(value).__name__}, and no tensor"


def check_call(function, name, count, kwargs, told):
    """A parameter that the batch has nothing for, or a part of the batch that is none's."""
    forward = function.forward if isinstance(function, torch.nn.Module) else function
    if isinstance(function, torch.nn.Module) and (function._forward_pre_hooks or type(function).__call__ is not torch.nn.Module.__call__):
        return  # Which may give it others.
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):
        return  # Of C.
    try:
        signature.bind(*[None] * count, **kwargs)
    except TypeError as error:
        refuse([Problem(f"{name}{signature}: {error}, where {told}: give the batch what it takes, in its order, or a default", **beginning_of(function))])


class Both(Whole):
    """The loss, and all tensors that the module gives. `seen.others`: whether it gives pairs of these, complex numbers or chosen rows, too."""

    def __init__(self, net, loss):
        super().__init__(net, loss)
        self.seen = SimpleNamespace(others=False)  # Which the export takes for no tensor of the module's.

    def results(self, *args, **kwargs):
        out = self.given(*args[:-1], **kwargs)
        self.seen.others = any(isinstance(each, (Chosen, Pair)) for each in pytree.tree_leaves(out))
        # Copies, or the export takes a loss's own view of one (broadcast_tensors) for it.
        leaves = [leaf.clone() for leaf in tensors_of(out)]
        return [self.loss_of(out, args[-1]), *leaves]


@contextlib.contextmanager
def in_eval_mode(whole):
    modes = [(module, module.training) for module in whole.modules()]
    try:
        whole.eval()
        yield
    finally:
        for module, training in modes:
            module.training = training


def place_of(node):
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    file, line = user_line(node.meta.get("stack_trace"))
    return {"layer": own_name(stack[-1][0]) if stack else "", "file": file, "line": line}


def check_layers(net):
    """A backward hook would be dropped by the export; and of some layers it says no more than that they hang on values."""
    problems = []
    for path, module in net.named_modules():
        if isinstance(module, _NormBase) and module.training and module.track_running_stats and module.momentum is None:
            problems.append(Problem("has momentum=None, a mean over all batches so far, which is not supported: give it a momentum (0.1)", path))
        for hook in (*module._backward_hooks.values(), *module._backward_pre_hooks.values()):
            problems.append(Problem("has a backward hook, which a compiled step does not call: remove it", path, **beginning_of(hook)))
        if ".quantized" in type(module).__module__:
            problems.append(Problem("is quantized, and has no weights to train: give the module as it was before", path))
    for name, parameter in net.named_parameters():
        for hooks in (parameter._backward_hooks, parameter._post_accumulate_grad_hooks):
            for hook in (hooks or {}).values():
                problems.append(Problem("has a gradient hook, which a compiled step does not call: remove it", name, **beginning_of(hook)))
    if problems:
        refuse(problems)


def keep_no_grad(program):
    """Decomposing dissolves torch.no_grad regions: what leaves one is detached first."""
    wrap = torch.ops.higher_order.wrap_with_set_grad_enabled
    graph = program.graph
    for node in list(graph.nodes):
        if node.target is not wrap or node.args[0]:
            continue
        inside = getattr(program.graph_module, node.args[1].target)
        for inner in inside.graph.nodes:
            if inner.target is wrap and inner.args[0]:
                place = place_of(inner)
                refuse([Problem("torch.enable_grad within torch.no_grad is not supported", **place)])
        for user in list(node.users):
            with graph.inserting_after(user):
                detached = graph.call_function(torch.ops.aten.detach.default, (user,))
            detached.meta.update(user.meta)
            user.replace_all_uses_with(detached, delete_user_cb=lambda other: other is not detached)


def keep_dropout(program):
    """Dropout in place would be decomposed into what it draws: it becomes one that is not."""
    aten = torch.ops.aten
    for node in list(program.graph.nodes):
        if node.target is not aten.dropout_.default:
            continue
        before = node.args[0]
        node.target = aten.dropout.default
        position = {each: number for number, each in enumerate(program.graph.nodes)}
        before.replace_all_uses_with(node, delete_user_cb=lambda user: position[user] > position[node])


def export(module, args, kwargs, rules):
    """The functional graph. Whatever torch says against the module becomes gpuc's error, with the user's line."""
    try:
        with warnings.catch_warnings(), quietly():
            warnings.simplefilter("ignore")  # Of weights that LSTMs keep in two places, and the like.
            program = capture_whole(module, args, kwargs, rules)
            if not rules.has_complex and has_complex(program):
                rules.has_complex = True
                program = capture_whole(module, args, kwargs, rules)
            keep_no_grad(program)
            keep_dropout(program)
            program.graph_module.recompile()
            program = functional(program, rules)
            mark_inputs(program)
            return program
    except Error:
        raise
    except Exception as error:
        trace = _trace_of(error)
        file, line = user_line(trace)
        what = f"the loss, {type(module.loss).__name__}," if not file and "in loss_of\n" in trace else "the module"
        mode = "" if module.training else " in eval mode"
        refuse([Problem(f"torch.export cannot capture {what}{mode}: {_reason(error)}", "", file, line)])


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


def capture_whole(module, args, kwargs, rules):
    """One pass of the module; another one, if a shape hangs on values, which may be that of rows that a mask of data chooses."""
    if rules.has_choices:
        return capture_with_choices(module, args, kwargs, rules)
    program = fault = None
    try:
        program = capture_with_masks(module, args, kwargs, rules)
        if not has_open_shapes(program):
            return program
    except Exception as error:
        if not hangs_on_a_value(error):
            raise
        fault = error
    try:
        with quietly():
            chosen = capture_with_choices(module, args, kwargs, rules)
        rules.has_choices = not has_open_shapes(chosen)
    except Exception:  # It is refused by what the first pass says.
        rules.has_choices = False
    if fault and not rules.has_choices:
        raise fault from None
    return chosen if rules.has_choices else program


def capture_with_choices(module, args, kwargs, rules):
    masks = KnownMasks()
    program = capture_with_its_own(module, args, kwargs, rules, Choices(), masks)
    rules.has_masks |= masks.is_used
    rules.read_by_masks += masks.read
    return program


def capture_with_masks(module, args, kwargs, rules):
    """One pass of the module; a second one, if in the first a shape or a number hangs on values, which may be those of a constant mask."""
    if not rules.has_masks:
        try:
            with quietly():
                program = capture_with_its_own(module, args, kwargs, rules)
            if not has_open_shapes(program):
                return program
            fault = None
        except Exception as error:
            if not hangs_on_a_value(error):
                raise
            fault = error
    masks = KnownMasks()
    try:
        with quietly():
            known = capture_with_its_own(module, args, kwargs, rules, masks)
    except Exception as error:
        if rules.has_masks or (masks.is_used and not hangs_on_a_value(error)):
            raise
        if fault:
            raise fault from None
        return program
    rules.has_masks |= masks.is_used
    rules.read_by_masks += masks.read
    return known


def has_complex(program):
    """Numbers."""
    values = [each for node in program.graph.nodes for each in pytree.tree_leaves(node.meta.get("val"))]
    return any(isinstance(each, torch.Tensor) and each.dtype.is_complex for each in values)


def has_open_shapes(program):
    """Or numbers."""
    values = [node.meta.get("val") for node in program.graph.nodes]
    numbers = [extent for each in values if isinstance(each, torch.Tensor) for extent in each.shape]
    return any(isinstance(each, (torch.SymInt, torch.SymFloat, torch.SymBool)) for each in (*values, *numbers))


def hangs_on_a_value(error):
    text = str(error)
    return (isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) or "GuardOnDataDependent" in type(error).__name__
            or "data-dependent" in text or "unbacked" in text)  # fmt: skip


def capture_with_its_own(module, args, kwargs, rules, *within):
    """One pass of the module; a second one, if in the first it reads its own tensors as constants: to look at each call takes time."""
    within = (*within, *([ComplexNumbers()] if rules.has_complex else []))
    if not rules.are_held:
        try:
            program = capture_pass(module, args, kwargs, *within)
            rules.are_held = shows_its_own(program, module)
        except Exception as error:
            rules.are_held = any(words in str(error) for words in OF_HELD)
            if not rules.are_held:
                raise
        if not rules.are_held:
            return program
    return capture_pass(module, args, kwargs, held(module), *within)


# What torch says where a buffer is written and read from a list, and where a gradient is asked of a parameter in one.
OF_HELD = ("expected compiled_fn to be GraphModule", "differentiated Tensors appears to not have been used")


def shows_its_own(program, module):
    own = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers()) if is_dense(tensor)}
    return any(is_dense(each) and each.untyped_storage().data_ptr() in own for each in program.constants.values())


def capture_pass(module, args, kwargs, *within):
    gradients = custom_gradients() if torch.is_grad_enabled() else contextlib.nullcontext()
    with contextlib.ExitStack() as around:
        known = (inner_gradients(), without_questions(), known_sequences(), without_detours())
        for each in (same_random(), *known, gradients, layers_that_stay(), *within, DetachedData()):
            around.enter_context(each)
        return torch.export.export(module, args, kwargs)


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


def _trace_of(error):
    return "".join(traceback.format_tb(error.__traceback__)) + str(error)


def _reason(error):
    text = str(error).strip()
    op = getattr(error, "func", None)
    if isinstance(error, (UnsupportedOperatorException, DynamicOutputShapeException)):
        return cured(f"{op.__name__} is not supported")
    if isinstance(error, DataDependentOutputException):
        return f"{op.__name__} gives Python a tensor's value: keep it a tensor, or compute it before the step"
    if hangs_on_a_value(error):
        return "what happens hangs on the value of a tensor (a branch, .item(), int(…)): use torch.where, or keep it a tensor"
    if "fake tensor in the exported program constant's list" in text:
        return "a tensor is taken out of the graph, as set_() does: use detach(), and copy_() to write into a buffer"
    text = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, KeyError):
        return f"KeyError: {text}"
    return next((f"{text}: {cure}" for words, cure in CURES_OF_TORCHS.items() if words in text), text)


# By words of torch's.
CURES_OF_TORCHS = {
    "passed to FakeTensor.__format__": "a text asks for a tensor's value: write it behind the step",
    ".numpy() is not supported": "NumPy gets no values within a step: write it by torch's ops",
    "Expected dtype int32/int64 for index": "labels are whole numbers, .long(), or one probability for each class, of the output's shape",
    "could not infer output dtype": "cast what is averaged, or the target of a loss, .float()",
    "on the same device": "a module for gpuc has all of it on the CPU",
    "'NoneType' object": "there may be a tensor in eager mode, which a module that is captured leaves out (is_compiling()): give it as an input, a mask say",
    "SparseTensorImpl": "tensors are dense: make it .to_dense()",
}


class Recorder:
    """The variables and functions of one step. Functions share variables and constants."""

    def __init__(self, net, loss, trained):
        self.net, self.loss = net, loss
        self.variables, self.constants, self.functions = [], [], []
        self.tensors = {}  # By variable: the parameter or buffer.
        self.names = {}  # By the identity of a tensor: its variable.
        self.trained = trained
        self.passes, self.read = [], []  # Without numbers: (ops, whether in training, whether gradients are on); attributes that they read.
        self.captured = {}  # By its identity: a tensor beside parameters and buffers, and a file and line that read it.
        self.derives = False  # Whether the module itself calls torch.autograd.grad.
        self.gives_others = False  # Whether forward() has results that are no tensors of the step's.
        self.problems, self.unchecked = [], []
        self.rules = Rules()
        for prefix, owner in (("", net), ("loss.", loss)):
            if isinstance(owner, torch.nn.Module):
                self.declare_all(prefix, owner)

    def declare_all(self, prefix, owner):
        """Tied ones are one variable, under the first of their names."""
        for name, tensor in owner.named_parameters(remove_duplicate=False):
            is_trained = id(tensor) in self.trained and tensor.requires_grad
            self.declare(prefix + name, tensor, "trained" if is_trained else "frozen")
        for name, tensor in owner.named_buffers(remove_duplicate=False):
            self.declare(prefix + name, tensor, "buffer")

    def declare(self, name, tensor, role):
        if id(tensor) in self.names:
            return
        if torch.nn.parameter.is_lazy(tensor):
            raise Error(f"'{name}' has no shape before the first forward pass: call the module once, then make the optimizer, and compile it")
        if tensor.device.type != "cpu":
            raise Error(f"'{name}' lies on {tensor.device}: gpuc takes modules on the CPU, net.cpu()")
        if tensor.dtype not in TYPES:
            raise Error(f"'{name}' is {tensor.dtype}, an element type that gpuc does not have: {cure_of_type(tensor.dtype)}")
        if why := why_not_plain(tensor):
            raise Error(f"'{name}' {why}")
        if tensor.is_shared():
            raise Error(f"'{name}' lies in memory that processes share (share_memory()), and a plan has its own: leave that out; what trains "
                        "in several processes is data_parallel=True")  # fmt: skip
        if role == "trained" and not tensor.is_floating_point():
            raise Error(f"'{name}' is trained, and no floating-point tensor")
        variable = name + "_" if name in RESERVED else name
        self.names[id(tensor)] = variable
        if tensor.numel() == 0:
            return  # It stays the module's: nothing can be learnt, and nothing kept.
        self.tensors[variable] = tensor
        self.variables.append({"name": variable, **self.spec(tensor), "role": role})

    @staticmethod
    def spec(tensor):
        if tensor.dtype not in TYPES:
            raise Error(f"{tensor.dtype} is an element type that gpuc does not have: {cure_of_type(tensor.dtype)}")
        if not all(isinstance(extent, int) for extent in tensor.shape):
            raise HangsOnValue("has a shape that hangs on a tensor's value (nonzero, masked_select, unique), and a compiled step has "
                        "fixed shapes: use torch.where, multiply by the mask, or, if that is always the same, index by numbers that are "
                        "made before the step, i, j = mask.nonzero(as_tuple=True)")  # fmt: skip
        return {"type": TYPES[tensor.dtype], "shape": list(tensor.shape)}

    def constant(self, tensor):
        """A reference to what is known. A number that is everywhere is written once."""
        tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
        if tensor.numel() > MOST_CONSTANT_ELEMENTS:
            name = f"constant.{len(self.tensors)}"
            self.tensors[name] = tensor
            self.variables.append({"name": name, **self.spec(tensor), "role": "buffer"})
            return {"variable": name}
        name = f"c{len(self.constants)}"
        data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes().hex() if tensor.numel() else ""
        self.constants.append({"name": name, **self.spec(tensor), "bytes": data})
        return {"constant": name}

    def record(self, module, args, kwargs, functions):
        """Adds functions over the tensors among args and kwargs: of each its name, and which of the outputs it gives."""
        program = self.program_of(module, args, kwargs)
        if isinstance(module, Both) and module.seen.others:
            functions = {name: outputs for name, outputs in functions.items() if name != "predict"}
            self.gives_others = True
        names = input_names(self.net, args, kwargs, has_target=self.loss is not None)
        for name, outputs in functions.items():
            self.functions.append(FunctionRecorder(self, program, module, names).record(name, outputs))

    def program_of(self, module, args, kwargs):
        """What derives by itself does so with gradients in evaluation, too: without them torch.export detaches what lies between."""
        with torch.set_grad_enabled(torch.is_grad_enabled() or self.derives):
            program = export(module, args, kwargs, self.rules)
        for read in self.rules.read_by_masks:
            self.captured.setdefault(id(read[0]), read)
        if self.derives or not has_gradients(program):
            return program
        self.derives = True
        return program if torch.is_grad_enabled() else self.program_of(module, args, kwargs)

    def record_training(self, args, kwargs):
        self.record(Whole(self.net, self.loss), args, kwargs, {"loss": slice(1)})

    def record_evaluation(self, args, kwargs):
        """The module in eval mode, which may be another graph: auxiliary heads, stochastic depth."""
        whole = Whole(self.net, self.loss) if self.loss is None else Both(self.net, self.loss)
        functions = {"evaluate": slice(1)} if self.loss is None else {"evaluate": slice(1), "predict": slice(1, None)}
        with in_eval_mode(whole), torch.no_grad():
            self.record(whole, args, kwargs, functions)

    def look_at_passes(self, args, kwargs):
        """What graphs do not tell, by passes without numbers: whether training repeats itself, and what is read, in evaluation alone, too."""
        whole = Whole(self.net, self.loss)
        with warnings.catch_warnings(), quietly():
            warnings.simplefilter("ignore")
            ops, self.read = check_repetition(whole, args, kwargs)
            with in_eval_mode(whole), torch.set_grad_enabled(self.derives):
                ops_of_evaluation, read = reads_of(whole, args, kwargs)
        self.passes = [(ops, True, torch.is_grad_enabled()), (ops_of_evaluation, False, self.derives)]
        known = {(id(module), name) for _, module, name, _ in self.read}
        self.read += [each for each in read if (id(each[1]), each[2]) not in known]

    def whose(self, tensor):
        """The variable, trained or a buffer, of which a tensor shows some memory."""
        begin, end = extent_of(tensor)
        return next((name for name, (first, last) in self.extents if begin < last and first < end), None)

    @functools.cached_property
    def extents(self):
        return [(each["name"], extent_of(self.tensors[each["name"]])) for each in self.variables if each["role"] != "frozen"]

    def variables_read(self):
        """By the loss."""
        found = set()
        for function in self.functions:
            if function["name"] == "loss":
                leaves = [each for node in function["nodes"] for each in pytree.tree_leaves(list(node["arguments"].values()), is_leaf=is_reference)]
                found |= {each["variable"] for each in [*leaves, *function["outputs"]] if is_reference(each) and "variable" in each}
        return found

    def digest(self):
        """Of functions, with the numbers of all constants."""
        large = [checksum_of((tensor,), {}) for name, tensor in self.tensors.items() if name.startswith("constant.")]
        return zlib.crc32(json.dumps([self.functions, self.constants, large]).encode())

    def digest_of_model(self):
        """Of what is computed, wherever it is written."""
        def without_place(node):
            return {key: value for key, value in node.items() if key not in ("layer", "file", "line")}

        functions = [{**function, "nodes": [without_place(node) for node in function["nodes"]]} for function in self.functions]
        return zlib.crc32(json.dumps([functions, self.constants]).encode())

    def again(self, args, kwargs):
        """The same training, of what the module is now."""
        other = Recorder(self.net, self.loss, self.trained)
        other.record_training(args, kwargs)
        other.record_evaluation(args, kwargs)
        other.look_at_passes(args, kwargs)
        return other

    def graph(self, name):
        if self.problems:
            refuse(self.problems)
        return {"name": name, "variables": self.variables, "constants": self.constants, "functions": self.functions}


def extent_of(tensor):
    """From its first byte to behind its last one."""
    begin = tensor.data_ptr()
    return begin, begin + (1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))) * tensor.element_size()


def input_names(net, args, kwargs, has_target):
    """Of all leaves: those of the module's parameters, and `target`."""
    known = list(inspect.signature(net.forward).parameters.values())
    names = []
    for index, value in enumerate(args):
        parameter = known[index] if index < len(known) else None
        is_named = parameter is not None and parameter.kind != inspect.Parameter.VAR_POSITIONAL
        name = parameter.name if is_named else f"x{index}"
        names.append(("target" if has_target and index == len(args) - 1 else name, value))
    names += list(kwargs.items())
    leaves = []
    for name, value in names:
        parts = pytree.tree_leaves(value)
        leaves += [name] if len(parts) == 1 else [f"{name}_{i}" for i in range(len(parts))]
    return leaves


class FunctionRecorder:
    def __init__(self, owner, program, module, names):
        self.owner, self.program = owner, program
        self.names = iter(names)
        self.tensors = dict(module.named_parameters(remove_duplicate=False))
        self.tensors.update(module.named_buffers(remove_duplicate=False))
        self.references = {}  # By node: what stands for it.
        self.known = {}  # By node: its value, where that hangs on constants alone.
        self.of_values = set()  # Nodes that are refused, as they hang on a tensor's value.
        self.triangles = {}  # By what they are: what stands for it.
        self.inputs, self.nodes = [], []

    def record(self, name, outputs):
        """`predict` alone is no loss, and takes no target."""
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.bind(node)
            elif node.op == "call_function":
                self.add(node)
        is_loss = name != "predict"
        function = {"name": name, "is_loss": is_loss, "inputs": self.inputs, "nodes": self.nodes, **self.results(outputs)}
        prune(function)
        if not is_loss:
            function["inputs"] = [each for each in self.inputs if each["name"] != "target"]
        return function

    def bind(self, node):
        spec = next(s for s in self.program.graph_signature.input_specs if getattr(s.arg, "name", None) == node.name)
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and is_empty(node):
            self.known[node] = torch.empty_like(self.tensors[spec.target])
        elif spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
            self.references[node] = {"variable": self.variable(spec.target)}
        elif spec.kind == InputKind.CONSTANT_TENSOR:
            self.known[node] = self.capture(node, self.program.constants[spec.target])
        elif spec.kind == InputKind.TOKEN:  # The order of effects, which are refused.
            self.references[node] = {"node": node.name}
        elif spec.kind == InputKind.CUSTOM_OBJ:
            for user in node.users:
                self.refuse(user, f"takes a {spec.arg.class_fqn.rpartition('.')[2]}, which a compiled step cannot: leave it out (of a generator "
                            "there is one, which gpuc.compile(seed=…) seeds)")  # fmt: skip
            self.references[node] = {"node": node.name}
        elif isinstance(node.meta.get("val"), torch.Tensor):
            name = next(self.names)
            self.references[node] = {"input": name}
            if node.meta["val"].dtype not in TYPES:
                dtype = node.meta["val"].dtype
                raise Error(f"input '{name}' is {dtype}, an element type that gpuc does not have: {cure_of_type(dtype)}")
            self.inputs.append({"name": name, **self.owner.spec(node.meta["val"])})
        else:
            next(self.names)
            self.known[node] = node.meta.get("val")

    def capture(self, node, tensor):
        """What is written as a number within forward() has no other owner."""
        readers = [user for user in node.users if user.target is not torch.ops.aten.lift_fresh_copy.default]
        if readers and has_contents(tensor) and (name := self.owner.whose(tensor)):
            self.refuse(readers[0], f"reads the memory of '{name}' by a tensor that was made before, a view, .detach() or .data, and the step has "
                        f"'{name}' in memory of its own: make that in forward()")  # fmt: skip
        if readers and has_contents(tensor):
            place = place_of(readers[0])
            self.owner.captured.setdefault(id(tensor), (tensor, place["file"], place["line"]))
        return tensor

    def variable(self, target):
        name = self.owner.names.get(id(self.tensors[target]))
        if name is None:
            raise Error(f"'{own_name(target)}' is made by the first forward pass: call the module once, then compile it")
        return name

    def add(self, node):
        if node.target is operator.getitem:
            return self.take(node)
        if not node.users:
            # Nothing of a functional op is left then, but for what asserts something.
            if "assert" in str(node.target) and "metadata" not in str(node.target) and not self.hangs_on_values(node):
                said = next((f": {each}" for each in node.args if isinstance(each, str) and each), "")
                self.owner.unchecked.append(Problem(f"asserts something of a tensor's value, which a compiled step does not check{said}", **place_of(node)))
            return None
        if self.hangs_on_values(node):
            return self.mark_as_refused(node)
        if getattr(node.target, "__name__", "") == "with_effects":
            name = str(node.args[1]).removeprefix("aten.")
            if name.startswith("_linalg_check_errors"):  # Of an op that is refused, and says so.
                return self.mark_as_refused(node)
            return self.refuse(node, f"{name} does more than to give a result, which an op of a compiled step cannot")
        if is_empty(node):
            value = node.meta["val"]
            self.known[node] = torch.empty(value.shape, dtype=value.dtype)
            return None
        if self.is_known(node):
            with torch.no_grad():
                self.known[node] = node.target(*self.values(node.args), **self.values(node.kwargs))
            return None
        if not isinstance(node.target, torch._ops.OpOverload):
            return self.refuse(node, cured(f"{getattr(node.target, '__name__', node.target)} is not supported"))
        try:
            self.nodes.append({"name": node.name, "op": name_of(node.target),
                               "arguments": self.arguments(node), "results": self.specs(node), **self.used(node), **place_of(node)})  # fmt: skip
        except HangsOnValue as error:
            self.of_values.add(node)
            self.refuse(node, str(error))
        except Error as error:
            self.refuse(node, str(error))
        self.references[node] = {"node": node.name}

    def hangs_on_values(self, node):
        """Where a shape or a number does, what follows from it does: that is said once."""
        return any(each in self.of_values for each in node.all_input_nodes)

    def mark_as_refused(self, node):
        self.of_values.add(node)
        self.references[node] = {"node": node.name}

    def refuse(self, node, text):
        self.owner.problems.append(Problem(text, **place_of(node)))
        self.references[node] = {"node": node.name}

    def take(self, node):
        source, index = node.args
        if source in self.of_values:
            self.of_values.add(node)
        if source in self.known:
            self.known[node] = self.known[source][index]
        else:
            self.references[node] = {**self.references[source], "result": index}

    def is_known(self, node):
        if not isinstance(node.target, torch._ops.OpOverload):
            return False
        if torch.Tag.nondeterministic_seeded in node.target.tags or node.target.namespace == "gpuc":
            return False
        return all(operand in self.known for operand in node.all_input_nodes)

    def values(self, arguments):
        return torch.fx.node.map_arg(arguments, lambda node: self.known[node])

    def arguments(self, node):
        """By the schema's names; what has its default's value is left out."""
        found = {}
        schema = node.target._schema
        given = dict(node.kwargs)
        given.update({argument.name: value for argument, value in zip(schema.arguments, node.args)})
        for argument in schema.arguments:
            if argument.name not in given:
                continue
            value = given[argument.name]
            if node.target is torch.ops.aten.cat.default and argument.name == "tensors":
                value = [each for each in value if not is_empty(each)]
            is_default = argument.has_default_value() and not isinstance(value, torch.fx.Node)
            if not is_default or value != argument.default_value:
                found[argument.name] = self.encode(value)
        return self.simplify(node, found, given)

    def simplify(self, node, found, given):
        """A mask that is a constant triangle is said in a word."""
        mask = given.get("attn_mask")
        if node.target is torch.ops.aten.scaled_dot_product_attention.default and mask in self.known:
            if is_causal(self.known[mask]) and not given.get("is_causal", False):
                found.pop("attn_mask")
                found["is_causal"] = True
        return found

    def encode(self, value):
        if isinstance(value, torch.fx.Node):
            if value not in self.known:
                return self.references[value]
            known = self.known[value]
            if not isinstance(known, torch.Tensor):
                return self.encode(known)
            self.references[value] = self.references.get(value) or self.constant(value, known)
            return self.references[value]
        if isinstance(value, (list, tuple)):
            return [self.encode(element) for element in value]
        if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
            return {"number": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
            return str(value)
        cure = ": keep real and imaginary parts as real tensors" if isinstance(value, complex) else ": give a number, or a tensor"
        raise Error(f"{type(value).__name__} {value} is no argument that gpuc takes{cure}")

    def constant(self, node, known):
        triangle = Triangle.of(known) if known.numel() > LEAST_TRIANGLE_ELEMENTS else None
        if triangle is None:
            return self.owner.constant(known)
        if triangle.key not in self.triangles:
            self.triangles[triangle.key] = self.written(node, triangle)
        return self.triangles[triangle.key]

    def written(self, node, triangle):
        """The triangle by ops of PyTorch's."""
        def op(name, dtype, **arguments):
            made = f"triangle.{len(self.triangles)}.{name.partition('.')[0]}"
            spec = self.owner.spec(torch.empty(triangle.shape, dtype=dtype, device="meta"))
            self.nodes.append({"name": made, "op": name, "arguments": arguments, "results": [spec], **place_of(node)})
            return {"node": made}

        everywhere = op("expand.default", torch.bool, self=self.owner.constant(torch.tensor(True)), size=list(triangle.shape))
        inside = op("tril.default", torch.bool, self=everywhere, diagonal=triangle.diagonal)
        return op("where.self", triangle.inside.dtype, condition=inside, self=self.owner.constant(triangle.inside),
                  other=self.owner.constant(triangle.outside))  # fmt: skip

    def specs(self, node):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            return [self.owner.spec(value)]
        if not isinstance(value, (list, tuple)):
            raise HangsOnValue("is a number that hangs on a tensor's value (.item()), which a compiled step does not know: "
                        "keep it a tensor")  # fmt: skip
        return [self.owner.spec(each) for each in value]

    @staticmethod
    def used(node):
        """Of each result, whether something reads it; nothing is said where there is one alone."""
        if isinstance(node.meta.get("val"), torch.Tensor):
            return {}
        read = {user.args[1] for user in node.users if user.target is operator.getitem and user.users}
        return {"used": [index in read for index in range(len(node.meta["val"]))]}

    def results(self, chosen):
        outputs, assigned = [], []
        signature = self.program.graph_signature
        arguments = next(node for node in self.program.graph.nodes if node.op == "output").args[0]
        for spec, node in zip(signature.output_specs, arguments):
            if spec.kind == OutputKind.USER_OUTPUT:
                if isinstance(node, torch.fx.Node):
                    outputs.append(self.encode(node))
            elif spec.kind == OutputKind.BUFFER_MUTATION:
                variable = self.variable(spec.target)
                assigned.append({"variable": variable, "value": self.encode(node)})
            elif spec.kind == OutputKind.PARAMETER_MUTATION:
                name = own_name(spec.target)
                if "renorm" in str(node.target):
                    self.refuse(node, f"'{name}' is changed in the forward pass (max_norm=), and it is the optimizer that changes parameters: leave "
                                "max_norm out, and bound its rows behind the step, under torch.no_grad()")  # fmt: skip
                    continue
                self.refuse(node, f"'{name}' is changed in the forward pass, and it is the optimizer that changes parameters: do that "
                            "behind the step, under torch.no_grad(), or by a parametrization")  # fmt: skip
            elif spec.kind != OutputKind.TOKEN:  # What has effects is refused already.
                self.refuse(node, "an input is changed in place, which would be the loader's batch: clone it first")
        return {"outputs": outputs[chosen], "assigned": assigned}


def is_reference(value):
    return isinstance(value, dict)


def is_empty(node):
    """Of a tensor without elements everything is known."""
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and any(isinstance(extent, int) and extent == 0 for extent in value.shape)


def prune(function):
    """Leaves out what no output hangs on."""
    needed = set()

    def need(value):
        if isinstance(value, dict) and "node" in value:
            needed.add(value["node"])
        elif isinstance(value, list):
            for each in value:
                need(each)

    need(function["outputs"])
    need([each["value"] for each in function["assigned"]])
    kept = []
    for node in reversed(function["nodes"]):
        if node["name"] in needed:
            need(list(node["arguments"].values()))
            kept.append(node)
    function["nodes"] = kept[::-1]


def is_causal(mask):
    """Whether query t sees keys 0 to t alone, by a mask of truth values or of numbers to add."""
    if not isinstance(mask, torch.Tensor) or mask.dim() < 2:
        return False
    seen = mask if mask.dtype == torch.bool else mask == 0
    if mask.dtype != torch.bool and not bool((seen | (mask == float("-inf"))).all()):
        return False
    triangle = torch.ones(mask.shape[-2:], dtype=torch.bool).tril()
    return bool((seen == triangle).all())
