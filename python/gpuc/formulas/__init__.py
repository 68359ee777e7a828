"""Ops of PyTorch as formulas of others, where the compiler has no op and PyTorch takes none apart."""

import contextlib

from gpuc.formulas import chosen_places, draws, experts, functions, layers, linear_algebra, order, places, reductions, samples, volumes  # noqa: F401
from gpuc.formulas.alignments import known_alignments
from gpuc.formulas.choices import Choices
from gpuc.formulas.complex_numbers import ComplexNumbers
from gpuc.formulas.masks import KnownMasks
from gpuc.formulas.packed import padded_sequences
from gpuc.formulas.questions import without_questions
from gpuc.formulas.table import FORMULAS

__all__ = ["FORMULAS", "Choices", "ComplexNumbers", "KnownMasks", "known_sequences", "without_questions"]


@contextlib.contextmanager
def known_sequences():
    with padded_sequences(), known_alignments():
        yield
