"""scripts/bench on its smallest cell, with gpuc alone and with candidates that are made up: no PyTorch, no JAX.

What it writes has the form that bench/README.md names, and a candidate that computes something else gets no number.
"""

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "bench"), os.path.join(HERE, "..", "..", "bench", "peers")]

import real_cases  # noqa: E402
import real_report  # noqa: E402
import worker  # noqa: E402

COMPARE = os.path.join(HERE, "..", "..", "bench", "compare.py")
BIN = os.environ.get("GPUC_BIN") or os.path.join(HERE, "..", "..", "build", "bin")

# Plays back what it is told. LOSSES is a list, or a word: what it then says instead of an answer.
PLAYER = """#!{python}
import json, os, sys
losses = json.loads({losses!r})
print(json.dumps({{"version": "player 1", "form": "played"}}), flush=True)
for line in sys.stdin:
    verb, number = line.split()
    if isinstance(losses, str):
        sys.exit("error: " + losses)
    print(json.dumps(losses if verb == "losses" else {times}), flush=True)
"""


class CompareTest(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="gpuc-bench-test-")
        self.addCleanup(held.cleanup)
        self.folder = held.name

    def compare(self, *flags):
        command = [sys.executable, "-B", COMPARE, "--binaries=" + BIN, "--cases=mlp8-b1", "--peers=", "--rounds=1", *flags,
                   os.path.join(self.folder, "out")]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def written(self, name):
        with open(os.path.join(self.folder, "out", name), encoding="utf-8") as file:
            return file.read()

    def player(self, losses, times="[5.0, 1e6, 7.0]"):
        path = os.path.join(self.folder, "player")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PLAYER.format(python=sys.executable, losses=json.dumps(losses), times=times))
        os.chmod(path, stat.S_IRWXU)
        return f"--also=player={path}"

    def losses_of_gpuc(self):
        done = self.compare()
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.written("results.json"))["results"][0]["losses"]

    def test_gpuc_alone(self):
        losses = self.losses_of_gpuc()
        everything = json.loads(self.written("results.json"))
        self.assertLessEqual({"date", "cpu", "cores", "system", "gpuc", "rounds", "nice", "load_average_at_start", "load_average_at_end"},
                             set(everything))
        (cell,) = everything["results"]
        self.assertEqual(everything["failures"], {})
        self.assertEqual(set(cell), {"case", "title", "losses", "gpuc_us", "best_peer", "best_peer_us", "ratio", "target", "reached", "candidates"})
        self.assertEqual([(it["name"], it["threads"], it["loss_difference"]) for it in cell["candidates"]], [("gpuc", 1, 0), ("gpuc", 2, 0)])
        self.assertEqual(cell["gpuc_us"], min(it["us"] for it in cell["candidates"]))
        self.assertIsNone(cell["ratio"])
        # Eight classes, random weights: the first loss is near log 8, and steps on one batch lower it.
        self.assertEqual(len(losses), 5)
        self.assertAlmostEqual(losses[0], 2.079, delta=0.7)
        self.assertEqual(losses, sorted(losses, reverse=True))

    def test_a_candidate_that_agrees(self):
        losses = self.losses_of_gpuc()
        losses[4] *= 1 + 0.9e-5
        done = self.compare(self.player(losses))
        self.assertEqual(done.returncode, 0, done.stderr)
        (cell,) = json.loads(self.written("results.json"))["results"]
        # A round counts by its median chunk.
        self.assertEqual((cell["best_peer"], cell["best_peer_us"]), ("player", 7.0))
        self.assertAlmostEqual(cell["ratio"], 7.0 / cell["gpuc_us"])
        self.assertEqual(cell["reached"], cell["ratio"] >= 20)
        self.assertAlmostEqual(max(it["loss_difference"] for it in cell["candidates"]), 0.9e-5, delta=1e-7)
        self.assertIn("| MLP 8-8-8, batch 1, SGD |", self.written("table.md"))
        self.assertIn("| 7.0 (1) |", self.written("table.md"))
        self.assertIn("player 1", self.written("table.md"))
        self.assertEqual(xml.etree.ElementTree.fromstring(self.written("plot.svg")).tag, "{http://www.w3.org/2000/svg}svg")

    def test_priority(self):
        now = os.getpriority(os.PRIO_PROCESS, 0)
        player = self.player(self.losses_of_gpuc(), times="[100 + os.getpriority(os.PRIO_PROCESS, 0)]")
        self.assertEqual(self.compare(player, f"--nice={now + 1}").returncode, 0)
        everything = json.loads(self.written("results.json"))
        self.assertEqual(everything["results"][0]["best_peer_us"], 101 + now)
        self.assertIn(f"at priority {now + 1};", self.written("table.md"))

    def refused(self, losses, reason):
        done = self.compare(self.player(losses))
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(reason, done.stderr)
        everything = json.loads(self.written("results.json"))
        self.assertEqual(everything["results"], [])
        self.assertIn(reason, everything["failures"]["mlp8-b1"])
        self.assertIn("no number", self.written("table.md"))

    def test_other_losses_get_no_number(self):
        losses = self.losses_of_gpuc()
        self.refused([*losses[:4], losses[4] * (1 + 1.2e-5)], "player with 1 threads: its loss of step 5 is ")
        self.refused([*losses[:4], float("nan")], "player with 1 threads: its loss of step 5 is nan")
        self.refused(losses[:4], "player with 1 threads: 4 losses where 5 were asked for")

    def real(self, *flags):
        done = self.compare("--real", "--cases=mlp1024-b128", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(self.written("results.json"))["results"][0]

    def test_real_sizes(self):
        losses = self.real()["losses"]
        cell = self.real(self.player(losses, times="[9e9]"))
        # Forward and both gradients of three layers, of the first alone its weight's.
        self.assertEqual(cell["flops"], 2 * 128 * (2 * 784 * 1024 + 3 * (2 * 1024 * 1024 + 1024 * 10)))
        self.assertAlmostEqual(cell["gflops_per_s"], cell["flops"] / cell["gpuc_us"] / 1e3)
        self.assertEqual(set(cell["product_gflops_per_s"]), {"1", "2"})
        self.assertAlmostEqual(cell["share"], cell["gflops_per_s"] / max(cell["product_gflops_per_s"].values()))
        self.assertEqual([it["name"] for it in cell["candidates"]], ["gpuc", "player"] * 2)
        self.assertIs(cell["reached"], True)
        self.assertGreater(cell["arena_bytes"], 4 * (784 * 1024 + 2 * 1024 * 1024))
        self.assertIsNone(cell["least_peer_peak_bytes"])
        self.assertIn("| MLP 784-1024-1024-1024-10, batch 128, SGD | ", self.written("table.md"))

    def test_what_real_sizes_should_reach(self):
        (mlp,) = (it for it in real_cases.REAL_CASES if it.name == "mlp1024-b128")
        (resnet,) = (it for it in real_cases.REAL_CASES if it.name == "resnet18-64-b16")
        for case, ratio, share, reached in ((mlp, 2.1, 0.3, True), (mlp, 1.9, 0.3, False), (mlp, 1.1, 0.66, True), (mlp, 0.9, 0.9, False),
                                            (resnet, 1.6, 0.3, True), (resnet, 1.4, 0.9, False)):
            self.assertIs(real_report.reached(case, ratio, share), reached, (case.name, ratio, share))

    def test_steps_of_a_peer(self):
        class Peer:
            def __init__(self, seconds):
                self.seconds, self.steps = seconds, 0

            def step(self):
                self.steps += 1
                time.sleep(self.seconds)

            def finish(self):
                pass

        for seconds, chunks, steps in ((0.03, 2, 3), (0.002, 25, 9 + 100)):  # a long step is a chunk by itself; of short ones four are
            peer = Peer(seconds)
            self.assertLessEqual(len(worker.Rounds(peer).round(0.05)), chunks)
            self.assertLessEqual(peer.steps, steps)

    def test_a_tool_that_is_not_there(self):
        os.symlink(os.path.abspath(os.path.join(BIN, "gpuc-run")), os.path.join(self.folder, "gpuc-run"))  # that one says the version
        done = self.compare("--binaries=" + self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: mlp8-b1: " + os.path.join(self.folder, "gpuc-model") + ": No such file or directory", done.stderr)
        self.assertEqual(json.loads(self.written("results.json"))["results"], [])

    def test_a_candidate_that_ends(self):
        self.refused("out of cheese", "player with 1 threads: error: out of cheese")

    def test_unknown_names(self):
        for flag, message in (("--cases=mlp8-b1,mlp9", "error: no case 'mlp9': there are mlp8-b1, "),
                              ("--cases=unet-b8", "error: no case 'unet-b8': scripts/bench --real has it"),
                              ("--peers=caffe", "error: no peer 'caffe': there are torch-eager, torch-compiled, jax"),
                              ("--rounds=0", "error: --rounds: '0' is not a whole number from 1 on"),
                              ("--also=player", "error: --also: 'player' is not NAME=PROGRAM"),
                              ("--cheese", "error: unrecognized arguments: --cheese")):
            done = self.compare(flag)
            self.assertEqual(done.returncode, 2)
            self.assertTrue(done.stderr.startswith(message) and done.stderr.count("\n") == 1, done.stderr)


unittest.main()
