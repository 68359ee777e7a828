#!/usr/bin/env python3
"""How well the host's choice among its methods of convolution is, and the rates by which it is made, fitted anew.

    bench/conv_methods.py [--shapes=400] [--seed=1] [--shape-file=FILE] [--times=FILE] [--fit]

Draws shapes (or reads them from FILE, a line each as bench-conv-methods has them), has bench-conv-methods time each by every method that can
compute it, and prints by how much the choice of runtime/workspace/conv_method.h is slower than the quickest: the geometric mean, how many
shapes lose more than a tenth, a third, a half, and the worst. What counts of a method is half of its time on one thread and that on two.
--times keeps what was timed, and is read instead of timing where it is there already.

--fit prints rates that lose least on these shapes, in picoseconds, as conv_method.h has them; it needs NumPy and SciPy. They are first fitted
to the times, then moved so that what is chosen loses least: of a method's share in the choice a soft minimum, so that it can be followed
downhill, and a penalty on going far. Fit on some thousand shapes of all kinds, layers of real networks among them; check on others.
"""

import argparse
import json
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
METHODS = ("pointwise", "patches", "by_rows", "by_outputs", "by_images", "by_channels", "winograd", "subsampled")
UNITS = ("step", "block", "sum", "run", "vector", "strided", "square")
LEAST_FLOPS, MOST_FLOPS = 2e5, 6e8
CHANNELS = (1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512)
EXTENTS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128)


def axis(draw, extent, kernel):
    """Extent, kernel, stride, padding and dilation; None where no window fits."""
    stride = draw.choice((1, 1, 1, 2, 2, kernel))
    dilation = draw.choice((1, 1, 1, 1, 1, 1, 1, 2, 4)) if kernel > 1 else 1
    padding = draw.choice(((kernel - 1) * dilation // 2,) * 5 + (0,))
    room = extent + 2 * padding - (kernel - 1) * dilation - 1
    return (extent, kernel, stride, padding, dilation, room // stride + 1) if room >= 0 else None


def drawn_shape(draw):
    """A line for bench-conv-methods; None where it would be too quick or too slow."""
    inputs, outputs, groups = draw.choice(CHANNELS), draw.choice(CHANNELS), 1
    if draw.random() < 0.12:
        groups = draw.choice((2, 4, 8, 16, 32))
        inputs = outputs = groups * draw.choice((2, 4, 8, 12, 16, 24, 32))
    one_dimension = draw.random() < 0.15
    kernel = draw.choice((1, 1, 2, 3, 3, 3, 3, 4, 5, 7, 9))
    extent = draw.choice(EXTENTS)
    height = axis(draw, 1, 1) if one_dimension else axis(draw, extent, kernel)
    width = axis(draw, 16 * extent, kernel) if one_dimension else height
    if not one_dimension and draw.random() < 0.15:
        width = axis(draw, draw.choice(EXTENTS), draw.choice((1, kernel)))
    if height is None or width is None:
        return None
    batch = draw.choice((1, 2, 4, 8, 16, 16, 32, 32, 64, 128))
    flops = 2 * batch * outputs * inputs // groups * height[5] * width[5] * height[1] * width[1]
    if not LEAST_FLOPS <= flops <= MOST_FLOPS:
        return None
    element = 8 if draw.random() < 0.06 else 4
    numbers = [draw.randrange(3), element, batch, inputs, outputs, groups]
    return " ".join(map(str, numbers + [number for pair in list(zip(height, width))[:5] for number in pair]))


def drawn_shapes(count, seed):
    draw = random.Random(seed)
    lines = []
    while len(lines) < count:
        line = drawn_shape(draw)
        if line:
            lines.append(line)
    return lines


def timed(lines):
    binaries = os.environ.get("GPUC_BIN", os.path.join(HERE, "..", "build", "bin"))
    program = os.path.join(binaries, "bench-conv-methods")
    if not os.path.exists(program):
        raise SystemExit(f"error: {program} is not there; build it: scripts/build -DGPUC_BUILD_BENCH=ON bench-conv-methods")
    done = subprocess.run([program], input="\n".join(lines) + "\n", stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)
    return [{"shape": line, **json.loads(times)} for line, times in zip(lines, done.stdout.splitlines(), strict=True)]


def lines_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"error: cannot read {path}: {error}") from error


def times_of(path):
    try:
        return [json.loads(line) for line in lines_of(path)]
    except json.JSONDecodeError as error:
        raise SystemExit(f"error: {path} has no times: {error}; remove it, and --times={path} writes it anew") from error


def counted_us(us):
    return us[0] / 4 + us[1] / 2


def losses_of(shapes):
    """Of each shape the ratio of the chosen method's time to the quickest's, and that method; depthwise filters, whose method is compared
    with no other, aside."""
    losses = []
    for shape in shapes:
        times = {method: counted_us(of["us"]) for method, of in shape["methods"].items()}
        if shape["chosen"] == "depthwise":
            continue
        quickest = min(times, key=times.get)
        losses.append((times[shape["chosen"]] / times[quickest], quickest, shape))
    return sorted(losses, key=lambda loss: -loss[0])


def report(shapes):
    losses = losses_of(shapes)
    if not losses:
        raise SystemExit("error: none of these shapes has a choice of methods")
    mean = math.exp(sum(math.log(loss) for loss, _, _ in losses) / len(losses))
    above = ", ".join(f"{sum(loss > bound for loss, _, _ in losses)} above {bound}" for bound in (1.1, 1.3, 1.5))
    print(f"{len(losses)} shapes: {mean:.4f} times the quickest (geometric mean); {above}")
    for loss, quickest, shape in losses[:10]:
        print(f"{loss:6.2f}  {shape['shape']}: {shape['chosen']}, quickest {quickest}")


class Fit:
    """Shapes as arrays: what each method would do, by units, and what it took."""

    def __init__(self, shapes):
        import numpy as np  # pylint: disable=import-outside-toplevel # of --fit alone

        self.np = np
        count = len(shapes)
        self.work, self.left = np.zeros((2, count, len(METHODS), len(UNITS)))
        self.uneven, self.left_uneven = np.ones((2, count, len(METHODS)))
        self.has, self.has_left = np.zeros((2, count, len(METHODS)), bool)
        self.ns = np.zeros((count, len(METHODS)))
        self.loss = np.zeros((count, len(METHODS)))
        for row, shape in enumerate(shapes):
            quickest = min(counted_us(of["us"]) for of in shape["methods"].values())
            for method, of in shape["methods"].items():
                if method == "depthwise":
                    continue
                place = METHODS.index("pointwise" if method == "patches" and shape["pointwise"] else method)
                self.place(self.work, self.uneven, self.has, row, place, of["work"])
                self.ns[row, place] = 1000 * of["us"][0]
                self.loss[row, place] = math.log(counted_us(of["us"]) / quickest)
            for method, work in shape.get("left", {}).items():
                place = METHODS.index("pointwise" if method == "patches" else method)
                self.place(self.left, self.left_uneven, self.has_left, row, place, work)

    @staticmethod
    def place(works, uneven, has, row, method, work):
        *counts, tiles = work
        works[row, method], has[row, method] = counts, True
        uneven[row, method] = (tiles + 2 * ((tiles + 1) // 2)) / (2 * tiles)

    def costs(self, rates):
        """Logarithms, as convCost() has them."""
        np = self.np
        costs = (self.work * rates).sum(2) * self.uneven
        left = np.where(self.has_left, (self.left * rates).sum(2) * self.left_uneven, np.inf).min(1)
        costs[:, METHODS.index("subsampled")] += np.where(np.isfinite(left), left, 0)
        return np.where(self.has, np.log(np.maximum(costs, 1e-3)), np.inf)

    def soft_loss(self, rates, temperature=0.06):
        np = self.np
        costs = self.costs(rates)
        shares = np.exp(-(costs - costs.min(1, keepdims=True)) / temperature)
        return ((shares * self.loss).sum(1) / shares.sum(1)).mean()

    def of_times(self):
        """Least squares of relative errors, without negative rates; large ones count less."""
        from scipy.optimize import nnls  # pylint: disable=import-outside-toplevel

        np = self.np
        rates = np.zeros((len(METHODS), len(UNITS)))
        for method in range(len(METHODS) - 1):
            rows = self.has[:, method]
            relative = self.work[rows, method] / self.ns[rows, method, None]
            scale = relative.max(0, initial=0) + 1e-30
            weights = np.ones(len(relative))
            for _ in range(12):
                found, _ = nnls(relative / scale * weights[:, None], weights)
                predicted = np.maximum(relative / scale @ found, 1e-3)
                weights = 1 / np.sqrt(np.maximum(np.abs(np.log(predicted)), 0.08)) / np.maximum(predicted, 0.3) ** 0.5
            rates[method] = found / scale
        rates[-1, [UNITS.index(unit) for unit in ("run", "vector", "strided")]] = 3, 1, 0.2
        return rates

    def best(self):
        from scipy.optimize import minimize  # pylint: disable=import-outside-toplevel

        np = self.np
        start = self.of_times()
        free = start > 1e-4
        first = np.log(start[free])

        def of(logarithms):
            rates = np.zeros_like(start)
            rates[free] = np.exp(logarithms)
            return rates

        def loss(logarithms):
            return self.soft_loss(of(logarithms)) + 0.01 * ((logarithms - first) ** 2).mean()

        found = first
        for _ in range(3):
            found = minimize(loss, found, method="L-BFGS-B", options={"maxiter": 60, "maxfun": 6000}).x
        return of(found)


def print_rates(shapes):
    shapes = [shape for shape in shapes if shape["chosen"] != "depthwise"]
    fit = Fit(shapes)
    rates = fit.best()
    print(f"fitted: {math.exp(fit.soft_loss(rates, 1e-4)):.4f} times the quickest; picoseconds of a {', '.join(UNITS)}:")
    for method, row in zip(METHODS, rates):
        print(f"{method:12}", ", ".join(f"{float(f'{1000 * rate:.2g}'):.0f}" for rate in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shape-file", metavar="FILE")
    parser.add_argument("--times", metavar="FILE")
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    if options.shapes < 1:
        raise SystemExit(f"error: --shapes={options.shapes}, at least one is timed")
    if options.times and os.path.exists(options.times):
        print(f"from {options.times}, timed before", file=sys.stderr)
        shapes = times_of(options.times)
    else:
        lines = lines_of(options.shape_file) if options.shape_file else drawn_shapes(options.shapes, options.seed)
        shapes = timed(lines)
        if options.times:
            with open(options.times, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(shape) + "\n" for shape in shapes)
    report(shapes)
    if options.fit:
        print_rates(shapes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
