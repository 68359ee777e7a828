"""The command-line tools of the wheel: programs in bin/, beside this file, which pip's scripts find here."""

import os
import sys


def main():
    name = os.path.basename(sys.argv[0])
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    if not os.path.exists(program):
        sys.exit(f"error: there is no {program}: programs come with the wheel (docs/installing.md)")
    os.execv(program, [name, *sys.argv[1:]])
