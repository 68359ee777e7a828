"""What tests of ranks say when they fail is said at once, and names the first number."""

import math
import unittest

from first_difference import first_difference


class FirstDifference(unittest.TestCase):
    def test_none(self):
        values = {"w": [[1.0, -0.0], [math.nan]], "step": 3, "said": None}
        self.assertIsNone(first_difference(values, {**values, "w": [[1.0, -0.0], [math.nan]]}))

    def test_the_first_one(self):
        for found, expected, said in (({"a": [1.0], "b": [1.0, 2.0, 4.0]}, {"a": [1.0], "b": [1.0, 3.0, 5.0]}, "['b'][1]: 2.0, expected 3.0"),
                                      ({"w": [[0.0]]}, {"w": [[-0.0]]}, "['w'][0][0]: 0.0, expected -0.0"),
                                      ({"w": [1.0]}, {"w": [1]}, "['w'][0]: 1.0, expected 1"),
                                      ({"w": [1.0]}, {"w": [1.0, 2.0]}, "['w']: 1 elements, expected 2"),
                                      ({"w": []}, {"v": []}, "keys: ['w'], expected ['v']"),
                                      ([{"w": 1, "v": 2}], [{"w": 1}], "[0]: ['v', 'w'], expected ['w']"),
                                      ({"w": [1.0]}, {"w": None}, "['w']: [1.0], expected None")):  # fmt: skip
            with self.subTest(said=said):
                self.assertEqual(first_difference(found, expected), said)

    def test_of_a_million(self):
        found, expected = {"w": [0.1] * 1_000_000}, {"w": [0.1] * 999_999 + [0.2]}
        self.assertEqual(first_difference(found, expected), "['w'][999999]: 0.1, expected 0.2")


if __name__ == "__main__":
    unittest.main()
