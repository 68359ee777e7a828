"""Models of packages on PyPI, exported by both of PyTorch's exporters: gpuc predicts and trains as PyTorch, or refuses.

    PYTHONPATH=test/end-to-end PYTHON test/onnx/third_party.py [--only=TEXT] [--exporter=NAME]

docs/onnx.md says which packages PYTHON needs.

For each model of third_party_models.py and each way to export it: the prediction before training, the losses of STEPS steps
of SGD with momentum, every variable after them, and the prediction with those. In f64, from the weights and the
statistics that were exported. What gpuc refuses must be one line that names a cure; anything else that differs is wrong.
"""

import argparse
import contextlib
import copy
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy
import torch
from torch import nn

import third_party_models
from gpuc_tools import BIN

STEPS, RATE, MOMENTUM, TOLERANCE = 5, 0.001, 0.9, 1e-6


def without_chance(model):
    """Nothing is dropped: PyTorch draws other numbers than gpuc."""
    for layer in model.modules():
        for field in ("p", "drop_prob", "dropout", "attention_dropout", "attn_drop", "dropout_p", "training_dropout"):
            if isinstance(getattr(layer, field, None), float):
                setattr(layer, field, 0.0)
    return model


def torch_script(model, inputs, path, **how):
    """As docs/onnx.md says it of dynamo=False."""
    model.train()
    for layer in model.modules():
        if hasattr(layer, "running_mean"):
            layer.eval()
    torch.onnx.export(model, tuple(inputs.values()), path, dynamo=False, input_names=list(inputs), output_names=["out"], **how)


def torch_export(model, inputs, path, **how):
    model.eval()
    torch.onnx.export(model, tuple(inputs.values()), path, dynamo=True, input_names=list(inputs), output_names=["out"], **how)


KEPT = {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
EXPORTERS = {
    "script": lambda *to: torch_script(*to, **KEPT),
    "export": lambda *to: torch_export(*to, optimize=False),
    "script-default": torch_script,
    "export-default": torch_export,
}


def loss_of(kind, out, target):
    if kind == "mse":
        return nn.functional.mse_loss(out, target)
    return nn.functional.cross_entropy(out.flatten(0, -2), target.flatten())


def as_numpy(tensor):
    return tensor.detach().cpu().numpy().copy(order="C")


def reference(model, inputs, kind):
    """What PyTorch makes of it: target, predictions before and after, losses, variables after."""
    model.eval()
    with torch.no_grad():
        before = model(*inputs.values())
    torch.manual_seed(3)
    target = torch.randn_like(before) if kind == "mse" else torch.randint(0, before.shape[-1], before.shape[:-1])
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(kind, model(*inputs.values()), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        after = model(*inputs.values())
    state = {name: as_numpy(value) for name, value in model.state_dict().items() if value.is_floating_point()}
    return {"target": target, "before": as_numpy(before), "losses": losses, "after": as_numpy(after), "state": state}


class Refused(Exception):
    pass


class Wrong(Exception):
    pass


class Run:
    """One export in a folder of its own."""

    def __init__(self, folder, inputs, kind, expected):
        self.folder, self.inputs, self.kind, self.expected = folder, inputs, kind, expected

    def tool(self, tool, *arguments):
        result = subprocess.run([os.path.join(BIN, tool), *arguments], cwd=self.folder, capture_output=True, text=True,
                                timeout=600)
        if result.returncode == 0:
            return result.stdout
        lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
        if result.returncode == 1 and lines and tool == "gpuc-import-onnx":
            raise Refused("; ".join(lines[:3]))
        raise Wrong(f"{tool} {result.returncode}: {result.stderr[-600:]}")

    def fields(self):
        label, target = ("target" if self.kind == "mse" else "labels"), self.expected["target"]
        arrays = {name: as_numpy(value) for name, value in self.inputs.items()}
        arrays[label] = as_numpy(target if self.kind == "mse" else target.int())
        for name, array in arrays.items():
            numpy.save(os.path.join(self.folder, name + ".npy"), array)
        return ",".join(f"{name}={name}.npy" for name in arrays)

    def predict(self, weights):
        given = [flag for name in self.inputs for flag in ("--input", f"{name}={name}.npy")]
        self.tool("gpuc-run", "net.plan", "--entry=predict", *given, "--variables=" + weights, "--output-dir=.")
        return numpy.load(os.path.join(self.folder, "out.npy"))

    def compare(self, what, ours, theirs):
        ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
        if ours.shape != theirs.shape:
            raise Wrong(f"{what}: shape {ours.shape}, PyTorch's {theirs.shape}")
        scale = max(1.0, float(numpy.abs(theirs).max(initial=0)))
        difference = float(numpy.abs(ours - theirs).max(initial=0))
        if not difference <= TOLERANCE * scale:
            raise Wrong(f"{what}: differs from PyTorch's by {difference:.3g} of {scale:.3g}")

    def compare_variables(self):
        from safetensors.numpy import load_file
        ours, theirs = load_file(os.path.join(self.folder, "trained.safetensors")), self.expected["state"]
        common = [name for name in ours if name in theirs]
        for name in common:
            self.compare(name, ours[name], theirs[name])
        return f"{len(common)} of {len(theirs)} variables"

    def check(self):
        self.tool("gpuc-import-onnx", "net.onnx", "--loss=" + self.kind, "-o", "net.mlir")
        self.tool("gpuc-compile", "net.mlir", f"--optimizer=sgd:lr={RATE},momentum={MOMENTUM}", "-o", "net.plan")
        fields = self.fields()
        self.compare("prediction before", self.predict("net.safetensors"), self.expected["before"])
        self.tool("gpuc-train", "net.plan", "--data=npy:" + fields, "--no-shuffle", "--log-every=0", f"--steps={STEPS}",
                  "--variables=net.safetensors", "--save-variables=trained.safetensors", "--metrics=metrics.jsonl")
        with open(os.path.join(self.folder, "metrics.jsonl"), encoding="utf-8") as file:
            events = [json.loads(line) for line in file]
        losses = [event["loss"] for event in events if event["event"] == "step"]
        self.compare("losses", losses, self.expected["losses"])
        said = self.compare_variables()
        self.compare("prediction after", self.predict("trained.safetensors"), self.expected["after"])
        return said


@contextlib.contextmanager
def silence():
    """Exporters print graphs, some from C++."""
    kept = os.dup(1), os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            os.dup2(nowhere.fileno(), number)
        try:
            yield
        finally:
            for stream, number, old in ((sys.stdout, 1, kept[0]), (sys.stderr, 2, kept[1])):
                stream.flush()
                os.dup2(old, number)
                os.close(old)


def export(exporter, model, inputs, folder):
    with silence():
        EXPORTERS[exporter](copy.deepcopy(model), inputs, os.path.join(folder, "net.onnx"))


def verdict(exporter, model, inputs, kind, expected):
    """(word, text): equal, refused, wrong, or that PyTorch itself does not export it."""
    with tempfile.TemporaryDirectory(prefix="gpuc-third-party-", dir=os.environ.get("GPUC_KEEP")) as folder:
        try:
            export(exporter, model, inputs, folder)
        except Exception as error:  # Whatever PyTorch raises: the model is not one of this exporter's.
            return "unexported", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
        try:
            return "equal", Run(folder, inputs, kind, expected).check()
        except Refused as refusal:
            return "refused", str(refusal)
        except (Wrong, subprocess.TimeoutExpired) as wrong:
            return "WRONG", str(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose name holds this")
    parser.add_argument("--exporter", default=",".join(EXPORTERS))
    parser.add_argument("--least", type=int, default=0, help="as many equal exports by each of the first two, or it fails")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    torch.set_default_dtype(torch.float64)
    counts = {}
    for name, make in third_party_models.MODELS.items():
        if arguments.only not in name:
            continue
        torch.manual_seed(7)
        try:
            model, inputs, kind = make()
            without_chance(model.double())
            expected = reference(copy.deepcopy(model), inputs, kind)
        except Exception as error:  # A package that is missing, or has changed.
            print(f"unmade {name}: {type(error).__name__}: {error}"[:300], flush=True)
            counts["-", "unmade"] = counts.get(("-", "unmade"), 0) + 1
            continue
        for exporter in arguments.exporter.split(","):
            begun = time.monotonic()
            word, text = verdict(exporter, model, inputs, kind, expected)
            counts[exporter, word] = counts.get((exporter, word), 0) + 1
            print(f"{word:10} {exporter:14} {name:32} {time.monotonic() - begun:5.1f} s  {text}", flush=True)
    for (exporter, word), count in sorted(counts.items()):
        print(f"{exporter}: {count} {word}")
    few = any(counts.get((exporter, "equal"), 0) < arguments.least for exporter in ("script", "export"))
    return 1 if few or any(word == "WRONG" for _, word in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
