"""bench/conv_peers.py with a bench-conv and a peer that answer at once: each layer reaches the peer as it was convolved, and both's times
come back."""

import contextlib
import io
import json
import os
import re
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import conv_peers

# What bench-conv prints, of the rows whose name has its second argument.
BENCH = """#!/bin/sh
echo 'f32                channels, image     batch                   forward                   d input                  d filter'
grep "^$2" <<ROWS
lenet 5x5          1>6 28x28               1       2.3 us 104.4 G  53%       5.0 us  47.3 G  24%       2.8 us  82.9 G  42%
lenet 5x5          6>16 14x14              1       5.5 us  87.3 G  44%       6.9 us  69.8 G  35%       4.0 us 119.0 G  59%
lenet 5x5          6>16 14x14             32      95.6 us 160.6 G  80%     124.8 us 123.1 G  61%     111.6 us 137.6 G  69%
mobilenet 3x3/2    64>64 112x112          16    3337.0 us  19.2 B  65%  65%c    5624.0 us  11.4 B  38%  38%c    3504.0 us  18.3 B  62%  62%c
mobilenet 3x3/2    3>32 128x128           16    1267.0 us  89.4 G  46%    1788.0 us  63.3 G  33%    1438.0 us  78.8 G  41%
convnext 7x7       96>96 56x56            16    2276.6 us  16.9 B  26%  95%m    2307.8 us  16.7 B  26%  94%m    3042.5 us  12.7 B  19%  71%m
ROWS
"""
# Answers each layer by what identifies it: µs of its channels, its kernel and stride, its padding and groups.
PEER = """
import json, sys
for line in sys.stdin:
    it = json.loads(line)
    print(json.dumps({"forward": it["in"] * it["out"], "input_gradient": 10 * it["kernel"] + it["stride"],
                      "filter_gradient": 10 * it["groups"] + it["padding"]}), flush=True)
"""


class ConvPeersTest(unittest.TestCase):
    def measure(self, *arguments):
        """Rows of the JSON, by layer and kind; or the error."""
        with tempfile.TemporaryDirectory(prefix="gpuc-bench-test-") as folder:
            peer, bench, path = (os.path.join(folder, name) for name in ("peer.py", "bench-conv", "found.json"))
            for name, text in (peer, PEER), (bench, BENCH):
                with open(name, "w", encoding="utf-8") as file:
                    file.write(text)
            os.chmod(bench, 0o755)
            said = io.StringIO()
            with mock.patch.object(conv_peers, "PEER", peer), mock.patch.object(conv_peers.environment, "prepare", lambda: sys.executable), \
                    mock.patch.object(sys, "argv", ["conv_peers.py", *arguments, "--rounds=1", "--json=" + path]), \
                    mock.patch.dict(os.environ, GPUC_BIN=os.environ.get("NO_BENCH", folder)), contextlib.redirect_stdout(said):
                try:
                    conv_peers.main()
                except SystemExit as error:
                    return str(error)
            with open(path, encoding="utf-8") as file:
                rows = json.load(file)
        self.said = said.getvalue()
        self.assertEqual(self.said.count("× | "), len(rows))
        return {(row["layer"], row["kind"]): row for row in rows}

    def peer_us(self, rows, layer):
        return [rows[layer, kind]["peer_us"] for kind in conv_peers.KINDS]

    def test_padded_and_not(self):
        rows = self.measure("lenet", "--batch=1")
        self.assertEqual(self.peer_us(rows, "1→6, 5x5 on 28×28"), [6, 51, 12])
        self.assertEqual(self.peer_us(rows, "6→16, 5x5 on 14×14"), [96, 51, 10])
        self.assertEqual(len(rows), 6)
        self.assertEqual([(row["us"], row["share"]) for row in rows.values()],
                         [(2.3, 53), (5.0, 24), (2.8, 42), (5.5, 44), (6.9, 35), (4.0, 59)])

    def test_depthwise_and_by_strides(self):
        rows = self.measure("mobilenet 3x3/2")
        self.assertEqual(self.peer_us(rows, "64→64, 3x3/2 on 112×112"), [64 * 64, 32, 641])
        self.assertEqual(self.peer_us(rows, "3→32, 3x3/2 on 128×128"), [96, 32, 11])

    def test_bounds(self):
        rows = self.measure("convnext")
        self.assertEqual([(row["bound"], row["of_bound"], row["share"]) for row in rows.values()],
                         [("multiply-adds", 95, 26), ("multiply-adds", 94, 26), ("multiply-adds", 71, 19)])
        self.assertIn("| multiply-adds 95, 94, 71% |\n", self.said)
        self.assertEqual([row["bound"] for row in self.measure("mobilenet 3x3/2").values()], 3 * ["copy"] + 3 * ["product"])

    def test_layers_that_there_are_not(self):
        self.assertRegex(self.measure("lenet", "--batch=3"), r"^error: .*'lenet' at batch 3$")
        with mock.patch.dict(os.environ, NO_BENCH="/nowhere"):
            self.assertRegex(self.measure(), re.escape("error: /nowhere/bench-conv is not there; build it"))


unittest.main()
