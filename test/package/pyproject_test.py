"""What can be held of the wheel without building it: pyproject.toml names what is there. wheel_test.py builds it."""

import os
import pathlib
import re
import subprocess
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ["GPUC_BIN"])
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


class Pyproject(unittest.TestCase):
    def test_version_is_the_tools(self):
        source = PROJECT["tool"]["scikit-build"]["metadata"]["version"]
        version = re.search(source["regex"], (ROOT / source["input"]).read_text())["value"]
        said = subprocess.run([BIN / "gpuc-run", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertIn(version, said.split())

    def test_files_are_there(self):
        paths = PROJECT["project"]["license-files"] + [PROJECT["project"]["readme"]]
        for path in paths + PROJECT["tool"]["scikit-build"]["wheel"]["packages"]:
            self.assertTrue((ROOT / path).exists(), path)

    def test_python_is_what_the_bindings_ask_for(self):
        asked = re.search(r"find_package\(Python ([0-9.]+)", (ROOT / "python/CMakeLists.txt").read_text())[1]
        self.assertEqual(PROJECT["project"]["requires-python"], f">={asked}")

    def test_scripts_are_the_programs_of_the_wheel(self):
        """Each script has a program in the package's bin/, and the other way round."""
        text = (ROOT / "python/wheel/CMakeLists.txt").read_text()
        programs = re.findall(r"^gpuc_shared_tool\((gpuc-[a-z-]+)", text, re.M)
        programs += re.search(r"list\(APPEND programs ([^)]*)\)", text)[1].split()
        self.assertEqual(sorted(PROJECT["project"]["scripts"]), sorted(programs))
        for name in programs:
            self.assertTrue((BIN / name).exists(), name)
        self.assertEqual(set(PROJECT["project"]["scripts"].values()), {"gpuc.tools:main"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], "-v"])
