"""The variables and functions of one step."""

import functools
import inspect
import json
import warnings
import zlib

import torch
from torch.utils import _pytree as pytree

from gpuc.batches import checksum_of
from gpuc.capture.export import export
from gpuc.capture.forward_state import check_repetition, reads_of
from gpuc.capture.function_recorder import FunctionRecorder, prune
from gpuc.capture.functional import Rules
from gpuc.capture.inner_gradients import has_gradients
from gpuc.capture.one_pass import quietly
from gpuc.capture.overlaps import extent_of, overlaps
from gpuc.capture.rows import alike, draws_of_rows
from gpuc.capture.specs import TYPES, references_of, spec_of
from gpuc.capture.whole import Both, Whole, in_eval_mode
from gpuc.contents import why_not_plain
from gpuc.errors import Error, Problem, refuse
from gpuc.formulas.cures import cure_of_type

RESERVED = {"accuracy", "evaluate", "init", "loss", "lr", "predict", "seed", "step", "updates"}
STAYS = ("is changed by a pass in eval mode, too, and evaluation and prediction of a compiled step leave it as it is: change it where self.training is "
         "true, or by a call of the module itself")  # fmt: skip
MOST_CONSTANT_ELEMENTS = 1 << 16  # Larger ones are variables, so that the text stays small.


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
        self.alike, self.for_rows = set(), {}  # Of a batch that is cut: inputs that are not; by nodes that draw, whether for its rows.
        self.rules = Rules()
        for prefix, owner in (("", net), ("loss.", loss)):
            if isinstance(owner, torch.nn.Module):
                self.declare_all(prefix, owner)
        self.check_memory()

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
        self.variables.append({"name": variable, **spec_of(tensor), "role": role})

    def check_memory(self):
        """Each variable has memory of its own. What is trained beside another that shows its memory, as by `decoder.weight.data = encoder.weight.data`,
        would not be seen there."""
        trained = {each["name"] for each in self.variables if each["role"] == "trained"}
        for one, other in overlaps(self.tensors):
            if one in trained or other in trained:
                raise Error(f"'{one}' and '{other}' share memory, of which a compiled step gives each its own: tie parameters by making them one, "
                            "layer.weight = other.weight, of which forward() reads what is to be turned or cut, other.weight.t(); or give one memory "
                            "of its own, .clone()")  # fmt: skip

    def constant(self, tensor):
        """A reference to what is known. A number that is everywhere is written once."""
        tensor = tensor.detach().clone(memory_format=torch.contiguous_format)
        if tensor.numel() > MOST_CONSTANT_ELEMENTS:
            name = f"constant.{len(self.tensors)}"
            self.tensors[name] = tensor
            self.variables.append({"name": name, **spec_of(tensor), "role": "buffer"})
            return {"variable": name}
        name = f"c{len(self.constants)}"
        data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes().hex() if tensor.numel() else ""
        self.constants.append({"name": name, **spec_of(tensor), "bytes": data})
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
        self.unchecked += self.rules.unchecked
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
        changed = {each["variable"] for function in self.functions if function["name"] in functions for each in function["assigned"]}
        read = read_by([for_outputs_alone(each) for each in self.functions]) if changed else set()
        self.unchecked += [Problem(f"'{name}' {STAYS}") for name in sorted(changed & read)]

    def look_at_rows(self, part, batch):
        """Of what was recorded of a part of the batch: what each row has for itself. `batch`: more rows."""
        leaves = pytree.tree_leaves(batch)
        if self.problems or not leaves[0].dim():
            return
        loss = next(each for each in self.functions if each["name"] == "loss")
        self.alike = alike(input_names(self.net, *batch, has_target=self.loss is not None), leaves)
        self.for_rows = draws_of_rows(loss, pytree.tree_leaves(part)[0].shape[0], lambda: self.loss_of(*batch))

    def loss_of(self, args, kwargs):
        """The function that other inputs would have made."""
        other = Recorder(self.net, self.loss, self.trained)
        other.record_training(args, kwargs)
        return other.functions[0]

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
        return read_by([each for each in self.functions if each["name"] == "loss"])

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
        functions = [self.with_rows(each) if each["name"] == "loss" else each for each in self.functions]
        return {"name": name, "variables": self.variables, "constants": self.constants, "functions": functions}

    def with_rows(self, function):
        inputs = [{**each, "alike": True} if each["name"] in self.alike else each for each in function["inputs"]]
        nodes = [{**node, "for_rows": self.for_rows[node["name"]]} if node["name"] in self.for_rows else node for node in function["nodes"]]
        return {**function, "inputs": inputs, "nodes": nodes}


def read_by(functions):
    """The variables."""
    nodes = [node for function in functions for node in function["nodes"]]
    read = [*(each for node in nodes for each in references_of(node)), *(each for function in functions for each in function["outputs"])]
    return {each["variable"] for each in read if "variable" in each}


def for_outputs_alone(function):
    """Without what it computes to assign."""
    function = {**function, "assigned": []}
    prune(function)
    return function


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
