"""Writes Inputs/*.json: the graph of each of modules.py's cases, a batch, and the losses of eager steps from drawn values.

    PYTHONPATH=build/python PYTHON-WITH-TORCH test/python/record.py [NAME …]
"""

import json
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from drawn import drawn  # noqa: E402
from gpuc.capture.recorder import Recorder  # noqa: E402
from gpuc.optimizers import Optimizer  # noqa: E402
from gpuc.step import trained_of  # noqa: E402
from modules import cases, eager_losses  # noqa: E402

STEPS = 5


def pack(tensor):
    return {**Recorder.spec(tensor), "bytes": tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes().hex()}


def draw(name, like):
    return torch.frombuffer(bytearray(drawn(name, like.numel())), dtype=torch.float64).reshape(like.shape)


def shorten(place):
    """No path of the machine that recorded it."""
    if place.get("file"):
        place["file"] = pathlib.Path(place["file"]).name


def record(name, net, loss, make, batch):
    optimizer = make(net)
    reader = Optimizer(optimizer)
    recorder = Recorder(net, loss, trained_of(net, loss, reader))
    recorder.record_training(batch, {})
    recorder.record_evaluation(batch, {})
    graph = recorder.graph(name)
    for function in graph["functions"]:
        for node in function["nodes"]:
            shorten(node)
    batch = [draw(f"batch {i}", each) if each.is_floating_point() else each for i, each in enumerate(batch)]
    buffers = {v["name"]: pack(recorder.tensors[v["name"]]) for v in graph["variables"] if v["role"] == "buffer"}
    for variable in graph["variables"]:
        if variable["role"] != "buffer":
            tensor = recorder.tensors[variable["name"]].data
            tensor.copy_(draw(variable["name"], tensor))
    recording = {"graph": graph, "recipe": reader.recipe(recorder.names, recorder.variables_read()), "buffers": buffers,
                 "batch": [{"shape": list(each.shape)} if each.is_floating_point() else pack(each) for each in batch],
                 "losses": eager_losses(net, loss, optimizer, batch, STEPS)}  # fmt: skip
    path = pathlib.Path(__file__).parent / "Inputs" / f"{name}.json"
    path.write_text(json.dumps(recording, indent=None, separators=(",", ":")) + "\n")
    print(path.name, path.stat().st_size)


if __name__ == "__main__":
    for name, case in cases().items():
        if name in sys.argv[1:] or not sys.argv[1:]:
            record(name, *case)
