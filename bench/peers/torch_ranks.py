"""PyTorch's DistributedDataParallel as a candidate of bench/data_parallel.py: torch_ranks.py FOLDER RANKS.

Each rank is a process with one thread, and they exchange by gloo. The first one answers requests, which all hear:
`losses N` and `steps N`, as bench-ranks.cpp says.
"""

import json
import math
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.distributed.nn.functional as dist_functional
from torch.nn.parallel import DistributedDataParallel

import torch_models
import worker
from torch_worker import make_optimizer

TRY_SECONDS = 1  # that each form is tried for


class SyncNorm(torch.nn.BatchNorm2d):
    """PyTorch's SyncBatchNorm is for GPUs alone. What one would write in its place: the sums of a norm in one exchange."""

    def forward(self, x):
        sums = dist_functional.all_reduce(torch.stack((x.sum((0, 2, 3)), (x * x).sum((0, 2, 3)))))
        count = x.numel() // x.shape[1] * dist.get_world_size()
        mean = sums[0] / count
        variance = sums[1] / count - mean * mean
        with torch.no_grad():
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (count / (count - 1)), self.momentum)
        scale = self.weight * (variance + self.eps).rsqrt()
        return x * scale[:, None, None] + (self.bias - mean * scale)[:, None, None]


def synchronise(module):
    for name, child in module.named_children():
        if isinstance(child, torch.nn.BatchNorm2d):
            setattr(module, name, SyncNorm(child.num_features))
        else:
            synchronise(child)


class Ranks:
    """The step of a training script, on one rank's rows."""

    def __init__(self, case, weights, inputs, compile_model, bucket_view):
        self.weights, self.inputs, self.settings, self.spec = weights, inputs, case["optimizer"], case["model"]
        self.model = torch_models.build(case["model"], weights)
        if case["sync_batch_norm"]:
            synchronise(self.model)
        self.parallel = DistributedDataParallel(self.model, gradient_as_bucket_view=bucket_view)
        self.call = torch.compile(self.parallel) if compile_model else self.parallel
        self.reset()

    def reset(self):
        self.model.load_state_dict(self.weights, strict=False)  # the file lacks num_batches_tracked
        self.optimizer = make_optimizer(self.settings, self.model.parameters(), fused=True)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = torch_models.loss(self.call(self.inputs["x"]), self.inputs["labels"], self.spec)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, count):
        """Of all ranks, which have equally many rows."""
        self.reset()
        found = []
        for _ in range(count):
            loss = self.step()
            dist.all_reduce(loss)
            found.append(float(loss) / dist.get_world_size())
        return found

    def steps(self, count):
        """Microseconds of each."""
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        return 1e6 * (time.perf_counter() - begin) / count


def shared(value):
    """The first rank's value, on all ranks."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def best_form(case, weights, inputs):
    """The quickest of several ways to write the same step."""
    best, refused = None, {}
    for name, compile_model, bucket_view in (("fused optimizer", False, False),
                                             ("fused optimizer, gradients in buckets", False, True),
                                             ("compiled, fused optimizer, gradients in buckets", True, True)):
        try:
            peer = Ranks(case, weights, inputs, compile_model, bucket_view)
            peer.steps(4)
            once = shared(peer.steps(4))
            microseconds = shared(peer.steps(max(4, math.ceil(1e6 * TRY_SECONDS / once))))
        except Exception as error:  # a form that PyTorch cannot take is no reason to leave PyTorch out; all ranks fail alike
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        if best is None or microseconds < best[0]:
            best = microseconds, name, peer
    if best is None:
        raise RuntimeError("; ".join(refused.values()))
    return best[1], best[2], refused


def serve(case, folder, answers):
    weights = {name: torch.tensor(value) for name, value in worker.read_safetensors(folder + "/weights.safetensors").items()}
    rank, ranks = dist.get_rank(), dist.get_world_size()
    inputs = {name: torch.tensor(value).chunk(ranks)[rank].clone() for name, value in worker.read_inputs(case, folder).items()}
    inputs["labels"] = inputs["labels"].long()
    form, peer, refused = best_form(case, weights, inputs)

    def answer(value):
        if rank == 0:
            answers.write(json.dumps(value) + "\n")
            answers.flush()

    answer({"version": f"PyTorch {torch.__version__}", "form": form, "refused": refused})
    while True:
        line = shared(sys.stdin.readline() if rank == 0 else None)
        if not line:
            return
        verb, count = line.split()
        answer(peer.losses(int(count)) if verb == "losses" else peer.steps(int(count)))


def main():
    folder, ranks = sys.argv[1], int(sys.argv[2])
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        case = json.load(file)
    answers = os.fdopen(os.dup(1), "w")  # what libraries print goes to stderr
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as meeting:
        children, rank = [], 0
        for number in range(1, ranks):
            child = os.fork()
            if child == 0:
                rank = number
                break
            children.append(child)
        torch.set_num_threads(1)
        torch.set_num_interop_threads(1)
        dist.init_process_group("gloo", init_method=f"file://{meeting}/meeting", rank=rank, world_size=ranks)
        serve(case, folder, answers)
        dist.destroy_process_group()
        if rank != 0:
            os._exit(0)
        for child in children:
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
