"""JAX as a candidate: jax_worker.py FOLDER THREADS. The whole step is one jit whose arguments are donated. See worker.py."""

import os
import sys

# XLA's pool of threads on the host has as many as this says.
os.environ["NPROC"] = sys.argv[2]
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jax_models  # noqa: E402
import worker  # noqa: E402


class Jit:
    def __init__(self, case, weights, inputs, predict):
        self.weights, self.settings = weights, case["optimizer"]
        self.inputs = {name: jnp.asarray(value) for name, value in inputs.items()}
        update = sgd if self.settings["name"] == "sgd" else adamw

        def step(parameters, state, x, labels):
            loss, gradients = jax.value_and_grad(lambda p: jax_models.loss(predict(p, x), labels))(parameters)
            return *update(self.settings, parameters, gradients, state), loss

        self.compiled = jax.jit(step, donate_argnums=(0, 1))
        self.reset()

    def reset(self):
        self.parameters = {name: jnp.array(value) for name, value in self.weights.items()}
        self.state = {}
        if self.settings["name"] != "sgd":
            self.state = {slot: {name: jnp.zeros_like(value) for name, value in self.parameters.items()}
                          for slot in ("exp_avg", "exp_avg_sq")}
            self.state["step"] = jnp.zeros(())

    def step(self):
        self.parameters, self.state, loss = self.compiled(self.parameters, self.state, **self.inputs)
        return loss

    def finish(self):
        jax.block_until_ready(self.parameters)


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


def forms(case, folder):
    weights, inputs = worker.read_safetensors(folder + "/weights.safetensors"), worker.read_inputs(case, folder)
    return {name: lambda predict=predict: Jit(case, weights, inputs, predict)
            for name, predict in jax_models.forms(case["model"]).items()}


def main():
    case, folder, _ = worker.arguments()
    worker.serve(f"JAX {jax.__version__}", forms(case, folder))


if __name__ == "__main__":
    main()
