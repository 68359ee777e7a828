"""The cells' models as functions of a dict of parameters that are called, and laid out, as gpuc's variables."""

import jax
import jax.numpy as jnp
from jax import lax


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def mlp(p, x, model):
    last = len(model["widths"]) - 1
    for index in range(1, last):
        x = jax.nn.relu(linear(p, f"fc{index}", x))
    return linear(p, f"fc{last}", x)


def pool_by_window(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def pool_by_reshape(x):
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def lenet5(p, x, model, pool):
    """Channels last, which is how JAX's own networks lay out pictures."""
    x = x.reshape(-1, 28, 28, 1)  # one channel: the same bytes
    for name, padding in (("conv1", "SAME"), ("conv2", "VALID")):
        weight = p[name + ".weight"].transpose(2, 3, 1, 0)
        x = lax.conv_general_dilated(x, weight, (1, 1), padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = pool(jax.nn.relu(x + p[name + ".bias"]))
    x = x.transpose(0, 3, 1, 2).reshape(-1, 400)
    return linear(p, "fc3", jax.nn.relu(linear(p, "fc2", jax.nn.relu(linear(p, "fc1", x)))))


def lstm(p, x, model, unroll):
    """The frames' part of all gates in one product before the loop, as cuDNN and Flax's optimized cell have it."""
    gates = jnp.swapaxes(x, 0, 1) @ p["rnn.weight_ih_l0"].T + p["rnn.bias_ih_l0"] + p["rnn.bias_hh_l0"]

    def cell(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ p["rnn.weight_hh_l0"].T, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[0], model["hidden"]))
    return linear(p, "fc", lax.scan(cell, (zeros, zeros), gates, unroll=unroll)[0][0])


def layer_norm(p, name, x):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * p[name + ".weight"] + p[name + ".bias"]


def attention(p, name, x, heads):
    batch, length, width = x.shape
    q, k, v = (part.reshape(batch, length, heads, -1) for part in jnp.split(linear(p, name + ".c_attn", x), 3, axis=2))
    y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
    return linear(p, name + ".c_proj", y.reshape(batch, length, width))


def gpt(p, x, model):
    h = p["transformer.wte.weight"][x] + p["transformer.wpe.weight"]
    for layer in range(model["layers"]):
        name = f"transformer.h.{layer}"
        h = h + attention(p, name + ".attn", layer_norm(p, name + ".ln_1", h), model["heads"])
        wide = jax.nn.gelu(linear(p, name + ".mlp.c_fc", layer_norm(p, name + ".ln_2", h)), approximate=False)
        h = h + linear(p, name + ".mlp.c_proj", wide)
    return layer_norm(p, "transformer.ln_f", h) @ p["transformer.wte.weight"].T


def forms(model):
    """name → function of (parameters, x) that gives the logits: ways to write the same model."""
    kind = model["kind"]
    if kind == "mlp":
        return {"jit": lambda p, x: mlp(p, x, model)}
    if kind == "lenet5":
        return {"pooling by reduce_window": lambda p, x: lenet5(p, x, model, pool_by_window),
                "pooling by reshape": lambda p, x: lenet5(p, x, model, pool_by_reshape)}
    if kind == "lstm":
        return {f"scan, unroll={unroll}": lambda p, x, unroll=unroll: lstm(p, x, model, unroll) for unroll in (1, 4, 32)}
    return {"jit": lambda p, x: gpt(p, x, model)}


def loss(logits, labels):
    log = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log, labels[..., None], -1).mean()
