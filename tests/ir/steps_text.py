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
from texpr.support.record import replace


def alone(kernel: k.Kernel) -> k.Kernel:
    """A kernel without what it says of other launches."""
    body = tuple(stmt for stmt in kernel.body if not isinstance(stmt, k.AwaitLaunches | k.AdmitLaunch))
    return replace(kernel, body=body)


def check(plan: k.Plan, notes: Sequence[Notes]) -> None:
    """The steps of each kernel are well formed, read back as they are, and from the text comes the same kernel, to the byte,
    but for what it says of other launches."""
    kernels = {kernel.name: kernel for kernel in k.kernels(plan.steps)}
    for each in notes:
        verify(each.steps)
        text = steps_text(each.steps)
        again = parse_steps(text)
        assert same(again, each.steps)
        assert steps_text(again) == text
        verify(again)
        assert kernel_text(emit(again)) == kernel_text(alone(kernels[each.kernel]))
