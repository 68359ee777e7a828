"""Builds the wheel by scripts/wheel, looks at it, and installs it where nothing of gpuc's tree can be found: it trains there, with
NumPy alone, from a plan that its own tools have made."""

import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from commands import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_BYTES = 45_000_000
# What every Linux has that the tag allows (PEP 600); libz among them.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "ld-linux-x86-64.so.2"}
TOOLS_OF_MLIR = {"gpuc-opt", "gpuc-reduce", "gpuc-lsp-server"}
TRAIN = """
import sys, numpy, gpuc
assert "torch" not in sys.modules and "gpuc._compiler" not in sys.modules
step = gpuc.load("line.plan", state="initial")
random = numpy.random.default_rng(0)
for _ in range(200):
    x = random.uniform(-1, 1, (64, 2)).astype("float32")
    loss = step(x, (3 * x[:, :1] - 2 * x[:, 1:] + 1))
weight = numpy.from_dlpack(step.variable("linear.weight")).ravel()
assert abs(weight[0] - 3) < 0.01 and abs(weight[1] + 2) < 0.01, weight
import gpuc._compiler as compiler
assert len(compiler.known_ops()) > 100
try:
    compiler.compile("module {", "broken", [])
except gpuc.Error as error:
    assert "broken" in str(error), error
else:
    raise SystemExit("a broken text compiles")
print(loss)
"""


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        run(ROOT / "scripts/wheel", cls.path / "dist")
        (cls.wheel,) = (cls.path / "dist").glob("*.whl")
        with zipfile.ZipFile(cls.wheel) as archive:
            archive.extractall(cls.path / "contents")
        cls.package = cls.path / "contents/gpuc"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def binaries(self):
        return [path for path in sorted(self.package.rglob("*")) if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]

    def test_size_and_name(self):
        self.assertLessEqual(self.wheel.stat().st_size, MOST_BYTES)
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        glibc = platform.libc_ver()[1].replace(".", "_")
        self.assertRegex(self.wheel.name, rf"^gpuc-[0-9.]+-{python}-{python}-manylinux_{glibc}_{platform.machine()}\.whl$")

    def test_needs_what_every_system_has(self):
        self.assertGreater(len(self.binaries()), 10)
        for path in self.binaries():
            needed = set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))
            self.assertLessEqual(needed - {"libgpuc_compiler.so"}, SYSTEM_LIBRARIES, path.name)
            if path.name.startswith("_runtime"):
                self.assertNotIn("libgpuc_compiler.so", needed)

    def test_shows_no_symbol_of_llvm(self):
        """Or it would meet torch's and JAX's LLVM in one process."""
        for path in self.binaries():
            if ".so" in path.name:
                names = run("nm", "-DC", "--defined-only", path)
                self.assertNotRegex(names, r" (llvm|mlir|lld)::", path.name)

    def test_trains_in_an_empty_environment(self):
        python = self.path / "venv/bin/python"
        run(sys.executable, "-m", "venv", self.path / "venv")
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", self.wheel)
        work = self.path / "work"
        work.mkdir()
        env = {"PATH": f"{self.path}/venv/bin:/usr/bin:/bin", "HOME": str(work)}
        version = run(python, "-c", "import importlib.metadata as m; print(m.version('gpuc'))", env=env).strip()
        for tool in sorted(path.name for path in (self.package / "bin").iterdir()):
            self.assertIn("LLVM version" if tool in TOOLS_OF_MLIR else version, run(self.path / "venv/bin" / tool, "--version", env=env))
        run("gpuc-model", "linear-regression", "in=2", "batch=64", "optimizer=sgd:lr=0.1", "-o", "line.mlir", cwd=work, env=env)
        run("gpuc-compile", "line.mlir", "-o", "line.plan", cwd=work, env=env)
        self.assertLess(float(run(python, "-c", TRAIN, cwd=work, env=env)), 1e-3)
        refused = subprocess.run(["gpuc-compile", "none.mlir"], cwd=work, env=env, capture_output=True, text=True)
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"^error: .*none\.mlir")
        self.assertIn("gpuc.variable @linear.weight", run("gpuc-opt", "line.mlir", "--canonicalize", cwd=work, env=env))
        for tool in ("gpuc-opt", "gpuc-compile"):
            with self.subTest(tool):
                deep = subprocess.run([tool, "-"], input="(" * 300, cwd=work, env=env, capture_output=True, text=True)
                self.assertEqual(deep.returncode, 1)
                self.assertIn("this bracket is nested in 256 others", deep.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
