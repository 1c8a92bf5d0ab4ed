"""What reading says that kernels touch is what they touch when they are run by hand: every element, by thread."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest
from tests.lowering import machine

from references import EXAMPLES as PROGRAMS
from texpr import driver
from texpr.affine.expr import Expr, Sym, expr
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.program.selection import Selected
from texpr.ir.value import Load, Op, Value
from texpr.presburger.formula import And, Formula, Ge, holds, syms
from texpr.presburger.solve.relaxed import flat
from texpr.proof.read.actions import Program
from texpr.proof.read.events import Reading, Site
from texpr.proof.read.reader import read

EXAMPLES = Path(__file__).parents[3] / "examples"

Touched = set[tuple[str, tuple[int, ...], int]]
"""Elements of arrays, by the number of the thread that touches them."""


def touched_by_hand(plan: k.Plan, run: machine.Machine, patch: pytest.MonkeyPatch) -> tuple[Touched, Touched]:
    """What is read and what is written when `plan` is run."""
    reads, writes = Touched(), Touched()
    plain = machine.Memory.touch

    def touch(memory: machine.Memory, element: machine.Element, new: machine.Touch, *, writes: bool) -> None:
        (wrote if writes else got).add((memory.name, element, new.thread))
        plain(memory, element, new, writes=writes)

    got, wrote = reads, writes
    with patch.context() as patched:
        patched.setattr(machine.Memory, "touch", touch)
        run.run(plan)
    return reads, writes


def touched_by_reading(reading: Reading, sizes: Mapping[Sym, int]) -> tuple[Touched, Touched, Touched]:
    """What may be read, what is written, and what is written if data say so."""
    reads, writes, perhaps = Touched(), Touched(), Touched()
    places: list[tuple[Site, Load, Touched]] = []
    for event in reading.events:
        asked = [value for value, _ in event.site.tests]
        places += [(event.site, load, reads) for value in (event.value, *asked) for load in loads(value)]
        if isinstance(event.target, Load):
            places.append((event.site, event.target, perhaps if event.site.tests else writes))
            places += [(event.site, load, reads) for e in event.target.data for load in loads(e[1])]
    for variable in reading.variables.values():
        places += [(variable.site, load, reads) for load in loads(variable.value)]
    for site, load, into in places:
        if load.data:
            continue  # which row is read is data
        for point in points(site, sizes):
            element = tuple(e.evaluate(point) for e in load.index)
            into.add((load.buffer.name, element, site.launch.thread.evaluate(point)))
    return reads, writes, perhaps


def loads(value: Value | None) -> Iterator[Load]:
    if isinstance(value, Load):
        yield value
        for _, inner in value.data:
            yield from loads(inner)
    for part in value.args if isinstance(value, Op) else (getattr(value, "arg", None),):
        if part is not None:
            yield from loads(part)


def points(site: Site, sizes: Mapping[Sym, int]) -> Iterator[dict[Sym, int]]:
    """The instances of a site, counted out."""
    launch = site.launch
    ends = {s: extent(site, s) for s in (*launch.host, *launch.blocks, *launch.threads)}

    order = [*ends, *(loop.sym for loop in site.loops)]
    due: list[list[Formula]] = [[] for _ in range(len(order) + 1)]  # facts, by how many coordinates they need
    for fact in flat(site.where):
        needed = [at + 1 for at, sym in enumerate(order) if sym in syms(fact)]
        due[max(needed, default=0)].append(fact)

    def rest(known: dict[Sym, int], at: int) -> Iterator[dict[Sym, int]]:
        if not all(holds(fact, known) for fact in due[at]):
            return
        if at == len(order):
            yield dict(known)
            return
        sym = order[at]
        lo, hi, step = expr(0), ends.get(sym), expr(1)
        if hi is None:
            loop = site.loops[at - len(ends)]
            (lo, hi), step = site.bounds[loop], loop.step
        for value in range(lo.evaluate(known), hi.evaluate(known), step.evaluate(known)):
            yield from rest({**known, sym: value}, at + 1)

    yield from rest(dict(sizes), 0)


def extent(site: Site, sym: Sym) -> Expr:
    """How many values a coordinate of a launch has."""
    for fact in site.launch.domain:
        if isinstance(fact, And) and len(fact.parts) == 2 and fact.parts[0] == Ge(expr(sym)):
            assert isinstance(fact.parts[1], Ge)
            return fact.parts[1].expr + sym + 1
    raise AssertionError(sym)


def differences(
    file: Path, target: str, sizes: Mapping[str, int], schedule: Selected, patch: pytest.MonkeyPatch, lost: bool = False
) -> Touched:
    """What is touched by reading or by hand, but not by both; `lost`: without a write of the reading."""
    found = {example.function: example for example in PROGRAMS if example.path == file}
    wrong = Touched()
    for function in driver.load(file).functions:
        if function.name in found:
            arrays = dict(found[function.name].make(np.random.default_rng(3), sizes))
        else:
            numbers = {s: sizes[s.name] for s in function.sizes}
            arrays = {p.name: np.ones([e.evaluate(numbers) for e in p.shape], numpy_dtype(p.dtype)) for p in function.params}
        plan = driver.lower(function, target, schedule=schedule or next(iter(function.schedules), None)).plan
        reading = read(plan, Program(function, (), {}, {}, {}))
        if lost:
            reading.events.remove(next(e for e in reading.events if isinstance(e.target, Load)))
        bases = {axis.base: 0 for launch in reading.launches for axis in launch.kernel.axes if axis.base is not None}
        known = {**{s: sizes[s.name] for s in plan.sizes}, **bases}
        reads, writes, perhaps = touched_by_reading(reading, known)
        got, wrote = touched_by_hand(plan, machine.Machine(function, arrays, sizes, 0), patch)
        rows = {load.buffer.name for event in reading.events for load in loads(event.value) if load.data}  # which are data
        wrong |= {each for each in got - reads if each[0] not in rows} | writes - wrote | wrote - writes - perhaps
        assert wrote
    return wrong


SMALL = {
    "saxpy": {"n": 1100}, "transpose": {"M": 9, "N": 34}, "matmul": {"M": 5, "N": 7, "K": 3},
    "matmul_flat": {"M": 5, "N": 7, "K": 3}, "softmax": {"M": 2, "N": 37},
    "layernorm": {"M": 2, "N": 5}, "sum": {"n": 41}, "cholesky": {}, "gather": {}, "argmax": {},
}  # fmt: skip
"""Programs, and sizes at which to run them; the first of the example's own where none is said."""


COPIES = {"copy": {"M": 5, "K": 36}, "transpose": {"M": 6, "N": 36}, "stencil": {"M": 9, "N": 20}}
"""Programs whose tiles the engine copies."""


def sizes_of(name: str) -> Mapping[str, int]:
    return SMALL[name] or min((e.small[-1] for e in PROGRAMS if e.path.stem == name), key=len)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", sorted(SMALL))
def test_reading_says_what_is_touched(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differences(EXAMPLES / f"{name}.te", target, sizes_of(name), None, monkeypatch)


@pytest.mark.parametrize(("name", "target"), [("matmul", "cpu"), ("matmul_flat", "sm_90a"), ("transpose", "sm_90a")])
def test_reading_says_what_tiles_touch(name: str, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differences(EXAMPLES / f"{name}.te", target, SMALL[name], "auto", monkeypatch)


@pytest.mark.parametrize("name", sorted(COPIES))
def test_reading_says_what_the_engine_moves(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differences(EXAMPLES / "tma" / f"{name}.te", "sm_90a", COPIES[name], None, monkeypatch)


def test_what_is_not_read_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(EXAMPLES / "saxpy.te", "sm_90a", SMALL["saxpy"], None, monkeypatch, lost=True)
    assert differences(EXAMPLES / "tma" / "copy.te", "sm_90a", COPIES["copy"], None, monkeypatch, lost=True)
