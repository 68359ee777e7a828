"""prose_width.py FOLDER: prose that is wider than 140 columns: lines of .md, and of descriptions in .td, that are no table, code or link."""

import os
import subprocess
import sys

COLUMNS = 140


def prose(lines):
    """(number, line) of those outside of ``` … ```."""
    code = False
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            code = not code
        elif not code:
            yield number, line.rstrip("\n")


def main(folder):
    found = 0
    files = subprocess.run(["git", "-C", folder, "ls-files", "*.md", "*.td"], capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        if name.startswith("docs/reference/"):  # as generated
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            for number, line in prose(file):
                if len(line) > COLUMNS and not line.startswith("|") and "http" not in line:
                    print(f"{name}:{number}: {len(line)} columns, at most {COLUMNS}")
                    found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
