"""What a forward pass leaves behind for the next one: counters, lists that grow, tensors in attributes, draws of Python's random.

torch.export captures one pass and puts back what that has changed, so that each step would be that pass again. Here buffers that a pass
gives other tensors are assigned to, and a module that has left anything else is captured once more as it was left. If that gives another
graph, or one that reads a tensor which was left, no compiled step can be what the user's loop would do: it is refused.
"""

import contextlib
import random
import sys

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_slot
from torch.utils import _pytree as pytree

from gpuc.errors import Problem, refuse
from gpuc.lines import own_name

OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
CAPTURES_OF_DRAWS = 3  # By other random numbers.
SIMPLE = (bool, int, float, str, type(None))


class Change:
    """An attribute that has another value behind the pass. `is_state`: tensors in it hang on more than constants."""

    def __init__(self, layer, module, name, value):
        self.layer, self.module, self.name, self.value = layer, module, name, value
        self.is_state = any(hangs_on_data(each) for each in pytree.tree_leaves(value) if isinstance(each, torch.Tensor))
        self.stand_ins = []

    def value_left(self):
        """Tensors of the pass belong to the export: in their place are others, which are known again in another graph."""
        return pytree.tree_map(lambda each: self.stand_in_of(each) if isinstance(each, torch.Tensor) else each, self.value)

    def stand_in_of(self, tensor):
        self.stand_ins.append(torch.zeros(tensor.shape, dtype=tensor.dtype))
        return self.stand_ins[-1]

    def is_read(self, program):
        own = {each.data_ptr() for each in self.stand_ins}
        return any(isinstance(each, torch.Tensor) and each.data_ptr() in own for each in used_constants(program))


class ForwardState:
    """What a pass through the modules of `root` changes: `changes`, and which generators have drawn: `drawn`."""

    def __init__(self, root):
        self.modules = [(own_name(path), module) for path, module in root.named_modules() if path]
        self.changes, self.drawn = [], []

    def __enter__(self):
        self.buffers = [dict(module._buffers) for _, module in self.modules]
        self.attributes = [attributes_of(module) for _, module in self.modules]
        self.random = states_of_random()

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        self.changes = []
        for (layer, module), attributes, buffers in zip(self.modules, self.attributes, self.buffers):
            for name, before in buffers.items():
                keep_assigned(layer, module, name, before)
            for name, value in attributes_of(module).items():
                if name not in attributes or not is_same(attributes[name], value):
                    self.changes.append(Change(layer, module, name, value))
        self.drawn = [name for name, state in states_of_random().items() if state != self.random.get(name)]


def keep_assigned(layer, module, name, before):
    """`self.mean = 0.9 * self.mean + …` is an assignment to the buffer that was there, which the export has of the outermost module alone."""
    now = module._buffers.get(name)
    if now is before or before is None:
        return
    if now is None or now.shape != before.shape or now.dtype != before.dtype:
        refuse([Problem(f"forward() gives the buffer '{name}' another shape or type, or removes it, and variables keep theirs", layer)])
    before.copy_(now.detach())
    module._buffers[name] = before


def attributes_of(module):
    """Lists and dicts as they are now. A buffer without a tensor is an attribute."""
    own = {name: value for name, value in vars(module).items() if name not in OF_EVERY_MODULE}
    own.update({name: value for name, value in module._buffers.items() if value is None})
    return {name: type(value)(value) if type(value) in (list, dict, set) else value for name, value in own.items()}


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


def hangs_on_data(tensor):
    """Whether an input, a parameter or a buffer goes into it, by the graph that is being recorded."""
    mode = torch._ops._get_dispatch_mode_pre_dispatch(torch._C._TorchDispatchModeKey.PROXY)
    slot = mode and get_proxy_slot(tensor, mode.tracer, None)
    if not slot:
        return False
    seen, waiting = set(), [slot.proxy.node]
    while waiting:
        node = waiting.pop()
        if node.op == "placeholder":
            return True
        if node not in seen:
            seen.add(node)
            waiting += node.all_input_nodes
    return False


def used_constants(program):
    for spec in program.graph_signature.input_specs:
        if spec.target in program.constants:
            node = next(each for each in program.graph.nodes if each.name == spec.arg.name)
            if node.users:
                yield program.constants[spec.target]


#
# Once more, as it was left
#


def check_repetition(state, program, capture):
    """`program` is what the pass has given, and `capture()` gives that of another one."""
    changes, drawn = state.changes, state.drawn
    if not changes and not drawn:
        return
    first = text_of(program)
    with as_it_was_left(changes):
        for number in range(CAPTURES_OF_DRAWS if drawn else 1):
            seed(number)
            try:
                again = capture()
            except Exception:
                again = None  # What was left is no such thing as the pass expects.
            refuse_if_other(first, again, changes, drawn)


def refuse_if_other(first, again, changes, drawn):
    read = [change for change in changes if again and change.is_read(again)]
    problems = [Problem(f"forward() reads self.{change.name}, a tensor that the step before has left there, which a compiled step does not see: "
                        f"make it a buffer, register_buffer('{change.name}', …), and assign to that", change.layer)
                for change in read if change.is_state]  # fmt: skip
    if not problems and not read and (again is None or text_of(again) != first):
        problems = [Problem(f"forward() changes self.{change.name}, and computes something else from then on, where a compiled step repeats "
                            "itself: make it a buffer, or an input; or call the module once before, if its first pass alone differs",
                            change.layer) for change in changes]  # fmt: skip
        problems += [Problem(f"forward() draws by {name}, and a compiled step would repeat the first draw: use torch.rand(())") for name in drawn]
    if problems:
        refuse(problems)


def text_of(program):
    """The graph, and the constants in it."""
    return str(program.graph), [each.tolist() if isinstance(each, torch.Tensor) else str(each) for each in used_constants(program)]


@contextlib.contextmanager
def as_it_was_left(changes):
    with contextlib.ExitStack() as undo:
        for change in changes:
            module = change.module
            own = module._buffers if change.name in module._buffers else vars(module)
            put_back = (own.update, {change.name: own[change.name]}) if change.name in own else (own.pop, change.name, None)
            undo.callback(*put_back)
            own[change.name] = change.value_left()
        yield


def seed(number):
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number)


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
