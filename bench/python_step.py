"""What Python adds to a step: `step(x, y)` beside its session's run of the same addresses, interleaved; medians of 45 turns, in us.

"beyond" is the median of what the two differ by within a turn: cores change their speed between turns by more than Python costs.

    python_step.py [LAYERS …]        by a Python with torch, with build/python on PYTHONPATH
    python_step.py --beside          how fast a second Python thread counts while steps run on one thread, of what it does while nothing runs,
                                     in turns; needs two cores
"""

import gc
import statistics
import sys
import threading
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


WIDTHS = 8, 256, 1024  # Of steps that last some us to some ms.
TURNS_BESIDE, SECONDS = 9, 0.3


def counted(go_on, counts):
    """Until it is told to stop."""
    begin, count = time.perf_counter(), 0
    while go_on.is_set():
        count += 1
    counts.append(count / (time.perf_counter() - begin))


def rate_beside(work):
    """How often a second thread counts in a second while this one does its work again and again; and how long that takes, in us."""
    go_on, counts, calls = threading.Event(), [], 0
    go_on.set()
    second = threading.Thread(target=counted, args=(go_on, counts))
    second.start()
    begin = time.perf_counter()
    while (now := time.perf_counter()) - begin < SECONDS:
        work()
        calls += 1
    go_on.clear()
    second.join()
    return counts[0], (now - begin) / calls * 1e6


def measure_beside(width):
    net = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
    batch = torch.randn(64, width), torch.randn(64, width)
    step = gpuc.compile(net, nn.MSELoss(), torch.optim.SGD(net.parameters(), lr=1e-3), batch, threads=1)
    kept, times = [], []
    for _ in range(TURNS_BESIDE):
        alone, _ = rate_beside(lambda: time.sleep(SECONDS))
        beside, us = rate_beside(lambda: step(*batch))
        kept.append(beside / alone)
        times.append(us)
    print(f"steps of {statistics.median(times):.0f} us: a second thread keeps {statistics.median(kept):.1%} of its speed, "
          f"{min(kept):.1%} to {max(kept):.1%}")  # fmt: skip


def main():
    warnings.simplefilter("error")
    gc.disable()
    if sys.argv[1:] == ["--beside"]:
        for width in WIDTHS:
            measure_beside(width)
        return
    for layers in [int(each) for each in sys.argv[1:]] or [1, 80]:
        measure(layers)


if __name__ == "__main__":
    main()
