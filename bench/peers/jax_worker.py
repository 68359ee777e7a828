"""JAX as a candidate: jax_worker.py FOLDER THREADS. The whole step is one jit whose arguments are donated. See worker.py."""

import os
import sys

# XLA's pool of threads on the host has as many as this says.
os.environ["NPROC"] = sys.argv[2]
os.environ["JAX_PLATFORMS"] = "cpu"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

import jax_models  # noqa: E402
import jax_updates  # noqa: E402
import worker  # noqa: E402


class Jit:
    def __init__(self, case, weights, inputs, predict):
        self.weights, self.settings = weights, case["optimizer"]
        self.inputs = {name: jnp.asarray(value) for name, value in inputs.items()}

        def step(parameters, state, x, labels):
            loss, gradients = jax.value_and_grad(lambda p: jax_models.loss(predict(p, x), labels))(parameters)
            return *jax_updates.update(self.settings, parameters, gradients, state), loss

        self.compiled = jax.jit(step, donate_argnums=(0, 1))
        self.reset()

    def reset(self):
        self.parameters = {name: jnp.array(value) for name, value in self.weights.items()}
        self.state = jax_updates.first_state(self.settings, self.parameters)

    def step(self):
        self.parameters, self.state, loss = self.compiled(self.parameters, self.state, **self.inputs)
        return loss

    def finish(self):
        jax.block_until_ready(self.parameters)


def forms(case, folder):
    weights, inputs = worker.read_safetensors(folder + "/weights.safetensors"), worker.read_inputs(case, folder)
    return {name: lambda predict=predict: Jit(case, weights, inputs, predict)
            for name, predict in jax_models.forms(case["model"]).items()}


def main():
    case, folder, _ = worker.arguments()
    worker.serve(f"JAX {jax.__version__}", forms(case, folder))


if __name__ == "__main__":
    main()
