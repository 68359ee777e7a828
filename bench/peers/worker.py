"""What the peers' processes share: reading a cell's files, taking requests, and keeping time.

    WORKER.py FOLDER THREADS

FOLDER holds case.json, weights.safetensors and an .npy file for each input. See bench/README.md for the requests.
"""

import json
import math
import os
import struct
import sys
import time

CHUNK_SECONDS = 0.001  # time is taken of so long: what interrupts a step, on a machine with other work, falls on few chunks
LEAST_STEPS = 4        # of a chunk: who computes asynchronously can fill its queue
LEAST_CHUNKS = 5
LONG_STEP_SECONDS = 0.025  # from here on a step is a chunk by itself, and one is enough for a round
TRY_SECONDS = 0.1      # that each form of a peer's step is tried for


def arguments():
    """(the case as a dict, its folder, the number of threads)"""
    folder, threads = sys.argv[1], int(sys.argv[2])
    with open(os.path.join(folder, "case.json"), encoding="utf-8") as file:
        return json.load(file), folder, threads


def read_safetensors(path):
    """name → numpy array, of the f32 tensors: the integers are gpuc's own counters."""
    import numpy
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack("<Q", content[:8])
    tensors = {}
    for name, entry in json.loads(content[8:8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32" and "/" not in name:
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(content[begin:end], numpy.float32).reshape(entry["shape"])
    return tensors


def read_inputs(case, folder):
    import numpy
    return {name: numpy.load(os.path.join(folder, name + ".npy")) for name in case["inputs"]}


def seconds_a_step(peer, steps):
    begin = time.perf_counter()
    for _ in range(steps):
        peer.step()
    peer.finish()
    return (time.perf_counter() - begin) / steps


def best_form(forms):
    """The quickest of several ways to compute the same step, as a user would choose it. `forms`: name → function that
    makes a peer. Gives the name, the peer, and why others were left out."""
    best, refused = None, {}
    for name, make in forms.items():
        try:
            peer = make()
            seconds_a_step(peer, 2)  # compiles
            seconds = tried(peer)
        except Exception as error:  # a form that this version of a peer cannot take is no reason to leave the peer out
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        if best is None or seconds < best[0]:
            best = seconds, name, peer
    if best is None:
        sys.exit("error: " + "; ".join(f"{name}: {reason}" for name, reason in refused.items()))
    return best[1], best[2], refused


def tried(peer):
    """Seconds a step: the least of five tries, or of two of a long step."""
    once = seconds_a_step(peer, 1)
    if once >= LONG_STEP_SECONDS:
        return min(once, seconds_a_step(peer, 1))
    count = max(LEAST_STEPS, math.ceil(TRY_SECONDS / once / 5))
    return min(seconds_a_step(peer, count) for _ in range(5))


def losses(peer, count):
    peer.reset()
    return [float(peer.step()) for _ in range(count)]


class Rounds:
    def __init__(self, peer):
        self.peer, self.steps, self.least_chunks = peer, None, LEAST_CHUNKS

    def choose_chunks(self):
        if seconds_a_step(self.peer, 1) >= LONG_STEP_SECONDS:
            self.steps = self.least_chunks = 1
            return
        seconds_a_step(self.peer, LEAST_STEPS)
        self.steps = max(LEAST_STEPS, math.ceil(CHUNK_SECONDS / seconds_a_step(self.peer, LEAST_STEPS)))

    def round(self, seconds):
        if self.steps is None:
            self.choose_chunks()
        chunks = []
        while len(chunks) < self.least_chunks or sum(chunks) * self.steps < seconds:
            chunks.append(seconds_a_step(self.peer, self.steps))
        return [1e6 * chunk for chunk in chunks]


def serve(version, forms):
    """Answers requests until there are none. A peer has reset(), step(), which gives the loss as something that float()
    takes, and finish(), which returns when all steps are done."""
    # What libraries print goes to stderr: stdout is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    form, peer, refused = best_form(forms)
    rounds = Rounds(peer)

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"version": version, "form": form, "refused": refused})
    for line in sys.stdin:
        verb, number = line.split()
        answer(losses(peer, int(number)) if verb == "losses" else rounds.round(float(number)))
