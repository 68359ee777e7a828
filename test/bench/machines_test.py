"""bench/machines.py on a model of 3 MB: what it says that machines send is what they send, over the link that it is told. Needs root;
skipped without, with the reason."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench", "machines.py")
GRADIENTS = 4 * (784 * 1024 + 1024 + 1024 * 10 + 10)


def why_not():
    """Why there can be no such machines; empty if there can be."""
    if os.geteuid() != 0:
        return "no root, who alone makes network namespaces"
    for tool in ("ip", "tc", "unshare"):
        if not shutil.which(tool):
            return f"no {tool}: scripts/setup installs it"
    probe = subprocess.run(["unshare", "--net", "sh", "-c", "tc qdisc add dev lo root tbf rate 8mbit burst 256kb latency 200ms"],
                           capture_output=True, text=True, check=False)
    return f"no token bucket in a network namespace: {probe.stderr.strip()}" if probe.returncode else ""


class MachinesTest(unittest.TestCase):
    def test_what_is_sent_by_a_slow_link(self):
        with tempfile.TemporaryDirectory(prefix="gpuc-bench-test-") as folder:
            path = os.path.join(folder, "found.json")
            done = subprocess.run([sys.executable, "-B", BENCH, "20MB", "--model=mlp hidden=1024 batch=4", "--rounds=1", "--json=" + path],
                                  capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("| 20MB | ", done.stdout)
            with open(path, encoding="utf-8") as file:
                (row,) = json.load(file)
        once = GRADIENTS / 20e6 * 1e3
        self.assertAlmostEqual(row["machine_link"], once, delta=0.1 * once)
        self.assertAlmostEqual(row["itself_link"], 2 * once, delta=0.1 * once)
        # What the bucket has saved up is gone behind the first steps.
        for name in ("machine", "itself"):
            self.assertGreaterEqual(row[name], 0.9 * row[name + "_link"])


if why_not():
    print("skipped:", why_not())
    sys.exit(77)
unittest.main()
