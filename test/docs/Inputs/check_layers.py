"""Holds every #include to the table "Who may know whom" of docs/design.md, and every folder to the number of sources there.

    check_layers.py SOURCE [DESIGN.md]

Each line of the table is a room: folders, or files, that may include themselves, what the second column names, and what that may. A
file in that column is that file alone; `passes/*` is all of passes/; `mlir/` stands for LLVM's other folders too. Each finding is one
line; any is exit code 1.
"""

import collections
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
MLIR = ("mlir/", "mlir-c/", "llvm/", "llvm-c/", "lld/", "clang/")

# A vendor's headers, and the one folder that wraps them.
VENDORS = {
    r"cuda|cublas|cudnn|nccl": "runtime/cuda/",
    r"libxsmm": "runtime/host/matmul/",
    r"mpi\.h|omp\.h": "nothing yet",
    r"nanobind|Python\.h": "python/bindings/",
}


class Layers:
    def __init__(self, text):
        section = text.split("## Who may know whom", 1)[1].split("\n## ", 1)[0]
        limit = re.search(r"In (.*) a folder holds at most (\d+) sources", section)
        self.limited, self.most_sources = tuple(re.findall(r"`([^`]+)`", limit[1])), int(limit[2])
        columns = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
        names = [[re.findall(r"`([^`]+)`", column) for column in row] for row in columns]
        self.room_of = {place: room for room, (places, _) in enumerate(names) for place in places}
        self.tops = sorted({place.split("/")[0] + "/" for place in self.room_of})
        self.backward, self.rooms, self.files, self.mlir = [], [], [], []
        for places, entries in names:
            self.add(places, entries)

    def add(self, places, entries):
        """The next line. What it names stands above it, so that all that is known of that is known already."""
        room = len(self.rooms)
        rooms, files, mlir = {room}, [], "mlir/" in entries
        for entry in entries:
            if entry == "mlir/":
                continue
            targets = [r for place, r in self.room_of.items() if place == entry or
                       entry.endswith("*") and place.startswith(entry[:-1]) and r != room]
            if not targets and self.place(entry) and not entry.endswith(("/", "*")):
                files.append(entry)
                targets = [self.room_of[self.place(entry)]]
            elif not targets:
                self.backward.append(f"table: {places[0]} may include {entry}, which has no line")
            for target in targets:
                if target >= room:
                    self.backward.append(f"table: {places[0]} may include {entry}, which does not stand above it")
                elif entry not in files:
                    rooms |= self.rooms[target]
                    mlir |= self.mlir[target]
        self.rooms.append(rooms)
        self.files.append(tuple(files))
        self.mlir.append(mlir)

    def place(self, path):
        """What of the first column stands for the path: the longest that fits."""
        return max((place for place in self.room_of if path.startswith(place)), key=len, default=None)

    def may_include(self, place, include):
        room, target = self.room_of[place], self.place(include)
        if include.startswith(MLIR):
            return self.mlir[room]
        return target and self.room_of[target] in self.rooms[room] or include in self.files[room]

    def has_line(self, name):
        """A folder beside others that have lines needs one: the folder around them may know them all."""
        place = self.place(name)
        if place is None:
            return False
        inside = any(other != place and other.startswith(place) and other.endswith("/") for other in self.room_of)
        return not inside or "/" not in name[len(place):]


def findings(source, layers):
    yield from layers.backward
    sources = collections.Counter()
    for file in sorted(path for top in layers.tops for path in (source / top).rglob("*")):
        if file.suffix not in (".h", ".cpp", ".in"):
            continue
        name = file.relative_to(source).as_posix()
        sources[file.relative_to(source).parent.as_posix()] += file.suffix == ".cpp"
        if not layers.has_line(name):
            yield f"{name}: its folder has no line in the table"
            continue
        place = layers.place(name)
        for include in INCLUDE.findall(file.read_text()):
            if include.startswith((*layers.tops, "test/", *MLIR)) and not layers.may_include(place, include):
                yield f"{name}: must not include {include}"
            for vendor, wrapper in VENDORS.items():
                if re.match(vendor, include) and not name.startswith(wrapper):
                    yield f"{name}: must not include {include}: its folder is {wrapper}"
    for folder, count in sorted(sources.items()):
        if f"{folder}/".startswith(layers.limited) and count > layers.most_sources:
            yield f"{folder}: {count} sources, but at most {layers.most_sources} stand in a folder: make two of it"


def main():
    source = pathlib.Path(sys.argv[1])
    design = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else source / "docs/design.md"
    found = list(findings(source, Layers(design.read_text())))
    print("\n".join(found) if found else "layers hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
