"""Writes pytorch_numbers.json: what PyTorch computes for ops of the gpuc dialect, and its gradients, in f64.

    /usr/bin/python3 test/gradients/pytorch_numbers.py > test/gradients/pytorch_numbers.json

Needs Debian's python3-torch (1.13); the numbers are kept, so that the tests do not. A case is a function around one op
as in Registry.h, with its inputs, its results, and the gradient of Σ weights · (first result) by each floating-point
input that is marked.
"""

import json

import numpy
import torch
import torch.nn.functional as F

random = numpy.random.default_rng(7)
cases = []


def uniform(*shape, low=-2.0, high=2.0):
    return torch.tensor(random.uniform(low, high, shape).round(3), dtype=torch.float64)


def type_text(tensor):
    element = {torch.float64: "$T", torch.int64: "i64", torch.int32: "i32", torch.bool: "i1"}[tensor.dtype]
    return "x".join([str(extent) for extent in tensor.shape] + [element])


def values(tensor):
    return [float(value) for value in tensor.detach().reshape(-1)]


def add(name, body, inputs, compute, names=("%y",), constant=()):
    """`body` has %x0, …; `compute` maps the tensors to as many results as there are names; what is in `constant` has
    no gradient."""
    inputs = [tensor.clone() for tensor in inputs]
    for index, tensor in enumerate(inputs):
        tensor.requires_grad_(tensor.dtype == torch.float64 and index not in constant)
    results = compute(*inputs)
    results = results if isinstance(results, tuple) else (results,)
    weights = uniform(*results[0].shape, low=-1.0, high=1.0)
    (weights * results[0]).sum().backward()
    types = ", ".join(f"tensor<{type_text(tensor)}>" for tensor in inputs)
    result_types = ", ".join(f"tensor<{type_text(tensor)}>" for tensor in results)
    cases.append({
        "name": name,
        "inputs": [{"type": type_text(tensor), "values": values(tensor), "differentiate": tensor.requires_grad}
                   for tensor in inputs],
        "body": f"{', '.join(names)} = gpuc.{body} : ({types}) -> ({result_types})",
        "outputs": [{"name": name, "type": type_text(tensor), "values": values(tensor)}
                    for name, tensor in zip(names, results)],
        "weights": values(weights),
        "gradients": [values(tensor.grad) for tensor in inputs if tensor.requires_grad],
    })


# Normalisations -------------------------------------------------------------------------------------------------------


def layer_norm(x, weight, bias):
    dims = tuple(range(x.dim() - weight.dim(), x.dim()))
    variance, mean = torch.var_mean(x, dims, unbiased=False)
    return F.layer_norm(x, weight.shape, weight, bias), mean, 1 / torch.sqrt(variance + 1e-5)


add("layer_norm", "layer_norm %x0 dim 1 weight %x1 bias %x2", [uniform(3, 7), uniform(7), uniform(7)], layer_norm,
    ("%y", "%m", "%r"))
add("layer_norm_two_dims", "layer_norm %x0 dim 1 weight %x1 bias %x2", [uniform(3, 2, 5), uniform(2, 5), uniform(2, 5)],
    layer_norm, ("%y", "%m", "%r"))
# PyTorch 1.13 has no rms_norm: its definition.
add("rms_norm", "rms_norm %x0 dim 1 weight %x1", [uniform(3, 7), uniform(7)],
    lambda x, w: (x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5) * w,
                  torch.rsqrt(x.pow(2).mean(1) + 1e-5)), ("%y", "%r"))


def batch_norm(x, running_mean, running_variance, weight, bias):
    dims = tuple(dim for dim in range(x.dim()) if dim != 1)
    mean, variance = running_mean.detach().clone(), running_variance.detach().clone()
    y = F.batch_norm(x, mean, variance, weight, bias, training=True, momentum=0.25, eps=1e-3)
    own_variance, own_mean = torch.var_mean(x, dims, unbiased=False)
    return y, mean, variance, own_mean, 1 / torch.sqrt(own_variance + 1e-3)


for name, shape in [("batch_norm", (5, 3)), ("batch_norm_images", (2, 3, 4, 5))]:
    add(name, "batch_norm %x0 running %x1, %x2 weight %x3 bias %x4 {momentum = 0.25 : f64, eps = 1.0e-3 : f64}",
        [uniform(*shape), uniform(3), uniform(3, low=0.5, high=2), uniform(3), uniform(3)], batch_norm,
        ("%y", "%rm", "%rv", "%m", "%r"), constant=(1, 2))

# Attention ------------------------------------------------------------------------------------------------------------


def attention(query, key, value, mask=None, causal=False, scale=None):
    """By its definition, in PyTorch's ops; 1.13 has no public scaled_dot_product_attention."""
    shared = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(shared, 1), value.repeat_interleave(shared, 1)
    scores = query @ key.transpose(-1, -2) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf) if mask.dtype == torch.bool else scores + mask
    if causal:
        ones = torch.ones(scores.shape[-2:], dtype=torch.bool)
        scores = scores.masked_fill(~ones.tril(), -torch.inf)
    return torch.softmax(scores, -1) @ value, torch.logsumexp(scores, -1)


operands = [uniform(2, 4, 3, 5), uniform(2, 2, 6, 5), uniform(2, 2, 6, 3)]
results = ("%y", "%l")
add("attention", "attention %x0, %x1, %x2", operands, attention, results)
add("attention_causal", "attention %x0, %x1, %x2 scale 0.3 causal", operands,
    lambda q, k, v: attention(q, k, v, causal=True, scale=0.3), results)
add("attention_flags", "attention %x0, %x1, %x2 mask %x3",
    operands + [torch.tensor([[[[True, True, False, True, False, True]]], [[[False, True, True, True, True, True]]]])],
    attention, results)
add("attention_bias", "attention %x0, %x1, %x2 mask %x3", operands + [uniform(4, 3, 6)], attention, results)

# Losses ---------------------------------------------------------------------------------------------------------------

labels = torch.tensor([3, 0, -100, 1, 4, 3])
weight = uniform(5, low=0.5, high=2)


def counted(loss, labels, weight=None):
    """The loss, and what PyTorch's mean divides it by."""
    chosen = labels[labels != -100]
    return loss, (torch.tensor(float(len(chosen)), dtype=torch.float64) if weight is None else weight[chosen].sum())


pair = ("%y", "%n")
for smoothing in [0.0, 0.2]:
    attributes = f"{{smoothing = {smoothing} : f64}}"
    add(f"cross_entropy_{smoothing}", f"cross_entropy %x0, %x1 {attributes}", [uniform(6, 5), labels],
        lambda x, l: counted(F.cross_entropy(x, l, reduction="sum", label_smoothing=smoothing), l), pair)
    add(f"cross_entropy_weight_{smoothing}", f"cross_entropy %x0, %x1 weight %x2 {attributes}",
        [uniform(6, 5), labels, weight],
        lambda x, l, w: counted(F.cross_entropy(x, l, w.detach(), reduction="sum", label_smoothing=smoothing), l, w),
        pair, constant=(2,))
add("nll", "nll %x0, %x1", [uniform(6, 5), labels], lambda x, l: counted(F.nll_loss(x, l, reduction="sum"), l), pair)
add("nll_weight", "nll %x0, %x1 weight %x2", [uniform(6, 5), labels, weight],
    lambda x, l, w: counted(F.nll_loss(x, l, w.detach(), reduction="sum"), l, w), pair, constant=(2,))


def each(function):
    """A loss of pairs, and how many there are."""
    return lambda x, t, *rest: (function(x, t, *rest), torch.tensor(float(x.numel()), dtype=torch.float64))


pairs = [uniform(4, 3), uniform(4, 3)]
add("mse", "mse %x0, %x1", pairs, each(lambda x, t: F.mse_loss(x, t, reduction="sum")), pair)
add("l1", "l1 %x0, %x1", pairs, each(lambda x, t: F.l1_loss(x, t, reduction="sum")), pair)
add("huber", "huber %x0, %x1 {delta = 0.75 : f64}", pairs,
    each(lambda x, t: F.huber_loss(x, t, reduction="sum", delta=0.75)), pair)
# smooth_l1 is huber divided by its delta.
add("smooth_l1", "huber %x0, %x1 {delta = 0.75 : f64}", pairs,
    each(lambda x, t: 0.75 * F.smooth_l1_loss(x, t, reduction="sum", beta=0.75)), pair)
binary = [uniform(4, 3), uniform(4, 3, low=0, high=1)]
# PyTorch 1.13 gives no gradient by the target of this loss.
add("bce_with_logits", "bce_with_logits %x0, %x1", binary,
    each(lambda x, t: F.binary_cross_entropy_with_logits(x, t, reduction="sum")), pair, constant=(1,))
add("bce_with_logits_weight", "bce_with_logits %x0, %x1 positive_weight %x2", binary + [uniform(3, low=0.5, high=2)],
    each(lambda x, t, p: F.binary_cross_entropy_with_logits(x, t, pos_weight=p, reduction="sum")), pair,
    constant=(1, 2))

# What the builder makes of several ops, by names that test/frontend/builder_numbers_test.cpp knows. --------------------

models = []


def add_model(name, inputs, compute):
    models.append({"name": name, "inputs": [{"shape": list(x.shape), "values": values(x)} for x in inputs],
                   "output": values(compute(*inputs))})


image = uniform(2, 4, 3, 4)
add_model("group_norm", [image], lambda x: F.group_norm(x, 2))
add_model("group_norm_affine", [image, uniform(4), uniform(4)], lambda x, w, b: F.group_norm(x, 4, w, b))
for extents in [(6, 8), (5, 9), (2, 3), (3, 1)]:
    size = "x".join(str(extent) for extent in extents)
    add_model(f"nearest_{size}", [image], lambda x: F.interpolate(x, extents, mode="nearest"))
    add_model(f"linear_{size}", [image], lambda x: F.interpolate(x, extents, mode="bilinear"))
    add_model(f"corners_{size}", [image], lambda x: F.interpolate(x, extents, mode="bilinear", align_corners=True))
add_model("upsample_nearest", [image], torch.nn.Upsample(scale_factor=2))
add_model("upsample_linear", [image], torch.nn.Upsample(scale_factor=(1, 2.5), mode="bilinear"))
add_model("upsample_corners", [image], torch.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True))
add_model("upsample_size", [image], torch.nn.Upsample(size=(4, 9), mode="bilinear", align_corners=True))
add_model("linear_7", [uniform(2, 3, 4)], lambda x: F.interpolate(x, 7, mode="linear"))

print("{\"torch\": " + json.dumps(torch.__version__) + ", \"cases\": [")
print(",\n".join(json.dumps(case) for case in cases))
print("], \"models\": [")
print(",\n".join(json.dumps(model) for model in models))
print("]}")
