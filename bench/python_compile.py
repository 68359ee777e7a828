"""From a module to its first step: gpuc.compile beside torch.export, whose time is a part of it, and torch.compile. ResNet-50 and GPT-2 124M.

    python_compile.py [--rounds N] [MODEL …]        by a Python with torch, torchvision and transformers, with build/python on PYTHONPATH

Each measurement has a process of its own, whose caches of compiled code are empty; medians of the rounds, in seconds. "export": one
torch.export of module and loss, the second in that process, since the first loads much of torch. "its exports": what torch.export takes of
gpuc.compile, which calls it twice, for training and for evaluation. "beyond": the rest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

MODELS = ("resnet50", "gpt2")
STEPS = 5
AT_HAND = 3 << 30  # Bytes, held until the plan wants them: what a virtual machine has not touched lately takes its host seconds to give.


def resnet50():
    import torch
    import torchvision

    return torchvision.models.resnet50(), torch.nn.CrossEntropyLoss(), (torch.randn(2, 3, 224, 224), torch.randint(1000, (2,)))


def gpt2():
    import torch
    import transformers

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            nothing = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0)
            self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False, loss_type="ForCausalLM", **nothing))

        def forward(self, tokens):
            return self.model(input_ids=tokens, labels=tokens).loss

    return Model(), None, (torch.randint(50257, (1, 128)),)


def timed(call):
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


def times_of_steps(step):
    first, *others = [timed(step)[1] for _ in range(1 + STEPS)]
    return {"first step": first, "step": statistics.median(others)}


def by_gpuc(net, loss, batch):
    import numpy
    import torch

    import gpuc
    from gpuc import step as steps
    from gpuc.capture import export as exporting

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, *args):
            return loss(self.net(*args[:-1]), args[-1]) if loss else self.net(*args)

    exports, capture_whole = [], exporting.capture_whole

    def counted(*args):
        result, seconds = timed(lambda: capture_whole(*args))
        exports.append(seconds)
        return result

    for _ in range(2):
        _, export = timed(lambda: torch.export.export(Whole(), batch))
    exporting.capture_whole = counted
    held, lower = [numpy.ones(AT_HAND // 8)], steps.lower  # In huge pages, as the plan's memory is.
    steps.lower = lambda graph: (held.clear(), lower(graph))[1]
    step, whole = timed(lambda: gpuc.compile(net, loss, torch.optim.SGD(net.parameters(), 0.01), batch))
    return {"export": export, "gpuc.compile": whole, "its exports": sum(exports), "beyond": whole - sum(exports),
            **times_of_steps(lambda: step(*batch))}  # fmt: skip


def by_torch(net, loss, batch):
    import torch

    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    compiled = torch.compile(lambda *args: loss(net(*args[:-1]), args[-1]) if loss else net(*args))

    def step():
        optimizer.zero_grad()
        compiled(*batch).backward()
        optimizer.step()

    return times_of_steps(step)


def measure(side, model):
    """In a process of its own, which says its times in its last line."""
    with tempfile.TemporaryDirectory(prefix="gpuc-bench-") as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "TORCHINDUCTOR_CACHE_DIR": os.path.join(cache, "inductor")}
        out = subprocess.run([sys.executable, __file__, "--one", side, model], env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(out.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sides", default="gpuc,torch")
    parser.add_argument("--one", metavar="SIDE", help="of a process of its own")
    parser.add_argument("models", nargs="*", default=MODELS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        print(json.dumps({"gpuc": by_gpuc, "torch": by_torch}[options.one](*globals()[options.models[0]]())))
        return
    rounds = [{(model, side): measure(side, model) for model in options.models for side in options.sides.split(",")} for _ in range(options.rounds)]
    for model, side in rounds[0]:
        found = {name: statistics.median(each[model, side][name] for each in rounds) for name in rounds[0][model, side]}
        print(f"{model}, {side}: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in found.items()))


if __name__ == "__main__":
    main()
