"""Of each broken module (broken_modules.py) the error says what is wrong, how to mend it, and the line where that stands; run by torch_test.py
with a Python that has torch."""

import pathlib
import re
import sys
import traceback
import unittest

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import broken_modules  # noqa: E402
import gpuc  # noqa: E402
from broken_modules import BROKEN, compiled  # noqa: E402

LINES = pathlib.Path(broken_modules.__file__).read_text().splitlines()
LEAST = 30


def marked_line(made):
    """Of the next mark behind where it begins."""
    begin = next(number for number, line in enumerate(LINES) if re.match(rf"(class|def) {made.__name__}\b", line))
    return next(number + 1 for number in range(begin, len(LINES)) if LINES[number].endswith("  # here"))


def lines_named(error):
    return [int(line) for line in re.findall(rf"{re.escape(broken_modules.__file__)}:(\d+): ", str(error))]


def called_line(error):
    """Where the user's own code was when it was raised."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == broken_modules.__file__]
    return [frame.lineno for frame in frames if frame.name != "compiled"][-1]


class Broken(unittest.TestCase):
    def error(self, made):
        try:
            compiled(made()) if isinstance(made, type) else made()
        except gpuc.Error as error:  # With its traceback, which assertRaises takes off.
            return error
        return self.fail("nothing is said")

    def test_each_has_its_line_and_its_cure(self):
        for name, (made, texts) in BROKEN.items():
            with self.subTest(name):
                error = self.error(made)
                for text in texts:
                    self.assertIn(text, str(error))
                named = lines_named(error)
                self.assertTrue(named or not isinstance(made, type), error)
                self.assertEqual({marked_line(made)}, {*named} or {called_line(error)}, error)

    def test_there_are_many(self):
        self.assertGreaterEqual(len(BROKEN), LEAST)
        self.assertEqual(len({marked_line(made) for made, _ in BROKEN.values()}), len(BROKEN))


if __name__ == "__main__":
    torch.manual_seed(0)
    unittest.main()
