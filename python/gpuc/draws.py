"""What a loader draws its order and its augmentations from: the states of the generators that a run can know."""

import random
import sys


def generators_of(loaders):
    """torch's generators that DataLoaders or their samplers have of their own."""
    owners = []
    for loader in loaders:
        batch_sampler = getattr(loader, "batch_sampler", None)
        owners += [loader, getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)]
    found = [getattr(owner, "generator", None) for owner in owners]
    return list({id(each): each for each in found if hasattr(each, "get_state") and hasattr(each, "set_state")}.values())


def state_of(*loaders):
    """As JSON has it. Of libraries that nobody has imported there is none."""
    state = {"random": random.getstate()}
    if "numpy" in sys.modules:
        name, key, *rest = sys.modules["numpy"].random.get_state()
        state["numpy"] = [name, key.tolist(), *rest]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        states = (torch.get_rng_state(), *(each.get_state() for each in generators_of(loaders)))
        state["torch"] = [bytes(each.tolist()).hex() for each in states]
    return state


def restore(state, *loaders):
    version, words, gauss = state["random"]
    random.setstate((version, tuple(words), gauss))
    if "numpy" in state:
        import numpy

        name, key, *rest = state["numpy"]
        numpy.random.set_state((name, numpy.array(key, dtype=numpy.uint32), *rest))
    if "torch" in state:
        import torch

        shared, *own = (torch.tensor(list(bytes.fromhex(each)), dtype=torch.uint8) for each in state["torch"])
        torch.set_rng_state(shared)
        for generator, its_state in zip(generators_of(loaders), own):
            generator.set_state(its_state)
