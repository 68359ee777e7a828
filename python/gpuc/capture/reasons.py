"""What torch.export says against a module, as gpuc says it."""

import ast
import dis
import linecache
import traceback

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException

from gpuc.formulas.cures import CURE_OF_NUMBERS, cured
from gpuc.lines import is_own


def hangs_on_a_value(error):
    text = str(error)
    return (isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) or "GuardOnDataDependent" in type(error).__name__
            or "data-dependent" in text or "unbacked" in text)  # fmt: skip


def trace_of(error):
    return "".join(traceback.format_tb(error.__traceback__)) + str(error)


def reason_of(error, what):
    """Against `what`, the module or its loss."""
    text = str(error).strip()
    op = getattr(error, "func", None)
    if isinstance(error, (UnsupportedOperatorException, DynamicOutputShapeException)):
        return f"torch.export cannot capture {what}: {cured(f'{op.__name__} is not supported')}"
    if hangs_on_a_value(error):
        return reason_of_value(error, what)
    if "fake tensor in the exported program constant's list" in text:
        text = "a tensor is taken out of the graph, as set_() does: use detach(), and copy_() to write into a buffer"
    text = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, KeyError):
        text = f"KeyError: {text}"
    cure = next((f": {cure}" for words, cure in CURES_OF_TORCHS.items() if words in text), "")
    return f"torch.export cannot capture {what}: {text}{cure}"


# By words of torch's.
CURES_OF_TORCHS = {
    "passed to FakeTensor.__format__": "a text asks for a tensor's value: write it behind the step",
    ".numpy() is not supported": "NumPy gets no values within a step: write it by torch's ops",
    "Expected dtype int32/int64 for index": "labels are whole numbers, .long(), or one probability for each class, of the output's shape",
    "could not infer output dtype": "cast what is averaged, or the target of a loss, .float()",
    "on the same device": "a module for gpuc has all of it on the CPU",
    "'NoneType' object": "there may be a tensor in eager mode, which a module that is captured leaves out (is_compiling()): give it as an input, a mask say",
    "SparseTensorImpl": "tensors are dense: make it .to_dense()",
    "Cannot view a tensor with shape": "a view was taken before t_(), transpose_() and the like: write x = x.t()",
    "is not an instance of torch.nn.Module": "where forward makes a layer, call the module once, then compile it",
    "expected compiled_fn to be GraphModule": "two buffers share memory, and one is changed: make one buffer of them, and take views of it in forward",
    "is mutated in the forward method": "what forward changes is a buffer, register_buffer(…)",
}

#
# What the user's code asks a tensor for
#

MOST_TEXT = 60
OF_VALUES = "hangs on a tensor's value, which a compiled step does not know"
CURE_OF_LOOPS = "loop as often as is always enough, and let torch.where keep what is done"
CURE_OF_CHOICES = "compute both and choose, torch.where(…, a, b)"
CURE_OF_CLASSES = "say how many there are, F.one_hot(…, num_classes)"


def reason_of_value(error, what):
    own = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__) if not is_own(frame.f_code.co_filename)]
    if not own:
        return f"what {what} does {OF_VALUES}: {CURE_OF_NUMBERS}"
    code, line = own[-1]
    at = instruction(error, code)
    text, call = code_of(code.co_filename, at.positions)
    statement = linecache.getline(code.co_filename, line).strip()
    if "JUMP" in at.opname or at.opname in ("UNARY_NOT", "TO_BOOL") or call == "bool":
        cure = CURE_OF_LOOPS if statement.startswith("while ") else CURE_OF_CHOICES
        return f"{text}: which way is taken {OF_VALUES}: {cure}"
    if call == "one_hot":
        return f"{text}: how many classes there are {OF_VALUES}: {CURE_OF_CLASSES}"
    if call in ("equal", "allclose"):
        return f"{text}: its answer {OF_VALUES}: keep it a tensor, torch.isclose(a, b).all(), and {CURE_OF_CHOICES}"
    if at.opname == "GET_ITER" or call == "range":
        return f"{text}: how often this loops {OF_VALUES}: {CURE_OF_LOOPS}"
    return f"{text}: this number {OF_VALUES}: {CURE_OF_NUMBERS}"


def instruction(error, code):
    """At which the innermost frame of that code was."""
    trace, last = error.__traceback__, 0
    while trace:
        last = trace.tb_lasti if trace.tb_frame.f_code is code else last
        trace = trace.tb_next
    return [each for each in dis.get_instructions(code) if each.offset <= last][-1]


def code_of(file, positions):
    """What the user has written there, and the name of what it calls."""
    lines = [linecache.getline(file, number) for number in range(positions.lineno or 0, (positions.end_lineno or 0) + 1)]
    if not lines or positions.col_offset is None:
        return "here", ""
    lines[-1] = lines[-1].encode()[: positions.end_col_offset].decode()
    lines[0] = lines[0].encode()[positions.col_offset :].decode()
    text = " ".join(line.strip() for line in lines)
    try:
        call = getattr(ast.parse(text, mode="eval").body, "func", None)
    except SyntaxError:
        call = None
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…", getattr(call, "attr", getattr(call, "id", ""))
