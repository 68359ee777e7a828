"""What a forward pass leaves behind for the next one: counters, lists that grow, tensors in attributes, draws of Python's random.

torch.export captures one pass and puts back what that has changed, so that each step would be that pass again. Buffers that a pass gives
other tensors are assigned to. Of all else, wherever it lies: two passes are run without numbers, on fake tensors, and what they compute of
data has to be the same, with the same numbers among its arguments, and with no tensor of the first pass in the second.
"""

import contextlib
import functools
import math
import random
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode, unset_fake_temporarily,
)  # fmt: skip
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from gpuc.capture.custom_gradients import put
from gpuc.contents import SIMPLE, Contents, has_contents
from gpuc.errors import Problem, refuse
from gpuc.formulas import Choices, KnownMasks, known_sequences
from gpuc.formulas.checks import passed_checks
from gpuc.lines import own_name, user_line

OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
NAMES_OF_EVERY_MODULE = frozenset(dir(torch.nn.Module()))  # Those of its class, too.
PASSES_AHEAD = 10, 1_000, 100_000
PASSES_OF_DRAWS = 4  # By other random numbers.
COPIED = (list, dict, set)
MOST_NUMBERS = 64  # That are compared of a constant.


class AssignedBuffers:
    """Around a pass that is exported: `self.mean = 0.9 * self.mean + …` is an assignment to the buffer that was there, which the export
    has of the outermost module alone."""

    def __init__(self, root):
        self.modules = [(own_name(path), module) for path, module in root.named_modules() if path]

    def __enter__(self):
        self.before = [(dict(module._buffers), dict(module._parameters)) for _, module in self.modules]

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        for (layer, module), (buffers, parameters) in zip(self.modules, self.before):
            for name, before in parameters.items():
                if module._parameters.get(name) is not before:
                    refuse([Problem(f"forward() gives the parameter '{name}' another tensor, which a compiled step would not train", layer)])
            for name, before in buffers.items():
                assign(layer, module, name, before)


def assign(layer, module, name, before):
    now = module._buffers.get(name)
    if now is before or before is None:
        return
    if now is None or now.shape != before.shape or now.dtype != before.dtype:
        refuse([Problem(f"forward() gives the buffer '{name}' another shape or type, or removes it, and variables keep theirs: if its first pass "
                        "alone does, call the module once before", layer)])  # fmt: skip
    before.copy_(now.detach())
    module._buffers[name] = before


#
# A second pass
#


class Constants:
    """What hangs on constants alone: of each tensor how it was made, in this pass or, if it was kept, in the one before."""

    def __init__(self, before=None):
        self.tensors, self.labels, self.writes = (dict(each) for each in before.parts) if before else ({}, {}, {})

    @property
    def parts(self):
        return self.tensors, self.labels, self.writes

    def label_of(self, tensor):
        """What is written into a view is written into all that has its memory."""
        label = self.labels.get(id(tensor), id(tensor) if isinstance(tensor, torch.nn.Parameter) else "")
        return f"{label} {self.writes.get(memory_of(tensor), '')}"

    def add(self, function, args, kwargs, op, results):
        label = hash((op[0], *op[1]))
        for tensor in written_by(function, args, kwargs or {}):
            self.writes[memory_of(tensor)] = label
            self.tensors[id(tensor)] = tensor
        for number, tensor in enumerate(results):
            self.tensors[id(tensor)], self.labels[id(tensor)] = tensor, f"{label}.{number}"


def memory_of(tensor):
    return tensor.untyped_storage()._cdata if tensor.layout == torch.strided else 0


def written_by(function, args, kwargs):
    if not function._schema.is_mutable:
        return []
    written = [(each.name, number) for number, each in enumerate(function._schema.arguments) if each.alias_info and each.alias_info.is_write]
    found = [kwargs.get(name, args[number] if number < len(args) else None) for name, number in written]
    return [each for each in pytree.tree_leaves(found) if isinstance(each, torch.Tensor)]


class Pass(TorchDispatchMode):
    """The ops of a pass that data goes into: what parameters, buffers and inputs become. `given`: those, each with what it is called.

    Tensors are told apart: data by the op that gives it, and what hangs on constants alone by how it was made. With an `expected` pass, `fault`
    is what the first op that differs does: "reads" a tensor of that pass, or is "other"; `line` is the user's.
    """

    def __init__(self, given, expected=None):
        super().__init__()
        self.given = {id(each) for _, each in given}
        self.data = {id(each): each for _, each in given}  # Held, so that no other tensor gets its identity.
        self.labels = {id(each): label for label, each in given}
        self.constants = Constants(expected and expected.constants)
        self.ops, self.expected, self.fault, self.line = [], expected, "", ("", 0)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        leaves = pytree.tree_leaves((args, kwargs))
        if getattr(function, "namespace", "") == "prim":  # What asks a tensor for its device is the fake mode, unless it remembers.
            return function(*args, **(kwargs or {}))
        op = str(function), [self.text_of(each) for each in leaves]
        is_of_data = any(id(each) in self.data or self.is_left(each) for each in leaves)
        if is_of_data:
            self.ops.append(op)
        if is_of_data and self.expected and not self.fault:
            self.compare(leaves)
        out = function(*args, **(kwargs or {}))
        results = [each for each in pytree.tree_leaves(out) if isinstance(each, torch.Tensor)]
        if not is_of_data:
            self.constants.add(function, args, kwargs, op, results)
            return out
        for number, each in enumerate(results):
            self.data[id(each)] = each
            self.labels[id(each)] = f"{len(self.ops)}.{number}"
        return out

    def is_left(self, value):
        return self.expected is not None and id(value) in self.expected.data and id(value) not in self.given

    def text_of(self, value):
        """Numbers as they are. Of a tensor its values are known only if it hangs on constants alone."""
        if not isinstance(value, torch.Tensor):
            return str(value)
        if id(value) in self.data:
            return f"{value.dtype} {tuple(value.shape)} {self.labels[id(value)]}"
        known = value.constant if isinstance(value, FakeTensor) else value
        is_short = known is not None and known.numel() <= MOST_NUMBERS
        with unset_fake_temporarily():
            return f"{value.dtype} {tuple(value.shape)} {known.tolist() if is_short else self.constants.label_of(value)}"

    def compare(self, leaves):
        number = len(self.ops) - 1
        if any(map(self.is_left, leaves)):
            self.fault = "reads"
        elif self.ops[number : number + 1] != self.expected.ops[number : number + 1]:
            self.fault = "other"
        if self.fault:
            self.line = user_line("".join(traceback.format_stack()))


class DetachedData(TorchFunctionMode):
    """x.data is x.detach(), an op, of which a graph knows whose memory it shows; `x.data = …` writes there."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == torch.Tensor.data.__get__:
            return args[0].detach()
        if function == torch.Tensor.data.__set__:
            return set_data(*args)
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def layers_that_stay():
    """layer.to(device) within a pass is nothing where the layer is there already, and else what a step cannot do."""

    def check(layer, function, recurse=True):
        for dtype in {each.dtype for each in (*layer.parameters(), *layer.buffers())}:
            with unset_fake_temporarily(), _disable_current_modes():
                before = torch.empty(0, dtype=dtype)
                after = function(before)
            if (after.dtype, after.device) != (before.dtype, before.device):
                line = user_line("".join(traceback.format_stack()))
                refuse([Problem("moves or casts a layer (.to, .half), and a compiled step has its tensors as they are when it is compiled: do that "
                                "before", "", *line)])  # fmt: skip
        return layer

    with contextlib.ExitStack() as undo:
        put(undo, torch.nn.Module, "_apply", check)
        yield


def set_data(tensor, value):
    if tensor.shape != value.shape or tensor.dtype != value.dtype:
        line = user_line("".join(traceback.format_stack()))
        refuse([Problem("gives a tensor's .data another shape or type, and a compiled step's keep theirs: make it a new tensor", "", *line)])
    tensor.detach().copy_(value.detach())


def tensors_of_layers(root):
    """Parameters and buffers, tied ones by each of their names. A layer that stands in two places is named once: what torch swaps twice it
    does not bring back."""
    return {
        f"{path}.{name}" if path else name: tensor
        for path, layer in root.named_modules()
        for name, tensor in (layer._parameters | layer._buffers).items()
        if tensor is not None
    }


def run_without_numbers(module, args, kwargs, fake, expected=None):
    """A pass on fake tensors."""

    def faked(tree):
        return pytree.tree_map(lambda each: fake.from_tensor(each) if isinstance(each, torch.Tensor) else each, tree)

    own = tensors_of_layers(module)
    named, args, kwargs = faked((own, args, kwargs))
    # By its name a layer would be the same one in another's place. Who reads a parameter from a list reads the tensor itself.
    given = [(f"own {id(own[name])}", each) for name, each in named.items()] + [(f"own {id(each)}", each) for each in own.values()]
    given += [(f"input {number}", each) for number, each in enumerate(pytree.tree_leaves((args, kwargs)))]
    known = functools.partial(KnownMasks, module)
    for within in ([], [known], [Choices, known]):
        found = Pass(given, expected)
        try:
            with fake, found, passed_checks(), contextlib.ExitStack() as modes:
                for mode in (*within, DetachedData, layers_that_stay, known_sequences):
                    modes.enter_context(mode())
                torch.func.functional_call(module, named, args, kwargs, tie_weights=False)
            break
        except (DataDependentOutputException, DynamicOutputShapeException):
            if Choices in within:
                raise
    if expected and not found.fault and len(found.ops) != len(expected.ops):
        found.fault = "other"
    return found


def check_repetition(module, args, kwargs):
    """Refuses a module whose second pass is another than its first; its attributes stay as they are. Gives the ops of a pass, None if there
    can be none, and the attributes that it reads and leaves alone, which a compiled step keeps: (layer, module, name, value)."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with Attributes(module) as attributes, same_random():
        before, counted = states_of_random(), [attributes.numbers()]
        try:
            with Reads() as reads:
                first = run_without_numbers(module, args, kwargs, fake)
        except Exception:
            return None, []  # Not for fake tensors: nothing can be said of it.
        drawn = [name for name, state in states_of_random().items() if state != before.get(name)]
        changed = attributes.changed()
        counted.append(attributes.numbers())
        for _ in range(PASSES_OF_DRAWS if drawn else 1):
            try:
                again = run_without_numbers(module, args, kwargs, fake, first)
            except Exception as error:
                refuse_other(changed, drawn, user_line("".join(traceback.format_tb(error.__traceback__))))
            if again.fault == "reads":
                refuse_left(changed, again.line)
            if again.fault:
                refuse_other(changed, drawn, again.line)
        look_ahead(counters(*counted, attributes.numbers()), lambda: run_without_numbers(module, args, kwargs, fake, first))
        return first.ops, reads.left_alone(module)


def counters(*passes):
    """What grows by the same in each pass: (where it stands, name, by how much)."""
    found = []
    for key, (own, name, first) in passes[0].items():
        second, third = (each.get(key, (own, name, first))[2] for each in passes[1:])
        if third != second and math.isclose(third - second, second - first, rel_tol=1e-6):
            found.append((own, name, third - second))
    return found


def look_ahead(counts, run_again):
    """A pass may be another when so many have been, `if self.steps > self.warmup`."""
    for passes in PASSES_AHEAD if counts else ():
        for own, name, step in counts:
            own[name] += passes * step
        try:
            later = run_again()
        except Exception:
            continue  # There is no such pass, of so many things that are kept.
        if later.fault:
            names = ", ".join(str(name) for _, name, _ in counts)
            refuse([Problem(f"is computed otherwise when there have been some {passes} passes ({names}), and a compiled step repeats itself: "
                            "make what it counts a buffer or an input", "", *later.line)])  # fmt: skip


def computes_alike(module, args, kwargs, ops):
    """Whether a pass now has the ops that one had before."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with Attributes(module), same_random():
        try:
            return run_without_numbers(module, args, kwargs, fake).ops == ops
        except Exception:
            return False


def reads_of(module, args, kwargs):
    """The ops of a pass that leaves nothing behind, in evaluation, and what it reads, as check_repetition gives them."""
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with Attributes(module), same_random():
        try:
            with Reads() as reads:
                ops = run_without_numbers(module, args, kwargs, fake).ops
        except Exception:
            return None, []
        return ops, reads.left_alone(module)


class Reads:
    """The attributes of modules that are read meanwhile, with what they were: numbers, words and truth values, and what holds such."""

    def __enter__(self):
        self.found, self.undo = {}, contextlib.ExitStack()

        def recorded(module, name):
            value = object.__getattribute__(module, name)
            if name not in NAMES_OF_EVERY_MODULE and (id(module), name) not in self.found:
                if is_plain(value):
                    self.found[id(module), name] = value
                elif has_contents(value):
                    self.found[id(module), name] = None  # It is read now.
                    with _disable_current_modes():
                        self.found[id(module), name] = Contents(module, name)
            return value

        put(self.undo, torch.nn.Module, "__getattribute__", recorded)
        return self

    def __exit__(self, *_):
        self.undo.close()

    def left_alone(self, root):
        named = {id(module): (own_name(path), module) for path, module in root.named_modules()}
        found = [(*named[key], name, value) for (key, name), value in self.found.items() if key in named]
        return [each for each in found if is_as_it_was(*each[1:])]


def is_as_it_was(module, name, value):
    if not isinstance(value, Contents):
        return is_same(value, getattr(module, name, None))
    with _disable_current_modes():
        return value.of is value.last


def is_plain(value):
    return all(map(is_plain, value)) if type(value) is tuple else isinstance(value, SIMPLE)


def refuse_left(changed, line):
    refuse([Problem("reads a tensor that the step before has left" + named(changed) + ", and a compiled step does not see it: make it a buffer, "
                    "register_buffer(…), and assign to that", "", *line)])  # fmt: skip


def refuse_other(changed, drawn, line):
    why = named(changed) + (f" (draws by {' and '.join(drawn)})" if drawn else "")
    cures = ["draw by torch.rand(())"] if drawn else ["make what it counts a buffer or an input"]
    if named(changed) or not drawn:  # Who draws without counting anything does so in each pass.
        cures.append("if its first pass alone differs, call the module once before")
    cure = ", or, ".join(cures)
    refuse([Problem(f"is computed otherwise in the second pass than in the first{why}, and a compiled step repeats itself: {cure}", "", *line)])


def named(changed):
    changed = [each for each in changed if "._flat_weight" not in each]  # What recurrent layers of torch keep for themselves.
    return f" ({', '.join(changed)})" if changed else ""


class Attributes:
    """Of modules, as they are now: the end puts back what has changed meanwhile."""

    def __init__(self, root):
        self.modules = [(own_name(path), module, copies_of(module)) for path, module in root.named_modules() if path]

    def __enter__(self):
        return self

    def numbers(self):
        """By place and name: (a module's attributes, or a list or dict among them; name; number)."""
        places = [vars(module) for _, module, _ in self.modules]
        places += [value for own in places for name, value in own.items() if type(value) in (list, dict) and name not in OF_EVERY_MODULE]
        return {(id(own), name): (own, name, value) for own in places
                for name, value in (own.items() if type(own) is dict else enumerate(own)) if type(value) in (int, float)}  # fmt: skip

    def changed(self):
        found = []
        for layer, module, before in self.modules:
            now = copies_of(module)
            names = [name for name in {**before, **now} if name not in before or name not in now or not is_same(before[name][1], now[name][1])]
            found += [".".join(part for part in ("self" if not layer else layer, name) if part) for name in names]
        return found

    def __exit__(self, *_):
        for _, module, before in self.modules:
            own = vars(module)
            for name in [name for name in own if name not in before and name not in OF_EVERY_MODULE]:
                del own[name]
            for name, (value, copied) in before.items():
                own[name] = value
                if isinstance(value, list):
                    value[:] = copied
                elif value is not copied:
                    value.clear()
                    value.update(copied)


def copies_of(module):
    """Of each attribute of its own the value, and how that is now if it is a list or a dict."""
    own = {name: value for name, value in vars(module).items() if name not in OF_EVERY_MODULE}
    return {name: (value, type(value)(value) if type(value) in COPIED else value) for name, value in own.items()}


def is_same(before, now):
    if before is now:
        return True
    if isinstance(before, SIMPLE) and isinstance(now, SIMPLE):
        return type(before) is type(now) and before == now
    if type(before) is type(now) and isinstance(before, (list, tuple)):
        return len(before) == len(now) and all(map(is_same, before, now))
    if type(before) is type(now) and isinstance(before, dict):
        return before.keys() == now.keys() and all(is_same(before[key], now[key]) for key in before)
    return False


def states_of_random():
    states = {"random": random.getstate()}
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        states["numpy.random"] = (kind, keys.tobytes(), *rest)
    return states


@contextlib.contextmanager
def same_random():
    """What is drawn within is none of the user's numbers."""
    numpy = sys.modules.get("numpy")
    before = random.getstate(), numpy and numpy.random.get_state()
    try:
        yield
    finally:
        random.setstate(before[0])
        if numpy:
            numpy.random.set_state(before[1])
