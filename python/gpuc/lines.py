"""Layers and lines as the user knows them."""

import functools
import inspect
import os
import sysconfig

import sympy
import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
STANDARD, SITE = (os.path.join(sysconfig.get_paths()[each], "") for each in ("stdlib", "purelib"))  # The one may have the other in it.
SYMPY = os.path.join(os.path.dirname(os.path.abspath(sympy.__file__)), "")  # Which torch counts shapes by.
TORCH = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")  # Not torchvision beside it.


def own_name(path):
    """A path in Whole."""
    return path.removeprefix("net.") if path != "net" else ""


@functools.cache
def is_own(file):
    """Torch's, gpuc's or Python's."""
    return file.startswith((TORCH, HERE, SYMPY, "<")) or (file.startswith(STANDARD) and not file.startswith(SITE))


def user_line(trace):
    """File and line of the innermost frame that is neither torch's nor gpuc's."""
    found = ("", 0)
    for line in (trace or "").splitlines():
        line = line.strip()
        if not line.startswith('File "'):
            continue
        file, _, rest = line[len('File "') :].partition('", line ')
        if not is_own(file):
            found = (file, int(rest.split(",")[0]))
    return found


def place_of(node):
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    file, line = user_line(node.meta.get("stack_trace"))
    return {"layer": own_name(stack[-1][0]) if stack else "", "file": file, "line": line}


def beginning_of(function):
    """Where a function of the user's begins, or the forward() of a module of theirs."""
    function = function.forward if isinstance(function, torch.nn.Module) else function
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    is_theirs = code is not None and not is_own(code.co_filename)
    return {"file": code.co_filename, "line": code.co_firstlineno} if is_theirs else {}
