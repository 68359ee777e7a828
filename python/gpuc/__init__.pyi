"""What gpuc offers, for type checkers and editors; a test holds it equal to the modules."""

import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol, TypeAlias

import numpy
import torch

# A path, and a tensor: what has DLPack or is a buffer, and lies in the host's memory.
Path: TypeAlias = str | os.PathLike[str]
Signature: TypeAlias = tuple[str, str, list[int]]
Batch: TypeAlias = Any

class _Scheduler(Protocol):
    def step(self) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

class Problem:
    text: str
    layer: str
    file: str
    line: int
    def __init__(self, text: str, layer: str = "", file: str = "", line: int = 0) -> None: ...

class Error(Exception):
    problems: list[Problem]
    def __init__(self, message: str, problems: Iterable[Problem] = ()) -> None: ...

class RangeError(Error, IndexError): ...

class Evaluation:
    loss: float
    batches: int
    def __init__(self, loss: float, batches: int) -> None: ...

class Memory:
    """gpuc.pages.Memory: a notebook shows it."""

    def __init__(self, session: Any) -> None: ...
    @property
    def html(self) -> str: ...

class Plan:
    origin: pathlib.Path | None
    def __init__(self, file: bytes, *, device: str = "auto", threads: int = 0, seed: int | None = None) -> None: ...
    def step(self, *batch: Any, **named: Any) -> float: ...
    def __call__(self, *batch: Any, **named: Any) -> float: ...
    def eval_step(self, *args: Any, **kwargs: Any) -> float: ...
    def evaluate(self, batches: Iterable[Batch]) -> Evaluation: ...
    def run(self, program: str, *tensors: Any) -> list[numpy.ndarray[Any, Any]]: ...
    def variable(self, name: str) -> Any: ...
    def restore(self, path: Path) -> None: ...
    @property
    def variables(self) -> list[tuple[str, str, list[int], str, bool]]: ...
    @property
    def programs(self) -> dict[str, tuple[list[Signature], list[Signature]]]: ...
    @property
    def arena_bytes(self) -> int: ...
    @property
    def memory(self) -> Memory: ...
    def save(self, path: Path) -> None: ...

class Step(Plan):
    """What gpuc.compile gives: gpuc.step.Step, which is loaded with torch."""

    report: dict[str, Any]
    def sync(self) -> None: ...
    def predict(self, *args: Any) -> torch.Tensor | list[torch.Tensor]: ...

class Epoch:
    epoch: int
    step: int
    loss: float
    val_loss: float | None
    def __init__(self, epoch: int, step: int, loss: float, val_loss: float | None) -> None: ...
    @property
    def watched(self) -> float: ...

class Fit:
    epochs: list[Epoch]
    best_path: pathlib.Path | None
    stopped_early: bool
    def __init__(self, epochs: list[Epoch], best_path: pathlib.Path | None, stopped_early: bool) -> None: ...
    @property
    def best(self) -> Epoch | None: ...

def compile(
    net: torch.nn.Module,
    loss: Callable[..., torch.Tensor] | None,
    optimizer: torch.optim.Optimizer | str,
    example: Batch,
    *,
    clip_norm: float | None = None,
    clip_value: float | None = None,
    precision: str | torch.dtype | None = None,
    ema: float | str | bool | None = None,
    accumulate: int = 1,
    data_parallel: bool = False,
    shard: Literal["optimizer", "gradients"] | None = None,
    sync_batch_norm: bool = False,
    check_numerics: bool = False,
    memory_budget: int | None = None,
    checkpoint: str | None = None,
    predict: bool = True,
    target: str = "auto",
    device: str = "auto",
    threads: int = 0,
    seed: int | None = None,
) -> Step: ...
def fit(
    step: Plan,
    loader: Iterable[Batch],
    *,
    epochs: int = 1,
    val: Iterable[Batch] | None = None,
    checkpoint_dir: Path | None = None,
    checkpoint_every: int | None = None,
    keep: int = 3,
    resume: bool = False,
    patience: int | None = None,
    scheduler: _Scheduler | None = None,
    schedule_each: Literal["epoch", "step"] = "epoch",
    progress: bool = True,
) -> Fit: ...
def load(path: Path, *, state: Path = "own", device: str = "auto", threads: int = 0) -> Plan: ...
def rank() -> int: ...
def world_size() -> int: ...
