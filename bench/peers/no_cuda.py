"""Lets PyTorch's CUDA wheel run on a CPU without CUDA's libraries: makes one small library in the place of them all.

PyTorch's libraries are linked with libcudart, libcublas, libcudnn and others, and cannot be loaded without them. This
reads which functions they would take from there, and makes a library that has each of them, under its version, returning
100, which is cudaErrorNoDevice. What PyTorch computes on a CPU is untouched. Run it by the environment's own python.
"""

import collections
import os
import re
import shutil
import subprocess
import sysconfig

CUDA_LIBRARY = re.compile(r"lib(cu|nccl|nv)")
CUDA_SYMBOL = re.compile(r"(__cuda|cu|nccl|nv)")
SITE = sysconfig.get_paths()["purelib"]


def readelf(flag, library):
    tool = shutil.which("llvm-readelf-22") or "readelf"
    return subprocess.run([tool, flag, "-W", library], capture_output=True, text=True, check=True).stdout.splitlines()


def needed_libraries(library):
    found = (re.search(r"NEEDED.*\[(.*)\]", line) for line in readelf("-d", library))
    return {match[1] for match in found if match and CUDA_LIBRARY.match(match[1])}


def symbols(library):
    """(names it defines, name → version of those it takes from elsewhere)"""
    defined, taken = set(), {}
    for line in readelf("--dyn-syms", library):
        fields = line.split()
        if len(fields) >= 8 and fields[0].rstrip(":").isdigit():
            name, _, version = fields[7].partition("@")
            if fields[6] == "UND":
                taken[name] = version.lstrip("@")
            else:
                defined.add(name)
    return defined, taken


def main():
    folder = os.path.join(SITE, "torch", "lib")
    libraries = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if ".so" in name]
    needed, defined, taken = set(), set(), {}
    for library in libraries:
        needed |= needed_libraries(library)
        here, elsewhere = symbols(library)
        defined |= here
        taken.update(elsewhere)
    versions = collections.defaultdict(list)
    for name, version in taken.items():
        if name not in defined and CUDA_SYMBOL.match(name):
            versions[version].append(name)

    # PyTorch's libraries look there first.
    out = os.path.join(SITE, "nvidia", "cu13", "lib")
    os.makedirs(out, exist_ok=True)
    source, script, library = (os.path.join(out, "no-cuda" + suffix) for suffix in (".c", ".versions", ".so"))
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"int {name}(void) {{ return 100; }}\n" for names in versions.values() for name in names)
    with open(script, "w", encoding="utf-8") as file:
        file.writelines(f"{version} {{ {' '.join(name + ';' for name in names)} }};\n" for version, names in versions.items() if version)
    compiler = shutil.which("clang-22") or shutil.which("cc") or "gcc"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-fno-builtin", source, "-o", library, "-Wl,--version-script=" + script], check=True)
    for name in needed:
        link = os.path.join(out, name)
        if os.path.lexists(link):
            os.remove(link)
        os.symlink(os.path.basename(library), link)


main()
