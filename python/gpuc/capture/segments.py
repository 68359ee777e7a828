"""Segments of torch.utils.checkpoint, which eager mode computes again in its backward pass, with all that they leave behind."""

import contextlib
import sys
import traceback

from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.utils import checkpoint

from gpuc.capture.custom_gradients import put
from gpuc.errors import Problem
from gpuc.lines import user_line

TWICE = ("keeps running statistics within torch.utils.checkpoint, where eager mode counts each batch twice: a compiled step counts it once, and with "
         "checkpoint= it needs no such segments")  # fmt: skip


@contextlib.contextmanager
def noted_segments(noted):
    """Adds norms to what is noted that eager mode would have count twice."""

    def noting(forward):
        def computed(layer, *args, **kwargs):
            if layer.training and layer.track_running_stats and is_in_segment():
                noted.append(Problem(TWICE, "", *user_line("".join(traceback.format_stack()))))
            return forward(layer, *args, **kwargs)

        return computed

    with contextlib.ExitStack() as undo:
        for kind in (_BatchNorm, _InstanceNorm):
            put(undo, kind, "forward", noting(kind.forward))
        yield


def is_in_segment():
    frame = sys._getframe(2)
    while frame and frame.f_code.co_filename != checkpoint.__file__:
        frame = frame.f_back
    return frame is not None
