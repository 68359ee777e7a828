"""A recorded graph of Inputs/, its recipe and its batch, as a plan of NumPy's; record.py has made them."""

import functools
import json
import pathlib

import numpy
from drawn import drawn

import gpuc
from gpuc import _compiler

INPUTS = pathlib.Path(__file__).parent / "Inputs"
TYPES = {"f64": numpy.float64, "f32": numpy.float32, "i64": numpy.int64, "i1": numpy.bool_}


def unpack(tensor):
    return numpy.frombuffer(bytes.fromhex(tensor["bytes"]), TYPES[tensor["type"]]).reshape(tensor["shape"]).copy()


def draw(name, shape):
    return numpy.frombuffer(drawn(name, int(numpy.prod(shape)))).reshape(shape).copy()


class Recording:
    def __init__(self, name):
        data = json.loads((INPUTS / f"{name}.json").read_text())
        self.graph, self.losses, self.buffers = data["graph"], data["losses"], data["buffers"]
        self.recipe = [tuple(entry) for entry in data["recipe"]]
        self.batch = [unpack(each) if "bytes" in each else draw(f"batch {i}", each["shape"])
                      for i, each in enumerate(data["batch"])]  # fmt: skip

    @functools.cache
    def file(self, **options):
        text, problems = _compiler.lower(json.dumps(self.graph))
        assert not problems, problems
        return _compiler.compile(text, self.graph["name"], self.recipe, **options)[0]

    def plan(self, **options):
        plan = gpuc.Plan(self.file(**options))
        for variable in self.graph["variables"]:
            name, shape = variable["name"], variable["shape"]
            value = unpack(self.buffers[name]) if variable["role"] == "buffer" else draw(name, shape)
            plan._session.write(name, value)
        return plan
