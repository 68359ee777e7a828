"""How often a module is captured: once, and again where the first pass shows that it has what a second one takes into account."""

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree

from gpuc.capture.forward_state import Attributes, same_random
from gpuc.capture.functional import storage_of, written_by
from gpuc.capture.one_pass import capture_pass, held, quietly
from gpuc.capture.reasons import hangs_on_a_value
from gpuc.contents import is_dense
from gpuc.errors import Error, Problem, refuse
from gpuc.formulas import Choices, ComplexNumbers, KnownMasks
from gpuc.formulas.whether_any import DIFFERS, makes_no_difference


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
    except Error:  # Of chosen rows, which says what of them is none of a step's.
        raise
    except Exception:  # It is refused by what the first pass says.
        rules.has_choices = False
    if fault and not rules.has_choices:
        raise fault from None
    return chosen if rules.has_choices else program


def capture_with_choices(module, args, kwargs, rules):
    masks = KnownMasks(module)
    choices = Choices()
    program = capture_with_its_own(module, args, kwargs, rules, choices, masks)
    check_buffers(program, module, masks)
    check_asked(module, args, kwargs, choices.asked)
    rules.has_masks |= masks.is_used
    rules.read_by_masks += masks.read
    return program


def check_asked(module, args, kwargs, lines):
    """A step goes one way, as if there were some of each: who goes the other one with none has to mean the same."""
    with Attributes(module), same_random():
        if lines and not makes_no_difference(module, args, kwargs, lines):
            refuse([Problem(DIFFERS, "", *lines[0])])


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
    masks = KnownMasks(module)
    try:
        with quietly():
            known = capture_with_its_own(module, args, kwargs, rules, masks)
        check_buffers(known, module, masks)
    except Exception as error:
        if rules.has_masks or (masks.is_used and not hangs_on_a_value(error)):
            raise
        if fault:
            raise fault from None
        return program
    rules.has_masks |= masks.is_used
    rules.read_by_masks += masks.read
    return known


def check_buffers(program, module, masks):
    """One that a pass writes is another one in the next, which would be captured otherwise."""
    buffers = dict(module.named_buffers(remove_duplicate=False))
    kinds = {spec.arg.name: buffers.get(spec.target) for spec in program.graph_signature.input_specs if spec.kind == InputKind.BUFFER}
    for node in program.graph.nodes:
        for written in written_by(node):
            buffer = kinds.get(by_memory(program.graph, written))
            if id(buffer) in masks.used_buffers:
                _, file, line = next(each for each in masks.read if each[0] is buffer)
                refuse([Problem("hangs on the value of a buffer that the forward pass itself changes, and a compiled step is the same each time: "
                                "choose by torch.where, or, if its first pass alone goes another way, call the module once before", "", file, line)])  # fmt: skip


def by_memory(graph, written):
    """The name of the input whose memory that is."""
    place = storage_of(written.meta["val"])
    return next((node.name for node in graph.nodes if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor)
                 and storage_of(node.meta["val"]) == place), None)  # fmt: skip


def has_complex(program):
    """Numbers."""
    values = [each for node in program.graph.nodes for each in pytree.tree_leaves(node.meta.get("val"))]
    return any(isinstance(each, torch.Tensor) and each.dtype.is_complex for each in values)


def has_open_shapes(program):
    """Or numbers."""
    values = [node.meta.get("val") for node in program.graph.nodes]
    numbers = [extent for each in values if isinstance(each, torch.Tensor) for extent in each.shape]
    return any(isinstance(each, (torch.SymInt, torch.SymFloat, torch.SymBool)) for each in (*values, *numbers))


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
