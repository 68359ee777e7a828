"""Feeds every op of the gpuc dialect what it should refuse, and says where it does not.

bad_input.py GPUC_OPT TEST_FOLDER GpucOps.h.inc

Each op of the round-trip tests in TEST_FOLDER is changed in every way of mutants.py. A mutant is refused with one error
that names the op and says what is wrong; or it is taken because it is legal: then accepted.txt lists it, it reads back
as it was written, and differentiates and decomposes without a crash or an op that is wrong.
"""

import glob
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict

import optimizer_tool
from generic_ops import read_ops
from mutant_modules import MODULE_LEVEL, context_of, gradient_module, kernel_around, plain_module
from mutants import ATTRIBUTE, COUNT, ELEMENT, EXTENT, KINDS, RANK, mutants_of

ACCEPTED = os.path.join(os.path.dirname(__file__), "accepted.txt")

# Kinds of which nothing can be wrong with an op, and why.
NOTHING_WRONG = {
    ("gpuc.recipe", RANK): "it has no tensors",
    ("gpuc.recipe", EXTENT): "it has no tensors",
    ("gpuc.recipe", ELEMENT): "it has no tensors",
    ("gpuc.checkpoint", RANK): "it has no tensors",
    ("gpuc.checkpoint", EXTENT): "it has no tensors",
    ("gpuc.checkpoint", ELEMENT): "it has no tensors",
    ("gpuc.variable", RANK): "its type is an attribute",
    ("gpuc.variable", EXTENT): "its type is an attribute",
    ("gpuc.variable", ELEMENT): "its type is an attribute",
    ("gpuc.iota", EXTENT): "the result is as large as its type says",
    ("gpuc.random_uniform", EXTENT): "the result is as large as its type says",
    ("gpuc.random_normal", EXTENT): "the result is as large as its type says",
}

# How an error says what is wrong: by a constraint's label, or in the words that MLIR has for it.
SAYS_WHAT = re.compile(
    r"\[\w+_C\d+\]$|must be .*, but got|requires |expected \d+|failed to (satisfy constraint|verify that)|invalid properties"
    r"|does not match with the total size|cannot have negative elements|operand group starting at"
)
# Why the lowering of a valid op may stop.
MAY_STOP = re.compile(r"has 2\^63 bytes or more|holds nothing: every extent of an? (input|tensor|variable) must be at least 1")
NO_DERIVATIVE = re.compile(r"but has no derivative$")


def samples(tool, folder):
    """[(op, context)]: each op once in each form: number of values, attributes, with and without the batch."""
    found = {}
    for path in sorted(glob.glob(folder + "/*.mlir")):
        if path.endswith("-errors.mlir"):
            continue
        command = [tool, "--mlir-print-op-generic", "--split-input-file", path]
        printed = subprocess.run(command, capture_output=True, text=True).stdout
        for module in printed.split(optimizer_tool.MARKER):
            for op in read_ops(module, "gpuc"):
                names = tuple(name for name, _ in op.attributes)
                form = op.name, len(op.operands), len(op.results), names, "?" in str(op.operands)
                found.setdefault(form, (op, context_of(op, module)))
    return list(found.values())


def module_of(mutant, sample, context):
    if sample.name == "gpuc.yield":
        return plain_module(kernel_around(mutant, sample), context)
    return plain_module(mutant, context)


def wrong_refusal(op, outcome):
    """What is wrong with the way in which the op is refused, or nothing."""
    if outcome.crash:
        return f"crashes with {outcome.crash}"
    if len(outcome.errors) != 1:
        return f"gives {len(outcome.errors)} errors: {' / '.join(outcome.errors)}"
    names = (op.name, "gpuc.fused") if op.name == "gpuc.yield" else (op.name,)  # the kernel knows what it returns
    if not any(f"'{name}' op " in outcome.errors[0] or f"for op {name}:" in outcome.errors[0] for name in names):
        return f"gives an error that does not name the op: {outcome.errors[0]}"
    return "" if SAYS_WHAT.search(outcome.errors[0]) else f"gives an error that does not say what is wrong: {outcome.errors[0]}"


def read_accepted():
    """{(op, place, kind, change)} that are legal, each line giving several changes of one place."""
    listed = set()
    for line in open(ACCEPTED, encoding="utf-8"):
        if line.strip() and not line.startswith("#"):
            op, place, kind, *changes = line.strip().split(" | ")
            listed |= {(op, place, kind, change) for change in changes}
    return listed


def complain_about_list(taken, listed):
    """What is accepted and not listed, and the other way round, in lines as the list has them."""
    for verb, keys in (("is accepted", taken - listed), ("is listed, but is refused", listed - taken)):
        lines = defaultdict(list)
        for op, place, kind, change in sorted(keys):
            lines[op, place, kind].append(change)
        for key, changes in lines.items():
            yield f"{verb}: {' | '.join(key + tuple(changes))}"


def complain_about_kinds(samples, refused):
    """Kinds of which an op refuses nothing."""
    for name in sorted({op.name for op, _ in samples}):
        has_attributes = any(op.attributes for op, _ in samples if op.name == name)
        for kind in (RANK, EXTENT, ELEMENT, ATTRIBUTE):
            refuses, exempt = (name, kind) in refused, (name, kind) in NOTHING_WRONG
            if kind == ATTRIBUTE and not has_attributes:
                exempt = True
            if refuses == exempt:
                yield f"{name} refuses {f'a wrong {kind}, but is listed as one that cannot' if exempt else f'no wrong {kind}'}"


def complain_about_lowering(tool, accepted):
    """Reads back what is accepted, differentiates and decomposes it; `accepted` is [(mutant, module, outcome)]."""
    printed = [outcome.printed for _, _, outcome in accepted]
    for (mutant, _, _), before, after in zip(accepted, printed, optimizer_tool.run(tool, printed)):
        if after.printed != before:
            yield mutant, f"does not read back what it prints: {' '.join(after.errors)}"
    passes = ["--gpuc-specialize-batch=batch=3", "--gpuc-autodiff", "--canonicalize", "--cse", "--gpuc-decompose"]
    modules = [gradient_module(mutant.op) or module for mutant, module, _ in accepted]
    outcomes = optimizer_tool.run(tool, modules, *passes, "--canonicalize", "--cse")
    # An op without a derivative is lowered as it is.
    again = [i for i, outcome in enumerate(outcomes) if any(map(NO_DERIVATIVE.search, outcome.errors))]
    for i, outcome in zip(again, optimizer_tool.run(tool, [accepted[i][1] for i in again], *passes, "--canonicalize")):
        outcomes[i] = outcome
    for (mutant, _, _), outcome in zip(accepted, outcomes):
        if outcome.crash:
            yield mutant, f"is accepted and crashes with {outcome.crash}"
        elif outcome.errors and not (len(outcome.errors) == 1 and MAY_STOP.search(outcome.errors[0])):
            yield mutant, f"is accepted and cannot be lowered: {' / '.join(outcome.errors)}"


def main(tool, folder, declared):
    all_samples = samples(tool, folder)
    complaints = []
    names = set(re.findall(r'StringLiteral\("(gpuc\.\w+)"\)', open(declared, encoding="utf-8").read()))
    complaints += [f"{name}: no sample" for name in sorted(names - {op.name for op, _ in all_samples})]

    valid = [module_of(op, op, context) for op, context in all_samples]
    for (op, _), outcome in zip(all_samples, optimizer_tool.run(tool, valid)):
        complaints += [f"{op.name}: the sample is refused: {error}" for error in outcome.errors]

    mutants = [
        (mutant, module_of(mutant.op, op, context))
        for op, context in all_samples
        for mutant in mutants_of(op)
        if not (mutant.kind == COUNT and op.name in MODULE_LEVEL)  # there are no values outside of functions
    ]
    refused, accepted, counts = set(), [], Counter()
    for (mutant, module), outcome in zip(mutants, optimizer_tool.run(tool, [module for _, module in mutants])):
        if outcome.printed.strip() and not outcome.errors:
            accepted.append((mutant, module, outcome))
            continue
        refused.add((mutant.op.name, mutant.kind))
        counts[mutant.kind] += 1
        if wrong := wrong_refusal(mutant.op, outcome):
            complaints.append(f"{mutant.op.name}: {mutant.place}, {mutant.kind}: {mutant.change}: {wrong}")

    taken = {(m.op.name, m.place, m.kind, m.change) for m, _, _ in accepted if m.must_be_listed}
    complaints += complain_about_list(taken, read_accepted())
    complaints += complain_about_kinds(all_samples, refused)
    for mutant, wrong in complain_about_lowering(tool, accepted):
        complaints.append(f"{mutant.op.name}: {mutant.place}, {mutant.kind}: {mutant.change}: {wrong}")

    print("\n".join(complaints))
    by_kind = ", ".join(f"{counts[kind]} of {kind}" for kind in KINDS)
    print(f"{len({op.name for op, _ in all_samples})} ops in {len(all_samples)} forms")
    print(f"{len(mutants)} mutants: {len(accepted)} accepted, refused {by_kind}")
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


sys.exit(main(*sys.argv[1:]))
