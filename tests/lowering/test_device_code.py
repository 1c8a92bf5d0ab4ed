"""Everything the suite emits compiles for real devices; the gallery without spilling a register."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tests.lowering.programs import PROGRAMS, REDUCED, reduction_over
from tests.properties.generate import Generator

from references import EXAMPLES
from texpr.backends.cuda import headers, print_kernels
from texpr.frontend import parse
from texpr.ir.kernel import Plan, kernels
from texpr.ir.kernel.together import joint, together
from texpr.ir.program.rewrite import specialize
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

TARGETS = ("sm_80", "sm_90a", "sm_100a")


def gallery() -> str:
    """Every program of the gallery in one text, each function with its example's name."""
    texts = ((example, example.path.read_text(encoding="utf-8")) for example in EXAMPLES)
    return "\n".join(text.replace(f"fn {example.function}(", f"fn {example.name}_(") for example, text in texts)


def others() -> str:
    """The particular programs, reductions of every type, and some random ones."""
    particular = [program.text.replace("fn f(", f"fn {program.name}(") for program in PROGRAMS]
    reductions = [reduction_over(dtype) for dtype in REDUCED]
    return "\n".join((*particular, *reductions, *(Generator(seed, f"g{seed}").program() for seed in range(12))))


def compile_all(text: str, target: str) -> dict[str, Mapping[str, int]]:
    """One `.cu` with every kernel (a compile for each would take most of its time to start): what each kernel uses."""
    plans: list[Plan] = []
    for function in parse(text, "all.te").functions:
        fixed = {sym: 1 if default is None else default for sym, default in function.consts}
        plans.append(lower(specialize(function, fixed), resolve(target))[0])
    whole = replace(plans[0], steps=tuple(step for plan in plans for step in plan.steps))
    binary = Toolchain(this_machine()).device(print_kernels(whole), headers(), target)
    assert binary.cubin.startswith(b"\x7fELF") and b".entry" in binary.ptx
    wanted = {kernel.name for plan in plans for kernel in (*kernels(plan.steps), *map(joint, together(plan.steps)))}
    used = {usage.kernel: usage.numbers() for usage in binary.kernels}
    assert used.keys() == wanted
    return used


@pytest.mark.parametrize("target", TARGETS)
def test_the_gallery_compiles(target: str) -> None:
    used = compile_all(gallery(), target)
    assert not {name for name, numbers in used.items() if numbers["spill_stores"] or numbers["spill_loads"]}


@pytest.mark.parametrize("target", TARGETS)
def test_every_other_program_of_the_suite_compiles(target: str) -> None:
    compile_all(others(), target)
