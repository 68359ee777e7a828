"""Layers and lines as the user knows them."""

import os

import torch

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
TORCH = os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), "")  # Not torchvision beside it.


def own_name(path):
    """A path in capture.Whole."""
    return path.removeprefix("net.") if path != "net" else ""


def is_own(file):
    """Torch's or gpuc's."""
    return file.startswith((TORCH, HERE, "<"))


def user_line(trace):
    """File and line of the innermost frame that is neither torch's nor gpuc's."""
    found = ("", 0)
    for line in (trace or "").splitlines():
        line = line.strip()
        if not line.startswith('File "'):
            continue
        file, _, rest = line[len('File "') :].partition('", line ')
        if not is_own(file):
            found = (file, int(rest.split(",")[0]))
    return found
