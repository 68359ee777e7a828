"""check_demo.py DEMO BUILD: the targets that the script DEMO builds are the tools that it runs, and need no test."""

import re
import subprocess
import sys

script = open(sys.argv[1], encoding="utf-8").read()
runs = sorted(set(re.findall(r"^run (\S+)", script, re.MULTILINE)))
builds = sorted(re.search(r"^scripts/build(.*)$", script, re.MULTILINE).group(1).split())
if runs != builds:
    sys.exit(f"error: {sys.argv[1]} runs {' '.join(runs)}, but builds {' '.join(builds) or 'everything'}")

inputs = subprocess.run(["ninja", "-C", sys.argv[2], "-t", "inputs", *builds], check=True, capture_output=True, text=True)
tests = [path for path in inputs.stdout.split() if path.startswith("test/") and path.endswith(".o")]
if tests:
    sys.exit(f"error: the demo builds {len(tests)} objects of tests, {tests[0]} among them")
print("the demo runs and builds", *runs)
