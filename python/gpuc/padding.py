"""A ragged last batch, filled up to the rows that were compiled. The loss leaves the padding out.

Where that would not be what PyTorch computes of the rows alone, it is refused: where the loss cannot be masked, and where
what one row gives hangs on the others.
"""

import torch

BATCH_NORM = ("batch_norm", "_native_batch_norm_legit")


def is_dropout(node):
    return "dropout" in node["op"]


def mixes_in_training(functions):
    """Why the padding would be seen in training mode, beside the loss; None: it is not, if evaluation does not see it."""
    by_name = {each["name"]: each for each in functions}
    training, evaluation = by_name["loss"], by_name["evaluate"]
    if any(node["op"].startswith(BATCH_NORM) for node in training["nodes"]):
        return "batch norm would count the padding"
    if training["assigned"]:
        return "buffers that the forward pass changes would hold padding"
    ops = [[node["op"] for node in each["nodes"] if not is_dropout(node)] for each in (training, evaluation)]
    if ops[0] != ops[1]:
        return "the module does other things in training than in evaluation, in which it cannot be tried whether rows mix"
    return None


def first_row(tensor):
    return tensor[:1]


def another_row(tensor):
    """No element of which is that of the first; of labels and tokens it has those that there always are."""
    first = first_row(tensor)
    return first + 1 if first.is_floating_point() else (first == 0).to(first.dtype)


class Padding:
    """Of one step: fills up batches, and knows whether that may be."""

    def __init__(self, session, functions, expected):
        self.session, self.expected = session, expected
        first = expected[0][1] if expected else ()
        self.batch = first[0] if first else 0  # As the recipe has it.
        self.mixes = mixes_in_training(functions)
        self.mixes_in_evaluation = None  # Tried when there is a first ragged batch.

    def rows_of(self, tensors):
        """How many rows a ragged batch has, 0 if these tensors are none: what has rows of the batch has fewer of them."""
        found = {0}
        for tensor, (dtype, shape) in zip(tensors, self.expected):
            if not isinstance(tensor, torch.Tensor) or tensor.dtype != dtype or not tensor.is_cpu:
                return 0
            if shape and shape[0] == self.batch and tensor.dim() and tensor.shape[1:] == shape[1:]:
                found.add(tensor.shape[0])
            elif tensor.shape != shape:
                return 0
        rows = max(found)
        return rows if found == {0, rows} and 0 < rows < self.batch else 0

    def mean(self, program, tensors, rows):
        """Of the rows that are there; and why it cannot be had, if so."""
        why = self.refusal(program, tensors, rows)
        if why:
            return None, why
        return self.run(program, [self.filled(tensor, first_row(tensor)) for tensor in tensors], rows), None

    def refusal(self, program, tensors, rows):
        if not self.session.counts_rows(program):
            return "the loss is no single mean or sum, of which rows could be left out"
        if program == "train_step" and self.mixes:
            return self.mixes
        if self.mixes_in_evaluation is None:
            self.mixes_in_evaluation = self.try_mixing(tensors, rows)
        return "what one row gives hangs on others" if self.mixes_in_evaluation else None

    def try_mixing(self, tensors, rows):
        """Whether the loss of evaluation changes with what the padding holds."""
        if not self.session.counts_rows("evaluate"):
            return True
        losses = []
        for filler in (first_row, another_row):
            self.run("evaluate", [self.filled(tensor, filler(tensor)) for tensor in tensors], rows)
            losses.append((self.session.number("evaluate", 0), self.session.number("evaluate", 1)))
        return repr(losses[0]) != repr(losses[1])

    def filled(self, tensor, filler):
        if not tensor.dim() or tensor.shape[0] == self.batch:
            return tensor.detach().contiguous()
        missing = self.batch - tensor.shape[0]
        return torch.cat([tensor.detach(), filler.detach().expand(missing, *tensor.shape[1:])])

    def run(self, program, tensors, rows):
        return self.session.mean_of_rows(program, rows, *[tensor.data_ptr() for tensor in tensors])
