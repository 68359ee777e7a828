"""Bytes of a JAX step: jax_memory.py FOLDER THREADS, for each form one number, and the version, as JSON.

What XLA says of the compiled program (memory_analysis): arguments, what lies beside them in outputs, and temporaries.
"""

import json

import jax_worker  # first: it sets what JAX reads when it is imported
import jax
import worker


def bytes_of(peer):
    compiled = peer.compiled.lower(peer.parameters, peer.state, **peer.inputs).compile()
    memory = compiled.memory_analysis()
    return (memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
            + memory.temp_size_in_bytes)


def main():
    case, folder, _ = worker.arguments()
    forms = {name: bytes_of(make()) for name, make in jax_worker.forms(case, folder).items()}
    print(json.dumps({"version": f"JAX {jax.__version__}", "bytes": forms}))


if __name__ == "__main__":
    main()
