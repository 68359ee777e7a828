"""The CTC loss within a step: a formula, but for its loop over time, which is an op of the compiler's (gpuc::alignments)."""

import contextlib

import torch

from gpuc.capture.custom_gradients import put, refuse_here

NEVER = -1e30  # The logarithm of 0, as a number that can be counted with.


@torch.library.custom_op("gpuc::alignments", mutates_args=())
def alignments(emissions: torch.Tensor, mask: torch.Tensor, first: torch.Tensor, never: float) -> torch.Tensor:
    """[frames, rows, places], from `first` on: emissions[t] and the sum, of logarithms, of what stood at a place before, at the one in front of
    it and, where `mask` is true, at the one in front of that."""
    raise NotImplementedError("gpuc::alignments is for the compiler alone")


@alignments.register_fake
def _(emissions, mask, first, never):
    return torch.empty_like(emissions)


def lengths_of(given, count):
    found = given if isinstance(given, torch.Tensor) else torch.tensor([int(each) for each in given])
    if found.dim() == 0:
        found = found.unsqueeze(0)
    if found.shape != (count,):
        refuse_here(f"ctc_loss has {tuple(found.shape)} lengths of {count} sequences: one for each")
    return found


def rows_of(targets, target_lengths, count):
    """[rows, labels]: of those behind one another, if it is known how many each has."""
    if targets.dim() == 2:
        return targets
    if count == 1:
        return targets.unsqueeze(0)
    if isinstance(target_lengths, torch.Tensor):
        refuse_here("ctc_loss has the targets of all rows behind one another, and where each begins hangs on lengths: give it padded ones, [rows, labels]")
    starts = [sum(target_lengths[:row]) for row in range(count)]
    places = torch.tensor(starts).unsqueeze(1) + torch.arange(max(1, *target_lengths))
    return targets[places.clamp(max=targets.shape[0] - 1)]


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction=1, zero_infinity=False):
    """torch.ctc_loss. Places are a blank, a label, a blank, …, a blank."""
    is_alone = log_probs.dim() == 2
    if is_alone:
        log_probs = log_probs.unsqueeze(1)
    frames, count, _ = log_probs.shape
    targets = rows_of(targets, target_lengths, count).long()
    frame_counts, label_counts = lengths_of(input_lengths, count), lengths_of(target_lengths, count)
    within = torch.arange(targets.shape[1]) < label_counts.unsqueeze(1)
    labels = torch.where(within, targets, blank)
    blanks = torch.full_like(labels, blank)
    places = torch.cat([torch.stack([blanks, labels], 2).flatten(1), blanks[:, :1]], 1)
    may_skip = (places[:, 2:] != places[:, :-2]) & (places[:, 2:] != blank)
    mask = torch.cat([torch.zeros(count, 2, dtype=torch.bool), may_skip], 1)
    first = torch.full(places.shape, NEVER, dtype=log_probs.dtype)
    first = torch.where(torch.arange(places.shape[1]) == 0, 0.0, first)
    emissions = log_probs.gather(2, places.expand(frames, *places.shape))
    found = torch.ops.gpuc.alignments(emissions, mask, first, NEVER)
    last = (frame_counts - 1).clamp(min=0).view(1, count, 1).expand(1, *places.shape)
    ends = found.gather(0, last).squeeze(0)
    at_blank = ends.gather(1, 2 * label_counts.unsqueeze(1)).squeeze(1)
    at_label = ends.gather(1, (2 * label_counts - 1).clamp(min=0).unsqueeze(1)).squeeze(1)
    loss = -torch.logaddexp(at_blank, torch.where(label_counts > 0, at_label, NEVER))
    loss = loss + as_of_softmax(log_probs, frame_counts)
    is_impossible = loss.detach() > -NEVER / 2
    loss = torch.where(is_impossible, 0.0, loss) if zero_infinity else loss * torch.where(is_impossible, torch.inf, 1.0).to(loss.dtype)
    if reduction == 1:
        return (loss / label_counts.clamp(min=1)).mean()
    return loss.sum() if reduction == 2 else loss.squeeze(0) if is_alone else loss


def as_of_softmax(log_probs, frame_counts):
    """0, with the gradient by which PyTorch's differs from that of the loss: it takes log_probs for what log_softmax gives."""
    counted = (torch.arange(log_probs.shape[0]).unsqueeze(1) < frame_counts).unsqueeze(2)
    total = torch.where(counted, log_probs, -torch.inf).exp().sum((0, 2))
    return total - total.detach()


@contextlib.contextmanager
def known_alignments():
    with contextlib.ExitStack() as undo:
        put(undo, torch, "ctc_loss", ctc_loss)
        yield
