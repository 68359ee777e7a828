"""What torch.export says against a module, as gpuc says it."""

import traceback

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException

from gpuc.formulas.cures import cured


def hangs_on_a_value(error):
    text = str(error)
    return (isinstance(error, (DataDependentOutputException, DynamicOutputShapeException)) or "GuardOnDataDependent" in type(error).__name__
            or "data-dependent" in text or "unbacked" in text)  # fmt: skip


def trace_of(error):
    return "".join(traceback.format_tb(error.__traceback__)) + str(error)


def reason_of(error):
    text = str(error).strip()
    op = getattr(error, "func", None)
    if isinstance(error, (UnsupportedOperatorException, DynamicOutputShapeException)):
        return cured(f"{op.__name__} is not supported")
    if isinstance(error, DataDependentOutputException):
        return f"{op.__name__} gives Python a tensor's value: keep it a tensor, or compute it before the step"
    if hangs_on_a_value(error):
        return "what happens hangs on the value of a tensor (a branch, .item(), int(…)): use torch.where, or keep it a tensor"
    if "fake tensor in the exported program constant's list" in text:
        return "a tensor is taken out of the graph, as set_() does: use detach(), and copy_() to write into a buffer"
    text = text.splitlines()[0] if text else type(error).__name__
    if isinstance(error, KeyError):
        return f"KeyError: {text}"
    return next((f"{text}: {cure}" for words, cure in CURES_OF_TORCHS.items() if words in text), text)


# By words of torch's.
CURES_OF_TORCHS = {
    "passed to FakeTensor.__format__": "a text asks for a tensor's value: write it behind the step",
    ".numpy() is not supported": "NumPy gets no values within a step: write it by torch's ops",
    "Expected dtype int32/int64 for index": "labels are whole numbers, .long(), or one probability for each class, of the output's shape",
    "could not infer output dtype": "cast what is averaged, or the target of a loss, .float()",
    "on the same device": "a module for gpuc has all of it on the CPU",
    "'NoneType' object": "there may be a tensor in eager mode, which a module that is captured leaves out (is_compiling()): give it as an input, a mask say",
    "SparseTensorImpl": "tensors are dense: make it .to_dense()",
}
