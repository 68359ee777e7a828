"""Sizes of the zoo's models at which they compile and train in a moment, and have several layers to choose from."""

TEXT = ["layers=4", "heads=2", "width=16", "length=24", "vocabulary=50", "dropout=0.1", "batch=4"]
MODELS = {
    "linear-regression": [["batch=9"]],
    "mlp": [["hidden=24,24,24", "dropout=0.2", "batch=33"]],
    "convnet": [["size=16", "batch=5"]],
    "rnn-classifier": [["cell=" + cell, "steps=6", "width=8", "hidden=24", "layers=2", "dropout=0.2", "batch=18"]
                       for cell in ("rnn", "lstm", "gru")],
    # The second has loops over time that are cut into chunks.
    "lstm-generator": [["embedding=8", "hidden=16", "length=8", "dropout=0.2", "batch=12"],
                       ["embedding=8", "hidden=16", "length=144", "dropout=0.2", "batch=3"]],
    "transformer": [["width=16", "heads=2", "layers=2", "feedforward=32", "src_vocabulary=30", "tgt_vocabulary=40",
                     "length=20", "batch=3"]],
    "resnet18": [["size=40", "width=8", "classes=7", "batch=4"]],
    "resnet50": [["size=64", "width=4", "classes=7", "batch=4"]],
    "gpt2": [TEXT, TEXT + ["lora=4"]],
}
