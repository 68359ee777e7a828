"""Numbers, words and truth values beside a module that its forward pass may read: `beta` or `args.beta` in a loss, `self.cfg.rate`.

Found by the names in the code of the loss, of the module's own methods and of the functions that these name, not by what is read: whether
one of them makes a difference is tried when it changes (kept.py).
"""

import dis
import functools
import inspect
import sys
import types

import torch

from gpuc.capture.forward_state import is_plain
from gpuc.contents import NONE, Contents, has_contents, read

MOST_FUNCTIONS, MOST_DEEP = 2000, 5
LOAD_GLOBAL, LOAD_NAME = dis.opmap["LOAD_GLOBAL"], dis.opmap["LOAD_NAME"]


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
            for name in globals_in(function.__code__) & vars(space).keys():
                self.add(name, reader, space, name, names)
        for name in names & fields_of(instance) if instance is not None else ():  # A module's own are seen as they are read.
            value = read(instance, name)
            if not isinstance(instance, torch.nn.Module) or not (is_plain(value) or has_contents(value)):
                self.add(name, reader, instance, name, names)

    def add(self, label, reader, owner, attribute, names, depth=0):
        value = read(owner, attribute)
        key = (id(owner.entries), owner.key) if isinstance(owner, Item) else (id(owner), attribute)
        if key in self.found or depth > MOST_DEEP:
            return
        if is_plain(value):
            self.found[key] = f"{label}, which {reader} reads,", owner, attribute, value
        elif isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            self.look_at(value)
        elif isinstance(value, dict) and (known := names & {each for each in value if isinstance(each, str)}):
            for each in sorted(known):
                self.add(f"{label}[{each!r}]", reader, Item(value, each), "value", names, depth + 1)
        elif has_contents(value):
            contents = Contents(owner, attribute)
            self.found[key] = f"{label}, which {reader} reads,", contents, "of", contents.last
        elif (id(value), reader) not in self.seen:  # None of a circle is looked at twice.
            self.seen.add((id(value), reader))
            for name in sorted(names & fields_of(value)):
                self.add(f"{label}.{name}", reader, value, name, names, depth + 1)


def own_functions(kind):
    """Of a class, without what it has of torch's."""
    return [each for base in kind.__mro__ if not base.__module__.startswith("torch.") for each in vars(base).values()
            if isinstance(each, types.FunctionType) and each.__name__ != "__init__"]  # fmt: skip


def is_of_torch(function):
    return (function.__module__ or "").partition(".")[0] in ("torch", "gpuc")


def inner_of(code):
    return [each for each in code.co_consts if isinstance(each, types.CodeType)]


@functools.lru_cache(MOST_FUNCTIONS)
def globals_in(code):
    """By the bytes alone: `dis` says much more of each instruction, and takes a hundred times as long."""
    own, extended = set(), 0
    for op, argument in zip(code.co_code[::2], code.co_code[1::2]):
        argument |= extended << 8
        extended = argument if op == dis.EXTENDED_ARG else 0
        if op == LOAD_GLOBAL:
            own.add(code.co_names[argument >> 1])  # The last bit is the call's.
        elif op == LOAD_NAME:
            own.add(code.co_names[argument])
    return own.union(*map(globals_in, inner_of(code)))


@functools.lru_cache(MOST_FUNCTIONS)
def names_in(code):
    """And words, which may be keys."""
    words = [each for each in code.co_consts if isinstance(each, str)]
    return {name for name in (*code.co_names, *code.co_freevars, *words) if not name.startswith("__")}.union(*map(names_in, inner_of(code)))


def fields_of(value):
    """Of an object that holds some, in __slots__ too: a module, options, a configuration."""
    if isinstance(value, (type, types.ModuleType, types.FunctionType, torch.Tensor)):
        return set()
    shared = {name for base in type(value).__mro__ if not base.__module__.startswith("torch.") for name, each in vars(base).items()
              if not hasattr(each, "__get__") or isinstance(each, types.MemberDescriptorType)}  # fmt: skip
    return (shared | set(getattr(value, "__dict__", ()))) - MODULES_OWN


MODULES_OWN = frozenset(vars(torch.nn.Module()))
