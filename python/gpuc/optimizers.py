"""What a torch.optim object says, as a recipe. The object is read, never stepped."""

import collections
import contextlib
import functools
import inspect
import weakref

import torch
from torch.optim import optimizer as of_torch

from gpuc.errors import Error, Problem, refuse
from gpuc.lines import beginning_of

# By class: the recipe's name, and the keys of a param_group that it knows, beside those of all.
FORMS = {
    "SGD": ("sgd", ("momentum", "dampening", "nesterov")),
    "Adam": ("adam", ("betas", "eps", "amsgrad")),
    "AdamW": ("adamw", ("betas", "eps", "amsgrad")),
    "RMSprop": ("rmsprop", ("alpha", "eps", "momentum", "centered")),
    "Adadelta": ("adadelta", ("rho", "eps")),
    "Adafactor": ("adafactor", ("beta2_decay", "eps", "d")),
    "Adamax": ("adamax", ("betas", "eps")),
    "NAdam": ("nadam", ("betas", "eps", "momentum_decay", "decoupled_weight_decay")),
    "RAdam": ("radam", ("betas", "eps", "decoupled_weight_decay")),
    "ASGD": ("asgd", ("lambd", "alpha", "t0")),
    "Rprop": ("rprop", ("etas", "step_sizes")),
    "Adagrad": ("adagrad", ("lr_decay", "eps", "initial_accumulator_value")),
}
SAME = ("weight_decay", "maximize")
# Keys of a param_group that may change between steps, as the rate does, if they are not 0 when a step is compiled: what is 0 may say
# that a slot is not there. By key the recipe's numbers.
GIVEN = {"momentum": ("momentum",), "betas": ("beta1", "beta2"), "weight_decay": ("weight_decay",)}
# How PyTorch computes, not what; and the rate.
IGNORED = {"lr", "foreach", "fused", "capturable", "differentiable", "decoupled_weight_decay"}


# By class of torch.optim.
CURES = {
    "LBFGS": "calls the loss as often as its search takes, and a compiled step computes it once: step an LBFGS in eager mode, or take another",
    "Muon": "iterates in bf16: the recipe's text \"muon:lr=0.02\" does in the weights' own type, and gives what is no matrix to AdamW",
    "SparseAdam": "moves the rows alone that a batch reads, and a compiled step all of a table: take Adam, or \"adam:lr=…\"",
}
# What other packages call what a recipe has.
TEXTS = {"lion": "lion:lr=1e-4", "muon": "muon:lr=0.02", "adafactor": "adafactor:lr=0.01"}


def refusal_of(optimizer):
    """Whose update it is decides, not its name; a class made of PyTorch's may have another step()."""
    kind = type(optimizer)
    if not isinstance(optimizer, torch.optim.Optimizer):
        given = f"the class {optimizer.__name__}" if isinstance(optimizer, type) else "None" if optimizer is None else f"a {kind.__name__}"
        return f"the optimizer is {given}: give a torch.optim object, torch.optim.AdamW(net.parameters()), or a recipe's text, \"adamw:lr=3e-4\""
    if kind is getattr(torch.optim, kind.__name__, None):
        cure = CURES.get(kind.__name__)
        return f"the optimizer {kind.__name__} {cure}" if cure else f"the optimizer {kind.__name__} is not supported: {known()}"
    name = f"{kind.__module__}.{kind.__qualname__}"
    base = next((each.__name__ for each in kind.__mro__ if each.__name__ in FORMS and each is getattr(torch.optim, each.__name__)), None)
    if base:
        return f"the optimizer {name} is a class of its own, which may step otherwise than torch.optim.{base}, of which it is made: give that one"
    text = TEXTS.get(kind.__name__.lower())
    return f"the optimizer {name} is not supported: " + (f"the recipe's text \"{text}\" is nearest to it" if text else known())


def known():
    *others, last = sorted(FORMS)
    return f"torch.optim's {', '.join(others)} and {last} are, and a recipe's texts, \"lion:lr=1e-4\""


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return "(" + ",".join(text_of(each) for each in value) + ")"
    return "0" if value is None else repr(float(value))


class Optimizer:
    """A torch.optim object, as the recipe's `optimizer` and `groups`."""

    def __init__(self, optimizer):
        name = type(optimizer).__name__
        if name not in FORMS or type(optimizer) is not getattr(torch.optim, name, None):
            raise Error(refusal_of(optimizer))
        self.torch, self.groups = optimizer, []  # Those that a recipe has.
        self.compiled = [list(map(id, group["params"])) for group in optimizer.param_groups]
        self.check_hooks()
        self.name, keys = FORMS[name]
        self.keys = tuple(key for key in (*keys, *SAME) if key in optimizer.defaults)  # Rprop knows no decay, whatever a group says.
        if name in ("Adam", "AdamW"):
            self.name = self.kind_of_adam()

    def kind_of_adam(self):
        """By what groups say of their decay, which is a recipe's name."""
        kinds = {bool(group.get("decoupled_weight_decay", self.name == "adamw")) for group in self.torch.param_groups}
        if len(kinds) > 1:
            raise Error("the optimizer's groups differ in decoupled_weight_decay, which a compiled step has alike for all of them")
        return "adamw" if kinds.pop() else "adam"

    def check_hooks(self):
        """What a user has put around step() would be dropped. Schedulers put something there, too, and so does a compiled step."""
        if inspect.unwrap(self.torch.step) is not inspect.unwrap(type(self.torch).step):
            raise Error("the optimizer's step() is another than its class has, and a compiled step does not call it: do that behind the step")
        for hooks in (self.torch._optimizer_step_pre_hooks, self.torch._optimizer_step_post_hooks,
                      of_torch._global_optimizer_pre_hooks, of_torch._global_optimizer_post_hooks):  # fmt: skip
            for hook in hooks.values():
                if not getattr(hook, "__module__", "").startswith("gpuc."):
                    refuse([Problem(f"the optimizer has a step hook, {getattr(hook, '__qualname__', hook)}, which a compiled step does not call: "
                                    "remove it, and do that behind the step", **beginning_of(hook))])  # fmt: skip

    def check_parameters(self):
        """Who takes one out of a group, or puts one in, means to train other ones."""
        for number, (group, compiled) in enumerate(zip(self.torch.param_groups, self.compiled)):
            if list(map(id, group["params"])) != compiled:
                raise Error(f"group {number} of the optimizer has other parameters than when the step was compiled, which goes on with those: "
                            "compile again")  # fmt: skip

    def parameters(self):
        return [parameter for group in self.torch.param_groups for parameter in group["params"]]

    def numbers(self, group):
        name, found = type(self.torch).__name__, [f"lr={text_of(group['lr'])}"]
        for key, value in group.items():
            if key not in self.keys:  # What PyTorch does not know either, a group's name, is the user's.
                if value and key in self.torch.defaults and key not in IGNORED:
                    raise Error(f"{name}({key}={value}) is not supported")
                continue
            if name == "Adafactor" and key == "eps" and value[0] == 0:
                raise Error("Adafactor(eps=(0, …)) is not supported: eps=(None, …) is the least that is told from 1")
            found.append(f"{key}={text_of(value)}")
        return found

    def given(self, group):
        """The keys of what may change between steps beside the rate; of Adafactor that is none."""
        return [] if self.name == "adafactor" else [key for key in GIVEN if key in self.keys and group.get(key)]

    def compiled_numbers(self):
        """Of each group what a step has from its compilation: all but what may change. Groups, with keys and values."""
        keys = dict.fromkeys((*self.keys, "decoupled_weight_decay"))
        return [(group, [(key, group[key]) for key in keys if key in group and key not in self.given(group)])
                for group in self.torch.param_groups]  # fmt: skip

    def recipe(self, names, read):
        """Entries of the recipe; `names`: by the identity of a parameter, its variable; `read`: the variables that the loss reads.

        A group of which nothing is trained, frozen or empty, is left out; `groups` are those that are not, the first always. What the loss
        reads may have no gradient all the same, detached say: groups are optional.
        """
        first, *others = self.torch.param_groups
        entries = [("optimizer", f"{self.name}:" + ",".join([*self.numbers(first), "decay=all"]))]
        self.groups, given = [first], set()
        for group in (first, *others):
            trained = [names[id(parameter)] for parameter in group["params"] if parameter.requires_grad and names.get(id(parameter)) in read]
            if not trained:
                continue
            given.update(self.given(group))
            if group is not first:
                self.groups.append(group)
                entries.append(("groups", f"group:match=({','.join(trained)}),optional=true," + ",".join(self.numbers(group))))
        flags = [f"{number}=true" for key in GIVEN if key in given for number in GIVEN[key]]
        return [*entries, ("schedule", ":".join(["given", ",".join(flags)] if flags else ["given"]))]

    def changing_numbers(self):
        """Of each group what may change between steps beside the rate, by key."""
        return [{key: group[key] for key in GIVEN if key in self.keys} for group in self.torch.param_groups]

    def changing(self):
        """(group, key, index in it or None, variable of the plan) of each number that may change between steps."""
        for number, group in enumerate(self.groups):
            suffix = f"/{number}" if number else ""
            yield group, "lr", None, "lr" + suffix
            for key in self.given(group):
                for index, name in enumerate(GIVEN[key]):
                    yield group, key, index if len(GIVEN[key]) > 1 else None, f"optimizer/{name}{suffix}"


class State(collections.defaultdict):
    """opt.state of a compiled step's optimizer: who looks at it finds what the plan has, and what they change the next step takes."""

    def __init__(self, step, state):
        super().__init__(dict, dict(state))
        self.step = weakref.ref(step)
        self.is_watched = True

    @contextlib.contextmanager
    def unwatched(self):
        was, self.is_watched = self.is_watched, False
        try:
            yield
        finally:
            self.is_watched = was

    def __reduce__(self):
        """Copied or pickled with its optimizer, it belongs to no step."""
        return collections.defaultdict, (dict,), None, None, iter(list(self.items()))


def shown(name):
    method = getattr(collections.defaultdict, name)

    @functools.wraps(method)
    def seen(self, *args, **kwargs):
        step = self.step() if self.is_watched else None
        if step is not None:
            step._show_state()
        return method(self, *args, **kwargs)

    return seen


for name in ("__contains__", "__delitem__", "__eq__", "__getitem__", "__iter__", "__len__", "__repr__", "__setitem__", "clear", "copy", "get",
             "items", "keys", "pop", "popitem", "setdefault", "update", "values"):  # fmt: skip
    setattr(State, name, shown(name))
