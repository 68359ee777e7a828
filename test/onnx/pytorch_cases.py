"""What PyTorch (pytorch_models.py) and gpuc (pytorch_test.py) both train on: for each model data, optimizer and shapes."""

import math

from tensor_files import hashed, uniform

BATCH, BATCHES, STEPS = 8, 4, 20
WORDS, LENGTH, CLASSES = 19, 6, 5

# input: (type, shape of a row, integers below). import: flags of gpuc-import-onnx. The batch is open where the model
# leaves it in front; attention and recurrent layers of PyTorch move it.
CASES = {
    "convnet": {"input": ("f64", [1, 12, 12], None), "labels": [], "classes": CLASSES,
                "optimizer": "sgd:lr=0.05,momentum=0.9", "import": [], "compile": [f"--batch={BATCH}"]},
    "classifier": {"input": ("i64", [LENGTH], WORDS), "labels": [], "classes": CLASSES,
                   "optimizer": "adam:lr=0.002", "import": [f"--dim=batch={BATCH}"], "compile": []},
    "language": {"input": ("i64", [LENGTH], WORDS), "labels": [LENGTH], "classes": WORDS,
                 "optimizer": "adamw:lr=0.002,weight_decay=0.05,decay=all",
                 "import": [f"--dim=batch={BATCH}", "--freeze=places.*"], "compile": []},
    "recurrent": {"input": ("i64", [LENGTH], WORDS), "labels": [LENGTH], "classes": CLASSES,
                  "optimizer": "adam:lr=0.01", "import": [f"--dim=batch={BATCH}"], "compile": []},
}


def data(name):
    """field → (type, shape, values): BATCHES batches, which are taken in order and again from the first."""
    case = CASES[name]
    dtype, row, below = case["input"]
    shape, labels = [BATCH * BATCHES, *row], [BATCH * BATCHES, *case["labels"]]
    values = uniform(shape, 1, 2.0) if below is None else [h % below for h in hashed(math.prod(shape), 1)]
    return {"x": (dtype, shape, values),
            "labels": ("i32", labels, [h % case["classes"] for h in hashed(math.prod(labels), 2)])}
