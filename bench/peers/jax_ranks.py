"""JAX on several processes of a host as a candidate of bench/data_parallel.py: jax_ranks.py FOLDER RANKS.

Each rank is a process with one device of one thread, and they exchange by gloo, as JAX has it for CPUs. The first one answers requests and
hands them on to the others: `losses N` and `steps N`, as bench-ranks.cpp says.
"""

import json
import math
import os
import sys
import time

import numpy

TRY_SECONDS = 1  # that each form is tried for


class Rank:
    """One of the processes; made before JAX is loaded, which is not to be forked."""

    def __init__(self, ranks):
        self.number, self.children, self.orders, self.heard = 0, [], [], None
        for number in range(1, ranks):
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                self.number, self.children, self.orders, self.heard = number, [], [], os.fdopen(reading)
                os.close(writing)
                return
            os.close(reading)
            self.children.append(child)
            self.orders.append(os.fdopen(writing, "w"))

    def hand_on(self, order):
        for pipe in self.orders:
            pipe.write(order + "\n")
            pipe.flush()


def load(rank, ranks, port):
    """JAX, one of whose devices is this process's."""
    os.environ.update(NPROC="1", JAX_PLATFORMS="cpu", OMP_NUM_THREADS="1")
    import jax
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"localhost:{port}", ranks, rank)
    return jax


class Ranks:
    """The whole step is one jit whose arguments are donated. `by_hand`: each rank's part is written out, with a mean of all gradients; else
    XLA finds the exchanges, as the rows of the batch lie on several devices."""

    def __init__(self, jax, case, weights, inputs, predict, by_hand):
        import jax_models
        import jax_updates
        self.jax, self.weights, self.settings, self.updates = jax, weights, case["optimizer"], jax_updates
        mesh = jax.make_mesh((jax.process_count(),), ("ranks",), axis_types=(jax.sharding.AxisType.Auto,))
        self.everywhere = jax.NamedSharding(mesh, jax.P())
        rows = jax.NamedSharding(mesh, jax.P("ranks"))
        self.inputs = {name: jax.make_array_from_process_local_data(rows, value) for name, value in inputs.items()}

        def gradients_of(parameters, x, labels):
            return jax.value_and_grad(lambda p: jax_models.loss(predict(p, x), labels))(parameters)

        def of_a_part(parameters, x, labels):
            own = jax.tree.map(lambda value: jax.lax.pcast(value, "ranks", to="varying"), parameters)  # whose gradients are this part's
            return jax.lax.pmean(gradients_of(own, x, labels), "ranks")

        if by_hand:
            gradients_of_all = jax.shard_map(of_a_part, mesh=mesh, in_specs=(jax.P(), jax.P("ranks"), jax.P("ranks")), out_specs=jax.P())
        else:
            gradients_of_all = gradients_of

        def step(parameters, state, x, labels):
            loss, gradients = gradients_of_all(parameters, x, labels)
            return *jax_updates.update(self.settings, parameters, gradients, state), loss

        whole = self.everywhere
        self.compiled = jax.jit(step, donate_argnums=(0, 1), out_shardings=(whole, whole, whole))
        self.reset()

    def reset(self):
        """With arrays of the jit's own, which it may take."""
        put = lambda value: self.jax.make_array_from_process_local_data(self.everywhere, numpy.array(value), value.shape)
        self.parameters = {name: put(value) for name, value in self.weights.items()}
        self.state = self.jax.tree.map(put, self.updates.first_state(self.settings, self.weights))

    def step(self):
        self.parameters, self.state, loss = self.compiled(self.parameters, self.state, **self.inputs)
        return loss

    def losses(self, count):
        self.reset()
        return [float(self.step()) for _ in range(count)]

    def steps(self, count):
        """Microseconds of each."""
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        self.jax.block_until_ready(self.parameters)
        return 1e6 * (time.perf_counter() - begin) / count


class Candidate:
    """What all ranks do alike when they are told to."""

    def __init__(self, jax, case, folder):
        import jax_models
        import worker
        weights = worker.read_safetensors(folder + "/weights.safetensors")
        ranks, rank = jax.process_count(), jax.process_index()
        inputs = {name: value[len(value) // ranks * rank:len(value) // ranks * (rank + 1)]
                  for name, value in worker.read_inputs(case, folder).items()}
        self.forms = {f"{name}, {how}": lambda predict=predict, by_hand=by_hand: Ranks(jax, case, weights, inputs, predict, by_hand)
                      for name, predict in jax_models.forms(case["model"]).items()
                      for how, by_hand in (("rows sharded", False), ("shard_map", True))}
        self.peer = None

    def obey(self, order):
        verb, what = order.split(" ", 1)
        if verb == "form":
            self.peer = self.forms[what]()
            return None
        return self.peer.losses(int(what)) if verb == "losses" else self.peer.steps(int(what))


def best_form(candidate, tell):
    """The quickest of several ways to write the same step."""
    best, refused = None, {}
    for name in candidate.forms:
        try:
            tell("form " + name)
            tell("steps 4")
            microseconds = tell(f"steps {max(4, math.ceil(1e6 * TRY_SECONDS / tell('steps 4')))}")
        except Exception as error:  # a form that JAX cannot take is no reason to leave it out; all ranks fail alike
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        if best is None or microseconds < best[0]:
            best = microseconds, name
    if best is None:
        sys.exit("; ".join(refused.values()))
    tell("form " + best[1])
    tell("steps 4")
    return best[1], refused


def lead(rank, jax, candidate, answers):
    def tell(order):
        rank.hand_on(order)
        return candidate.obey(order)

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    form, refused = best_form(candidate, tell)
    answer({"version": f"JAX {jax.__version__}", "form": form, "refused": refused})
    for line in sys.stdin:
        answer(tell(line.strip()))
    rank.hand_on("end")


def follow(rank, candidate):
    for line in rank.heard:
        if line.strip() == "end":
            return
        try:
            candidate.obey(line.strip())
        except Exception as error:  # as the first rank's
            print(error, file=sys.stderr)


def main():
    folder, ranks = sys.argv[1], int(sys.argv[2])
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        case = json.load(file)
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr
    os.dup2(2, 1)
    port = 12000 + os.getpid() % 9000  # below those that the kernel gives
    rank = Rank(ranks)
    jax = load(rank.number, ranks, port)
    candidate = Candidate(jax, case, folder)
    if rank.number > 0:
        follow(rank, candidate)
    else:
        lead(rank, jax, candidate, answers)
    jax.distributed.shutdown()
    if rank.number > 0:
        os._exit(0)
    for child in rank.children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
