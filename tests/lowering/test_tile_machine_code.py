"""The machine code of the examples: so many of the engine's instructions as there are copies, and nothing in local memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

import pytest
from tests.lowering.test_named_runs import COMBINE
from tests.lowering.test_named_runs import TILES as ADDED
from tests.lowering.test_run_stores import AXPY, EACH
from tests.lowering.test_runs import ROWS, STEPS, TILES
from tests.lowering.test_scattered_rows import SCATTER
from tests.lowering.test_scattered_rows import TILES as SCATTERED
from tests.lowering.test_tensor import EXAMPLES, example
from tests.schedule.laid import Laid, binary, laid

from texpr.backends.cuda import print_kernels
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import find_nvcc, this_machine
from texpr.toolchain.cuda import CudaBinary, disassemble

WORDS = ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED")
UNROLLED = ("UBLKCP", "UBLKRED")
LOCAL = ("LDL", "STL")
"""Loads and stores of a thread's own memory: what registers do not hold."""

TARGETS = ["sm_90a", pytest.param("sm_100a", marks=pytest.mark.long)]


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
            case k.CopyBulk(reduce=None):
                found["UBLKCP"] += 1
            case k.CopyBulk():
                found["UBLKRED"] += 1
            case _:
                pass
    return found


def of(words: Sequence[str], text: str) -> Counter[str]:
    """How often each of the words stands in machine code."""
    return Counter(re.findall(rf"\b({'|'.join(words)})\b", text))


def disassembled(made: CudaBinary) -> str:
    """The machine code of all kernels; skips where nothing can read it."""
    try:
        return disassemble(this_machine(), find_nvcc(this_machine()), made)
    except TexprError as reason:
        pytest.skip(str(reason))


def parts(text: str) -> dict[str, str]:
    """The code of each kernel."""
    found = re.split(r"\.section\s+\.text\.(\w+)", text)
    return dict(zip(found[1::2], found[2::2], strict=True))


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_spilled(target: str) -> None:
    found, made = compiled(target)
    assert len(made.kernels) == sum(1 for each in found.values() for _ in k.kernels(each.plan.steps))
    assert [(each.spill_stores, each.spill_loads) for each in made.kernels] == [(0, 0)] * len(made.kernels)


@pytest.mark.parametrize("target", TARGETS)
def test_copies_are_the_engine_s_instructions(target: str) -> None:
    """No more, and no fewer: what the schedule says one thread starts is one instruction each; of runs in a loop, which ptxas
    writes out, as many as there are turns in one."""
    found, made = compiled(target)
    code = parts(disassembled(made))
    total: Counter[str] = Counter()
    for each in found.values():
        for kernel in k.kernels(each.plan.steps):
            total += counted(kernel)
            words, wanted = of(WORDS, code[kernel.name]), counted(kernel)
            assert words.keys() == wanted.keys(), kernel.name
            assert all(words[word] == n or (word in UNROLLED and words[word] % n == 0) for word, n in wanted.items()), (
                kernel.name
            )
            assert not of(LOCAL, code[kernel.name]), kernel.name
    assert min(total[word] for word in WORDS[:3]) >= 1, total


@pytest.mark.parametrize("directives", [TILES, STEPS], ids=["tiles", "steps"])
@pytest.mark.parametrize("target", TARGETS)
def test_rows_are_the_engine_s_instructions(target: str, directives: str) -> None:
    """Runs of neighbouring elements, without a map: an instruction for each of the 8 rows, whose loop is unrolled."""
    made = laid(ROWS, directives, target)
    found = disassembled(binary(made, target))
    (kernel,) = k.kernels(made.plan.steps)
    words = of(WORDS, found)
    assert words.keys() == counted(kernel).keys() == {"UBLKCP"} and words["UBLKCP"] % 8 == 0
    assert not of(LOCAL, found)


RUNS = {
    "vectors": (AXPY, EACH, "sm_90a", {"UBLKCP.S.G": 2, "UBLKCP.G.S": 1}),
    "sums": (COMBINE, ADDED.format("Y"), "sm_90a", {"UBLKRED.G.S.ADD.F32.RN": 1}),
    "rows": (SCATTER, SCATTERED.format(""), "sm_100a", {"UTMASTG.2D.SCATTER4": 5}),
}
"""Runs in and out, sums of rows, and 18 rows that are stored four at a time, in a loop that is unrolled."""


@pytest.mark.parametrize("name", RUNS)
def test_stores_are_the_engine_s_instructions(name: str) -> None:
    text, directives, target, wanted = RUNS[name]
    found = disassembled(binary(laid(text, directives, target), target))
    assert Counter(re.findall(rf"\b((?:{'|'.join(WORDS)})[.\w]*)", found)) == wanted and not of(LOCAL, found)


def test_what_is_counted_in_machine_code() -> None:
    """Words as nvdisasm writes them, each with its forms; none within another."""
    text = "UTMALDG.2D [UR8], [UR4] ; @UP0 UTMALDG.3D.IM2COL ; UBLKCP.S.G ; STL.64 [R1] ; LDL R0, [R1] ; LDLX ; MYSTL"
    assert of(WORDS, text) == {"UTMALDG": 2, "UBLKCP": 1} and of(LOCAL, text) == {"STL": 1, "LDL": 1}
