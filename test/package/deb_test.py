"""The .deb of cpack: what it lists and asks for; and, unpacked into a folder, that its tools make a plan, and that programs in C++ and C
are built from it by GCC 12 and by Clang, and train."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["GPUC_BUILD"])
COMPILERS = [("g++-12", "gcc-12"), ("clang++-22", "clang-22")]


def run(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


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

    def test_lists_what_a_user_needs(self):
        listed = run("dpkg-deb", "-c", self.deb)
        tools = sorted(path.stem for path in (HERE.parents[1] / "tools").glob("gpuc-*.cpp"))
        self.assertGreater(len(tools), 10)
        for tool in tools:
            self.assertIn(f" ./usr/bin/{tool}\n", listed)
            self.assertIn(f" ./usr/share/bash-completion/completions/{tool}\n", listed)
        for path in ["include/gpuc/runtime/gpuc.h", "include/gpuc/runtime/gpuc_c.h", "lib/libgpuc_c.so.1", "lib/libgpuc_exec.a", "include/gpuc/frontend/builder/nn.h",
                     "lib/cmake/gpuc/gpucConfig.cmake", "share/doc/gpuc/copyright"]:
            self.assertIn(f" ./usr/{path}\n", listed)
        self.assertNotIn("test", listed)

    def test_asks_for_its_libraries(self):
        asked = run("dpkg-deb", "-f", self.deb, "Depends")
        for package in ["libc6 ", "libstdc++6 ", "libmlir-22", "libllvm22", "libxsmm-dev", "zlib1g-dev"]:
            self.assertIn(package, asked)

    def test_tools_and_programs_of_ones_own(self):
        env = {"PATH": f"{self.prefix}/bin:/usr/bin:/bin", "HOME": str(self.path)}
        model, plan = self.path / "line.mlir", self.path / "line.plan"
        run("gpuc-model", "linear-regression", "in=2", "batch=64", "optimizer=sgd:lr=0.1", "-o", model, env=env)
        run("gpuc-compile", model, "-o", plan, env=env)
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
            self.assertIn("y = 3.000 x0 + -2.000 x1 + 1.000", run(work / "train_in_cpp", plan, env=env))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
