"""gpuc-opt over many small modules at once: what it prints of each, and what it says is wrong."""

import bisect
import concurrent.futures
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass

MARKER = "// -----\n"
CHUNK = 500  # modules in one run


@dataclass(frozen=True)
class Outcome:
    printed: str = ""  # nothing if the module is refused
    errors: tuple = ()
    crash: str = ""


def run_chunk(tool, flags, modules):
    starts, line = [], 1
    for module in modules:
        starts.append(line)
        line += module.count("\n") + 1
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(MARKER.join(modules))
        file.flush()
        split = ["--split-input-file", f"--output-split-marker={MARKER.strip()}"]
        result = subprocess.run([tool, *split, *flags, file.name], capture_output=True, text=True)
    found = [(int(line), text) for line, text in re.findall(r"^\S+?:(\d+):\d+: error: (.*)", result.stderr, re.MULTILINE)]
    crashed = result.returncode not in (0, 1)
    if len(modules) > 1 and (crashed or any(line == 0 for line, _ in found)):  # whose it is, a smaller chunk says
        half = len(modules) // 2
        return run_chunk(tool, flags, modules[:half]) + run_chunk(tool, flags, modules[half:])
    if crashed:
        return [Outcome(crash=f"exit status {result.returncode} {' '.join(text for _, text in found)}")]
    printed = re.split("^" + re.escape(MARKER), result.stdout, flags=re.MULTILINE)
    assert len(printed) == len(modules), f"{len(modules)} modules, {len(printed)} printed"
    errors = [[] for _ in modules]
    for line, text in found:
        errors[max(bisect.bisect_right(starts, line) - 1, 0)].append(text)
    return [Outcome(text, tuple(texts)) for text, texts in zip(printed, errors)]


def run(tool, modules, *flags):
    """The outcome of each module."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        chunks = [modules[i : i + CHUNK] for i in range(0, len(modules), CHUNK)]
        return [outcome for part in pool.map(lambda chunk: run_chunk(tool, flags, chunk), chunks) for outcome in part]
