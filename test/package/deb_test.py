"""The .deb of cpack: what it lists and asks for; and, unpacked into a folder, that its tools make a plan, and that programs in C++ and C
are built from it by GCC 12 and by Clang, and train."""

import os
import pathlib
import re
import struct
import sys
import tempfile
import unittest

from commands import run

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["GPUC_BUILD"])
COMPILERS = [("g++-12", "gcc-12"), ("clang++-22", "clang-22")]


def write_npy(path, kind, shape, content):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}}}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + content)


class Deb(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        run("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", cls.path / "made")
        (cls.deb,) = (cls.path / "made").glob("gpuc_*.deb")
        run("dpkg-deb", "-x", cls.deb, cls.path / "root")
        cls.prefix = cls.path / "root/usr"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def line_data(self):
        """Points of y = 3·x0 - 2·x1 + 1, as --data has them."""
        x = [(i % 16 / 8 - 1, i // 16 / 8 - 1) for i in range(256)]
        write_npy(self.path / "x.npy", "<f4", (256, 2), b"".join(struct.pack("<2f", *row) for row in x))
        write_npy(self.path / "y.npy", "<f4", (256, 1), struct.pack("<256f", *(3 * a - 2 * b + 1 for a, b in x)))
        return f"npy:x={self.path}/x.npy,y={self.path}/y.npy"

    def train_own_model(self, work, env, *weights):
        """On pictures whose lightest rows say what they are. The losses of its epochs."""
        pictures = b"".join(bytes(250 if row // 2 == label else 40 for row in range(28) for _ in range(28)) for label in range(10))
        write_npy(self.path / "pictures.npy", "|u1", (320, 1, 28, 28), pictures * 32)
        write_npy(self.path / "labels.npy", "<i4", (320,), struct.pack("<10i", *range(10)) * 32)
        data = f"npy:x={self.path}/pictures.npy,labels={self.path}/labels.npy"
        lines = run(work / "train_own_model", data, work / "own.safetensors", *weights, env=env)
        return [float(loss) for loss in re.findall(r"^epoch \d  loss (.*)$", lines, re.M)]

    def test_lists_what_a_user_needs(self):
        listed = run("dpkg-deb", "-c", self.deb)
        tools = sorted(path.stem for path in (HERE.parents[1] / "tools").glob("gpuc-*.cpp"))
        self.assertGreater(len(tools), 10)
        for tool in tools:
            self.assertIn(f" ./usr/bin/{tool}\n", listed)
            self.assertIn(f" ./usr/share/bash-completion/completions/{tool}\n", listed)
        for path in ["include/gpuc/runtime/gpuc.h", "include/gpuc/runtime/gpuc_c.h", "include/gpuc/runtime/train/trainer.h", "include/gpuc/passes/CompileModel.h", "lib/libgpuc_c.so.1", "lib/libgpuc_exec.a", "include/gpuc/frontend/builder/nn.h",
                     "lib/cmake/gpuc/gpucConfig.cmake", "share/doc/gpuc/copyright"]:
            self.assertIn(f" ./usr/{path}\n", listed)
        self.assertNotIn("test", listed)

    def test_asks_for_its_libraries(self):
        asked = run("dpkg-deb", "-f", self.deb, "Depends")
        for package in ["libc6 ", "libstdc++6 ", "libmlir-22", "libllvm22", "libxsmm-dev", "zlib1g-dev", "libpng-dev", "libturbojpeg0-dev", "liblld-22-dev", "libzstd-dev"]:
            self.assertIn(package, asked)

    def test_tools_and_programs_of_ones_own(self):
        env = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(self.path)}
        model, plan = self.path / "line.mlir", self.path / "line.plan"
        run("gpuc-model", "linear-regression", "in=2", "batch=64", "optimizer=sgd:lr=0.1", "-o", model, env=env)
        run("gpuc-compile", model, "-o", plan, env=env)
        data, (weights, trained) = self.line_data(), (self.path / name for name in ("w.safetensors", "trained.safetensors"))
        run("gpuc-train", plan, "--data", data, "--save-variables", weights, env=env)
        run("gpuc-train", plan, "--data", data, "--variables", weights, "--epochs=2", "--save-variables", trained, env=env)
        codeless = HERE.parent / "corpus/plan/codeless"
        for cxx, c in COMPILERS:
            work = self.path / cxx
            run("cmake", "-S", HERE, "-B", work, f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={cxx}",
                f"-DCMAKE_C_COMPILER={c}", env=env)
            run("cmake", "--build", work, env=env)
            run(work / "uses_gpuc", codeless, env=env)
            run(work / "uses_gpuc_c", codeless, env=env)
            run(work / "uses_weights", codeless, work / "w.safetensors", env=env)
            run(work / "own_model", work / "own.mlir", env=env)
            run("gpuc-compile", work / "own.mlir", "-o", work / "own.plan", env=env)
            run(work / "uses_trainer", plan, data, weights, work / "trained.safetensors", env=env)
            self.assertEqual((work / "trained.safetensors").read_bytes(), trained.read_bytes())
            losses = [self.train_own_model(work, env, *weights) for weights in ([], [work / "own.safetensors"])]
            self.assertLess(max(losses[1]), min(losses[0]))
            self.assertIn("y = 3.000 x0 + -2.000 x1 + 1.000", run(work / "train_in_cpp", plan, env=env))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
