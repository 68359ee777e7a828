"""bench/data_parallel.py on its smallest cell, with gpuc alone and beside a peer that is made up: no PyTorch."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH = os.path.join(HERE, "..", "..", "bench", "data_parallel.py")
BIN = os.environ.get("GPUC_BIN") or os.path.join(HERE, "..", "..", "build", "bin")

# Plays back losses; each step takes a second.
PLAYER = """#!{python}
import json, os, sys
folder, ranks = sys.argv[1:]
assert ranks == "2" and os.path.exists(folder + "/labels.1.npy") and not os.path.exists(folder + "/labels.2.npy")
print(json.dumps({{"version": "player 1", "form": "played", "refused": {{}}}}), flush=True)
for line in sys.stdin:
    print(json.dumps({losses!r} if line.startswith("losses") else 1e6), flush=True)
"""


class DataParallelTest(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory(prefix="gpuc-bench-test-")
        self.addCleanup(held.cleanup)
        self.folder = held.name

    def compare(self, *flags):
        command = [sys.executable, "-B", BENCH, "--binaries=" + BIN, "--cases=mlp-small", "--rounds=1", *flags,
                   os.path.join(self.folder, "out")]
        return subprocess.run(command, capture_output=True, text=True, timeout=300)

    def written(self):
        with open(os.path.join(self.folder, "out", "results.json"), encoding="utf-8") as file:
            return json.load(file)

    def table(self):
        with open(os.path.join(self.folder, "out", "table.md"), encoding="utf-8") as file:
            return file.read()

    def player(self, losses):
        path = os.path.join(self.folder, "player")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PLAYER.format(python=sys.executable, losses=losses))
        os.chmod(path, stat.S_IRWXU)
        return path

    def losses_of_gpuc(self):
        done = self.compare("--peers=")
        self.assertEqual(done.returncode, 0, done.stderr)
        (cell,) = self.written()["results"]
        self.assertEqual(cell["peers"], {})
        self.assertIn("no peer", self.table())
        # Ten classes, random weights: the first loss is near log 10, and steps on one batch lower it.
        self.assertEqual(len(cell["losses"]), 5)
        self.assertAlmostEqual(cell["losses"][0], 2.303, delta=0.3)
        self.assertEqual(cell["losses"], sorted(cell["losses"], reverse=True))
        return cell["losses"]

    def test_a_peer_that_agrees(self):
        losses = self.losses_of_gpuc()
        losses[4] *= 1 + 0.9e-5
        done = self.compare("--peer=" + self.player(losses))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (cell,) = self.written()["results"]
        peer = cell["peers"]["ddp"]
        self.assertEqual(peer["us"], 1e6)
        self.assertEqual(peer["ratio"], 1e6 / cell["gpuc_us"])
        self.assertAlmostEqual(peer["loss_difference"], 0.9e-5, delta=1e-7)
        self.assertIn("| 1,000,000 | played |", self.table())
        self.assertIn("player 1, gloo", self.table())

    def test_other_losses_get_no_number(self):
        losses = self.losses_of_gpuc()
        losses[4] *= 1 + 1.2e-5
        self.assertEqual(self.compare("--peer=" + self.player(losses)).returncode, 1)
        self.assertEqual(self.written()["results"], [])
        self.assertIn("its loss of step 5 is ", self.written()["failures"]["mlp-small"])
        self.assertIn("no number", self.table())

    def test_norms_are_synchronised_where_the_cell_says_so(self):
        sys.path.insert(0, os.path.dirname(BENCH))
        from data_parallel import CELLS
        self.assertEqual([cell.name for cell in CELLS if cell.sync_batch_norm], ["resnet-sync"])
        self.assertEqual([cell.name for cell in CELLS if cell.real], [])

    def test_no_cell_allows_more(self):
        sys.path.insert(0, os.path.dirname(BENCH))
        from data_parallel import CELLS
        self.assertEqual({cell.tolerance for cell in CELLS}, {1e-5})

    def test_unknown_names(self):
        for flags, error in ((["--cases=mlp9"], "no case 'mlp9': there are resnet, "), (["--peers=dpp"], "no peer 'dpp': there are ddp, jax"),
                             (["--peer="], "--peer names no program: --peers= is gpuc alone")):
            done = self.compare(*flags)
            self.assertEqual(done.returncode, 2)
            self.assertIn("error: " + error, done.stderr)

    def test_a_peer_is_asked_where_it_has_the_model(self):
        sys.path.insert(0, os.path.dirname(BENCH))
        from data_parallel import CELLS
        self.assertEqual([cell.name for cell in CELLS if "jax" not in cell.peers], ["resnet", "resnet-sync"])


unittest.main()
