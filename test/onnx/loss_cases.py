"""Random cases of --loss: shapes, arguments, labels. What PyTorch (loss_reference.py) and gpuc (losses_test.py) both compute.

A model is y = x · w, each element of a row with a weight of its own, so that w shows every element's gradient. `own` is a
model that computes the loss itself.
"""

import math
import random

from tensor_files import hashed, uniform

BATCH, SAMPLES, STEPS, RATE = 4, 11, 3, 0.5  # The last batch has 3 rows, 2 where no row may be padding.
LOSSES = ["cross_entropy", "nll", "mse", "l1", "huber", "smooth_l1", "bce_with_logits"]


def number(rng, low, high):
    return round(rng.uniform(low, high), 3)


def class_arguments(rng, case):
    classes = case["row"][case["dim"] - 1]
    arguments = {}
    if rng.random() < 0.5:
        arguments["ignore_index"] = rng.choice([-100, -1, 255, rng.randrange(classes)])
    if case["loss"] == "cross_entropy" and rng.random() < 0.4:
        arguments["label_smoothing"] = rng.choice([0, 0.1, number(rng, 0, 1), 1])
    if rng.random() < 0.4:
        arguments["weight"] = [number(rng, 0.1, 3) for _ in range(classes)]
    return arguments


def class_shape(rng):
    """A row's shape, and which dimension of the batch holds the classes."""
    classes, places = rng.randint(1, 6), [rng.randint(1, 4) for _ in range(rng.choice([0, 0, 1, 1, 2, 2, 3]))]
    dim = rng.choice([1, len(places) + 1])
    return places[:dim - 1] + [classes] + places[dim - 1:], dim


def default_dim(row):
    return 2 if len(row) == 2 else 1


def make_case(seed):
    rng = random.Random(seed)
    case = {"seed": seed, "loss": rng.choice(LOSSES[:2] * 3 + LOSSES), "open": rng.random() < 0.6, "own": False,
            "labels": rng.choice(["i32", "i64"])}
    if case["loss"] in LOSSES[:2]:
        case["row"], case["dim"] = class_shape(rng)
        # The exporters' op has the classes in dimension 1 and knows no smoothing.
        case["own"] = case["dim"] == 1 and rng.random() < 0.5
        arguments = class_arguments(rng, case)
        if case["own"]:
            arguments.pop("label_smoothing", None)
            case["labels"] = "i64"
    else:
        case["row"] = [rng.randint(1, 5) for _ in range(rng.randint(0 if case["open"] else 1, 3))]
        arguments = {}
        case["own"] = case["loss"] == "mse" and rng.random() < 0.5
        if case["loss"] == "huber" and rng.random() < 0.7:
            arguments["delta"] = number(rng, 0.05, 2)
        if case["loss"] == "smooth_l1" and rng.random() < 0.7:
            arguments["beta"] = number(rng, 0.05, 2)
        if case["loss"] == "bce_with_logits" and case["row"] and rng.random() < 0.5:
            arguments["pos_weight"] = [number(rng, 0.1, 3) for _ in range(rng.choice([1, case["row"][-1]]))]
    if rng.random() < 0.3:
        arguments["reduction"] = rng.choice(["mean", "sum"])
    case["arguments"] = arguments
    return case


def spec(case):
    """What --loss says of it."""
    if case["own"]:
        return "output:loss"
    arguments = dict(case["arguments"])
    if "dim" in case and case["dim"] != default_dim(case["row"]):
        arguments["dim"] = case["dim"]
    texts = ["({})".format(",".join(map(str, v))) if isinstance(v, list) else str(v) for v in arguments.values()]
    return case["loss"] + (":" if arguments else "") + ",".join(f"{key}={text}" for key, text in zip(arguments, texts))


def is_padded(case):
    """Whether rows that are padding can be left out."""
    return not case["own"] or (case["open"] and "dim" in case)


def samples(case):
    return SAMPLES if is_padded(case) else SAMPLES // BATCH * BATCH


def target_row(case):
    row = list(case["row"])
    if "dim" in case:
        del row[case["dim"] - 1]
    return row


def data(case):
    """x, and the target's values."""
    seed, count = case["seed"] * 10, samples(case)
    x, shape = uniform([count, *case["row"]], seed + 1, 2.0), [count, *target_row(case)]
    if "dim" not in case:
        scale = 0.5 if case["loss"] == "bce_with_logits" else 2.0
        return x, [value + (0.5 if scale == 0.5 else 0) for value in uniform(shape, seed + 2, scale)]
    classes, ignored = case["row"][case["dim"] - 1], case["arguments"].get("ignore_index")
    labels = [h % classes for h in hashed(math.prod(shape), seed + 2)]
    if ignored is not None:
        labels = [ignored if h % 4 == 0 else label for label, h in zip(labels, hashed(len(labels), seed + 3))]
    return x, labels


def weight_shape(case):
    return case["row"] or [1]


def weights(case):
    return uniform(weight_shape(case), case["seed"] * 10 + 4, 1.0)
