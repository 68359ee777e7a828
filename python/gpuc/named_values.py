"""Numbers, words and truth values beside a module that its forward pass may read: `beta` or `args.beta` in a loss, `self.cfg.rate`.

Found by the names in the code of the loss, of the module's own methods and of the functions that these name, not by what is read: whether
one of them makes a difference is tried when it changes (kept.py).
"""

import functools
import inspect
import sys
import types

import torch

from gpuc.forward_state import is_plain

MOST_FUNCTIONS = 2000
NONE = object()


def named_values(owners):
    """Of modules and callables: (label, owner, attribute, value), each owner's attribute once."""
    search = Search()
    for owner in owners:
        for part in owner.modules() if isinstance(owner, torch.nn.Module) else [owner]:
            search.look_at(part)
    return list(search.found.values())


class Item:
    """An entry of a dict, as an attribute."""

    def __init__(self, entries, key):
        self.entries, self.key = entries, key

    @property
    def value(self):
        return self.entries.get(self.key, NONE)


class Search:
    def __init__(self):
        self.found, self.seen = {}, set()

    def look_at(self, thing):
        """A module, a function, or whatever can be called."""
        if isinstance(thing, functools.partial):
            self.look_at(thing.func)
        elif isinstance(thing, types.MethodType):
            self.look_into(thing.__func__, thing.__self__)
        elif isinstance(thing, types.FunctionType):
            self.look_into(thing)
        elif callable(thing) and not isinstance(thing, type):
            for function in own_functions(type(thing)):
                self.look_into(function, thing)

    def look_into(self, function, instance=None):
        function = inspect.unwrap(function)
        key = id(function), id(instance) if instance is not None else 0
        if not isinstance(function, types.FunctionType) or is_of_torch(function) or key in self.seen or len(self.seen) > MOST_FUNCTIONS:
            return
        self.seen.add(key)
        names, reader = names_in(function.__code__), function.__qualname__
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if cell != types.CellType():  # It is filled.
                self.add(name, reader, cell, "cell_contents", names)
        space = sys.modules.get(function.__module__)
        if space is not None and vars(space) is function.__globals__:
            for name in names & vars(space).keys():
                self.add(name, reader, space, name, names)
        for name in names & fields_of(instance) if instance is not None else ():  # A module's own are seen as they are read.
            if not isinstance(instance, torch.nn.Module) or not is_plain(read(instance, name)):
                self.add(name, reader, instance, name, names)

    def add(self, label, reader, owner, attribute, names):
        value = read(owner, attribute)
        if is_plain(value):
            self.found.setdefault((id(owner), attribute), (f"{label}, which {reader} reads,", owner, attribute, value))
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            self.look_at(value)
        elif isinstance(value, dict):
            for key in names & {each for each in value if isinstance(each, str)}:
                if is_plain(value[key]):
                    self.found.setdefault((id(value), key), (f"{label}[{key!r}], which {reader} reads,", Item(value, key), "value", value[key]))
        else:
            for name in names & fields_of(value):
                if is_plain(field := read(value, name)):
                    self.found.setdefault((id(value), name), (f"{label}.{name}, which {reader} reads,", value, name, field))


def read(owner, attribute):
    """An object where there is none: others' __getattr__ may fail in any way."""
    try:
        return getattr(owner, attribute)
    except Exception:
        return NONE


def own_functions(kind):
    """Of a class, without what it has of torch's."""
    return [each for base in kind.__mro__ if not base.__module__.startswith("torch.") for each in vars(base).values()
            if isinstance(each, types.FunctionType) and each.__name__ != "__init__"]  # fmt: skip


def is_of_torch(function):
    return (function.__module__ or "").partition(".")[0] in ("torch", "gpuc")


def names_in(code):
    """And words, which may be keys."""
    inner = [each for each in code.co_consts if isinstance(each, types.CodeType)]
    words = [each for each in code.co_consts if isinstance(each, str)]
    return {name for name in (*code.co_names, *code.co_freevars, *words) if not name.startswith("__")}.union(*map(names_in, inner))


def fields_of(value):
    """Of an object that holds some: a module, options, a configuration."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, torch.Tensor)):
        return set()
    shared = {name for base in type(value).__mro__ if not base.__module__.startswith("torch.") for name, each in vars(base).items()
              if not hasattr(each, "__get__")}  # fmt: skip
    return (shared | set(getattr(value, "__dict__", ()))) - MODULES_OWN


MODULES_OWN = frozenset(vars(torch.nn.Module()))
