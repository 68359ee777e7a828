"""Where values first differ, to the bit. unittest's own difference of lists of numbers takes minutes to be told."""


def first_difference(found, expected, place=""):
    """Of dicts and lists within one another; None: there is none."""
    if isinstance(expected, dict) and isinstance(found, dict):
        if found.keys() != expected.keys():
            return f"{place or 'keys'}: {sorted(found)}, expected {sorted(expected)}"
        parts = ((f"{place}[{key!r}]", found[key], expected[key]) for key in expected)
    elif isinstance(expected, list) and isinstance(found, list):
        if len(found) != len(expected):
            return f"{place}: {len(found)} elements, expected {len(expected)}"
        parts = ((f"{place}[{i}]", *both) for i, both in enumerate(zip(found, expected)) if repr(both[0]) != repr(both[1]))
    else:
        # What is equal need not be the same: 0.0 and -0.0, 1 and 1.0.
        return None if repr(found) == repr(expected) else f"{place}: {found!r}, expected {expected!r}"
    return next(filter(None, (first_difference(ours, theirs, where) for where, ours, theirs in parts)), None)
