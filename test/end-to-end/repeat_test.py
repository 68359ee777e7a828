"""Training repeats bit for bit: with any number of threads and loader workers, and killed (-9) at random moments and
resumed.

GPUC_ROUNDS sets how many times a run is killed to its end; the moments are drawn from a fixed seed.
"""

import os
import random
import signal
import subprocess
import time
import unittest

from gpuc_tools import BIN, ToolTest, sha256

ROUNDS = int(os.environ.get("GPUC_ROUNDS", "2"))
STEPS = 600
# With dropout the masks depend on the step too, which must survive the kill.
MODELS = {"mlp": ["mlp"], "mlp_with_dropout": ["mlp", "dropout=0.2"]}
FASHION = "/usr/share/datasets/fashion-mnist/train"
DATA = "idx:" + FASHION if os.path.exists(FASHION + "-images-idx3-ubyte.gz") else "synthetic:size=5000"


class Repeat(ToolTest):
    often = ["--checkpoint-every=37"]

    def flags(self, *more, seed=7):
        return ["--data=" + DATA, f"--steps={STEPS}", f"--seed={seed}", *more]

    def threads(self, model):
        plan = self.compile_model(*model)
        expected = self.trained_bits(plan, *self.flags("--threads=1"))
        print(f"{model} {DATA}, 1 thread: {expected}", flush=True)
        for flags in (["--threads=2"], ["--threads=3"], ["--threads=2", "--workers=0"], ["--threads=3", "--workers=3"]):
            with self.subTest(flags=flags):
                self.assertEqual(self.trained_bits(plan, *self.flags(*flags)), expected)
        with self.subTest("another seed"):
            self.assertNotEqual(self.trained_bits(plan, *self.flags(seed=8)), expected)

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


def add_cases():
    for name, model in MODELS.items():
        setattr(Repeat, f"test_{name}_with_any_threads", lambda self, m=model: self.threads(m))
        setattr(Repeat, f"test_{name}_killed_and_resumed", lambda self, m=model: self.kills(m))


add_cases()

if __name__ == "__main__":
    unittest.main()
