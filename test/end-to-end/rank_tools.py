"""What tests of ranks share."""

import os
import subprocess
import time

from first_difference import first_difference
from gpuc_tools import BIN, ToolTest
from tensor_files import read_safetensors

SAMPLES = 96
FEED = 192  # samples of a run that goes on until it is stopped


class RankTest(ToolTest):
    def check_same(self, found, expected):
        self.assertIsNone(first_difference(found, expected))

    def variables(self, plan, *flags, steps=6, samples=SAMPLES):
        """variable → its values after some steps; fails if training does."""
        saved = self.path("saved.safetensors")
        self.gpuc("gpuc-train", plan, f"--data=synthetic:size={samples}", f"--steps={steps}", "--seed=3", "--threads=1", "--log-every=0",
                  "--save-variables=" + saved, *flags)
        values = {name: list(value) for name, value in read_safetensors(saved).items()}
        os.remove(saved)
        return values

    def train(self, plan, folder, *flags, log_every=0, checkpoint_every=20):
        """A run that has been started."""
        command = [os.path.join(BIN, "gpuc-train"), plan, f"--data=synthetic:size={FEED}", "--seed=3", "--threads=1",
                   f"--log-every={log_every}", "--checkpoint-dir=" + folder, f"--checkpoint-every={checkpoint_every}", *flags]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    @staticmethod
    def children(process, count):
        """Their process numbers, once they are there."""
        path = f"/proc/{process.pid}/task/{process.pid}/children"
        for _ in range(1000):
            with open(path, encoding="ascii") as file:
                found = [int(word) for word in file.read().split()]
            if len(found) == count:
                return found
            time.sleep(0.01)
        raise AssertionError(f"{found} are not {count} ranks")
