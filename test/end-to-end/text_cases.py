"""The text that language models are trained on, cut for training and validation, and how: read by PyTorch
(text_reference.py) and by gpuc (text_test.py)."""

import subprocess

STEPS, LENGTH = 2000, 64
SEEDS = (0, 1)
BATCH = {"gpt2": 12, "lstm-generator": 32}


def text():
    """The King James Bible as plain lines, out of Debian's bible-kjv-text; None where it is not installed."""
    try:
        printed = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, check=True, timeout=60).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    # Each verse comes as "Ge1:1 In the beginning …".
    return b"\n".join(line.partition(b" ")[2] for line in printed.splitlines())


def parts(whole):
    """What is trained on, and the last twentieth, which is not."""
    cut = len(whole) * 19 // 20
    return whole[:cut], whole[cut:]
