"""Runs ONNX's backend node tests and holds their count to docs/onnx.md.

    run_node_tests.py DRIVER --cases FOLDER [--only WORD,…] [--every N] [--jobs N] [--write-docs FILE | --check-docs FILE]
    run_node_tests.py DRIVER --release 1.22.0 --work FOLDER …     makes the cases with that release of the onnx package

Prints how many cases passed, failed and were skipped, the reason of each failed one, and for the skipped ones how many
there are for each reason (--list names them). Exit code 1 if a case failed, or if docs differ from the run;
77, by which ctest knows a skipped test, if the cases cannot be had here.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

SKIP = 77
BEGIN, END = "<!-- counted by test/onnx/run_node_tests.py -->", "<!-- end of count -->"

# How a skipped case's reason becomes one line for all cases like it; the first that fits counts.
GROUPS = [
    (r"\((?:\w+\.)*(\w+)\): the op is not supported", r"op \1 is not supported"),
    (r"element type that gpuc does not have", "element types that gpuc does not have"),
    (r"^element type (\w+)", "element types that gpuc does not have"),
    (r"^input '[^']*' is no tensor", "sequences, optionals and maps"),
    (r"^(?:input|output) '[^']*' is a sequence", "sequences, optionals and maps"),
    (r"^input '[^']*' is (\w+): gpuc knows", "element types that gpuc does not have"),
    (r"^opset (\d+)", "opsets before 7, or none of the standard ops"),
    (r"gpuc has no empty (inputs|outputs)", "empty inputs or outputs"),
    (r"\((?:\w+\.)*(\w+)\): .*must be known when the model is imported", r"\1: shapes that depend on values"),
    (r"\((?:\w+\.)*(\w+)\): attribute '(\w+)' is not supported", r"\1: attribute \2"),
    (r"\((?:\w+\.)*(\w+)\): reads '.*', which gpuc does not compute", r"\1: reads an output that gpuc does not compute"),
    (r"^node '[^']*' \((?:\w+\.)*(\w+)\): (.*)", r"\1: \2"),
    (r"^output '[^']*' is computed by nothing that gpuc knows: it is an output of node '[^']*' \((\w+)\)",
     r"\1: an output that gpuc does not compute"),
]

# Cases whose expected output cannot be met. They are run all the same: one that passes, or fails in another way than
# by a number, is no longer excused.
NOISE = "expected numbers are the rounding of NumPy's f32 transform, 1.9e-7 where the exact result is 0"
DRAWN = "Dropout: in predict nothing is drawn, and expected numbers are NumPy's draw"
EXCUSED = {"test_dft_inverse": NOISE, "test_dft_inverse_opset19": NOISE, "test_training_dropout": DRAWN,
           "test_training_dropout_default": DRAWN,
           **{f"test_bernoulli{case}": "Bernoulli: expected numbers are NumPy's draw"
              for case in ("", "_double", "_double_expanded", "_expanded", "_seed", "_seed_expanded")}}


def make_cases(release, work):
    """The folder of node cases that the onnx package of `release` generates, made once below `work`."""
    cases = work / f"onnx-{release}" / "node"
    done = work / f"onnx-{release}" / "done"
    if done.exists():
        return cases
    environment = work / "environment"
    python = environment / "bin" / "python"
    for step in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"onnx=={release}"],
    ):
        made = subprocess.run(step, capture_output=True, text=True)
        if made.returncode != 0:
            why = (made.stderr.strip() or made.stdout.strip() or "no reason given").splitlines()[-1]
            print(f"skipped: cannot install the onnx package {release}: {why}")
            sys.exit(SKIP)
    cases.mkdir(parents=True, exist_ok=True)
    subprocess.run([str(environment / "bin" / "backend-test-tools"), "generate-data", "-o", str(cases.parent)],
                   check=True, capture_output=True)
    done.touch()
    return cases


def run(driver, folders, jobs):
    """verdict and reason of each case, by name."""
    made = subprocess.run([driver, f"--jobs={jobs}", *map(str, folders)], capture_output=True, text=True)
    results = {}
    for line in made.stdout.splitlines():
        verdict, _, rest = line.partition(" ")
        name, _, reason = rest.partition(": ")
        if verdict == "failed" and name in EXCUSED and re.match(r"output \d+: element", reason):
            verdict, reason = "skipped", EXCUSED[name]
        results[name] = (verdict, reason)
    if len(results) != len(folders):
        sys.exit(f"error: {driver} ran {len(results)} of {len(folders)} cases: {made.stderr.strip()[-500:]}")
    return results


def group(reason):
    for pattern, text in GROUPS:
        match = re.search(pattern, reason)
        if match:
            line = match.expand(text)
            # What differs from case to case: shapes, names, numbers.
            return re.sub(r"\[[\d, ?-]*\]|'[^']*'", "…", line) if pattern.endswith("(.*)") else line
    return reason


def table(results):
    """The part of docs/onnx.md that is counted."""
    counts = collections.Counter(verdict for verdict, _ in results.values())
    reasons = collections.Counter(group(reason) for verdict, reason in results.values() if verdict == "skipped")
    lines = [BEGIN, "",
             f"{len(results)} cases: {counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped.",
             "", "| skipped | why |", "| ---: | --- |"]
    lines += [f"| {number} | {reason.replace('|', '/')} |"
              for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0]))]
    return "\n".join([*lines, "", END])


def replace_count(text, counted):
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    return text[:begin] + counted + text[end:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--cases", type=pathlib.Path)
    parser.add_argument("--release")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--only", help="words, by commas: cases whose name contains one")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--least", type=int, default=0, help="fewer passed cases are an error")
    parser.add_argument("--write-docs", type=pathlib.Path)
    parser.add_argument("--check-docs", type=pathlib.Path)
    options = parser.parse_args()

    cases = options.cases or make_cases(options.release, options.work)
    folders = sorted(path.parent for path in cases.glob("*/model.onnx"))
    if options.only:
        folders = [folder for folder in folders if any(word in folder.name for word in options.only.split(","))]
    folders = folders[:: options.every]
    if not folders:
        print(f"skipped: no cases in {cases}")
        return SKIP
    results = run(options.driver, folders, options.jobs)
    for name, (verdict, reason) in sorted(results.items()):
        if verdict == "failed" or (options.list and verdict == "skipped"):
            print(f"{verdict} {name}: {reason}")
    counted = table(results)
    print(counted if options.list else counted.splitlines()[2])
    bad = any(verdict == "failed" for verdict, _ in results.values())
    passed = sum(verdict == "passed" for verdict, _ in results.values())
    if passed < options.least:
        print(f"error: only {passed} cases passed, expected at least {options.least}")
        bad = True
    if options.write_docs:
        text = options.write_docs.read_text()
        options.write_docs.write_text(replace_count(text, counted))
    if options.check_docs and counted not in options.check_docs.read_text():
        print(f"error: {options.check_docs} has another count; renew it with --write-docs")
        bad = True
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
