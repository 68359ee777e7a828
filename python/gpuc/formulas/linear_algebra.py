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


#
# Inverses, by elimination. Its steps have no gradient: two of Newton's behind it have, the first and the second
#


def eliminated(matrix):
    """The inverse: the matrix beside the identity, until it is the identity."""
    extent = matrix.shape[-1]
    rows = torch.cat([matrix, torch.eye(extent, dtype=matrix.dtype).expand(matrix.shape)], -1)
    numbers = torch.arange(extent)[:, None]
    for column in range(extent):
        left = torch.where(numbers < column, 0, rows[..., column : column + 1].abs())
        place = left.argmax(-2, keepdim=True)
        pivot = rows.gather(-2, place.expand(*place.shape[:-1], rows.shape[-1]))
        rows = torch.where(numbers == place, rows[..., column : column + 1, :], rows)
        pivot = pivot / pivot[..., column : column + 1]
        rows = torch.where(numbers == column, pivot, rows - rows[..., column : column + 1] * pivot)
    return rows[..., extent:]


def refined(matrix, inverse):
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    for _ in range(2):
        inverse = inverse + inverse @ (unit - matrix @ inverse)
    return inverse


def inverse_of(matrix):
    return refined(matrix, eliminated(matrix.detach()))


def none_of(matrix):
    return torch.zeros(matrix.shape[:-2], dtype=torch.int32)


@formula(aten.linalg_inv_ex.default)
def inverse(self, check_errors=False):
    return NotImplemented if is_large(self) else (inverse_of(self), none_of(self))


@formula(aten._linalg_solve_ex.default)
def solve(matrix, right, left=True, check_errors=False):
    """Factors and pivots are for PyTorch's own gradient."""
    if is_large(matrix):
        return NotImplemented
    is_vector = right.dim() == 1 or (right.dim() == matrix.dim() - 1 and right.shape == matrix.shape[:-1])
    columns = right.unsqueeze(-1) if is_vector else right
    result = inverse_of(matrix) @ columns if left or is_vector else columns @ inverse_of(matrix)
    pivots_of = torch.zeros(matrix.shape[:-1], dtype=torch.int32)
    return result.squeeze(-1) if is_vector else result, matrix, pivots_of, none_of(matrix)


def triangle(matrix, upper, unitriangular=False):
    own = matrix.triu() if upper else matrix.tril()
    return own - own * torch.eye(own.shape[-1], dtype=own.dtype) + torch.eye(own.shape[-1], dtype=own.dtype) if unitriangular else own


@formula(aten.linalg_solve_triangular.default)
def solve_triangular(self, right, upper, left=True, unitriangular=False):
    if is_large(self):
        return NotImplemented
    own = inverse_of(triangle(self, upper, unitriangular))
    return own @ right if left else right @ own


@formula(aten.triangular_solve.default)
def triangular_solve(self, matrix, upper=True, transpose=False, unitriangular=False):
    if is_large(matrix):
        return NotImplemented
    own = inverse_of(triangle(matrix, upper, unitriangular))
    result = (own.mT if transpose else own) @ self
    return result, matrix.expand(*result.shape[:-2], *matrix.shape[-2:]).clone()


#
# Factors
#


def lower_half(matrix):
    """What of a small symmetric change is the factor's."""
    return matrix.tril() - 0.5 * matrix * torch.eye(matrix.shape[-1], dtype=matrix.dtype)


def factored(matrix):
    """The lower factor, column after column."""
    columns = []
    for column in range(matrix.shape[-1]):
        own = matrix[..., column]
        for other in columns:
            own = own - other * other[..., column : column + 1]
        own = torch.where(torch.arange(matrix.shape[-1]) < column, 0, own)
        columns.append(own / own[..., column : column + 1].sqrt())
    return torch.stack(columns, -1)


def cholesky_of(matrix):
    """Without gradient, and two steps behind it that have one, as of an inverse. Of the lower triangle; both share the gradient."""
    kept, whole = matrix.detach(), 0.5 * (matrix + matrix.mT)
    kept = kept.tril() + kept.tril(-1).mT
    matrix, factor = kept + (whole - whole.detach()), factored(kept)
    inverse = eliminated(factor)
    unit = torch.eye(matrix.shape[-1], dtype=matrix.dtype)
    for _ in range(2):
        inverse = refined(factor, inverse)
        factor = factor @ (unit + lower_half(inverse @ matrix @ inverse.mT - unit))
    return factor


@formula(aten.linalg_cholesky_ex.default)
def cholesky(self, upper=False, check_errors=False):
    if is_large(self):
        return NotImplemented
    factor = cholesky_of(self.mT if upper else self)
    return factor.mT if upper else factor, none_of(self)


@formula(aten.cholesky_inverse.default)
def cholesky_inverse(self, upper=False):
    if is_large(self):
        return NotImplemented
    kept = triangle(self, upper).detach()
    own = inverse_of(kept + (self - self.detach()))  # The other triangle has a gradient, too.
    return own @ own.mT if upper else own.mT @ own


@formula(aten.cholesky_solve.default)
def cholesky_solve(self, factor, upper=False):
    found = cholesky_inverse(factor, upper)
    return found if found is NotImplemented else found @ self


@formula(aten.linalg_householder_product.default)
def householder_product(self, tau):
    """Of reflections 1 - tau · v · vᵀ, the first columns."""
    if tau.shape[-1] > MOST_ROWS:
        return NotImplemented
    numbers = torch.arange(self.shape[-2])[:, None]
    product = torch.eye(*self.shape[-2:], dtype=self.dtype).expand(self.shape)
    for number in reversed(range(tau.shape[-1])):
        own = torch.where(numbers > number, self[..., number : number + 1], (numbers == number).to(self.dtype))
        product = product - tau[..., number : number + 1, None] * own @ (own.mT @ product)
    return product


@formula(aten.linalg_qr.default)
def qr(self, mode="reduced"):
    """By reflections, with LAPACK's signs."""
    rows, columns = self.shape[-2:]
    if mode == "r" or min(rows, columns) > MOST_ROWS:
        return NotImplemented
    size = min(rows, columns) if mode == "reduced" else rows
    numbers, right, reflections = torch.arange(rows)[:, None], self, []
    for number in range(min(rows - 1, columns)):
        below = torch.where(numbers >= number, right[..., number : number + 1], 0)
        first = right[..., number : number + 1, number : number + 1]
        length = below.square().sum(-2, keepdim=True).sqrt()
        own = below + torch.where(first < 0, -length, length) * (numbers == number)
        reflections.append((own, 2 / own.square().sum(-2, keepdim=True)))
        right = right - reflections[-1][1] * own @ (own.mT @ right)
    left = torch.eye(rows, size, dtype=self.dtype).expand(*self.shape[:-2], rows, size)
    for own, factor in reversed(reflections):
        left = left - factor * own @ (own.mT @ left)
    return left, right[..., :size, :].triu()


#
# The exponential of a matrix, as one of it / 2^s is, s times squared
#


TERMS, MOST_SQUARES = 14, 12


@formula(aten.linalg_matrix_exp.default)
def matrix_exp(self):
    size = self.detach().abs().sum(-1, keepdim=True).amax(-2, keepdim=True)
    halves = (torch.log2(size.clamp(min=0.5)).ceil() + 1).clamp(0, MOST_SQUARES)
    part = self / torch.exp2(halves)
    unit = torch.eye(self.shape[-1], dtype=self.dtype)
    result = unit.expand(self.shape)
    for number in reversed(range(1, TERMS + 1)):
        result = unit + part @ result / number
    for number in range(MOST_SQUARES):
        result = torch.where(number < halves, result @ result, result)
    return torch.where(size > 2.0 ** (MOST_SQUARES - 1), float("nan"), result)  # Where the part is too large for its terms.


@formula(aten.addbmm.default)
def addbmm(self, batch1, batch2, beta=1, alpha=1):
    return beta * self + alpha * (batch1 @ batch2).sum(0)
