"""Prints what the dialect declares and the tests do not mention: ops, or the labels of constraints.

coverage.py ops GpucOps.h.inc TEST.mlir …          every registered op stands in a round-trip test
coverage.py constraints SOURCE_FOLDER TEST.mlir …  every label in the ODS stands in a negative test, and no other
"""

import glob
import re
import sys


def read(paths):
    return "\n".join(open(path, encoding="utf-8").read() for path in paths)


what, declared, tests = sys.argv[1], sys.argv[2], read(sys.argv[3:])
if what == "ops":
    names = set(re.findall(r'StringLiteral\("(gpuc\.\w+)"\)', read([declared])))
    missing = {name for name in names if not re.search(rf"= {name} |^ *{name} ", tests, re.MULTILINE)}
    unknown = set()
else:
    names = set(re.findall(r"\((\w+_C\d+)\)", read(glob.glob(declared + "/*.td"))))
    tested = set(re.findall(r"\[(\w+_C\d+)\]", tests))
    missing, unknown = names - tested, tested - names

for name in sorted(missing):
    print(f"no test: {name}")
for name in sorted(unknown):
    print(f"not in the ODS: {name}")
print(f"{len(names)} {what} declared, {len(names) - len(missing)} tested")
sys.exit(1 if missing or unknown else 0)
