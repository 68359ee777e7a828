"""Runs third_party.py by a Python that has PyTorch and the packages of third_party_models.py; skipped, with the reason, without.

That Python is $GPUC_TORCH_PYTHON; scripts/torch-environment makes one outside of the repository and says how to set it.
"""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77  # What ctest takes for it.
PACKAGES = "torch, onnx, onnxscript, torchvision, timm, transformers, safetensors"


def main():
    python = os.environ.get("GPUC_TORCH_PYTHON")
    if not python:
        print("skipped: GPUC_TORCH_PYTHON names no Python that has PyTorch; scripts/torch-environment FOLDER makes one")
        return SKIPPED
    try:
        probe = subprocess.run([python, "-c", f"import {PACKAGES}"], capture_output=True, text=True)
    except OSError as error:
        print(f"error: GPUC_TORCH_PYTHON: {error}")
        return 1
    if probe.returncode != 0:
        print(f"skipped: {python} lacks one of {PACKAGES}: {probe.stderr.strip().splitlines()[-1]}")
        return SKIPPED
    return subprocess.run([python, "-B", os.path.join(HERE, "third_party.py"), "--least=20", *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
