"""Runs a script beside this one by a Python that has PyTorch, $GPUC_TORCH_PYTHON; skipped, with the reason, without.

    torch_test.py SCRIPT MODULES [ARGUMENTS …]

MODULES are what the script needs beside torch and NumPy, separated by commas. scripts/test --python makes such a Python,
if there is none, and runs live.py.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # What ctest takes for it.


def main():
    script, modules, *arguments = sys.argv[1:]
    if not os.path.exists(os.path.join(HERE, script)):
        print(f"error: there is no {script} beside {os.path.basename(__file__)}")
        return 1
    python = os.environ.get("GPUC_TORCH_PYTHON")
    if not python:
        print("skipped: GPUC_TORCH_PYTHON names no Python that has PyTorch; scripts/test --python makes one")
        return SKIPPED
    try:
        probe = subprocess.run([python, "-c", f"import torch, numpy, {modules}; from gpuc import _runtime"], capture_output=True, text=True)
    except OSError as error:
        print(f"error: GPUC_TORCH_PYTHON: {error}")
        return 1
    if probe.returncode != 0:
        print(f"skipped: {python}: {probe.stderr.strip().splitlines()[-1]}")
        return SKIPPED
    return subprocess.run([python, "-B", os.path.join(HERE, script), *arguments]).returncode


if __name__ == "__main__":
    sys.exit(main())
