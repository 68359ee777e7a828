"""Holds every #include to the table "Who may know whom" of docs/design.md.

    check_layers.py SOURCE

Each include that is not allowed is one line; any is exit code 1.
"""

import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
OURS = ("dialects/", "frontend/", "passes/", "runtime/", "tools/", "test/")
MLIR = ("mlir/", "mlir-c/", "llvm/", "llvm-c/", "lld/", "clang/")

# Folder, what of our own and of LLVM's it may include; the longest folder that fits a file counts.
RULES = {
    "runtime/": ("runtime/",),
    "passes/placement/": ("passes/placement/", "runtime/base/"),
    "passes/": ("passes/", "dialects/", "runtime/base/", "runtime/plan/", *MLIR),
    "dialects/": ("dialects/", *MLIR),
    "frontend/": ("frontend/", "dialects/", "passes/recipe/Optimizers.h", "runtime/base/", *MLIR),
}

# A vendor's headers, and the one folder that wraps them.
VENDORS = {
    r"cuda|cublas|cudnn": "runtime/cuda/",
    r"libxsmm": "runtime/host/matmul/",
    r"nccl|mpi\.h|omp\.h": "nothing yet",
}


def findings(source):
    for folder in sorted({rule.split("/")[0] for rule in RULES}):
        for file in sorted((source / folder).rglob("*")):
            if file.suffix not in (".h", ".cpp", ".in"):
                continue
            name = file.relative_to(source).as_posix()
            allowed = RULES[max((rule for rule in RULES if name.startswith(rule)), key=len)]
            for include in INCLUDE.findall(file.read_text()):
                if include.startswith(OURS + MLIR) and not include.startswith(allowed):
                    yield f"{name}: must not include {include}"
                for vendor, wrapper in VENDORS.items():
                    if re.match(vendor, include) and not name.startswith(wrapper):
                        yield f"{name}: must not include {include}: its folder is {wrapper}"


def main():
    found = list(findings(pathlib.Path(sys.argv[1])))
    print("\n".join(found) if found else "layers hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
