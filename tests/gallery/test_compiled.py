"""Every program of the gallery, compiled: on the CPU, and as emulated CUDA in order and in adversarial orders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import pytest

from references import BY_NAME, EXAMPLES, Example, Sizes, distance
from texpr import runtime
from texpr.affine.expr import Sym
from texpr.driver import lower
from texpr.emulator import IN_ORDER, LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run
from texpr.ir.kernel import kernels
from texpr.ir.program import Function
from texpr.ir.program.selection import AUTO
from texpr.isa.levels import Level
from texpr.toolchain import Toolchain, this_machine

SEEDS = range(8)
ORDERS = (LOCKSTEP, *SEEDS)


@cache
def tools() -> Toolchain:
    """This machine's compilers."""
    return Toolchain(this_machine())


@cache
def function_of(name: str, consts: tuple[tuple[str, int], ...]) -> Function:
    """The function of example `name`, its consts fixed."""
    example = BY_NAME[name]
    return parse(example.path.read_text(encoding="utf-8"), example.path.name, dict(consts))[example.function]


@cache
def kernel_of(name: str, place: str, consts: tuple[tuple[str, int], ...], fixed: tuple[tuple[str, int], ...]) -> runtime.Kernel:
    """The example's kernel, with some sizes fixed and the others given at run time. `place`: cpu, emulator, or the target of a
    device that is there, for which the compiler schedules as it does for users."""
    function = function_of(name, consts)
    if place not in ("cpu", "emulator"):
        compiled = lower(function, place, dict(fixed), schedule=AUTO)
        return runtime.load_cuda(tools(), compiled.function, compiled.plan, place)
    compiled = lower(function, "cpu" if place == "cpu" else "sm_90a", dict(fixed))
    if place == "cpu":
        return runtime.load_cpu(tools(), compiled.function, compiled.plan)
    return runtime.load_emulated(tools(), compiled.function, compiled.plan, "sm_90a")


def ran(kernel: runtime.Kernel, arrays: Mapping[str, np.ndarray], sizes: Sizes) -> dict[str, np.ndarray]:
    """What `kernel` leaves in each result and inout."""
    given = {param.name: np.array(arrays[param.name]) for param in kernel.function.params}
    returned = kernel(*given.values(), **{sym.name: sizes[sym.name] for sym in kernel.function.sizes})
    several = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    results = {buffer.name: np.asarray(value) for buffer, value in zip(kernel.function.results, several, strict=True)}
    return results | {param.name: given[param.name] for param in kernel.function.params if param.role == "inout"}


def compare(example: Example, place: str, sizes: Sizes, *, orders: tuple[int, ...] = (IN_ORDER,), fix: bool = False) -> None:
    """Run `example` at `place`: within its bound of the reference, bit-equal to the interpreter where it is exact."""
    arrays = example.make(np.random.default_rng(1), sizes)
    expected = example.reference(arrays, sizes)
    consts, rest = example.split(sizes)
    at_build, at_call = (rest, {}) if fix else ({}, rest)
    kernel = kernel_of(example.name, place, tuple(consts.items()), tuple(at_build.items()))
    meant = run(function_of(example.name, tuple(consts.items())), arrays, rest)
    for order in orders:
        kernel.seed = order
        actual = ran(kernel, arrays, at_call)
        assert actual.keys() == expected.keys()
        for name, wanted in expected.items():
            assert distance(actual[name], wanted, example.floor) <= example.ulp, (name, order)
            if example.ulp == 0:
                assert np.array_equal(actual[name], meant[name]), (name, order)


def sizes_id(value: object) -> str | None:
    return "x".join(map(str, value.values())) if isinstance(value, dict) else getattr(value, "name", None)


def cases(sizes: str) -> list[tuple[Example, dict[str, int]]]:
    return [(example, each) for example in EXAMPLES for each in getattr(example, sizes)]


@pytest.mark.parametrize("place", ["cpu", "emulator"])
@pytest.mark.parametrize(("example", "sizes"), cases("small"), ids=sizes_id)
def test_small(example: Example, sizes: Sizes, place: str) -> None:
    compare(example, place, sizes)


@pytest.mark.parametrize("example", EXAMPLES, ids=sizes_id)
def test_every_order_of_threads(example: Example) -> None:
    compare(example, "emulator", example.small[-1], orders=ORDERS)


@pytest.mark.parametrize(("example", "sizes"), cases("large"), ids=sizes_id)
def test_large_on_the_cpu(example: Example, sizes: Sizes) -> None:
    compare(example, "cpu", sizes)


@pytest.mark.parametrize(("example", "sizes"), cases("large"), ids=sizes_id)
def test_large_emulated(example: Example, sizes: Sizes) -> None:
    compare(example, "emulator", sizes)


@pytest.mark.parametrize(("example", "sizes"), cases("large"), ids=sizes_id)
def test_large_has_three_blocks_on_each_axis_of_the_grid(example: Example, sizes: Sizes) -> None:
    consts, rest = example.split(sizes)
    plan = lower(function_of(example.name, tuple(consts.items())), "sm_90a").plan
    known = {Sym(name): value for name, value in rest.items()}
    blocks = {
        (kernel.name, axis.dim): axis.extent.evaluate(known)
        for kernel in kernels(plan.steps)
        for axis in kernel.axes
        if axis.level is Level.GRID
    }
    assert {name: count for name, count in blocks.items() if count < 3} == {}


@pytest.mark.long
@pytest.mark.parametrize(("example", "sizes"), cases("large"), ids=sizes_id)
def test_large_in_every_order(example: Example, sizes: Sizes) -> None:
    compare(example, "emulator", sizes, orders=ORDERS)


@pytest.mark.long
@pytest.mark.parametrize("place", ["cpu", "emulator"])
@pytest.mark.parametrize(("example", "sizes"), cases("small"), ids=sizes_id)
def test_sizes_fixed_at_build(example: Example, sizes: Sizes, place: str) -> None:
    compare(example, place, sizes, fix=True)


@pytest.mark.parametrize("place", ["cpu", "emulator"])
@pytest.mark.parametrize("example", EXAMPLES, ids=sizes_id)
def test_the_last_small_sizes_fixed_at_build(example: Example, place: str) -> None:
    compare(example, place, example.small[-1], fix=True)
