"""Constants that are a triangle, as causal masks are: said by their diagonal, so that the text of a model stays small and the compiler
sees what they are."""

import torch


class Triangle:
    """`inside` where column - row is at most `diagonal`, else `outside`; the same in each matrix of the last two dimensions."""

    def __init__(self, shape, diagonal, inside, outside):
        self.shape, self.diagonal, self.inside, self.outside = shape, diagonal, inside, outside

    @classmethod
    def of(cls, tensor):
        """None if the tensor is no such triangle, or has NaN."""
        if tensor.dim() < 2 or tensor.numel() == 0:
            return None
        matrices = tensor.flatten(0, -3) if tensor.dim() > 2 else tensor[None]
        matrix = matrices[0]
        inside, outside = matrix[-1, 0], matrix[0, -1]
        is_inside = matrix == inside
        starts = int(is_inside[0].sum())
        diagonal = starts - 1 if starts else -int((~is_inside[:, 0]).sum())
        expected = torch.ones(matrix.shape, dtype=torch.bool).tril(diagonal)
        is_triangle = bool(inside != outside) and bool((matrices == torch.where(expected, inside, outside)).all())
        return cls(tensor.shape, diagonal, inside, outside) if is_triangle else None

    @property
    def key(self):
        return tuple(self.shape), self.diagonal, self.inside.item(), self.outside.item(), self.inside.dtype
