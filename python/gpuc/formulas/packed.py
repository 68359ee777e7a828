"""Packed sequences within a step, which has no shapes that hang on lengths: padded rows beside their lengths.

pack_padded_sequence gives such a pair, a recurrent layer leaves a row's states alone behind its length, and pad_packed_sequence takes the rows
out again. What looks into a packed sequence, its data without padding, is refused.
"""

import contextlib

import torch
from torch import nn
from torch.nn.utils import rnn

from gpuc.capture.unseen import refuse_here

CURE = "pad_packed_sequence(…) gives padded rows, to count with a mask"


@torch.library.custom_op("gpuc::recurrent", mutates_args=())
def recurrent(input: torch.Tensor, lengths: torch.Tensor, hx: list[torch.Tensor], params: list[torch.Tensor], mode: str, has_biases: bool,
              num_layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool) -> list[torch.Tensor]:  # fmt: skip
    """What a layer gives of rows of these lengths: all outputs, 0 behind them, and the last states."""
    raise NotImplementedError("gpuc::recurrent is for the compiler alone")


@recurrent.register_fake
def _(input, lengths, hx, params, mode, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    width = hx[0].shape[2] * (2 if bidirectional else 1)
    return [input.new_empty(*input.shape[:2], width), *(torch.empty_like(each) for each in hx)]


class Padded(rnn.PackedSequence):
    """A packed sequence by its padded rows. `is_whole`: one of them is known to have all steps; `is_cleared`: there are zeros behind them."""

    def __new__(cls, rows, lengths, is_batch_first, is_whole, is_cleared=False):
        made = tuple.__new__(cls, (None,) * 4)
        made.rows, made.lengths, made.is_batch_first = rows, lengths, is_batch_first
        made.is_whole, made.is_cleared = is_whole, is_cleared
        return made

    def hidden(self, *_, **__):
        refuse_here(f"looks into a packed sequence, whose data have as many rows as sequences have steps, and a compiled step's shapes are fixed: {CURE}")

    data = batch_sizes = sorted_indices = unsorted_indices = is_cuda = property(hidden)
    to = double = float = half = __iter__ = __getitem__ = _replace = hidden

    def device_is_the_same(self, *_, **__):
        return self

    cpu = pin_memory = device_is_the_same

    def is_pinned(self):
        return False


def pack(input, lengths, batch_first):
    count, steps = input.shape[:2] if batch_first else (input.shape[1], input.shape[0])
    is_known = not isinstance(lengths, torch.Tensor)
    if is_known:
        known = [int(each) for each in lengths]
        if not known or min(known) < 1 or max(known) > steps:
            raise RuntimeError(f"lengths {known} of sequences of {steps} steps")
        input = input.narrow(1 if batch_first else 0, 0, max(known))
        lengths = torch.tensor(known)
    if lengths.shape != (count,):
        raise RuntimeError(f"{tuple(lengths.shape)} lengths of {count} sequences: one for each")
    return Padded(input, lengths, batch_first, is_known)


def pad(sequence, batch_first, padding_value, total_length):
    time = 1 if sequence.is_batch_first else 0
    rows, lengths = sequence.rows, sequence.lengths
    steps = rows.shape[time]
    if total_length is not None and total_length < steps:
        raise ValueError(f"total_length is {total_length}, and there are {steps} steps")
    if total_length is None and not sequence.is_whole:
        torch._assert_async(lengths.max() == steps, "pad_packed_sequence gives all steps that there are, and without a compiled step as many as the longest "
                            "sequence has: give it total_length=")  # fmt: skip
    if not sequence.is_cleared or padding_value != 0:
        beside = torch.arange(steps).unsqueeze(1 - time) < lengths.unsqueeze(time)
        rows = torch.where(beside.view(*beside.shape, *[1] * (rows.dim() - 2)), rows, padding_value)
    if total_length is not None and total_length > steps:
        more = list(rows.shape)
        more[time] = total_length - steps
        rows = torch.cat([rows, rows.new_full(more, padding_value)], time)
    return (rows if sequence.is_batch_first == batch_first else rows.transpose(0, 1)), lengths


def through(layer, sequence, hx):
    """What an LSTM, GRU or RNN makes of it."""
    layer._update_flat_weights()
    layer.check_input(sequence.rows, None)
    count = sequence.lengths.shape[0]
    widths = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * (layer.mode == "LSTM")
    wanted = [(layer.num_layers * (2 if layer.bidirectional else 1), count, width) for width in widths]
    if hx is None:
        states = [torch.zeros(shape, dtype=sequence.rows.dtype) for shape in wanted]
    else:
        states = list(hx) if layer.mode == "LSTM" else [hx]
    for state, shape in zip(states, wanted):
        if tuple(state.shape) != shape:
            raise RuntimeError(f"Expected hidden size {shape}, got {tuple(state.shape)}")
    found, *states = torch.ops.gpuc.recurrent(
        sequence.rows, sequence.lengths, states, list(layer._flat_weights), layer.mode, layer.bias, layer.num_layers, float(layer.dropout), layer.training,
        layer.bidirectional, sequence.is_batch_first,
    )  # fmt: skip
    out = Padded(found, sequence.lengths, sequence.is_batch_first, sequence.is_whole, True)
    return out, tuple(states) if layer.mode == "LSTM" else states[0]


# In the place of torch's own code, so that who has imported a function by its name gets this one, too.


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    from gpuc.formulas.packed import pack
    return pack(input, lengths, batch_first)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    from gpuc.formulas.packed import pad
    return pad(sequence, batch_first, padding_value, total_length)


def pack_sequence(sequences, enforce_sorted=True):
    from gpuc.formulas.packed import pack
    return pack(pad_sequence(sequences), [len(each) for each in sequences], False)  # noqa: F821


REPLACED = (pack_padded_sequence, pad_packed_sequence, pack_sequence)


def forward_of(plain):
    def forward(self, input, hx=None):
        return through(self, input, hx) if isinstance(input, Padded) else plain(self, input, hx)

    return forward


@contextlib.contextmanager
def padded_sequences():
    functions = [(getattr(rnn, each.__name__), each) for each in REPLACED]
    before = [function.__code__ for function, _ in functions]
    layers = [(layer, layer.forward) for layer in (nn.RNN, nn.LSTM, nn.GRU)]
    try:
        for function, ours in functions:
            function.__code__ = ours.__code__
        for layer, plain in layers:
            layer.forward = forward_of(plain)
        yield
    finally:
        for (function, _), code in zip(functions, before):
            function.__code__ = code
        for layer, plain in layers:
            layer.forward = plain
