"""torch, JAX and gpuc compile in one process, each with an LLVM of its own, whoever is first; run by torch_test.py with a Python that has both."""

import pathlib
import subprocess
import sys
import unittest

ORDERS = ("gpuc", "jax", "torch"), ("jax", "torch", "gpuc"), ("torch", "gpuc", "jax", "gpuc")


def by_torch():
    import torch

    return torch.compile(lambda x: (x.sin() * x.cos()).sum())(torch.ones(4)).item()


def by_jax():
    import jax

    return float(jax.jit(lambda x: (jax.numpy.sin(x) * jax.numpy.cos(x)).sum())(jax.numpy.ones(4)))


def by_gpuc():
    import torch

    import gpuc

    class Wave(torch.nn.Linear):
        def forward(self, x):
            return (x.sin() * x.cos()).sum() + 0 * self.weight.sum()

    return gpuc.compile(Wave(1, 1), None, "sgd:lr=0.1", torch.ones(4))(torch.ones(4))


class Beside(unittest.TestCase):
    def test_compilers_in_one_process(self):
        for order in ORDERS:
            with self.subTest(order):
                out = subprocess.run([sys.executable, "-B", __file__, *order], capture_output=True, text=True)
                self.assertEqual(out.returncode, 0, out.stderr)
                results = [float(line) for line in out.stdout.split()]
                self.assertEqual(len(results), len(order))
                for result in results:
                    self.assertAlmostEqual(result, 4 * 0.4546487, delta=1e-5)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(*({"torch": by_torch, "jax": by_jax, "gpuc": by_gpuc}[each]() for each in sys.argv[1:]))
    else:
        unittest.main()
