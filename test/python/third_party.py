"""Trains the models of test/onnx/third_party_models.py and more_models.py with gpuc.compile, in f64, next to eager PyTorch.

    PYTHONPATH=build/python PYTHON-WITH-ALL test/python/third_party.py [--steps N] [--least N] [NAME …]

A model trains if the losses of all steps, with SGD and with AdamW, equal eager's to 1e-8 (relatively, beyond 1); to 1e-5
over five steps where it computes in f32 by itself, as T5's norms do. It is unstable if they do not, but the first two do,
with one update between them, and eager's own losses move about as far when its weights move by a bit, the farthest of four
draws. It is refused if gpuc says so; anything else fails, and is exit code 1.
"""

import argparse
import collections
import copy
import pathlib
import sys
import time
import warnings

import torch
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "onnx")]

import gpuc  # noqa: E402
from modules import eager_losses  # noqa: E402
from more_models import MORE_MODELS  # noqa: E402
from third_party_models import CLASSES, WORDS  # noqa: E402
from third_party_models import MODELS as THIRD_PARTY  # noqa: E402

MODELS = {**THIRD_PARTY, **MORE_MODELS}
if not torch.cuda.is_available():  # A build for CUDA dies of transformers' question where there is no GPU.
    torch.cuda.is_current_stream_capturing = lambda: False

OPTIMIZERS = {
    "SGD": lambda net: torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9),
    "AdamW": lambda net: torch.optim.AdamW(net.parameters(), lr=1e-3),
}


def last_dim_cross_entropy(scores, target):
    return F.cross_entropy(scores.reshape(-1, scores.shape[-1]), target.reshape(-1))


def prepare(name):
    """The module, its loss and a batch."""
    torch.manual_seed(0)
    module, inputs, loss = MODELS[name]()
    module = module.double().train()
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0  # Each draws by a generator of its own.
    values = [value.double() if value.is_floating_point() else value for value in inputs.values()]
    with torch.no_grad():
        out = module(*values)  # Some make buffers when they are first called.
    if loss == "mse":
        return module, F.mse_loss, (*values, torch.randn(out.shape, dtype=out.dtype))
    target = torch.randint(0, CLASSES if out.shape[-1] == CLASSES else WORDS, out.shape[:-1])
    return module, last_dim_cross_entropy, (*values, target)


def apart(losses, expected):
    return max(abs(a - b) / max(1, abs(b)) for a, b in zip(losses, expected))


class SeesSingles(TorchDispatchMode):
    """Whether anything is computed in f32."""

    found = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        self.found |= isinstance(out, torch.Tensor) and out.dtype == torch.float32 and out.numel() > 1
        return out


def exactness(name, steps):
    """How close losses have to be, and in how many steps."""
    net, loss, batch = prepare(name)
    with torch.no_grad(), SeesSingles() as mode:
        loss(net(*batch[:-1]), batch[-1])
    return (1e-5, min(steps, 5)) if mode.found else (1e-8, steps)


DRAWS = 4  # One may leave alone what another one sends off by a thousand times as much, where a ReLU turns on or not.


def own_distance(name, make, expected):
    """How far eager's losses move if each weight moves by its last bit, up or down: the farthest of some draws."""
    return max(own_distance_of(draw, name, make, expected) for draw in range(DRAWS))


def own_distance_of(draw, name, make, expected):
    net, loss, batch = prepare(name)
    torch.manual_seed(draw)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(1 + torch.randint_like(parameter, -1, 2) * 2.0**-52)
    return apart(eager_losses(net, loss, make(net), batch, len(expected)), expected)


def outcome(name, steps):
    unstable = ""
    tolerance, steps = exactness(name, steps)
    for optimizer, make in OPTIMIZERS.items():
        net, loss, batch = prepare(name)
        eager = copy.deepcopy(net)
        torch.manual_seed(1)
        expected = eager_losses(eager, loss, make(eager), batch, steps)
        begin = time.monotonic()
        try:
            step = gpuc.compile(net, loss, make(net), batch)
            seconds = time.monotonic() - begin
            losses = [step(*batch) for _ in range(steps)]
        except gpuc.Error as error:
            return "refused", "; ".join(dict.fromkeys(str(problem) for problem in error.problems)) or str(error)
        worst = apart(losses, expected)
        own = own_distance(name, make, expected) if not worst <= tolerance else 0
        if apart(losses[:2], expected[:2]) <= tolerance and 0 < worst < 100 * own:
            unstable += f"{optimizer}: {worst:.1e} apart, eager from itself {own:.1e}; "
        elif not worst <= tolerance:
            return "failed", f"{optimizer}: losses {losses[0]} … {losses[-1]}, eager {expected[0]} … {expected[-1]}: {worst:.1e}"
    if unstable:
        return "unstable", unstable
    return "trained", f"{worst:.1e} apart in {steps} steps, compiled in {seconds:.1f} s"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--least", type=int, default=0, help="how many have to train")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    counts = collections.Counter()
    for name in arguments.names or MODELS:
        try:
            result, why = outcome(name, arguments.steps)
        except ImportError as error:
            result, why = "skipped", str(error)
        except Exception as error:
            result, why = "failed", f"{type(error).__name__}: {error}"
        counts[result] += 1
        print(result, name, why, flush=True)
    print(", ".join(f"{count} {result}" for result, count in counts.items()))
    return 1 if counts["failed"] or counts["trained"] < arguments.least else 0


if __name__ == "__main__":
    sys.exit(main())
