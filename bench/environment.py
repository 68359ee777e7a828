"""The Python environment that the peers run in: made once, outside of the source tree, from bench/peers/requirements*.txt.

It lies in $XDG_CACHE_HOME/gpuc/ (~/.cache/gpuc/) under a name that tells the requirements apart, so that a new pin makes
a new one. PyTorch's wheel is installed without the CUDA libraries that it is linked with, which would be three gigabytes
that no CPU uses; peers/no_cuda.py makes something in their place that can be loaded.
"""

import hashlib
import os
import shutil
import subprocess
import sys

PEERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers")
SOURCES = ("requirements.txt", "requirements-torch.txt", "no_cuda.py")


class SetupError(Exception):
    """What could not be made, in one line."""


def cache():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "gpuc")


def folder():
    digest = hashlib.sha256(sys.version.encode())
    for name in SOURCES:
        with open(os.path.join(PEERS, name), "rb") as file:
            digest.update(file.read())
    return os.path.join(cache(), "bench-peers-" + digest.hexdigest()[:12])


def variables():
    """What the peers' processes have in their environment: compiled kernels are kept from run to run."""
    return {"TORCHINDUCTOR_CACHE_DIR": os.path.join(cache(), "inductor"), "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}


def run(what, *command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()] or ["it said nothing"]
        raise SetupError(f"{what} failed: {lines[-1]} (leave peers out with --peers=…, or --peers= for gpuc alone)")


def prepare():
    """The environment's python; made now if it is not there."""
    final = folder()
    python = os.path.join(final, "bin", "python")
    if os.path.exists(os.path.join(final, "complete")):
        return python
    shutil.rmtree(final, ignore_errors=True)
    print(f"bench: installing PyTorch and JAX into {final} (about 700 MB to download, 2.1 GB on disk)", flush=True)
    run("making a virtual environment", sys.executable, "-m", "venv", final)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run("installing JAX", *pip, "-r", os.path.join(PEERS, "requirements.txt"))
    run("installing PyTorch", *pip, "--no-deps", "-r", os.path.join(PEERS, "requirements-torch.txt"))
    run("making stand-ins for CUDA's libraries", python, os.path.join(PEERS, "no_cuda.py"))
    run("importing PyTorch", python, "-c", "import torch; torch.ones(2) @ torch.ones(2)")
    with open(os.path.join(final, "complete"), "w", encoding="utf-8"):
        pass
    return python
