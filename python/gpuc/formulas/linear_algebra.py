"""Small matrices, row after row. A row's pivot is the largest that is left, as LAPACK's is."""

import torch

from gpuc.formulas.table import aten, formula


MOST_ROWS = 32


def pivot_of(rows, column):
    """The row that has the largest of a column of these, and `rows` with the first one in its place; whether they are two."""
    place = rows[..., column : column + 1].abs().argmax(-2, keepdim=True)
    pivot = rows.gather(-2, place.expand(*place.shape[:-1], rows.shape[-1]))
    is_pivot = torch.arange(rows.shape[-2])[:, None] == place
    return pivot, torch.where(is_pivot, rows[..., :1, :], rows), (place != 0).to(rows.dtype)[..., 0, 0]


def pivots(matrix):
    """And the sign that their exchange has."""
    sign, found = torch.ones(matrix.shape[:-2], dtype=matrix.dtype), []
    while matrix.shape[-1]:
        pivot, matrix, is_other = pivot_of(matrix, 0)
        sign = sign * (1 - 2 * is_other)
        found.append(pivot[..., 0, 0])
        matrix = matrix[..., 1:, 1:] - matrix[..., 1:, :1] * (pivot[..., 1:] / pivot[..., :1])
    return torch.stack(found, -1), sign


def is_large(matrix):
    return not 0 < matrix.shape[-1] <= MOST_ROWS


@formula(aten._linalg_slogdet.default)
def slogdet(self):
    """The factors behind it are for PyTorch's own gradient."""
    if is_large(self):
        return NotImplemented
    found, sign = pivots(self)
    return sign * found.sign().prod(-1), found.abs().log().sum(-1), self, torch.zeros(self.shape[:-1], dtype=torch.int32)


@formula(aten._linalg_det.default)
def det(self):
    if is_large(self):
        return NotImplemented
    found, sign = pivots(self)
    return sign * found.prod(-1), self, torch.zeros(self.shape[:-1], dtype=torch.int32)
