"""torch.autograd.grad within a module: gradient penalties, forces, the derivatives of a physics-informed network.

PyTorch's engine would work out of the export's sight. So a call becomes one op of the graph, gpuc::gradient, and it is the compiler that
differentiates what lies between inputs and outputs, to any order. There each input is what gpuc::marked gives: a value of its own, though it
may be a copy or a view of another one, by which is not derived.
"""

import contextlib

import torch
from torch._functorch import eager_transforms
from torch.utils import _pytree as pytree

from gpuc.capture.custom_gradients import put
from gpuc.capture.unseen import refuse_here


@torch.library.custom_op("gpuc::gradient", mutates_args=())
def gradient(outputs: list[torch.Tensor], inputs: list[torch.Tensor], seeds: list[torch.Tensor | None]) -> list[torch.Tensor]:
    """Of each input: the sum over outputs of what `seeds` times the output varies by, where None is 1."""
    raise NotImplementedError("gpuc::gradient is for the compiler alone")


@torch.library.custom_op("gpuc::marked", mutates_args=())
def marked(value: torch.Tensor) -> torch.Tensor:
    """`value`, as something that is derived by."""
    raise NotImplementedError("gpuc::marked is for the compiler alone")


@gradient.register_fake
def _(outputs, inputs, seeds):
    return [torch.empty_like(each) for each in inputs]


@marked.register_fake
def _(value):
    return torch.empty_like(value)


def captured_grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None,
                  is_grads_batched=False, materialize_grads=False):  # fmt: skip
    """torch.autograd.grad, with its arguments."""
    outputs, inputs = (pytree.tree_leaves(each) for each in (outputs, inputs))
    seeds = [None] * len(outputs) if grad_outputs is None else as_list(grad_outputs)
    if is_grads_batched:
        refuse_here("torch.autograd.grad(is_grads_batched=True) is not supported: call it once for each vector")
    check_seeds(outputs, seeds)
    wanted = reached(outputs, inputs)
    if not all(wanted) and not (allow_unused or materialize_grads):
        raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is "
                           "the desired behavior.")  # fmt: skip
    sought = {id(each): each for each, is_wanted in zip(inputs, wanted) if is_wanted}
    found = dict(zip(sought, torch.ops.gpuc.gradient(outputs, list(sought.values()), seeds) if sought else []))
    unused = torch.zeros_like if materialize_grads else lambda _: None
    gradients = [found[id(each)] if id(each) in found else unused(each) for each in inputs]
    return tuple(each if create_graph or each is None else each.detach() for each in gradients)


def as_list(value):
    return [value] if isinstance(value, torch.Tensor) else list(value)


def check_seeds(outputs, seeds):
    """As PyTorch does."""
    for output, seed in zip(outputs, seeds, strict=True):
        if seed is None and output.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if seed is not None and seed.shape != output.shape:
            raise RuntimeError(f"Mismatch in shape: grad_output has a shape of {seed.shape} and output has a shape of {output.shape}.")


def reached(outputs, inputs):
    """Of each input whether an output hangs on it. Where nothing records that, in evaluation, all count as reached: what is not has the gradient 0."""
    if not torch.is_grad_enabled():
        return [True] * len(inputs)
    for each in inputs:
        if not each.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    seen, left = set(), [each.grad_fn for each in outputs if each.grad_fn is not None]
    while left:
        node = left.pop()
        if node not in seen:
            seen.add(node)
            left += [following for following, _ in node.next_functions if following is not None]
    leaves = {id(node.variable) for node in seen if hasattr(node, "variable")}
    return [id(each) in leaves if each.is_leaf else each.grad_fn in seen for each in inputs]


def refused(what, cure):
    def refuse(*_, **__):
        refuse_here(f"{what} is not supported within a module: {cure}")

    return refuse


CURE = "torch.autograd.grad(…, create_graph=True) is"


#
# torch.func, by torch.autograd.grad
#


class Applied:
    """A function of arguments of which some are derived by: these are tensors of their own."""

    def __init__(self, function, args, kwargs, argnums, has_aux):
        check_batches()
        args = list(args)
        for number in [argnums] if isinstance(argnums, int) else argnums:
            args[number] = pytree.tree_map_only(torch.Tensor, its_own, args[number])
        chosen = args[argnums] if isinstance(argnums, int) else tuple(args[number] for number in argnums)
        self.inputs, self.structure = pytree.tree_flatten(chosen)
        self.out = function(*args, **kwargs)
        self.out, *self.aux = self.out if has_aux else (self.out,)
        self.outputs, self.structure_of_outputs = pytree.tree_flatten(self.out)

    def gradients(self, seeds=None):
        """In the form of what is derived by."""
        check_batches()
        return pytree.tree_unflatten(self.flat_gradients(seeds), self.structure)

    def flat_gradients(self, seeds=None):
        return list(captured_grad(self.outputs, self.inputs, seeds, create_graph=True, materialize_grads=True))


def its_own(tensor):
    tensor = tensor.clone()
    return tensor if tensor.requires_grad else tensor.requires_grad_()


def check_batches():
    if torch._C._functorch.maybe_current_level() is not None:
        refuse_here(f"a gradient by torch.func within torch.vmap is not supported within a module: of a sum over the batch {CURE} each row's")


def func_grad_and_value(function, argnums, has_aux, args, kwargs):
    applied = Applied(function, args, kwargs, argnums, has_aux)
    return applied.gradients(), (applied.out, *applied.aux) if has_aux else applied.out


def func_grad(function, argnums, has_aux, args, kwargs):
    gradients, value = func_grad_and_value(function, argnums, has_aux, args, kwargs)
    return (gradients, value[1]) if has_aux else gradients


def func_vjp(function, *primals, argnums=None, has_aux=False):
    applied = Applied(function, primals, {}, tuple(range(len(primals))) if argnums is None else argnums, has_aux)
    return applied.out, lambda seeds, **_: applied.gradients(pytree.tree_leaves(seeds)), *applied.aux


def func_jvp(function, primals, tangents, argnums=None, *, strict=False, has_aux=False):
    """What a gradient varies by with its seeds, in which it is linear."""
    applied = Applied(function, primals, {}, tuple(range(len(primals))) if argnums is None else argnums, has_aux)
    seeds = [torch.zeros_like(each).requires_grad_() for each in applied.outputs]
    found = captured_grad(applied.flat_gradients(seeds), seeds, pytree.tree_leaves(tangents), create_graph=True, materialize_grads=True)
    return applied.out, pytree.tree_unflatten(list(found), applied.structure_of_outputs), *applied.aux


TRANSFORMS = {"grad_impl": func_grad, "grad_and_value_impl": func_grad_and_value, "_vjp_with_argnums": func_vjp, "_jvp_with_argnums": func_jvp}


@contextlib.contextmanager
def inner_gradients():
    """Within, torch.autograd.grad is an op of the graph that is recorded."""
    with contextlib.ExitStack() as undo:
        put(undo, torch.autograd, "grad", captured_grad)
        for owner in (torch.Tensor, torch.autograd):
            put(undo, owner, "backward", refused("backward()", CURE))
        for name, transform in TRANSFORMS.items():  # What torch.func.grad, jacrev, jvp and the like come down to.
            put(undo, eager_transforms, name, transform)
        yield


def gradients_of(program):
    return [node for node in program.graph.nodes if node.target is torch.ops.gpuc.gradient.default]


def has_gradients(program):
    return bool(gradients_of(program))


def mark_inputs(program):
    """What is derived by gets a node of its own, which all that comes after reads."""
    graph = program.graph
    last = next((node for node in reversed(graph.nodes) if node.op == "placeholder"), None)
    for node in gradients_of(program):
        for value in node.args[1]:
            if value.target is torch.ops.gpuc.marked.default:
                continue
            with graph.inserting_after(last if value.op == "placeholder" else value):
                mark = graph.call_function(torch.ops.gpuc.marked.default, (value,))
            mark.meta.update(node.meta, val=value.meta["val"])
            value.replace_all_uses_with(mark, delete_user_cb=lambda user: user is not mark)
