"""What builds leave of right programs is taken for what it is: nothing is lost where a plan is read back from its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from texpr import artifact, delivery, driver
from texpr.backends.cpu import print_cpu
from texpr.backends.cuda import print_kernels
from texpr.ir.kernel.origin import origin_of, printed_plan
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.kernel.verify import verify
from texpr.ir.program import Function
from texpr.isa.registry import resolve
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace
from texpr.toolchain import Toolchain

from .test_artifact import Pretending

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"conv2d": {"stride": 2, "dilation": 1, "padding": 1}}
ANYWHERE = (path for path in EXAMPLES.rglob("*.te") if path.parent.name != "hopper")  # those need their schedules
EVERY = sorted(path.relative_to(EXAMPLES).with_suffix("").as_posix() for path in ANYWHERE)
SOME = ("argmax", "histogram", "jacobi", "tma/matmul_ring", "tma/transpose", "tma/scatter")


FIXED = {"scheduled/softmax_long": {"N": 12288}}
"""Sizes that a schedule has to know."""


def functions(name: str) -> tuple[Function, ...]:
    return driver.load(EXAMPLES / f"{name}.te", SIZES.get(name, {})).functions


def targets(name: str) -> Sequence[str]:
    return ("sm_100a",) if name in ("tma/permuted", "tma/scatter", "tma/gather") else ("sm_90a",)


class NoCompilers(Pretending):
    """Nothing is compiled, on the host neither."""

    def __init__(self, tools: Toolchain):
        super().__init__(tools)
        self.library = lambda *given, **more: (b"shared", b"static")  # pyright: ignore[reportAttributeAccessIssue]


def chosen(every: Sequence[Function], on: str) -> Iterator[tuple[tuple[Function, ...], str]]:
    """What is built together, each function once by each of its schedules for a target, if that has several."""
    machine = resolve(on)
    fit = {each: [s.name for s in each.schedules if s.name and s.target in (on, machine.family, None)] for each in every}
    several = {each: names for each, names in fit.items() if len(names) > 1}
    yield tuple(each for each in every if each not in several), "auto"
    yield from (((each,), name) for each, names in several.items() for name in names)


def again(name: str, tools: Toolchain, to: Path) -> None:
    for on in (targets(name), *(() if name.startswith("tma/") else (("cpu",),))):
        for number, (together, schedule) in enumerate(chosen(functions(name), on[0])):
            if together:
                out = to / f"{on[0]}_{number}"
                parts = delivery.parts(together, on, FIXED.get(name), schedule)
                artifact.build(NoCompilers(tools), together[0].name, parts, out)
                found = artifact.verify(out)
                assert found.targets == tuple(on) and not artifact.open_plans(found.proofs)


@pytest.mark.parametrize("name", SOME)
def test_the_gallery_is_verified(name: str, tools: Toolchain, tmp_path: Path) -> None:
    again(name, tools, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", [each for each in EVERY if each not in SOME])
def test_all_of_the_gallery_is_verified(name: str, tools: Toolchain, tmp_path: Path) -> None:
    again(name, tools, tmp_path)


@pytest.mark.parametrize("name", EVERY)
def test_a_plan_that_is_read_back_prints_the_same(name: str) -> None:
    """Places in the text that somebody wrote among it, of which only the lines that are named need be kept."""
    for function in functions(name):
        for target in (*targets(name), *(() if name.startswith("tma/") else ("cpu",))):
            made = driver.lower(function, target, schedule="auto")
            origin = origin_of(made.plan)
            assert origin is not None
            plan, *wide = (printed_plan(plan_text(each), "<plan>", origin) for each in made.plan.versions)
            assert [*map(plan_text, (plan, *wide))] == [*map(plan_text, made.plan.versions)]
            plan = replace(plan, wide=wide[0] if wide else None)
            assert (print_cpu(plan) if target == "cpu" else print_kernels(plan, resolve(target))) == made.source


def test_one_that_was_built_in_python_has_no_places() -> None:
    text = plan_text(driver.lower(functions("saxpy")[0], "cpu").plan)
    plan = printed_plan(text, "<plan>", None)
    assert "-- line" not in plan_text(plan) and "TX_AT" not in print_cpu(plan)


@pytest.mark.parametrize("line", ["0", "9999999", "3, column 0"])
def test_places_that_nobody_wrote(line: str) -> None:
    """They are none, or an error; never a text without an end."""
    made = driver.lower(functions("saxpy")[0], "sm_90a").plan
    text = plan_text(made).replace("-- line 4", f"-- line {line}")
    try:
        assert len(print_kernels(printed_plan(text, "<plan>", origin_of(made)))) < 10_000
    except ValueError as why:
        assert "there is no line" in str(why)


def test_a_parameter_that_is_passed_by_value_has_no_address() -> None:
    text = plan_text(driver.lower(functions("saxpy")[0], "sm_90a").plan)
    verify(parse_plan(text))
    with pytest.raises(CompilerBug, match="a has no address"):
        verify(parse_plan(text.replace("scalar a: f32[]", "buffer a: f32[]")))
