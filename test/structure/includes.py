#!/usr/bin/env python3
"""Who may include whom: the rules that keep the runtime free of the compiler and vendor headers in one folder each."""

import pathlib
import re
import sys

VENDORS = {"cuda": r"cuda\.h|cublas|cudnn|nccl|nvrtc", "libxsmm": r"libxsmm", "mpi": r"mpi\.h"}
WRAPPED_IN = {"cuda": "runtime/cuda/", "libxsmm": "runtime/host/matmul/", "mpi": "runtime/mpi/"}


def violation(path, header):
    """The rule that `path` breaks by including `header`, or None."""
    if path.startswith(("runtime/", "passes/placement/")):
        if header.startswith(("mlir/", "llvm/", "lld/")):
            return "the runtime and the placement library never include the compiler's libraries"
        if path.startswith("runtime/") and header.startswith(("dialects/", "passes/", "frontend/", "tools/")):
            return "the runtime never depends on the compiler"
    if path.startswith("dialects/") and header.startswith("runtime/"):
        return "dialects never include the runtime"
    if path.startswith("passes/") and header.startswith("runtime/") and not header.startswith(("runtime/plan/", "runtime/base/")):
        return "passes see of the runtime only runtime/plan/ and runtime/base/"
    for vendor, pattern in VENDORS.items():
        if re.match(pattern, header) and not path.startswith(WRAPPED_IN[vendor]):
            return f"{vendor}'s headers appear only in {WRAPPED_IN[vendor]}"
    return None


def main(root):
    broken = 0
    root = pathlib.Path(root)
    for top in ("dialects", "passes", "runtime", "frontend", "tools", "examples"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".c", ".cu"):
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text().splitlines(), 1):
                match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
                rule = match and violation(path, match.group(1))
                if rule:
                    print(f"{path}:{number}: includes {match.group(1)}: {rule}")
                    broken += 1
    print(f"{broken} includes break a rule")
    return broken != 0


sys.exit(main(sys.argv[1]))
