"""That a kernel is made of the text of its steps alone, of every kernel that a test looks at."""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir import kernel as k
from texpr.ir.kernel.text import kernel_text
from texpr.ir.steps.parse import parse_steps
from texpr.ir.steps.text import steps_text
from texpr.ir.steps.verify import verify
from texpr.ir.value.structure import same
from texpr.lowering.emit.kernel import emit
from texpr.lowering.notes import Notes


def check(plan: k.Plan, notes: Sequence[Notes]) -> None:
    """The steps of each kernel are well formed, read back as they are, and from the text comes the same kernel, to the byte."""
    kernels = {kernel.name: kernel for kernel in k.kernels(plan.steps)}
    for each in notes:
        verify(each.steps)
        text = steps_text(each.steps)
        again = parse_steps(text)
        assert same(again, each.steps)
        assert steps_text(again) == text
        verify(again)
        assert kernel_text(emit(again)) == kernel_text(kernels[each.kernel])
