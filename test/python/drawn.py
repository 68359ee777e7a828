"""Values of parameters that a recording and the test that replays it draw alike, without storing them."""

import random
import struct


def drawn(name, count):
    """As many f64 as `count`, by the name alone, as bytes."""
    generator = random.Random(name)
    return struct.pack(f"<{count}d", *(generator.uniform(-0.5, 0.5) for _ in range(count)))
