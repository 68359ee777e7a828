"""The optimizers' arithmetic, for whoever trains with JAX."""

import jax
import jax.numpy as jnp


def first_state(settings, parameters):
    if settings["name"] == "sgd":
        return {}
    state = {slot: {name: jnp.zeros_like(value) for name, value in parameters.items()} for slot in ("exp_avg", "exp_avg_sq")}
    return {**state, "step": jnp.zeros(())}


def update(settings, parameters, gradients, state):
    """The next parameters, and the next state."""
    return (sgd if settings["name"] == "sgd" else adamw)(settings, parameters, gradients, state)


def sgd(settings, parameters, gradients, state):
    return jax.tree.map(lambda value, gradient: value - settings["lr"] * gradient, parameters, gradients), state


def adamw(settings, parameters, gradients, state):
    """torch.optim.AdamW's arithmetic; matrices alone decay."""
    beta1, beta2, step = settings["beta1"], settings["beta2"], state["step"] + 1
    mean = jax.tree.map(lambda old, gradient: beta1 * old + (1 - beta1) * gradient, state["exp_avg"], gradients)
    square = jax.tree.map(lambda old, gradient: beta2 * old + (1 - beta2) * gradient * gradient, state["exp_avg_sq"], gradients)
    size, scale = settings["lr"] / (1 - beta1 ** step), jnp.sqrt(1 - beta2 ** step)
    kept = lambda value: (1 - settings["lr"] * settings["weight_decay"]) if value.ndim >= 2 else 1.0
    parameters = jax.tree.map(lambda value, m, v: kept(value) * value - size * m / (jnp.sqrt(v) / scale + settings["eps"]),
                              parameters, mean, square)
    return parameters, {"exp_avg": mean, "exp_avg_sq": square, "step": step}
