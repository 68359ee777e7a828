"""The zoo's language models on a real text: after 2,000 steps the loss on text that they have not seen is within 2% of
PyTorch's (text_reference.py wrote text_losses.json), and they write on in its manner. Takes minutes."""

import json
import os
import re
import unittest

import text_cases
from gpuc_tools import HERE, ToolTest

PROMPT = "And the LORD said unto "


class Text(ToolTest):
    timeout_s = 3000

    @classmethod
    def setUpClass(cls):
        cls.text = text_cases.text()
        if cls.text is None:
            raise unittest.SkipTest("Debian's bible-kjv and bible-kjv-text are not installed")
        with open(os.path.join(HERE, "text_losses.json"), encoding="utf-8") as kept:
            cls.reference = json.load(kept)

    def check(self, name):
        training, validation = text_cases.parts(self.text)
        self.write("training.txt", training)
        self.write("validation.txt", validation)
        plan = self.compile_model(name, f"batch={text_cases.BATCH[name]}", f"length={text_cases.LENGTH}")
        self.gpuc("gpuc-train", plan, "--data=text:training.txt", "--eval-data=text:validation.txt",
                  f"--steps={text_cases.STEPS}", "--log-every=0", "--metrics=metrics.jsonl", "--save-variables=trained")
        loss = self.metrics(self.path("metrics.jsonl"), "eval")[-1]["loss"]
        theirs = self.reference[name].values()
        theirs = sum(theirs) / len(theirs)
        print(f"{name}: {loss:.4f} on unseen text, PyTorch {theirs:.4f}")
        self.assertLessEqual(abs(loss - theirs), 0.02 * theirs)
        self.check_generation(plan)

    def check_generation(self, plan):
        """Words that the text has make up most of what is written."""
        written = self.gpuc("gpuc-generate", plan, "--variables=trained", "--prompt=" + PROMPT, "--tokens=300",
                            "--temperature=0.5", "--seed=1")
        print(written)
        self.assertTrue(written.startswith(PROMPT))
        known = set(re.findall(r"[a-z]+", self.text.decode().lower()))
        words = re.findall(r"[a-z]+", written[len(PROMPT):].lower())[:-1]  # the last one may be cut
        self.assertGreater(len(words), 30)
        self.assertGreater(sum(word in known for word in words), 0.6 * len(words), written)

    def test_gpt2(self):
        self.check("gpt2")

    def test_lstm_generator(self):
        self.check("lstm-generator")


if __name__ == "__main__":
    unittest.main()
