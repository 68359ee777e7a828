"""What tests of ranks share."""

import os

from gpuc_tools import ToolTest
from tensor_files import read_safetensors

SAMPLES = 96


class RankTest(ToolTest):
    def variables(self, plan, *flags, steps=6, samples=SAMPLES):
        """variable → its values after some steps; fails if training does."""
        saved = self.path("saved.safetensors")
        self.gpuc("gpuc-train", plan, f"--data=synthetic:size={samples}", f"--steps={steps}", "--seed=3", "--threads=1", "--log-every=0",
                  "--save-variables=" + saved, *flags)
        values = {name: list(value) for name, value in read_safetensors(saved).items()}
        os.remove(saved)
        return values
