"""A pass on the example's numbers, of a module that does what a compiled step does not do alike whatever the numbers are."""

import torch
from torch.utils import _pytree as pytree

from gpuc.capture.forward_state import Attributes, same_random
from gpuc.errors import Problem, refuse
from gpuc.formulas.checks import FAILS, OfExample


def check_example(module, args, kwargs, unchecked):
    """What is left out as a check has to be passed by the example."""
    if not unchecked:
        return
    tensors = {name: each.detach().clone() for name, each in (*module.named_parameters(), *module.named_buffers())}
    copies = pytree.tree_map(lambda each: each.clone() if isinstance(each, torch.Tensor) else each, (args, kwargs))
    with Attributes(module), same_random(), torch.no_grad(), OfExample() as found:
        try:
            torch.func.functional_call(module, tensors, *copies)
        except Exception:
            return  # The example does not say anything.
    if found.differ:
        refuse([Problem(FAILS[found.differ[0][0]], "", *found.differ[0][1:])])
