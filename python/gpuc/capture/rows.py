"""What of a training that is cut into parts is of the batch's rows: extents alone do not say it, since others may be as large."""

import re
import warnings

from gpuc.batches import has_rows
from gpuc.capture.specs import references_of

DRAWS = re.compile(r"rand|bernoulli|dropout|attention|lstm|gru|rnn")
OF_SHAPES = re.compile(r"rand|bernoulli")  # What they are given says how many they draw, and nothing else.


def own_draws(function):
    """Whether a node draws whatever the batch holds: for each that draws, in their order."""
    of_batch, found = set(), []
    for node in function["nodes"]:
        read = references_of(node)
        hangs = any("input" in each or each.get("node") in of_batch for each in read) and not OF_SHAPES.match(node["op"])
        if hangs:
            of_batch.add(node["name"])
        if DRAWS.search(node["op"]):
            found.append((node, not hangs))
    return found


def draws_of_rows(function, rows, recorded):
    """By their names: of nodes that draw by themselves, whether they draw for rows. `recorded` gives the same function, of more rows."""
    draws = own_draws(function)
    if not any(is_own and may_have_rows(node, rows) for node, is_own in draws):
        return {}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            of_more = [node for node, _ in own_draws(recorded())]
    except Exception:
        return {}  # Of what is written for so many rows alone.
    if [node["op"] for node, _ in draws] != [node["op"] for node in of_more]:
        return {}
    return {node["name"]: node["results"] != other["results"] for (node, is_own), other in zip(draws, of_more) if is_own}


def may_have_rows(node, rows):
    return any(extent % rows == 0 for result in node["results"] for extent in result["shape"])


def alike(names, leaves):
    """Inputs that are the same in each part."""
    batch = leaves[0].shape[0] if leaves[0].dim() else None
    return {name for name, leaf in zip(names, leaves) if not has_rows(leaf.shape, batch)}
