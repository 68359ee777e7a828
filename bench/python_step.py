"""What Python adds to a step: `step(x, y)` beside its session's run of the same addresses, interleaved; medians of 45 turns, in us.

"beyond" is the median of what the two differ by within a turn: cores change their speed between turns by more than Python costs.

    python_step.py [LAYERS …]        by a Python with torch, with build/python on PYTHONPATH
"""

import gc
import statistics
import sys
import time
import warnings

import torch
from torch import nn

import gpuc

CALLS, TURNS = 200_000, 45


def time_of(call, args, calls):
    start = time.perf_counter()
    for _ in range(calls):
        call(*args)
    return (time.perf_counter() - start) / calls * 1e6


def measure(layers):
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(8, 8) for _ in range(layers)])
    batch = torch.randn(4, 8), torch.randn(4, 8)
    step = gpuc.compile(net, nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=1e-3), batch, threads=1)
    ways = {
        "step": (step, batch),
        "session": (step._session.mean_at, ("train_step", *(each.data_ptr() for each in batch))),
        "without the exchange API": (lambda *given: step._update(given, {}), batch),
    }
    times = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, (call, args) in ways.items():
            times[name].append(time_of(call, args, CALLS // TURNS // layers))
    beyond = statistics.median(step - session for step, session in zip(times["step"], times["session"]))
    found = {name: statistics.median(each) for name, each in times.items()}
    print(f"{len(list(net.parameters()))} parameters: " + ", ".join(f"{name} {us:.2f}" for name, us in found.items()) + f"; beyond {beyond:.2f}")


def main():
    warnings.simplefilter("error")
    gc.disable()
    for layers in [int(each) for each in sys.argv[1:]] or [1, 80]:
        measure(layers)


if __name__ == "__main__":
    main()
