"""The machine code of the examples: so many of the engine's instructions as there are copies, and nothing spilled."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from tests.lowering.test_tensor import EXAMPLES, example
from tests.schedule.laid import Laid, binary

from texpr.backends.cuda import print_kernels
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError
from texpr.toolchain import find_nvcc, this_machine
from texpr.toolchain.cuda import CudaBinary, disassemble

WORDS = ("UTMALDG", "UTMASTG", "UTMAREDG")


@cache
def compiled(target: str) -> tuple[dict[str, Laid], CudaBinary]:
    """All examples as one binary."""
    found = {name: _named(example(name), name) for name in EXAMPLES}
    steps = tuple(step for each in found.values() for step in each.plan.steps)
    first = max(found.values(), key=lambda each: len(each.plan.span.source.text))
    text = print_kernels(replace(first.plan, steps=steps))
    return found, binary(first, target, text)


def _named(made: Laid, name: str) -> Laid:
    """The kernels with names that no other example has."""
    kernels = (replace(kernel, name=f"{name}_{kernel.name}") for kernel in k.kernels(made.plan.steps))
    return replace(made, plan=replace(made.plan, steps=tuple(map(k.Launch, kernels))))


def counted(kernel: k.Kernel) -> Counter[str]:
    """What a kernel starts, by the instruction that does it."""
    found: Counter[str] = Counter()
    for stmt in k.walk(kernel.body):
        match stmt:
            case k.CopyTensor():
                found["UTMALDG"] += 1
            case k.StoreTensor(reduce=None):
                found["UTMASTG"] += 1
            case k.StoreTensor():
                found["UTMAREDG"] += 1
            case _:
                pass
    return found


def parts(text: str) -> dict[str, str]:
    """The code of each kernel."""
    found = re.split(r"\.section\s+\.text\.(\w+)", text)
    return dict(zip(found[1::2], found[2::2], strict=True))


@pytest.mark.parametrize("target", ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.long)])
def test_nothing_is_spilled(target: str) -> None:
    found, made = compiled(target)
    assert len(made.kernels) == sum(1 for each in found.values() for _ in k.kernels(each.plan.steps))
    assert [(each.spill_stores, each.spill_loads) for each in made.kernels] == [(0, 0)] * len(made.kernels)


@pytest.mark.parametrize("target", ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.long)])
def test_copies_are_the_engine_s_instructions(target: str) -> None:
    """No more, and no fewer: what the schedule says one thread starts is one instruction each."""
    found, made = compiled(target)
    try:
        code = parts(disassemble(this_machine(), find_nvcc(this_machine()), made))
    except TexprError as reason:
        pytest.skip(str(reason))
    total: Counter[str] = Counter()
    for each in found.values():
        for kernel in k.kernels(each.plan.steps):
            total += counted(kernel)
            words = Counter(re.findall(rf"\b({'|'.join(WORDS)})\b", code[kernel.name]))
            assert words == counted(kernel), kernel.name
    assert min(total[word] for word in WORDS) >= 1, total
