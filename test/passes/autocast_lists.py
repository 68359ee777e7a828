#!/usr/bin/env python3
"""PyTorch's autocast lists for CUDA, as its own tests have them, written to autocast_lists.json.

    /usr/bin/python3 test/passes/autocast_lists.py > test/passes/autocast_lists.json

`lower`: cast to f16 or bf16; `f32`: cast to f32; `promote`: the widest operand's type wins. What is in none of them
follows its operands by PyTorch's own promotion.
"""

import json
import sys
import types

import torch

# What the lists take from there is one flag; the rest wants packages that are not needed here.
sys.modules["torch.testing._internal.common_utils"] = types.SimpleNamespace(TEST_WITH_ROCM=False)
from torch.testing._internal.autocast_test_lists import AutocastTestLists


def names(*lists):
    return sorted({entry[0] for entries in lists for entry in entries})


def drawn(draw):
    """A CPU has no f16 to speak of, and what is drawn is of no interest."""
    return lambda *shape, dtype=None, **other: draw(*shape, **other)


torch.randn, torch.rand = drawn(torch.randn), drawn(torch.rand)
lists = AutocastTestLists("cpu")
print(
    json.dumps(
        {
            "torch": torch.__version__.split("+")[0],
            "lower": names(lists.torch_fp16, lists.nn_fp16, lists.linalg_fp16, lists.methods_fp16),
            "f32": names(lists.torch_fp32, lists.nn_fp32, lists.methods_fp32),
            "promote": names(
                lists.torch_need_autocast_promote,
                lists.torch_expect_builtin_promote,
                lists.methods_expect_builtin_promote,
            ),
        },
        indent=1,
    )
)
