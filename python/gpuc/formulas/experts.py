"""Products whose rows each have a matrix of their own: experts of a mixture.

Rows are sorted by expert, and as many as values say are each one's. A compiled step has fixed shapes: every expert computes all rows, of which
its own are kept. So no row is left out, and time grows with the number of experts.
"""

import sys

import torch

from gpuc.formulas.table import FORMULAS, aten, formula

MOST_BY_THEMSELVES = 32  # Products, of which nothing is kept but the rows that all have in common. More of them are one, and take compile time no more.


@formula(aten._grouped_mm.default)
def grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Rows [S, in] of matrices [G, in, out], up to offs[g] each; what lies behind the last is 0."""
    if self.dim() != 2 or mat2.dim() != 3 or offs is None or bias is not None or out_dtype not in (None, self.dtype):
        return NotImplemented
    count = mat2.shape[0]
    group = (offs.unsqueeze(0) <= torch.arange(self.shape[0]).unsqueeze(1)).sum(1)
    is_of = (group.unsqueeze(0) == torch.arange(count).unsqueeze(1)).unsqueeze(-1)
    if count > MOST_BY_THEMSELVES:
        return torch.where(is_of, self.unsqueeze(0).expand(count, -1, -1) @ mat2, 0.0).sum(0)
    found = torch.zeros(self.shape[0], mat2.shape[2], dtype=self.dtype)
    for number in range(count):
        found = torch.where(is_of[number], self @ mat2[number], found)
    return found


def take_others():
    """transformers has an op of its own where torch has none for the type."""
    if "transformers" in sys.modules and hasattr(torch.ops.transformers, "grouped_mm_fallback"):
        FORMULAS.setdefault(torch.ops.transformers.grouped_mm_fallback.default, lambda input, weight, offs: grouped_mm(input, weight, offs))
