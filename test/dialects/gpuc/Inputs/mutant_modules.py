"""Modules in which one op stands: alone, and differentiated."""

import re

from generic_ops import Op
from mutants import read_tensor

MODULE_LEVEL = ("gpuc.variable", "gpuc.recipe", "gpuc.checkpoint")
FLOATS = ("f64", "f32", "f16", "bf16")
# What ops that draw random numbers read when they are decomposed.
COUNTERS = "".join(f"gpuc.variable @{name} kind counter : tensor<i64> init zeros\n" for name in ("seed", "step"))


def declarations(module):
    """The variables and functions of a module in generic text."""
    form = r'^  "gpuc\.variable".*?\n|^  "func\.func".*?^  \}\) : \(\) -> \(\)\n'
    return "".join(re.findall(form, module, re.MULTILINE | re.DOTALL))


def context_of(op, module):
    """What the op refers to, of the module that it stands in."""
    refers = any(text.startswith("@") or "[@" in text for _, text in op.attributes)
    return declarations(module) if refers else COUNTERS


def operands_of(op):
    return [f"%a{i}" for i in range(len(op.operands))]


def arguments_of(op):
    return ", ".join(f"{name}: {text}" for name, text in zip(operands_of(op), op.operands))


def plain_module(op, context):
    """The op in a function of its own, or beside the functions."""
    text = op.text(operands_of(op))
    if op.name in MODULE_LEVEL:
        return f"{context}{text}\n"
    return f"{context}func.func @mutant({arguments_of(op)}) {{\n  {text}\n  return\n}}\n"


def kernel_around(mutant, valid):
    """The kernel around a gpuc.yield: it gets the values that the mutant has, and returns those of the valid one."""
    block = f"^bb0({arguments_of(mutant)}):\n  {mutant.text(operands_of(mutant))}\n".replace("%a", "%b")
    return Op("gpuc.fused", mutant.operands, valid.operands, (("name", '"k"'),), f"({{\n{block}}})")


def gradient_module(op):
    """The gradient of the sum of the op's first floating-point result by its floating-point operands; else None."""
    results = [i for i, text in enumerate(op.results) if read_tensor(text)[1] in FLOATS]
    by = [i for i, text in enumerate(op.operands) if read_tensor(text)[1] in FLOATS]
    if not results or not by or op.name in MODULE_LEVEL or "@" in str(op.attributes):
        return None
    extents, element = read_tensor(op.results[results[0]])
    dims = ", ".join(map(str, range(len(extents))))
    types = ", ".join([f"tensor<{element}>"] + [op.operands[i] for i in by])
    values = ", ".join(operands_of(op))
    return f"""{COUNTERS}func.func @sum({arguments_of(op)}) -> tensor<{element}> {{
  {op.text(operands_of(op))}
  %s = gpuc.sum %r#{results[0]} dims [{dims}] : ({op.results[results[0]]}) -> tensor<{element}>
  return %s : tensor<{element}>
}}
func.func @mutant({arguments_of(op)}) -> ({types}) {{
  %g:{len(by) + 1} = gpuc.gradient @sum({values}) wrt arguments {by} : ({", ".join(op.operands)}) -> ({types})
  return {", ".join(f"%g#{i}" for i in range(len(by) + 1))} : {types}
}}
"""
