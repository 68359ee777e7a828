"""Writes schedules.json: the learning rates of PyTorch's schedulers, update after update, and losses under one of them.

    /usr/bin/python3 schedule_reference.py > schedules.json

Needs Debian's python3-torch. A case is what gpuc-compile's --schedule is given; beside it stands the scheduler that it
means. Data and first weights are those of tensor_files.py, by the stream.
"""

import json
import warnings

import torch
from torch.optim.lr_scheduler import (ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, ExponentialLR,
                                      LinearLR, MultiStepLR, OneCycleLR, PolynomialLR, SequentialLR, StepLR)

from tensor_files import uniform

UPDATES, BASE, ROWS, BATCH = 50, 0.03, 320, 32
warnings.simplefilter("ignore")  # SequentialLR calls step with an epoch, which PyTorch deprecates
torch.set_default_dtype(torch.float64)


def follow(optimizer, *parts):
    """Schedulers one after another: (scheduler, steps that it lasts) but for the last."""
    milestones = [sum(steps for _, steps in parts[:i + 1]) for i in range(len(parts) - 1)]
    return SequentialLR(optimizer, [scheduler for scheduler, _ in parts], milestones)


CASES = {
    "constant": (["constant"], lambda o: ConstantLR(o)),
    "constant, all keys": (["constant:factor=0.75,total_iters=7"], lambda o: ConstantLR(o, 0.75, 7)),
    "linear": (["linear"], lambda o: LinearLR(o)),
    "linear, all keys": (["linear:start_factor=0.01,end_factor=0.9,total_iters=40"],
                         lambda o: LinearLR(o, 0.01, 0.9, 40)),
    "step": (["step:step_size=7"], lambda o: StepLR(o, 7)),
    "step, all keys": (["step:step_size=4,gamma=0.9"], lambda o: StepLR(o, 4, 0.9)),
    "multi_step": (["multi_step:milestones=(3,20,21)"], lambda o: MultiStepLR(o, [3, 20, 21])),
    "multi_step, one": (["multi_step:milestones=30,gamma=0.5"], lambda o: MultiStepLR(o, [30], 0.5)),
    "exponential": (["exponential:gamma=0.93"], lambda o: ExponentialLR(o, 0.93)),
    "cosine": (["cosine:T_max=49"], lambda o: CosineAnnealingLR(o, 49)),
    "cosine, up and down again": (["cosine:T_max=11,eta_min=0.001"], lambda o: CosineAnnealingLR(o, 11, 0.001)),
    "cosine_restarts": (["cosine_restarts:T_0=9"], lambda o: CosineAnnealingWarmRestarts(o, 9)),
    "cosine_restarts, twice as long": (["cosine_restarts:T_0=3,T_mult=2,eta_min=0.002"],
                                       lambda o: CosineAnnealingWarmRestarts(o, 3, 2, 0.002)),
    "cosine_restarts, thrice as long": (["cosine_restarts:T_0=1,T_mult=3"],
                                        lambda o: CosineAnnealingWarmRestarts(o, 1, 3)),
    "one_cycle": (["one_cycle:max_lr=0.1,total_steps=50"],
                  lambda o: OneCycleLR(o, 0.1, total_steps=50, cycle_momentum=False)),
    "one_cycle, linear": (
        ["one_cycle:max_lr=0.1,total_steps=50,pct_start=0.45,anneal_strategy=linear,div_factor=10,final_div_factor=100"],
        lambda o: OneCycleLR(o, 0.1, total_steps=50, pct_start=0.45, anneal_strategy="linear", div_factor=10,
                             final_div_factor=100, cycle_momentum=False)),
    "one_cycle, three phases": (
        ["one_cycle:max_lr=0.1,total_steps=50,three_phase=true"],
        lambda o: OneCycleLR(o, 0.1, total_steps=50, three_phase=True, cycle_momentum=False)),
    "one_cycle, no rise": (
        ["one_cycle:max_lr=0.1,total_steps=50,pct_start=0.0"],
        lambda o: OneCycleLR(o, 0.1, total_steps=50, pct_start=0.0, cycle_momentum=False)),
    "polynomial": (["polynomial"], lambda o: PolynomialLR(o)),
    "polynomial, all keys": (["polynomial:total_iters=45,power=1.7"], lambda o: PolynomialLR(o, 45, 1.7)),
    "warm-up, then cosine": (
        ["linear:start_factor=0.1,total_iters=10,steps=10", "cosine:T_max=40"],
        lambda o: follow(o, (LinearLR(o, 0.1, total_iters=10), 10), (CosineAnnealingLR(o, 40), 0))),
    "cut short, then three more": (
        ["linear:total_iters=30,steps=8", "exponential:gamma=0.8,steps=5", "constant:factor=0.2,total_iters=9,steps=16",
         "cosine_restarts:T_0=4,T_mult=2"],
        lambda o: follow(o, (LinearLR(o, total_iters=30), 8), (ExponentialLR(o, 0.8), 5), (ConstantLR(o, 0.2, 9), 16),
                         (CosineAnnealingWarmRestarts(o, 4, 2), 0))),
}
LOSSES_UNDER = "warm-up, then cosine"


def rates(make):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=BASE)
    scheduler = make(optimizer)
    used = []
    for _ in range(UPDATES):
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return used


def losses(make):
    """Linear regression, which gpuc-model has as well."""
    x = torch.tensor(uniform([ROWS, 13], 100, 1.0)).reshape(ROWS, 13)
    y = torch.tensor(uniform([ROWS, 1], 101, 1.0)).reshape(ROWS, 1)
    linear = torch.nn.Linear(13, 1)
    with torch.no_grad():
        linear.weight[:] = torch.tensor(uniform([1, 13], 2, 0.25)).reshape(1, 13)
        linear.bias[:] = torch.tensor(uniform([1], 3, 0.25))
    optimizer = torch.optim.SGD(linear.parameters(), lr=BASE)
    scheduler = make(optimizer)
    each = []
    for update in range(UPDATES):
        begin = update * BATCH % ROWS
        loss = torch.nn.functional.mse_loss(linear(x[begin:begin + BATCH]), y[begin:begin + BATCH])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        each.append(loss.item())
    return each


print(json.dumps({
    "torch": torch.__version__, "base": BASE,
    "cases": {name: {"schedule": specs, "lr": rates(make)} for name, (specs, make) in CASES.items()},
    "losses_under": LOSSES_UNDER, "losses": losses(CASES[LOSSES_UNDER][1]),
}, indent=1))
