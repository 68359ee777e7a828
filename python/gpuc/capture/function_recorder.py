"""A graph as plain data: one function of a step, over the variables and constants that all have in common."""

import operator

import torch
from torch.export.graph_signature import InputKind, OutputKind

from gpuc.capture.functional import name_of
from gpuc.capture.specs import TYPES, HangsOnValue, spec_of
from gpuc.capture.triangles import Triangle
from gpuc.contents import has_contents
from gpuc.errors import Error, Problem
from gpuc.formulas.checks import UNCHECKED
from gpuc.formulas.cures import CURE_OF_NUMBERS, cure_of_type, cured
from gpuc.lines import own_name, place_of

LEAST_TRIANGLE_ELEMENTS = 1 << 10  # Smaller ones are written out.


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
        """`predict` alone is no loss, and takes no target: nor does it assign what the loss keeps of targets, as it assigns nothing."""
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self.bind(node)
            elif node.op == "call_function":
                self.add(node)
        is_loss = name != "predict"
        function = {"name": name, "is_loss": is_loss, "inputs": self.inputs, "nodes": self.nodes, **self.results(outputs)}
        if not is_loss:
            function["assigned"] = []
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
            self.inputs.append({"name": name, **spec_of(node.meta["val"])})
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
                self.owner.unchecked.append(Problem(f"{UNCHECKED}{said}", **place_of(node)))
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
                if "empty" in node.target.__name__:  # The memory holds what it happened to hold.
                    self.known[node].zero_()
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
            spec = spec_of(torch.empty(triangle.shape, dtype=dtype, device="meta"))
            self.nodes.append({"name": made, "op": name, "arguments": arguments, "results": [spec], **place_of(node)})
            return {"node": made}

        everywhere = op("expand.default", torch.bool, self=self.owner.constant(torch.tensor(True)), size=list(triangle.shape))
        inside = op("tril.default", torch.bool, self=everywhere, diagonal=triangle.diagonal)
        return op("where.self", triangle.inside.dtype, condition=inside, self=self.owner.constant(triangle.inside),
                  other=self.owner.constant(triangle.outside))  # fmt: skip

    def specs(self, node):
        value, op = node.meta.get("val"), name_of(node.target)
        if isinstance(value, torch.Tensor):
            return [spec_of(value, op)]
        if not isinstance(value, (list, tuple)):
            raise HangsOnValue(f"is a number that hangs on a tensor's value (.item(), .tolist(), an index of one number), which a compiled step does not "
                               f"know: {CURE_OF_NUMBERS}")  # fmt: skip
        return [spec_of(each, op) for each in value]

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
