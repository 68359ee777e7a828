"""Prints what the dialect declares and the tests do not mention: ops, or the labels of constraints.

coverage.py ops GpucOps.h.inc TEST_FOLDER          every registered op stands in a round-trip test
coverage.py constraints SOURCE_FOLDER TEST_FOLDER  every label in the ODS stands in a negative test, and no other

Negative tests are the files …-errors.mlir; the others read back what they write.
"""

import glob
import re
import sys


def read(paths):
    return "\n".join(open(path, encoding="utf-8").read() for path in paths)


what, declared, folder = sys.argv[1:]
is_negative = {"ops": False, "constraints": True}[what]
tests = read(path for path in glob.glob(folder + "/*.mlir") if path.endswith("-errors.mlir") == is_negative)
if what == "ops":
    names = set(re.findall(r'StringLiteral\("(gpuc\.\w+)"\)', read([declared])))
    missing = {name for name in names if not re.search(rf"= {name} |^ *{name} ", tests, re.MULTILINE)}
    unknown = set()
else:
    names = set(re.findall(r"\((\w+_C\d+)\)", read(glob.glob(declared + "/**/*.td", recursive=True))))
    tested = set(re.findall(r"\[(\w+_C\d+)\]", tests))
    missing, unknown = names - tested, tested - names

for name in sorted(missing):
    print(f"no test: {name}")
for name in sorted(unknown):
    print(f"not in the ODS: {name}")
print(f"{len(names)} {what} declared, {len(names) - len(missing)} tested")
sys.exit(1 if missing or unknown else 0)
