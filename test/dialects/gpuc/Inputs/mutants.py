"""What can be wrong with an op: everything of a valid one that can be changed, one thing at a time.

Some mutants change all tensors together, so that they still fit each other: what an op takes shows only then.
"""

import re
from dataclasses import dataclass, replace

from generic_ops import Op, split_list

RANK, EXTENT, ELEMENT, ATTRIBUTE, COUNT = "rank", "extent", "element type", "attribute", "count"
KINDS = (RANK, EXTENT, ELEMENT, ATTRIBUTE, COUNT)

ELEMENTS = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "ui8", "i1")
# What no op takes: other widths and signs, and types that are no tensors of numbers.
NO_ELEMENTS = ("i16", "si32", "index", "f8E4M3FN")
NO_TENSORS = ("f32", "tensor<*xf32>", "vector<4xf32>")
HUGE = 2**62

# One attribute of each kind.
ATTRIBUTES = {
    "unit": "unit",
    "bool": "true",
    "i64": "1 : i64",
    "i32": "1 : i32",
    "f64": "1.5 : f64",
    "f32": "1.5 : f32",
    "i64 array": "array<i64: 1, 1>",
    "i32 array": "array<i32: 1, 1>",
    "symbol": "@somewhere",
    "text": '"text"',
    "list": "[1, 2]",
    "spec": "#gpuc.spec<zeros>",
    "dense": "dense<1.0> : tensor<3xf32>",
    "type": "tensor<3xf32>",
}
NUMBERS = {
    "i64": [f"{n} : i64" for n in (-(2**63), -1, 0, 1, 2, 1000, 2**31, 2**63 - 1)],
    "i32": [f"{n} : i32" for n in (-(2**31), -1, 0, 1000, 2**31 - 1)],
    "f64": [f"{n} : f64" for n in ("-1.0", "-0.0", "0.0", "1.0", "2.0", "0x7FF8000000000000", "0x7FF0000000000000")],
    "bool": ["true", "false"],
    "symbol": ["@nowhere"],
    "text": ['""', '"nonsense"'],
    "list": ["[]", "[@nowhere]"],
    "spec": ["#gpuc.spec<nonsense>"],
    "type": ["f32", "tensor<*xf32>", "tensor<?xf32>", "tensor<3xindex>", 'tensor<3xf32, "layout">'],
}


@dataclass(frozen=True)
class Mutant:
    place: str  # "operand 0", "result 1", "attribute dim" or "all"
    kind: str  # one of KINDS
    change: str  # what became of it, in few words: "1 more" is said of the extent of dimension 1
    op: Op

    @property
    def must_be_listed(self):
        """Whether taking it says something about the op: other extents and ranks that all still fit do not."""
        return self.place != "all" or self.kind == ELEMENT


def read_tensor(text):
    """(extents, element type) of a ranked tensor, else None; the batch is the extent "?"."""
    match = re.fullmatch(r"tensor<((?:(?:\d+|\?)x)*)([a-z]+\d+)>", text)
    return match and ([n if n == "?" else int(n) for n in match.group(1).split("x")[:-1]], match.group(2))


def tensor(extents, element):
    return f"tensor<{''.join(f'{n}x' for n in extents)}{element}>"


def wrong_types(text):
    """(kind, change, type) of all that is made of one tensor type."""
    extents, element = read_tensor(text)
    yield RANK, "new last", tensor(extents + [2], element)
    for i in range(min(len(extents), 2)):
        yield RANK, f"new {i}", tensor(extents[:i] + [1] + extents[i:], element)
    for i in {0, len(extents) - 1} if extents else ():
        yield RANK, f"no {i}", tensor(extents[:i] + extents[i + 1 :], element)
    for i, extent in enumerate(extents):
        others = {"number": 5, "none": 0} if extent == "?" else {"more": extent + 1, "none": 0, "huge": HUGE, "batch": "?"}
        for change, other in others.items():
            yield EXTENT, f"{i} {change}", tensor(extents[:i] + [other] + extents[i + 1 :], element)
    for other in ELEMENTS + NO_ELEMENTS:
        if other != element:
            yield ELEMENT, other, tensor(extents, other)
    for other in NO_TENSORS:
        yield ELEMENT, other, other


def type_mutants(op):
    for place in ("operands", "results"):
        for i, old in enumerate(getattr(op, place)):
            for kind, change, new in wrong_types(old):
                yield Mutant(f"{place[:-1]} {i}", kind, change, op.with_type(place, i, new))


def with_tensors(op, change):
    """The op with every tensor changed, in its types; a region keeps those of its own."""
    places = ("operands", "results")
    return replace(op, **{place: tuple(tensor(*change(*read_tensor(t))) for t in getattr(op, place)) for place in places})


def joint_mutants(op):
    """All tensors of one element type, all extents of one number, or all ranks, together."""
    tensors = [read_tensor(text) for text in op.operands + op.results]
    for element in sorted({element for _, element in tensors}):
        for other in ELEMENTS:
            if other != element:
                swapped = with_tensors(op, lambda n, e: (n, other if e == element else e))
                yield Mutant("all", ELEMENT, f"{element} as {other}", swapped)
    for extent in sorted({n for extents, _ in tensors for n in extents}, key=str):
        for other in sorted(({5, 0} if extent == "?" else {0, 1, extent + 1, HUGE, "?"}) - {extent}, key=str):
            swapped = with_tensors(op, lambda n, e: ([other if x == extent else x for x in n], e))
            yield Mutant("all", EXTENT, f"{extent} as {other}", swapped)
    if tensors:
        yield Mutant("all", RANK, "new last", with_tensors(op, lambda n, e: (n + [2], e)))
        yield Mutant("all", RANK, "no last", with_tensors(op, lambda n, e: (n[:-1], e)))
        yield Mutant("all", RANK, "none", with_tensors(op, lambda n, e: ([], e)))


def kind_of(text):
    """The name under which ATTRIBUTES has the kind of this attribute; other dense ones are no kind of an argument."""
    forms = [
        ("unit", r"unit"),
        ("bool", r"true|false"),
        ("i64", r"-?\d+ : i64"),
        ("i32", r"-?\d+ : i32"),
        ("f64", r"\S+ : f64"),
        ("f32", r"\S+ : f32"),
        ("i64 array", r"array<i64.*>"),
        ("i32 array", r"array<i32.*>"),
        ("symbol", r"@.*"),
        ("text", r'".*"'),
        ("list", r"\[.*\]"),
        ("spec", r"#gpuc\.spec<.*>"),
        ("dense", r"dense<.*"),
        ("type", r"tensor<.*>"),
    ]
    return next((name for name, form in forms if re.fullmatch(form, text)), "other")


def wrong_arrays(text):
    """An array of integers that is too short, too long, or has one entry that it should not have."""
    element, _, entries = text[len("array<") : -1].partition(":")
    old = [int(n) for n in split_list(entries)]
    arrays = [[], old[:-1], old + old[-1:] if old else [0], old + [1], list(reversed(old))]
    for i, n in enumerate(old):
        others = (-1, 0, 1, n + 1, 1000, 2**31 - 1 if element == "i32" else 2**63 - 1, -(2**31))
        arrays += [old[:i] + [other] + old[i + 1 :] for other in others]
    for array in arrays:
        if array != old:
            yield f"array<{element}: {', '.join(map(str, array))}>" if array else f"array<{element}>"


def attribute_mutants(op):
    for name, old in op.attributes:
        kind = kind_of(old)
        others = [None] + [text for other, text in ATTRIBUTES.items() if other != kind]
        others += list(wrong_arrays(old)) if kind.endswith("array") else NUMBERS.get(kind, [])
        for new in dict.fromkeys(others):
            if new != old:
                yield Mutant(f"attribute {name}", ATTRIBUTE, new or "absent", op.with_attribute(name, new))


def count_mutants(op):
    for place in ("operands", "results"):
        types = getattr(op, place)
        for i in range(len(types)):
            yield Mutant(f"{place[:-1]} {i}", COUNT, "absent", replace(op, **{place: types[:i] + types[i + 1 :]}))
        more = replace(op, **{place: types + (types[-1] if types else "tensor<f32>",)})
        yield Mutant(place, COUNT, "one more", more)


def mutants_of(op):
    yield from type_mutants(op)
    yield from joint_mutants(op)
    yield from attribute_mutants(op)
    yield from count_mutants(op)
