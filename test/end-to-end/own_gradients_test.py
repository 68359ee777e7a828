"""A loss may take gradients itself, as a gradient penalty does: what is trained is what it depends on by way of them."""

import unittest

from gpuc_tools import ToolTest
from tensor_files import read_safetensors, write_npy

ROWS, COLUMNS = 8, 4
# @energy is |x w|^2, and the loss that and the square of its gradient by w.
MODEL = """module @penalty {
  gpuc.variable @w : tensor<4x1xf64> init ones
  func.func private @energy(%x: tensor<?x4xf64>) -> tensor<f64> {
    %w = gpuc.read @w : tensor<4x1xf64>
    %y = gpuc.matmul %x, %w : (tensor<?x4xf64>, tensor<4x1xf64>) -> tensor<?x1xf64>
    %0 = gpuc.mul %y, %y : tensor<?x1xf64>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<?x1xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
  func.func @loss(%x: tensor<?x4xf64> {gpuc.name = "x"}) -> (tensor<f64>, tensor<f64>) {
    %e, %g = gpuc.gradient @energy(%x) wrt [@w] : (tensor<?x4xf64>) -> (tensor<f64>, tensor<4x1xf64>)
    %0 = gpuc.mul %g, %g : tensor<4x1xf64>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<4x1xf64>) -> tensor<f64>
    %2 = gpuc.add %e, %1 : tensor<f64>
    %count = gpuc.constant 1.0 : tensor<f64>
    return %2, %count : tensor<f64>, tensor<f64>
  }
  gpuc.recipe { loss = @loss, batch = 8, optimizer = sgd(lr = 0.001) }
}
"""


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector)) for row in matrix]


# The loss is a cross entropy and the square of the gradient of another, which @slope takes.
COUNTED = """module @counted {
  gpuc.variable @w : tensor<4x3xf64> init uniform(bound = 0.5)
  func.func private @entropy(%x: tensor<?x4xf64>, %labels: tensor<?xi32>) -> (tensor<f64>, tensor<f64>) {
    %w = gpuc.read @w : tensor<4x3xf64>
    %y = gpuc.matmul %x, %w : (tensor<?x4xf64>, tensor<4x3xf64>) -> tensor<?x3xf64>
    %s, %c = gpuc.cross_entropy %y, %labels : (tensor<?x3xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<f64>)
    return %s, %c : tensor<f64>, tensor<f64>
  }
  func.func private @slope(%x: tensor<?x4xf64>, %labels: tensor<?xi32>) -> tensor<f64> {
    %s, %c, %g = gpuc.gradient @entropy(%x, %labels) wrt [@w]
        : (tensor<?x4xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<f64>, tensor<4x3xf64>)
    %0 = gpuc.mul %g, %g : tensor<4x3xf64>
    %1 = gpuc.sum %0 dims [0, 1] : (tensor<4x3xf64>) -> tensor<f64>
    return %1 : tensor<f64>
  }
  func.func @loss(%x: tensor<?x4xf64> {gpuc.name = "x"}, %labels: tensor<?xi32> {gpuc.name = "labels", gpuc.range = 3})
      -> (tensor<f64>, tensor<f64>) {
    %s, %c = call @entropy(%x, %labels) : (tensor<?x4xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<f64>)
    SLOPE
    %l = gpuc.add %s, %p : tensor<f64>
    return %l, %c : tensor<f64>, tensor<f64>
  }
  gpuc.recipe { loss = @loss, batch = 8, optimizer = sgd(lr = 0.1) }
}
"""
SLOPES = {
    "called": "%p = call @slope(%x, %labels) : (tensor<?x4xf64>, tensor<?xi32>) -> tensor<f64>",
    "differentiated": "%q, %d = gpuc.gradient @slope(%x, %labels) wrt [@w] "
                      ": (tensor<?x4xf64>, tensor<?xi32>) -> (tensor<f64>, tensor<4x3xf64>) "
                      "%dd = gpuc.mul %d, %d : tensor<4x3xf64> "
                      "%p = gpuc.sum %dd dims [0, 1] : (tensor<4x3xf64>) -> tensor<f64>",
}


class OwnGradients(ToolTest):
    def test_rows_without_a_sample_count_nothing(self):
        """In a loss whose gradient the loss takes, neither, nor in the gradient of that."""
        for name, slope in SLOPES.items():
            with self.subTest(name):
                self.write("counted.mlir", COUNTED.replace("SLOPE", slope))
                trained = []
                for rows in (8, 5):  # three of eight hold nothing
                    self.gpuc("gpuc-compile", "counted.mlir", "-o", "counted.plan", f"--batch={rows}", "--seed=1")
                    self.gpuc("gpuc-train", "counted.plan", "--data=synthetic:size=5", "--steps=1", "--no-shuffle",
                              "--last-batch=pad", "--log-every=0", "--save-variables=" + self.path("trained"))
                    trained.append(read_safetensors(self.path("trained"))["w"])
                for padded, full in zip(*trained):
                    self.assertAlmostEqual(padded, full, delta=1e-12)

    def test_a_penalty_of_the_gradient_trains(self):
        x = [((7 * i) % 11 - 5) / 8 for i in range(ROWS * COLUMNS)]
        rows = [x[i:i + COLUMNS] for i in range(0, len(x), COLUMNS)]
        # The gradient of w'Aw + |2Aw|^2 is 2Aw + 8AAw.
        a = [[sum(row[i] * row[j] for row in rows) for j in range(COLUMNS)] for i in range(COLUMNS)]
        once = times(a, [1.0] * COLUMNS)
        expected = [1 - 0.001 * (2 * first + 8 * second) for first, second in zip(once, times(a, once))]
        self.write("penalty.mlir", MODEL)
        write_npy(self.path("x.npy"), "f64", [ROWS, COLUMNS], x)
        self.gpuc("gpuc-compile", "penalty.mlir", "-o", "penalty.plan")
        self.gpuc("gpuc-run", "penalty.plan", "--entry=train_step", "--input=x=x.npy", "--save-variables=w.safetensors")
        for found, wanted in zip(read_safetensors(self.path("w.safetensors"))["w"], expected):
            self.assertAlmostEqual(found, wanted, delta=1e-12)


if __name__ == "__main__":
    unittest.main()
