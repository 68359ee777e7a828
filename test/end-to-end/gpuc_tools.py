"""What the end-to-end tests share: gpuc's tools as a user calls them, in a folder that goes when a test ends.

The tools are those of $GPUC_BIN, build/bin if it is not set.
"""

import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.environ.get("GPUC_BIN") or os.path.join(HERE, "..", "..", "build", "bin")
# Not the user's: of compiled kernels, beside the tests.
os.environ["XDG_CACHE_HOME"] = os.path.abspath(os.path.join(BIN, "..", "test", "cache"))


class ToolTest(unittest.TestCase):
    timeout_s = 300  # of one call of a tool, on a machine that has much else to do

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="gpuc-end-to-end-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """Writes text or bytes and gives the file's path."""
        with open(self.path(name), "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return self.path(name)

    def run_tool(self, tool, *arguments):
        """Whatever happens: exit status, stdout and stderr."""
        command = [os.path.join(BIN, tool), *map(str, arguments)]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=self.timeout_s)

    def gpuc(self, tool, *arguments):
        """stdout of a tool that must succeed."""
        result = self.run_tool(tool, *arguments)
        if result.returncode != 0:
            self.fail(f"{' '.join([tool, *map(str, arguments)])}\nexit {result.returncode}: {result.stderr}")
        return result.stdout

    def compile_model(self, name, *keys, flags=()):
        """A model of the zoo as a plan; gives the plan's path."""
        stem = "-".join([name, *keys]).replace("/", "_").replace(":", "_").replace(",", "_")
        self.gpuc("gpuc-model", name, *keys, "-o", self.path(stem + ".mlir"))
        self.gpuc("gpuc-compile", self.path(stem + ".mlir"), "-o", self.path(stem + ".plan"), *flags)
        return self.path(stem + ".plan")

    def compile_beside(self, model, keys, flags, bucket_bytes):
        """The plan whose sums travel beside the backward pass, which is not worth it by prediction where so little is computed."""
        step, text, plan = (self.path(name) for name in ("step.mlir", "commands.mlir", "beside.plan"))
        self.gpuc("gpuc-model", model, *keys, "-o", self.path("model.mlir"))
        self.gpuc("gpuc-compile", self.path("model.mlir"), *flags, "--data-parallel", "--emit=train", "-o", step)
        buckets = f"plan-bucket-all-reduces{{always-beside=true link=ethernet bucket-bytes={bucket_bytes}}}"
        self.gpuc("gpuc-opt", step, "--pass-pipeline=builtin.module(gpuc-to-plan,plan-order," + buckets + ",plan-assign-streams,"
                  "plan-group-launches,plan-place-buffers,plan-parallelize)", "-o", text)
        with open(text, encoding="utf-8") as file:
            self.assertIn('plan.stream "collective"', file.read())
        self.gpuc("gpuc-compile", text, "-o", plan)
        return plan

    def trained_bits(self, plan, *flags):
        """SHA-256 of the weights that gpuc-train saves."""
        weights = self.path("trained.safetensors")
        self.gpuc("gpuc-train", plan, *flags, "--log-every=0", "--save-variables=" + weights)
        return sha256(weights)

    def assert_near(self, ours, theirs, tolerance, least=1e-3):
        """Of two sets of variables, by the norm of what they differ in; below `least` there is no relative error (of what
        is zero but for rounding)."""
        self.assertEqual(ours.keys(), theirs.keys())
        for name, expected in theirs.items():
            norm = math.sqrt(math.fsum(value * value for value in expected))
            error = math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(ours[name], expected)))
            self.assertLessEqual(error, tolerance * max(norm, least), name)

    def metrics(self, path, event):
        with open(path, encoding="utf-8") as file:
            return [line for line in map(json.loads, file) if line["event"] == event]


def is_sanitized():
    """Whose tools reserve more addresses than any limit leaves."""
    with open(os.path.join(BIN, "gpuc-run"), "rb") as file:
        return re.search(rb"__[at]san_init", file.read()) is not None


def ranks_of(key, tool):
    """rank → its process, of the ranks of a tool that some launcher has started with GPUC_TEST_LAUNCH=key."""
    found = {}
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/environ", encoding="utf-8", errors="replace") as file:
                variables = dict(entry.split("=", 1) for entry in file.read().split("\0") if "=" in entry)
            if variables.get("GPUC_TEST_LAUNCH") == key and os.readlink(f"/proc/{number}/exe") == tool:
                rank = next(variables[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK") if name in variables)
                found[int(rank)] = int(number)
        except OSError:
            continue
    return found


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
