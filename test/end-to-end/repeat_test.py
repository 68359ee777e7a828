"""Training repeats bit for bit: with any number of threads and loader workers, and killed (-9) at random moments and
resumed.

GPUC_ROUNDS sets how many times a run is killed to its end; the moments are drawn from a fixed seed.
"""

import json
import os
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest
import zlib

from gpuc_tools import BIN, ToolTest, sha256

ROUNDS = int(os.environ.get("GPUC_ROUNDS", "2"))
STEPS = 600
FASHION = "/usr/share/datasets/fashion-mnist/train"
FEW = "synthetic:size=5000"  # 78 steps an epoch: kills fall into many epochs
DATA = "idx:" + FASHION if os.path.exists(FASHION + "-images-idx3-ubyte.gz") else FEW
# With dropout the masks depend on the step too, which must survive the kill. With fewer units than these a step of the loop
# is too little to be cut among threads.
RECURRENT = ["rnn-classifier", "cell=gru", "steps=7", "width=8", "hidden=32", "bidirectional=true", "dropout=0.2"]
CASES = {"mlp": (["mlp"], DATA), "mlp_with_dropout": (["mlp", "dropout=0.2"], FEW), "gru": (RECURRENT, FEW)}


class Repeat(ToolTest):
    often = ["--checkpoint-every=37"]

    def flags(self, *more, steps=STEPS, seed=7):
        return ["--data=" + self.data, f"--steps={steps}", f"--seed={seed}", *more]

    def threads(self, model):
        plan = self.compile_model(*model)
        expected = self.trained_bits(plan, *self.flags("--threads=1"))
        print(f"{model} {self.data}, 1 thread: {expected}", flush=True)
        for flags in (["--threads=2"], ["--threads=3"], ["--threads=2", "--workers=0"], ["--threads=3", "--workers=3"]):
            with self.subTest(flags=flags):
                self.assertEqual(self.trained_bits(plan, *self.flags(*flags)), expected)
        for kind, flags in (("another seed", self.flags(seed=8)), ("fewer steps", self.flags(steps=STEPS - 1)),
                            ("another order", self.flags("--no-shuffle"))):
            with self.subTest(kind):
                self.assertNotEqual(self.trained_bits(plan, *flags), expected)

    def threads_of(self, plan, *flags):
        """The most threads that training has at one time."""
        command = [os.path.join(BIN, "gpuc-train"), plan, *self.flags(*flags, steps=10**7), "--log-every=0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            process.stdout.readline()  # what it says once all is made
            return len(os.listdir(f"/proc/{process.pid}/task"))
        finally:
            process.kill()
            process.communicate()

    def test_flags_make_threads(self):
        """Else the equalities above would compare a run with itself."""
        self.data = FEW
        plan = self.compile_model("mlp")
        alone = self.threads_of(plan, "--threads=1", "--workers=0")
        for threads, workers in ((2, 0), (3, 0), (1, 2), (3, 3)):
            with self.subTest(threads=threads, workers=workers):
                more = self.threads_of(plan, f"--threads={threads}", f"--workers={workers}") - alone
                self.assertEqual(more, threads - 1 + workers)

    def test_resuming_starts_from_the_checkpoint(self):
        """Training that began anew after each kill would come to the same bits: a checkpoint that was changed must not."""
        self.data = FEW
        plan = self.compile_model("mlp")
        flags = ["--checkpoint-dir=" + self.path("run"), "--resume"]
        self.trained_bits(plan, *self.flags(*flags, steps=100))
        shutil.copytree(self.path("run"), self.path("untouched"))
        change_checkpoint(self.path("run/step-00000100.safetensors"))
        changed = self.trained_bits(plan, *self.flags(*flags, steps=101))
        flags[0] = "--checkpoint-dir=" + self.path("untouched")
        resumed = self.trained_bits(plan, *self.flags(*flags, steps=101))
        self.assertEqual(resumed, self.trained_bits(plan, *self.flags(steps=101)))
        self.assertNotEqual(changed, resumed)

    def kills(self, model):
        plan = self.compile_model(*model)
        expected = self.trained_bits(plan, *self.flags("--checkpoint-dir=" + self.path("whole"), *self.often))
        rng = random.Random(0)
        for number in range(ROUNDS):
            with self.subTest(round=number):
                under_way = False
                for attempt in range(5):  # a kill may come after the end where the machine is busy
                    folder = self.path(f"killed-{number}-{attempt}")
                    killed = self.until_it_ends(plan, folder, rng)
                    print(f"{model}, round {number}: killed after the checkpoints of steps {killed}", flush=True)
                    self.assertEqual(sha256(self.path("resumed.safetensors")), expected)
                    under_way = under_way or any(0 < step < STEPS for step in killed)
                    if under_way:
                        break
                self.assertTrue(under_way, "no kill hit a run under way")

    def until_it_ends(self, plan, folder, rng):
        """Starts and kills until a run comes to its end; gives the newest checkpoint's step at each kill. Kills follow the
        run's progress, not the clock: each waits for a checkpoint beyond the last one, and then a moment more."""
        command = [os.path.join(BIN, "gpuc-train"), plan, *self.flags(), *self.often, "--checkpoint-dir=" + folder,
                   "--resume", "--metrics=" + folder + ".jsonl", "--save-variables=" + self.path("resumed.safetensors"),
                   "--log-every=0"]
        killed = []
        while True:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            target = newest_checkpoint(folder) + rng.randint(1, 150)
            if target < STEPS - 100:
                while process.poll() is None and newest_checkpoint(folder) < target:
                    time.sleep(0.001)
                time.sleep(rng.uniform(0, 0.01))
                process.send_signal(signal.SIGKILL)
            error = process.communicate()[1].decode()
            if process.returncode == 0:
                return killed
            self.assertEqual(process.returncode, -signal.SIGKILL, error)
            killed.append(newest_checkpoint(folder))


def newest_checkpoint(folder):
    """The step of the checkpoint that `latest` names; 0 without one."""
    try:
        with open(os.path.join(folder, "latest"), encoding="utf-8") as file:
            return int(file.read().split("step-")[1].split(".")[0])
    except (FileNotFoundError, IndexError):
        return 0


def change_checkpoint(path):
    """Flips a bit of a weight, and states the checksum anew: CRC-32 over the tensors' bytes, by name."""
    with open(path, "rb") as file:
        content = file.read()
    begin = 8 + struct.unpack("<Q", content[:8])[0]
    header, data = json.loads(content[8:begin]), bytearray(content[begin:])
    data[header["fc1.weight"]["data_offsets"][1] - 2] ^= 1
    checksum = 0
    for name in sorted(header.keys() - {"__metadata__"}):
        first, end = header[name]["data_offsets"]
        checksum = zlib.crc32(data[first:end], checksum)
    header["__metadata__"]["gpuc.data_crc32"] = str(checksum)
    del header["__metadata__"]["gpuc.metadata_crc32"]  # as versions before it have none
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def add_cases():
    def case(check, model, data):
        def run(self):
            self.data = data
            check(self, model)
        return run

    for name, (model, data) in CASES.items():
        setattr(Repeat, f"test_{name}_with_any_threads", case(Repeat.threads, model, data))
        setattr(Repeat, f"test_{name}_killed_and_resumed", case(Repeat.kills, model, data))


add_cases()

if __name__ == "__main__":
    unittest.main()
