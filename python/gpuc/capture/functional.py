"""A captured graph without writing in place, of ops that the compiler knows.

torch's run_decompositions retraces a graph for that, at a millisecond an op. Most graphs need it for few of their ops, or none: what is
written in place is read by no view of before, and ops are known, or hang on constants alone. Those are rewritten here, and torch takes
apart what is left of them.
"""

import functools
import operator
from types import SimpleNamespace

import torch
from torch.export.exported_program import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from torch.utils import _pytree as pytree

from gpuc import _compiler
from gpuc.formulas import FORMULAS
from gpuc.formulas.experts import take_others

aten = torch.ops.aten
WITHOUT_WRITING = {}  # By an op that writes: the one that does not, or None.


class Rules:
    """How ops are taken apart that the compiler does not know."""

    def __init__(self):
        self.known = {name for name, _ in _compiler.known_ops()}
        self.are_held = False  # Tensors of the module, in lists of the user's, which the capture has to look for.
        self.has_choices = False  # Of rows, by masks of data.
        self.has_complex = False  # Numbers, of which the capture makes pairs.
        self.has_masks = False  # Which hang on constants, and are indices.
        self.read_by_masks = []  # (tensor, file, line)
        self.unchecked = []  # Checks of values that are left out.

    @functools.cached_property
    def table(self):
        take_others()
        table = torch.export.default_decompositions().items()
        return {**{op: rule for op, rule in table if name_of(op) not in self.known}, **FORMULAS}

    def take_apart(self, node):
        op = op_without_writing(node.target)
        if name_of(op) in self.known:  # A formula may be for some of its cases alone.
            return op in FORMULAS and on_fakes(node, FORMULAS[op]) is not NotImplemented
        return is_composite(op) or op in self.table


def functional(program, rules):
    """What reads as a torch.export.ExportedProgram: graph, graph_signature, constants."""
    use_known_words(program.graph)
    others = ops_to_take_apart(program, rules)
    parts = None if others is None else taken_apart(others, rules, program.verifiers)
    if parts is None:
        give_unused_buffers_others(program)
        return program.run_decompositions(rules.table)
    graph, signature = program.graph, program.graph_signature
    now = without_writing(graph)
    of_buffers = {spec.arg.name: spec.target for spec in signature.input_specs if spec.kind == InputKind.BUFFER}
    changed = [(of_buffers[node.name], now[node]) for node in graph.nodes if node.op == "placeholder" and node in now]
    output = graph.output_node()
    output.args = ((*(value for _, value in changed), *output.args[0]),)
    put_in_place(graph, others, parts)
    values = output.args[0][: len(changed)]
    assigned = [OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(value.name), target) for value, (target, _) in zip(values, changed)]
    graph.eliminate_dead_code()
    specs = SimpleNamespace(input_specs=signature.input_specs, output_specs=[*assigned, *signature.output_specs])
    return SimpleNamespace(graph=graph, graph_signature=specs, constants=program.constants)


def give_unused_buffers_others(program):
    """A layer in two places has two names for each of its buffers, of which the graph reads and writes one: torch does not trace anew what has one
    tensor twice, and writes it."""
    unused = {node.name for node in program.graph.nodes if node.op == "placeholder" and not node.users}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.BUFFER and spec.arg.name in unused:
            held = program.state_dict if spec.persistent else program.constants
            held[spec.target] = torch.empty_like(held[spec.target])


#
# Ops that are others by another name
#


def constant_pad(x, pad, mode="constant", value=None):
    return (aten.constant_pad_nd.default, (x, pad, value or 0.0)) if mode == "constant" else None


WORDS = {
    aten.pad.default: constant_pad,
    aten.reshape_as.default: lambda x, other: (aten.reshape.default, (x, list(other.meta["val"].shape))),
    aten.swapaxes.default: lambda x, first, second: (aten.transpose.int, (x, first, second)),
    aten.type_as.default: lambda x, other: (aten.to.dtype, (x, other.meta["val"].dtype)),
}


def use_known_words(graph):
    for node in graph.nodes:
        word = WORDS[node.target](*node.args, **node.kwargs) if node.op == "call_function" and node.target in WORDS else None
        if word:
            node.target, node.args, node.kwargs = *word, {}


def index_by_tensors(program):
    """x[t] by a tensor of one number is a row by .item() in an export, whose shape is known: an index like any other, unless that is written."""
    written = {storage_of(each.meta["val"]) for node in program.graph.nodes for each in written_by(node)}
    for node in list(program.graph.nodes):
        place = node.args[2] if node.target is aten.select.int else None
        if not isinstance(place, torch.fx.Node) or place.target is not aten.item.default or storage_of(node.meta["val"]) in written:
            continue
        x, dim, number = node.args[0], node.args[1] % node.args[0].meta["val"].dim(), place.args[0]
        with program.graph.inserting_before(node), node.meta["val"].fake_mode:
            index = call(program.graph, node, aten.reshape.default, number, [1])
            row = call(program.graph, node, aten.index.Tensor, x, [None] * dim + [index])
            node.replace_all_uses_with(call(program.graph, node, aten.squeeze.dim, row, dim))
        for each in (node, place):
            if not each.users:
                program.graph.erase_node(each)
    return program


def call(graph, like, op, *args):
    """Where `like` stands, with its line."""
    made = graph.call_function(op, args)
    made.meta.update(like.meta, val=op(*torch.fx.node.map_arg(args, lambda each: each.meta["val"])))
    return made


#
# Which graphs are simple
#


def ops_to_take_apart(program, rules):
    """None: the graph is none of those that are rewritten."""
    kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
    constants, others = {node for node in program.graph.nodes if kinds.get(node.name) == InputKind.CONSTANT_TENSOR}, []
    for node in program.graph.nodes:
        if node.op == "call_function" and not is_simple(node, constants):
            return None
        if node.op != "call_function" or node.target is operator.getitem or node in constants:
            continue
        if (node.users or node.target._schema.is_mutable) and rules.take_apart(node):
            others.append(node)
    return others if are_read_as_written(program) else None


def is_simple(node, constants):
    """Adds what hangs on constants alone to these: of them torch computes the values."""
    if node.target is operator.getitem:
        constants.update({node} if node.args[0] in constants else ())
        return True
    if not isinstance(node.target, torch._ops.OpOverload) or not all(map(is_dense, values_of(node))):
        return False
    if node.target.namespace != "aten" and node.target not in FORMULAS:
        return False
    if node.target is aten.batch_norm.default:
        return is_simple_batch_norm(node)
    if node.target is aten.instance_norm.default:
        return node.args[3] is None
    op = op_without_writing(node.target)
    if op is None or (op is not node.target and not gives_the_same(node, op)):
        return False
    if torch.Tag.nondeterministic_seeded not in op.tags and all(each in constants for each in node.all_input_nodes):
        constants.add(node)
    return True


def values_of(node):
    return [each for each in pytree.tree_leaves(node.meta.get("val")) if each is not None]


def is_dense(value):
    """A tensor of known shape that lies in memory."""
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and all(isinstance(extent, int) for extent in value.shape)


def is_composite(op):
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")


def is_simple_batch_norm(node):
    """In training it writes into its statistics, which its schema does not say."""
    x, _, _, mean, variance, training, *_ = node.args
    if mean is None or variance is None:
        return False
    return not training or x.meta["val"].dtype == mean.meta["val"].dtype == variance.meta["val"].dtype


def op_without_writing(op):
    """relu for relu_, if it is the first argument that is written, and the others are the same, else None; relu for relu."""
    if op not in WITHOUT_WRITING:
        WITHOUT_WRITING[op] = find_op_without_writing(op) if op._schema.is_mutable else op
    return WITHOUT_WRITING[op]


def find_op_without_writing(op):
    """Overloads have other names at times: pow_.Scalar is pow.Tensor_Scalar, and pow.Scalar another one."""
    name = op._schema.name.removeprefix("aten::")
    packet = getattr(aten, name.removesuffix("_"), None) if name.endswith("_") else None
    others = [getattr(packet, overload) for overload in packet.overloads()] if packet else []
    return next((other for other in others if takes_the_same(op._schema, other._schema)), None)


def takes_the_same(writing, other):
    written = [argument.name for argument in writing.arguments if argument.is_write]
    taken = [[(argument.name, str(argument.type), argument.default_value) for argument in schema.arguments] for schema in (writing, other)]
    return written == [taken[0][0][0]] and taken[0] == taken[1] and not other.is_mutable and len(other.returns) == 1


def gives_the_same(node, op):
    """Not so where what is written is rounded to the type of where it goes."""
    written, result = node.args[0].meta["val"], on_fakes(node, op)
    return result.dtype == written.dtype and result.shape == written.shape


def on_fakes(node, function):
    """Of the op's operands, without numbers."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
    with values_of(node)[0].fake_mode:
        return function(*args, **kwargs)


def name_of(op):
    return str(op).removeprefix("aten.")


#
# Who reads what is written
#


def are_read_as_written(program):
    """Whether what is written is read, from then on, by the name alone that it was written by; no input is, but buffers, as a whole."""
    kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
    order = {node: number for number, node in enumerate(program.graph.nodes)}
    there, now = by_storage(program.graph), Latest()
    for node, number in order.items():
        for written in written_by(node):
            nodes = there[storage_of(written.meta["val"])]
            if node.target is aten.detach_.default and kinds.get(nodes[0].name) == InputKind.CONSTANT_TENSOR:
                continue  # A number within forward(), which has no gradient that could be cut off.
            whole = now.of(written)
            others = [each for each in nodes if order[each] < number and now.of(each) is not whole]
            if kinds.get(written.name, InputKind.BUFFER) != InputKind.BUFFER or not all(is_read_no_more(each, order, number) for each in others):
                return False
            now[whole] = object() if node.target is aten.batch_norm.default else node
    return True


def is_read_no_more(node, order, number):
    return node.op != "placeholder" and all(order[user] <= number for user in node.users)


class Latest(dict):
    """By what was written: what it is then, a chain where it was so again."""

    def of(self, node):
        while node in self:
            node = self[node]
        return node


def storage_of(tensor):
    return tensor.untyped_storage()._cdata


def by_storage(graph):
    """The nodes that have their values there, of each storage."""
    found = {}
    for node in graph.nodes:
        for value in values_of(node) if node.op != "output" else ():
            if isinstance(value, torch.Tensor):
                found.setdefault(storage_of(value), {})[node] = None
    return {storage: list(nodes) for storage, nodes in found.items()}


def written_by(node):
    """Of its operands."""
    if node.op != "call_function":
        return []
    if node.target is aten.batch_norm.default:
        return [each for each in node.args[3:5] if each is not None] if node.args[5] else []
    return node.args[:1] if isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable else []


#
# Without writing
#


def without_writing(graph):
    """Gives, by what was written, what it is at the end."""
    now = Latest()
    for node in list(graph.nodes):
        node.args, node.kwargs = (torch.fx.node.map_arg(each, now.of) for each in (node.args, node.kwargs))
        if node.target is aten.batch_norm.default and node.args[5]:
            now.update(rewrite_batch_norm(graph, node))
        elif written_by(node):
            now[node.args[0]] = node
            node.target = op_without_writing(node.target)
    return {node: now.of(node) for node in now}


def rewrite_batch_norm(graph, node):
    """What its statistics become are results of their own."""
    mean, variance = statistics = node.args[3:5]
    with graph.inserting_before(node):
        whole = graph.call_function(aten._native_batch_norm_legit_functional.default, node.args[:8])
        whole.meta.update(node.meta, val=[node.meta["val"], *(each.meta["val"] for each in (mean, variance) * 2)])
        results = [getitem(graph, whole, number) for number in (3, 4)]
    node.target, node.args, node.kwargs = operator.getitem, (whole, 0), {}
    return dict(zip(statistics, results))


#
# What torch takes apart
#


def taken_apart(nodes, rules, verifiers):
    """A graph of them, made functional: each with inputs of its own, all results are outputs. None: they do more than to give results.

    Rules of composite ops are costly: at first there are those that are surely needed.
    """
    if not nodes:
        return torch.fx.Graph()
    targets = {op_without_writing(node.target) for node in nodes}
    few = {op: rule for op, rule in rules.table.items() if op in targets or not is_composite(op)}
    program = in_a_bag(nodes, verifiers).run_decompositions(few)
    if any(node.target in rules.table and node.target not in few for node in program.graph.nodes):
        program = in_a_bag(nodes, verifiers).run_decompositions(rules.table)
    signature = program.graph_signature
    inputs = all(spec.kind == InputKind.USER_INPUT for spec in signature.input_specs)
    return program.graph if inputs and all(spec.kind == OutputKind.USER_OUTPUT for spec in signature.output_specs) else None


def in_a_bag(nodes, verifiers):
    graph, results = torch.fx.Graph(), []
    inputs = {node: [graph.placeholder(f"x{number}_{index}") for index in range(len(operands_of(node)))] for number, node in enumerate(nodes)}
    for node, placeholders in inputs.items():
        for own, operand in zip(placeholders, operands_of(node)):
            own.meta["val"] = operand.meta["val"]
        own = iter(placeholders)
        copy = graph.node_copy(node, lambda _: next(own))
        copy.target = op_without_writing(node.target)
        is_one = isinstance(node.meta["val"], torch.Tensor)
        results += [copy] if is_one else [getitem(graph, copy, number) for number in range(len(values_of(node)))]
    graph.output(tuple(results))
    placeholders = tuple(each for each in graph.nodes if each.op == "placeholder")
    signature = ExportGraphSignature([InputSpec(InputKind.USER_INPUT, TensorArgument(each.name), None) for each in placeholders],
                                     [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(each.name), None) for each in results])  # fmt: skip
    trees = [pytree.tree_structure(each) for each in ((placeholders, {}), tuple(results))]
    calls = [ModuleCallEntry("", ModuleCallSignature([], [], *trees))]
    return ExportedProgram(torch.fx.GraphModule({}, graph), graph, signature, {}, {}, calls, None, {}, verifiers=verifiers)


def operands_of(node):
    """One after the other; what is read twice comes twice."""
    found = []
    torch.fx.node.map_arg((node.args, node.kwargs), found.append)
    return found


def getitem(graph, node, number):
    result = graph.call_function(operator.getitem, (node, number))
    result.meta.update(node.meta, val=node.meta["val"][number])
    return result


def put_in_place(graph, nodes, parts):
    """What torch has made of these, with the assertions among it that no result reads."""
    order = {node: number for number, node in enumerate(parts.nodes)}
    inputs = iter([node for node in order if node.op == "placeholder"])
    results = iter(parts.output_node().args[0] if nodes else ())
    asserts = [(node, what_leads_to([node])) for node in order if node.op == "call_function" and not node.users]
    for node in nodes:
        found = {next(inputs): each for each in operands_of(node)}
        own = [next(results) for _ in values_of(node)]
        of_inputs = [each for each, needed in asserts if not found.keys().isdisjoint(needed)]
        with graph.inserting_before(node):
            for each in sorted(what_leads_to([*own, *of_inputs]) - found.keys(), key=order.get):
                found[each] = graph.node_copy(each, found.get)
        replace(node, [found[each] for each in own])


def what_leads_to(nodes):
    needed, waiting = set(), list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    return needed


def replace(node, results):
    if isinstance(node.meta["val"], torch.Tensor):
        node.replace_all_uses_with(results[0])
        return
    for user in list(node.users):
        user.replace_all_uses_with(results[user.args[1]])
