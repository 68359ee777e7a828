"""The functional graph of a module, with what torch.export and decomposing would drop."""

import warnings

import torch

from gpuc.capture.attempts import capture_whole, has_complex
from gpuc.capture.example import check_example
from gpuc.capture.functional import functional, storage_of, written_by
from gpuc.capture.inner_gradients import mark_inputs
from gpuc.capture.one_pass import quietly
from gpuc.capture.reasons import reason_of, trace_of
from gpuc.capture.seeds import check_seeds, noted_seeds
from gpuc.capture.segments import noted_segments
from gpuc.errors import Error, Problem, refuse
from gpuc.formulas.checks import passed_checks
from gpuc.lines import place_of, user_line


def export(module, args, kwargs, rules):
    """The functional graph. Whatever torch says against the module becomes gpuc's error, with the user's line."""
    twice = []
    try:
        with warnings.catch_warnings(), quietly(), passed_checks(rules.unchecked), noted_segments(twice), noted_seeds() as seeds:
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
        check_seeds(program, seeds)
        check_example(module, args, kwargs, rules.unchecked)
        rules.unchecked += twice
        return program
    except Error:
        raise
    except Exception as error:
        trace = trace_of(error)
        file, line = user_line(trace)
        what = f"the loss, {type(module.loss).__name__}," if not file and "in loss_of\n" in trace else "the module"
        mode = "" if module.training else " in eval mode"
        refuse([Problem(reason_of(error, f"{what}{mode}"), "", file, line)])


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
        detach_what_is_written(graph, node, inside.graph)
        for user in list(node.users):
            with graph.inserting_after(user):
                detached = graph.call_function(torch.ops.aten.detach.default, (user,))
            detached.meta.update(user.meta)
            user.replace_all_uses_with(detached, delete_user_cb=lambda other: other is not detached)


def detach_what_is_written(graph, region, inside):
    """A buffer that is written there, or a row of it, leaves the region too, and by no result: what is read there comes detached."""
    written = {storage_of(each.meta["val"]) for node in inside.nodes for each in written_by(node)}
    if not written:
        return
    operands = list(region.args)
    for number, placeholder in enumerate((each for each in inside.nodes if each.op == "placeholder"), start=2):
        value = placeholder.meta.get("val")
        if isinstance(value, torch.Tensor) and value.is_floating_point() and storage_of(value) not in written:
            with graph.inserting_before(region):
                detached = graph.call_function(torch.ops.aten.detach.default, (operands[number],))
            detached.meta.update(operands[number].meta)
            operands[number] = detached
    region.args = tuple(operands)


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
