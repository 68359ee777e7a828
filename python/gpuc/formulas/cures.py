"""What to do where an op is none that a step has."""

import re

# By the beginning of an op's name, the first that fits.
CURES = {
    ("_linalg_svd", "_linalg_eigh", "linalg_eig", "linalg_matrix_sqrth", "linalg_polar"): "its steps hang on values: compute it outside of the module "
    "and give the result as an input, or take the largest singular value by power iteration, torch.nn.utils.parametrizations.spectral_norm",
    ("linalg_pinv",): "of full rank torch.linalg.inv(a.mT @ a) @ a.mT is the same",
    ("linalg_lstsq",): "of full rank torch.linalg.solve(a.mT @ a, a.mT @ b) is the solution",
    ("linalg_lu", "lu_unpack", "ormqr", "_linalg_det", "_linalg_slogdet", "linalg_inv", "_linalg_solve", "linalg_cholesky", "cholesky", "triangular_solve",
     "linalg_solve", "linalg_qr", "linalg_householder"): "torch.linalg has det, slogdet, inv, solve, cholesky and qr of matrices of up to 32 rows",
    ("_to_sparse", "sparse", "_sparse", "to_sparse"): "tensors are dense: leave it out, or .to_dense()",
    ("segment_reduce",): "torch.zeros(…).index_add(0, segment_of_each_row, x) sums segments, scatter_reduce reduces them",
    ("_linear_cross_entropy",): "F.cross_entropy(F.linear(x, weight), target) is the same",
    ("native_layer_norm",): "F.layer_norm is there",
    ("native_group_norm",): "F.group_norm is there",
    ("native_batch_norm", "_batch_norm_with_update"): "F.batch_norm is there",
    ("scatter_reduce",): "the index has to be as long as the tensor in all dimensions but that one",
    ("special_erfcx",): "log_ndtr(x) is torch.log(torch.special.ndtr(x)) where x is above -5, say",
    ("roi_align", "ps_roi_align", "roi_pool", "ps_roi_pool"): "F.grid_sample(x, points) reads a box at points between its corners",
    ("deform_conv2d",): "F.grid_sample reads x at the places that offsets say, and a Conv2d whose strides are its kernel sums them up",
    ("nms",): "which boxes stay hangs on values: choose them outside of the step",
    ("poisson", "binomial", "_standard_gamma", "_sample_dirichlet"): "draw it outside of the module, and give it as an input",
}  # fmt: skip
CURE_OF_NUMBERS = ("keep it a tensor where it is calculated with; where it is a size or a place, take a number that is always enough, and leave out "
                   "by a mask what is beyond, as in torch.arange(most) < lengths.unsqueeze(1)")  # fmt: skip
OTHERWISE = "write it by ops that are there (docs/python.md lists them), or compute it outside of the module and give it as an input"
REFUSED = re.compile(r"(?:\w+\.)?(\w+)\.\w+ is not supported$|(?:torch_nn\.)?(\w+) is not supported$")


def cured(text):
    """What is refused, with what to do."""
    found = REFUSED.match(text)
    if not found:
        return text
    cure = next((cure for names, cure in CURES.items() if (found[1] or found[2]).startswith(names)), OTHERWISE)
    return f"{text}: {cure}"


def cure_of_shape(op):
    """Of an op whose result is as long as values say."""
    return next((cure for names, cure in CURES_OF_SHAPES.items() if op.startswith(names)), CURE_OF_SHAPES)


# By the beginning of its name.
CURES_OF_SHAPES = {
    ("unique", "_unique"): "number the groups, of which there are k, and sum rows by them, torch.zeros(k, …).index_add(0, groups, rows)",
    ("bincount",): "of k classes torch.zeros(k).index_add(0, labels, torch.ones(len(labels))) counts each",
    ("repeat_interleave",): "say how many rows there are then, output_size=…",
}
CURE_OF_SHAPES = ("use torch.where, multiply by the mask, or, if that is always the same, index by numbers that are made before the step, i, j = "
                  "mask.nonzero(as_tuple=True)")  # fmt: skip


def cure_of_type(dtype):
    if dtype.is_complex:
        return "keep real and imaginary parts as real tensors; a Fourier transform of fixed length is two products, by matrices of cosines and sines"
    return "cast it, .to(torch.int32)" if not dtype.is_floating_point else "cast it, .to(torch.float32)"
