"""Reads ops of one dialect from MLIR's generic text, as far as is needed to change one of them and write it back."""

import re
from dataclasses import dataclass, replace

OPENING, CLOSING = "([{<", ")]}>"


def end_of_group(text, begin):
    """The position behind the bracket that closes the one at `begin`; strings and arrows hold none."""
    depth, position = 0, begin
    while True:
        character = text[position]
        if character == '"':
            position = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, position).end()
            continue
        if text.startswith("->", position):
            position += 2
            continue
        depth += (character in OPENING) - (character in CLOSING)
        position += 1
        if depth == 0:
            return position


def split_list(text):
    """Splits at the commas outside brackets and strings."""
    parts, begin, position = [], 0, 0
    while position < len(text):
        if text[position] == '"':
            position = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, position).end()
        elif text[position] in OPENING:
            position = end_of_group(text, position)
        else:
            if text[position] == ",":
                parts.append(text[begin:position].strip())
                begin = position + 1
            position += 1
    last = text[begin:].strip()
    return parts + [last] if last else parts


@dataclass(frozen=True)
class Op:
    """One op: its types and attributes as text; the values it takes are arguments of a function that is made for it."""

    name: str
    operands: tuple = ()  # types
    results: tuple = ()  # types
    attributes: tuple = ()  # (name, text) pairs; the text of a unit attribute is "unit"
    region: str = ""  # "({ … })" or nothing

    def with_type(self, place, index, text):
        types = list(getattr(self, place))
        types[index] = text
        return replace(self, **{place: tuple(types)})

    def with_attribute(self, name, text):
        """Without the attribute if `text` is None."""
        others = [(key, text if key == name else value) for key, value in self.attributes]
        return replace(self, attributes=tuple(pair for pair in others if pair[1] is not None))

    def text(self, operands):
        properties = ", ".join(f"{key} = {value}" for key, value in self.attributes)
        properties = f" <{{{properties}}}>" if self.attributes else ""
        results = f"%r:{len(self.results)} = " if self.results else ""
        return (
            f'{results}"{self.name}"({", ".join(operands)}){properties} {self.region}'
            f' : ({", ".join(self.operands)}) -> ({", ".join(self.results)})'
        )


def read_types(text, position):
    """A list in brackets or a single type, and where it ends."""
    if text[position] == "(":
        end = end_of_group(text, position)
        return split_list(text[position + 1 : end - 1]), end
    end = text.index("\n", position)
    return [text[position:end].strip()], end


def read_attribute(text):
    name, equals, value = text.partition(" = ")
    return name, value if equals else "unit"


def read_ops(text, dialect):
    """Every op of the dialect in the text, those inside regions too."""
    for match in re.finditer(rf'"({dialect}\.\w+)"(?=\()', text):
        position = end_of_group(text, match.end())
        attributes, region = [], ""
        if text.startswith(" <{", position):
            end = end_of_group(text, position + 1)
            attributes = [read_attribute(part) for part in split_list(text[position + 3 : end - 2])]
            position = end
        if text.startswith(" ({", position):
            end = end_of_group(text, position + 1)
            region = text[position + 1 : end]
            position = end
        if text.startswith(" {", position):  # discardable attributes, which no verifier reads
            position = end_of_group(text, position + 1)
        assert text.startswith(" : ", position), text[match.start() : position + 40]
        operands, position = read_types(text, position + 3)
        results, _ = read_types(text, position + len(" -> "))
        yield Op(match.group(1), tuple(operands), tuple(results), tuple(attributes), region)
