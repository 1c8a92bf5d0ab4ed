"""Plans for callers whose rows begin at vectors, by strategy: chosen, proved, and right for all who call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planner.bare import PRODUCT, TILED, TURNED
from tests.proof.plan.verdicts import is_proved
from tests.schedule.test_mma import arguments

import texpr
from texpr import driver
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.ir.program.text import print_directive
from texpr.planner.wider import in_vectors
from texpr.proof.schedule import faithful
from texpr.proof.search import proved
from texpr.runtime.memory import aligned_empty

MORE = """
fn axes(X: f16[m, p, n]): f16[n, p, m] {
    new Y: f16[n, p, m]
    par n, p, m |j, l, i| { Y[j, l, i] = X[i, l, j] }
    return Y
}
fn scaled(X: bf16[m, n], gain: bf16[n], eps: f32): bf16[m, n] {
    new Y: bf16[m, n]
    par m |i| {
        new square: f32
        square = 0.0
        par n |j| reduce(square) { square += X[i, j] * X[i, j] }
        let scale = rsqrt(square / f32(n) + eps)
        par n |j| { Y[i, j] = bf16(f32(X[i, j]) * scale * f32(gain[j])) }
    }
    return Y
}
fn total(x: f32[n]): f32 {
    new s: f32
    s = 0.0
    par n |i| reduce(s) { s += x[i] }
    return s
}
fn biased(X: bf16[m, n], b: bf16[n]): bf16[m, n] {
    new Y: bf16[m, n]
    par m, n |i, j| { Y[i, j] = bf16(gelu(f32(X[i, j]) + f32(b[j]))) }
    return Y
}
fn rows(table: f32[v, n], at: i32[m]): f32[m, n]
    assume at in 0..v
{
    new Y: f32[m, n]
    par m, n |i, j| { Y[i, j] = table[at[i], j] }
    return Y
}
"""
TEXT = f"{PRODUCT}{TURNED}{TILED}{MORE}"
PROGRAM = texpr.parse(TEXT)
ASKED: Mapping[str, tuple[frozenset[str], set[str]]] = {
    "product": (frozenset("AB"), {"n % 8", "p % 8"}),
    "turned": (frozenset("AB"), {"m % 4", "n % 4"}),
    "axes": (frozenset("XY"), {"m % 8", "n % 8"}),
    "scaled": (frozenset(("X", "gain", "Y")), {"n % 8"}),
    "total": (frozenset("x"), set()),
    "biased": (frozenset("XbY"), {"n % 8"}),
    "rows": (frozenset(("table", "Y")), {"n % 4"}),
}
"""Arrays that are accessed by vectors, and what must be nothing of sizes."""


def compiled(name: str, **sizes: int) -> driver.Compiled:
    return driver.lower(PROGRAM[name], "sm_90a", sizes, schedule="auto")


@pytest.mark.parametrize("name", ASKED)
def test_what_vectors_need_is_asked_for(name: str) -> None:
    made = compiled(name)
    assert made.wide is not None
    arrays, rests = ASKED[name]
    plan = made.wide.plan
    assert in_vectors(plan) >= arrays and not in_vectors(made.plan) & arrays - {"C"}
    aligned = {b.name for b in (*plan.params, *plan.results) if b.align == 16}
    assert arrays <= aligned <= arrays | {"C"}, "results that both plans store in parts of vectors"
    assert {str(fact.left).strip("()") for fact in plan.requires} == rests


@pytest.mark.parametrize("name", ASKED)
def test_both_are_proved(name: str) -> None:
    made = compiled(name)
    assert made.wide is not None
    for each in (made, made.wide):
        assert is_proved(proved(each.function, each.plan))
        assert each.written is None or is_proved(faithful(each.written, each.function))


def test_what_is_promised_is_not_made_twice() -> None:
    """Copies of these tiles are vectors under a promise; without one, copies of 4 bytes take more than a tenth of a turn."""
    promised = TEXT.replace("f32[m, p],", "f32[m, p] align(16),").replace("B: f32[p, n]): f32[m, n] {", WITH)
    made = driver.lower(texpr.parse(promised)["tiled"], "sm_90a", schedule="auto")
    assert made.schedule is not None and made.wide is None
    said = [print_directive(each) for each in made.schedule.directives]
    assert sum("vectorize" in each for each in said) == 3 and sum("cp_async" in each for each in said) == 2
    assert compiled("tiled").wide is not None


WITH = "B: f32[p, n] align(16)): f32[m, n] where p % 4 == 0, n % 4 == 0 {"


@pytest.mark.parametrize(
    ("name", "sizes"), [("scaled", {"n": 124}), ("scaled", {"n": 64}), ("turned", {"n": 6}), ("axes", {"m": 36})]
)
def test_what_no_vector_suits_has_none(name: str, sizes: Mapping[str, int]) -> None:
    """A row that leaves most of a warp idle, and rows that are no whole vectors."""
    assert compiled(name, **sizes).wide is None


def test_rows_that_are_no_whole_vectors_are_copied_by_narrower_ones() -> None:
    """Rows of 36 bf16 begin at multiples of 8 bytes: nothing of p is asked for."""
    wide = compiled("product", p=36).wide
    assert wide is not None
    stmts = [stmt for kernel in k.kernels(wide.plan.steps) for stmt in k.walk(kernel.body)]
    counts = {each.source.buffer.name: each.count for each in stmts if isinstance(each, k.CopyAsync)}
    assert counts == {"A": 4, "B": 8}
    assert {str(fact.left) for fact in wide.plan.requires} == {"(n % 8)"}


@pytest.mark.parametrize("p", [1, 7, 20, 36, 65, 100])
def test_products_of_few_turns_are_proved(p: int) -> None:
    """Of these the last rows of a tile are filled: by which vector an element is written depends on its remainder."""
    wide = compiled("product", p=p).wide
    assert wide is not None and is_proved(proved(wide.function, wide.plan))


def test_rows_that_data_choose_are_written_one_by_one() -> None:
    """What is set to zero before is a vector; of vectors of such rows nothing would be proved."""
    made = driver.lower(texpr.parse(SCATTERED)["scattered"], "sm_90a", schedule="auto").wide
    assert made is not None and is_proved(proved(made.function, made.plan))
    zero, sums = k.kernels(made.plan.steps)
    assert [any(isinstance(stmt, k.StoreVector) for stmt in k.walk(each.body)) for each in (zero, sums)] == [True, False]


SCATTERED = """
fn scattered(x: f32[n, d], seg: i32[n], inout y: f32[s, d])
    assume seg in 0..s
{
    par s |i| { par d |j| { y[i, j] = 0.0 } }
    par n |r| reduce(y) { par d |j| { y[seg[r], j] += x[r, j] } }
}
"""


def cases() -> Iterator[tuple[str, dict[str, int]]]:
    for m, p, n in ((16, 32, 24), (17, 33, 9), (1, 8, 8), (8, 1, 1), (0, 8, 8), (8, 0, 8), (8, 8, 0), (72, 8, 136)):
        yield "product", {"m": m, "p": p, "n": n}
    for m, n in ((64, 64), (68, 132), (66, 67), (1, 1), (1, 64), (0, 4), (4, 0)):
        yield "turned", {"m": m, "n": n}
    for m, p, n in ((64, 2, 72), (66, 3, 7), (1, 1, 1), (8, 0, 8), (0, 1, 8), (8, 1, 0)):
        yield "axes", {"m": m, "p": p, "n": n}
    for m, n in ((3, 512), (2, 264), (2, 511), (1, 1), (3, 8), (0, 8), (2, 0)):
        yield from ((name, {"m": m, "n": n}) for name in ("scaled", "biased"))
    for m, n in ((3, 256), (2, 132), (2, 131), (1, 1), (0, 4), (4, 0)):
        yield "rows", {"v": 5, "m": m, "n": n}
    for n in (4096, 4099, 1, 0):
        yield "total", {"n": n}


@pytest.fixture(scope="module")
def built() -> dict[str, driver.Compiled]:
    return {name: compiled(name) for name in ASKED}


@pytest.fixture(scope="module")
def launched() -> dict[str, texpr.Kernel]:
    return {name: texpr.compile(PROGRAM[name], "sm_90a", emulate=True) for name in ASKED}


Given = dict[str, Any]


def given_to(made: driver.Compiled, sizes: Mapping[str, int]) -> Given:
    """Small integers, of which all sums are exact."""
    found: Given = dict(arguments(made, sizes))
    given = {name: value[()] if value.ndim == 0 else value for name, value in found.items()}
    return given if "at" not in given else {**given, "at": abs(given["at"])}


def alike(found: Any, want: Any) -> None:
    np.testing.assert_allclose(np.asarray(found, np.float64), np.asarray(want, np.float64), rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize(("name", "sizes"), [*cases()], ids=str)
def test_both_plans_compute_the_same(built: dict[str, driver.Compiled], name: str, sizes: dict[str, int]) -> None:
    """The wide one only at sizes that it asks for."""
    made = built[name]
    given, wide = given_to(made, sizes), made.wide
    (result,) = made.function.results
    want = interpret(PROGRAM[name], given)[result.name]
    assert wide is not None
    plain = run_plan(made.function, made.plan, given).arrays[result.name]
    alike(plain, want)
    values = {sym: sizes[sym.name] for sym in made.plan.sizes}
    if all(fact.left.evaluate(values) == fact.right.evaluate(values) for fact in wide.plan.requires):
        alike(run_plan(wide.function, wide.plan, given).arrays[result.name], want)


def placed(source: Any, shift: int) -> Any:
    """The same array, so many elements behind an aligned address."""
    if not isinstance(source, np.ndarray) or source.ndim == 0:
        return source
    room = aligned_empty(source.dtype, (source.size + shift,), 256)
    found = room[shift:].reshape(source.shape)
    found[...] = source
    return found


PLACES = [("product", {"m": 17, "p": 16, "n": 24}), ("turned", {"m": 64, "n": 68}), ("scaled", {"m": 2, "n": 264})]


@pytest.mark.parametrize("moved", [(), (0,), (1,), (-1,)], ids=["none", "the first", "the second", "the result"])
@pytest.mark.parametrize(("name", "sizes"), PLACES, ids=str)
def test_arrays_may_begin_anywhere(
    launched: dict[str, texpr.Kernel], name: str, sizes: dict[str, int], moved: tuple[int, ...]
) -> None:
    """The emulator reports an access that is not aligned."""
    given = given_to(compiled(name), sizes)
    result = interpret(PROGRAM[name], given)
    (want,) = result.values()
    arrays = [placed(value, int(at in moved)) for at, value in enumerate(given.values())]
    out = placed(np.zeros_like(want), int(-1 in moved))
    launched[name](*arrays, out=out)
    alike(out, want)
