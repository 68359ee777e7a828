"""Ops of PyTorch as formulas of others, where the compiler has no op and PyTorch takes none apart."""

from gpuc.formulas import draws, functions, layers, linear_algebra, order, places, reductions, volumes  # noqa: F401
from gpuc.formulas.masks import KnownMasks
from gpuc.formulas.questions import without_questions
from gpuc.formulas.table import FORMULAS

__all__ = ["FORMULAS", "KnownMasks", "without_questions"]
