"""The cells of scripts/bench --real: models at sizes that people train.

A cell is as fast as it should be if it is never slower than the best peer, and `target` times as fast as it or at `share` of the rate
that a product has in the same rounds.
"""

import dataclasses

from cases import ADAMW, CLASSES, Case, gpt, mlp

SHARE = 0.65
MOMENTUM = {"name": "sgd", "lr": 1e-3, "momentum": 0.9}
SLOW = {**MOMENTUM, "lr": 1e-4}
# A batch norm over few numbers divides by small deviations, and so makes much of how a sum was rounded; each update makes more of it.
# PyTorch's own losses of five steps in f32, channels last or not, compiled or not, and in f64 are as far apart: in ResNet-18 on 64×64 2e-4
# where it is compiled (gpuc's are 5e-6 from those in f64); at the lower rate 5e-4 in MobileNet (at the other 4e-3) and 9e-3 in ResNet-50
# with four pictures. So are the encoder–decoder's (1e-4 where it is compiled, gpuc's 2e-5) and, of one thread and of two, those of GPT-2
# 124M (3e-5): AdamW divides gradients by their size, and those near zero are all rounding.
RESNET18_TOLERANCE, RESNET50_TOLERANCE, MOBILENET_TOLERANCE, ADAMW_TOLERANCE = 5e-4, 2e-2, 1e-3, 3e-4
TORCH = ("torch-eager", "torch-compiled")
PICTURE_CLASSES = 1000


def real(case, **changes):
    return dataclasses.replace(case, **{"target": 2.0, "share": SHARE, "real": True, **changes})


def of_pictures(name, title, kind, source, batch, size, classes, optimizer=MOMENTUM, dtype="u8", labels=(), **changes):
    """Models that are written for PyTorch alone; labels are [batch, *labels]."""
    inputs = {"x": (dtype, [batch, 3, size, size], 256 if dtype == "u8" else None), "labels": ("i32", [batch, *labels], classes)}
    return real(Case(name, f"{title}, batch {batch}", {"kind": kind}, source, optimizer, inputs, 2.0),
                peers=TORCH, **changes)


def resnet(depth, size, batch, **changes):
    kind = f"resnet{depth}"
    return of_pictures(f"{kind}-{size}-b{batch}", f"ResNet-{depth} {size}²", kind, [kind, f"size={size}"], batch, size, PICTURE_CLASSES,
                       **{"tolerance": RESNET18_TOLERANCE, **changes})


def unlike_the_zoo(kind, title, batch, size, classes, **changes):
    """Models of bench/models/bench-models.cpp."""
    return of_pictures(f"{kind}-b{batch}", f"{title} {size}²", kind, ["bench-models", kind], batch, size, classes, dtype="f32", **changes)


def recurrent(batch=64, steps=28, width=28, hidden=128, layers=2):
    keys = ["cell=gru", "bidirectional=true", f"hidden={hidden}", f"layers={layers}"]
    model = {"kind": "rnn-classifier", "width": width, "hidden": hidden, "layers": layers}
    inputs = {"x": ("u8", [batch, 1, steps, width], 256), "labels": ("i32", [batch], CLASSES)}
    return real(Case(f"gru-b{batch}", f"GRU, bidirectional, {layers}×{hidden}, T {steps}, batch {batch}", model, ["rnn-classifier", *keys],
                     ADAMW, inputs, 2.0), peers=TORCH)


def language_model(batch=32, length=64, embedding=128, hidden=256, layers=2, vocabulary=256):
    model = {"kind": "lstm-generator", "embedding": embedding, "hidden": hidden, "layers": layers, "vocabulary": vocabulary}
    tokens = ("i32", [batch, length], vocabulary)
    return real(Case(f"lstm-lm-b{batch}", f"LSTM language model {layers}×{hidden}, T {length}, batch {batch}", model,
                     ["lstm-generator", f"length={length}"], ADAMW, {"x": tokens, "labels": tokens}, 2.0), peers=TORCH)


def translator(batch=16, length=32, width=256, heads=8, feedforward=1024, layers=3, vocabulary=5000):
    model = {"kind": "transformer", "width": width, "heads": heads, "feedforward": feedforward, "layers": layers, "vocabulary": vocabulary,
             "length": length, "ignored": 0}
    keys = [f"width={width}", f"heads={heads}", f"feedforward={feedforward}", f"layers={layers}", f"length={length}", "dropout=0"]
    tokens = ("i32", [batch, length], vocabulary)
    return real(Case(f"translator-b{batch}", f"encoder–decoder {layers}+{layers}×{width}, T {length}, batch {batch}", model,
                     ["transformer", *keys], ADAMW, {"src": tokens, "tgt": tokens, "labels": tokens}, 2.0), peers=TORCH, tolerance=ADAMW_TOLERANCE)


REAL_CASES = [
    real(mlp("mlp1024-b128", [784, 1024, 1024, 1024, 10], 128, 2.0)),
    of_pictures("convnet-b64", "convnet 3×28×28", "convnet", ["convnet"], 64, 28, CLASSES),
    resnet(18, 64, 16, target=1.5, share=None),
    resnet(18, 224, 8),
    resnet(50, 224, 4, optimizer=SLOW, tolerance=RESNET50_TOLERANCE),
    unlike_the_zoo("mobilenet", "MobileNetV2", 16, 128, PICTURE_CLASSES, optimizer=SLOW, tolerance=MOBILENET_TOLERANCE),
    unlike_the_zoo("unet", "U-Net", 8, 128, 8, labels=(128, 128)),
    recurrent(),
    language_model(),
    translator(),
    real(gpt(6, 192, 128, 8, 2.0, heads=6)),
    real(gpt(12, 768, 128, 2, 2.0, heads=12, vocabulary=50257), tolerance=ADAMW_TOLERANCE),
    unlike_the_zoo("vit", "ViT-Ti/16", 8, 224, PICTURE_CLASSES, optimizer=ADAMW),
]

# What runs beside each of them: 1024×1024×1024, which is large enough for the best rate of either number of threads.
PRODUCT = Case("product", "product", {"kind": "product"}, ["product.mlir"], {}, {"x": ("f32", [1024, 1024], None)}, 1.0)
PRODUCT_FLOPS = 2 * 1024 ** 3
