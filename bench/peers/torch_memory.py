"""Bytes of a PyTorch step: torch_memory.py FOLDER THREADS eager|compiled FORM, and the version, as JSON.

Each allocation of PyTorch's CPU allocator is recorded by its profiler from before the first tensor is made, so that what
it counts as allocated is all that there is. The third step counts: the optimizer has its state by then. What oneDNN or MKL
allocate for themselves is not among it.
"""

import json
import sys

import torch
from torch._C._profiler import _EventType

import torch_worker
import worker


def events_below(events):
    for event in events:
        yield event
        yield from events_below(event.children)


def peak_of(make):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        peer = make()
        peer.step()
        peer.step()
        with torch.profiler.record_function("counted"):
            peer.step()
    events = list(events_below(profile.profiler.kineto_results.experimental_event_tree()))
    (counted,) = [event for event in events if event.name == "counted"]
    return max(event.typed[1].total_allocated for event in events
               if event.typed[0] == _EventType.Allocation and counted.start_time_ns <= event.start_time_ns <= counted.end_time_ns)


def main():
    case, folder, threads = worker.arguments()
    torch.set_num_threads(threads)
    # Weights and inputs are made with the peer: they count, too.
    print(json.dumps({"version": f"PyTorch {torch.__version__}",
                      "bytes": peak_of(lambda: torch_worker.forms(case, folder, sys.argv[3])[sys.argv[4]]())}))


if __name__ == "__main__":
    main()
