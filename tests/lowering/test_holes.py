"""Table 1, lowered: what holes of a tile hold, at every level, for consumers that read them and for those that do not.

Programs here say what a tile is, and read all of it: the interpreter then knows what each hole must be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.schedule.laid import Laid, integers, laid, lowered, wrong

from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.proof import Verdict
from texpr.ir.value import Index, Literal, Op, Value
from texpr.ir.value.types import DTYPES
from texpr.proof.search import proved
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

SHORT = (None, LOCKSTEP, 0, 1)
Change = Callable[[k.Stmt], tuple[k.Stmt, ...]]


def tiles(test: str, more: str = "else { s[a, b] = 0.0 }", read: str = "", marks: str = "") -> str:
    """Tiles of 4 × 32 elements at row 8 · g + 4 · r, for r below 4, where `test` holds; all is read, or where `read`."""
    result = "z[g, r, c, d] = s[c, 31 - d]"
    result = f"{read} {{ {result} }} else {{ z[g, r, c, d] = 7.0 }}" if read else result
    return f"""fn f(x: f32[n, 32] align(16), p: i32[4]): f32[(n + 7) / 8, 4, 4, 32] {{
        new z: f32[(n + 7) / 8, 4, 4, 32]
        par (n + 7) / 8 |g| #bind(grid.x) {{
            seq 4 |r| {{
                new s: f32[4, 32]
                par 4 |a| #tma(0, 4, 32) {marks} {{ par 32 |b| {{ if {test} {{ s[a, b] = x[8 * g + 4 * r + a, b] }} {more} }} }}
                par 4 |c| {{ par 32 |d| {{ {result} }} }}
            }}
        }}
        return z
    }}"""


def made(text: str) -> Laid:
    (function,) = parse(text, "t.te").functions
    return lowered(function, function)


INSIDE = "8 * g + 4 * r + a < n"
LEVELS: dict[str, tuple[str, list[str], int]] = {
    "level 1": (INSIDE, [], 1),
    "level 1, what follows": (f"2 * g + r < (n + 3) / 4 and {INSIDE}", [], 1),
    "level 2": (f"r < 2 and {INSIDE}", ["r < 2"], 2),
    "level 2, and what follows": (f"r < 2 and 2 * g + r < (n + 3) / 4 and {INSIDE}", ["r < 2"], 2),
    "level 2, two": (f"r < 3 and r >= 1 and {INSIDE}", ["r < 3", "r >= 1"], 2),
    "level 2, one of two": (f"r < 3 and r < 2 and {INSIDE}", ["r < 2"], 2),
}
"""What is tested, what of it has to be asked, and how many copies that makes."""


def copies(found: Laid) -> list[k.CopyTensor]:
    return [s for s in found.statements if isinstance(s, k.CopyTensor)]


def questions(found: Laid) -> list[k.If]:
    """The branches that start copies in one of their sides alone, or in both."""
    kinds = (k.CopyTensor, k.StoreTensor)
    return [s for s in found.statements if isinstance(s, k.If) and any(isinstance(inner, kinds) for inner in s.then)]


@pytest.mark.parametrize("name", LEVELS)
def test_every_hole_holds_the_fill(name: str) -> None:
    test, asked, count = LEVELS[name]
    found = made(tiles(test))
    assert len(copies(found)) == count
    told = [s.condition for s in questions(found) if s.orelse]
    assert [part for each in told for part in said(each)] == asked
    if asked:
        assert [str(e) for e in copies(found)[1].at] == ["-128"]  # rows are whole, so that tiles are runs of 128 elements
    for rows in (19, 8, 1, 0):
        assert wrong(found, arrays(rows), {"n": rows}, SHORT) is None


def said(value: Value) -> list[str]:
    """The comparisons of a condition, one by one."""
    match value:
        case Op("and", args):
            return [part for each in args for part in said(each)]
        case Op(name, (Index(left), Index(right))):
            return [f"{left} {'<' if name == 'lt' else '>='} {right}"]
        case _:
            raise AssertionError(value)


def arrays(rows: int) -> dict[str, NDArray[Any]]:
    return {"x": integers(rows, 32) + 9, "p": np.zeros(4, np.int32)}


SAVED = tiles(f"r < 2 and {INSIDE}", "", "if r < 2 and 8 * g + 4 * r + c < n", "#saves")


def test_traffic_of_holes_is_saved() -> None:
    """Weak: where it is asked for, the copy is left out, and the phase completes by an arrival with no bytes."""
    found = made(SAVED)
    (question,) = questions(found)
    assert [type(s) for s in question.then] == [k.BarrierExpect, k.CopyTensor]
    assert [type(s) for s in question.orelse] == [k.BarrierArrive]
    plain = made(SAVED.replace("#saves", ""))
    assert all(not isinstance(s, k.If) or not s.orelse for s in questions(plain))
    for each in (found, plain):
        for rows in (19, 8, 0):
            assert wrong(each, arrays(rows), {"n": rows}, SHORT) is None


def test_less_is_read() -> None:
    """The machine counts what copies move: half of the tiles here are holes."""
    sizes = {"n": 16}
    moved = [_bytes(made(text), sizes) for text in (SAVED, SAVED.replace("#saves", ""))]
    assert moved == [2 * 2 * 512, 2 * 4 * 512]


def _bytes(found: Laid, sizes: Mapping[str, int]) -> int:
    """Bytes that phases wait for, over all blocks."""
    (kernel,) = k.kernels(found.plan.steps)
    total = 0

    def run(body: tuple[k.Stmt, ...], at: dict[Any, int]) -> None:
        nonlocal total
        for stmt in body:
            match stmt:
                case k.For():
                    for value in range(stmt.lo.evaluate(at), stmt.hi.evaluate(at)):
                        run(stmt.body, {**at, stmt.sym: value})
                case k.If() if any(isinstance(s, k.BarrierExpect) for s in k.walk((stmt,))):
                    run(stmt.then if _holds(stmt.condition, at) else stmt.orelse, at)
                case k.BarrierExpect():
                    total += stmt.bytes
                case _:
                    pass

    given = {size: sizes[size.name] for size in kernel.sizes}
    grid, block = (next(a for a in kernel.axes if a.level is level) for level in (k.Level.GRID, k.Level.BLOCK))
    for number in range(grid.extent.evaluate(given)):
        run(kernel.body, {**given, grid.sym: number, block.sym: 0})
    return total


def _holds(value: Value, at: dict[Any, int]) -> bool:
    assert isinstance(value, Op)
    if value.name == "and":
        return all(_holds(each, at) for each in value.args)
    left, right = (each.expr.evaluate(at) if isinstance(each, Index) else _number(each) for each in value.args)
    return {"lt": left < right, "ge": left >= right, "eq": left == right}[value.name]


def _number(value: Value) -> int:
    assert isinstance(value, Literal)
    return int(value.value)


WITHIN = {
    "an element alone": (f"a < 3 and {INSIDE}", "a test parts dimension 0, of size S = n, box B = 4, element stride e = 1"),
    "by data": (
        f"p[r] > 0 and {INSIDE}",
        "a test of data parts dimension 0, of size S = n, box B = 4, element stride e = 1 and dimension 1",
    ),
    "a row and its number": (
        f"a + r < 5 and {INSIDE}",
        "a test parts dimension 0, of size S = n, box B = 4, element stride e = 1",
    ),
}
"""What parts a tile, and what is told of it."""


@pytest.mark.parametrize("name", WITHIN)
def test_a_tile_part_data_part_holes_is_refused(name: str) -> None:
    """Level 3: the engine fills tiles as a whole. Weak needs nothing of it."""
    test, told = WITHIN[name]
    with pytest.raises(TexprError) as found:
        made(tiles(test))
    assert f"a tile of `s` is part data and part holes inside of `x` that must be zero: {told}" in str(found.value)
    read = test.replace(" a ", " c ").replace("a <", "c <").replace("a + r", "c + r").replace("+ a", "+ c")
    weak = made(tiles(test, "", f"if {read}"))
    assert not any(s.orelse for s in questions(weak))
    assert wrong(weak, arrays(19), {"n": 19}, (None, 0)) is None


# Nan, which the engine fills with as well.

NAN = "else { s[a, b] = nan }"
TOLD = "z[g, r, c, d] = select(isnan(s[c, 31 - d]), 7.0, s[c, 31 - d])"


def seen_as_nan(test: str) -> str:
    """Tiles whose holes are nan, which a consumer takes for 7."""
    return tiles(test, NAN).replace("z[g, r, c, d] = s[c, 31 - d]", TOLD)


@pytest.mark.parametrize("name", LEVELS)
def test_every_hole_holds_nan(name: str) -> None:
    """What is asked is the same as of zero."""
    test, asked, count = LEVELS[name]
    found = made(seen_as_nan(test))
    assert len(copies(found)) == count
    assert [part for s in questions(found) if s.orelse for part in said(s.condition)] == asked
    assert [map.fill for kernel in k.kernels(found.plan.steps) for map in kernel.maps] == ["nan"]
    for rows in (19, 8, 1, 0):
        assert wrong(found, arrays(rows), {"n": rows}, SHORT) is None


def test_another_fill_is_missed() -> None:
    """Zero for nan, and nan for zero."""
    for text, fill in ((seen_as_nan(INSIDE), "zero"), (tiles(INSIDE), "nan")):
        found = made(text)
        (kernel,) = k.kernels(found.plan.steps)
        planted = replace(kernel, maps=tuple(replace(map, fill=fill) for map in kernel.maps))
        bad = replace(found, plan=replace(found.plan, steps=(k.Launch(planted),)))
        assert "z differs" in str(wrong(bad, arrays(19), {"n": 19}, SHORT))


def test_zero_and_nan_are_two_maps() -> None:
    text = seen_as_nan(INSIDE).replace("new s: f32[4, 32]", "new s: f32[4, 32] new q: f32[4, 32]")
    copy = text[text.index("par 4 |a|") : text.index("par 4 |c|")]
    text = text.replace(copy, copy + copy.replace("s[a, b]", "q[a, b]").replace("nan", "0.0"))
    found = made(text.replace(TOLD, f"{TOLD} + 32.0 * q[c, 31 - d]"))
    (kernel,) = k.kernels(found.plan.steps)
    assert [map.fill for map in kernel.maps] == ["nan", "zero"]
    for rows in (19, 8, 0):
        assert wrong(found, arrays(rows), {"n": rows}, SHORT) is None


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("swizzle", ["none", "128B"])
def test_nan_from_a_schedule(dtype: str, swizzle: str) -> None:
    """A halo that is no number, of every type that has nan in the engine; the tile's edge is not whole."""
    width = 128 // {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}[dtype]
    text = f"""
fn f(x: {dtype}[m, n] align(16)): {dtype}[m, n] where n % 8 == 0 {{
    new y: {dtype}[m, n]
    let p = pad(x, (0, 0), (1, 0), nan)
    par m |i| {{ par n |j| {{ y[i, j] = select(isnan(p[i + 1, j]), x[i, j], p[i + 1, j]) }} }}
    return y
}}"""
    cut = f"split(i, 7) -> (bi, ti)  split(j, {width}) -> (bj, tj)  reorder(bi, bj, ti, tj)  bind(bi, grid.y)  bind(bj, grid.x)"
    found = laid(text, f"{cut}\nstage(x, at=bj, in=shared, via=tma, fill=nan, box=(8, {width}), swizzle={swizzle}) -> s")
    assert [map.fill for kernel in k.kernels(found.plan.steps) for map in kernel.maps] == ["nan"]
    for m, n in ((15, 72), (7, 8), (1, 136), (0, 8)):
        given = integers(m, n).astype(numpy_dtype(DTYPES[dtype]))
        assert wrong(found, {"x": given}, {"m": m, "n": n}, (None, 0)) is None


# From a schedule: figure 2 of the document, with rows for items.

ROWS = """
fn rows(x: f32[n, 32] align(16)): f32[n, 32] {
    new y: f32[n, 32]
    par n |i| { par 32 |j| { y[i, j] = x[i, 31 - j] } }
    return y
}"""


def figure_2(more: str, second: str = "") -> str:
    return f"""
    split(i, 2) -> (i2, i3)  split(i2, 2) -> (i4, i5)  split(i5, 4) -> (i6, i7)
    reorder(i4, i6, i7, i3, j)
    bind(i4, grid.x)  bind(i3, block.y)  bind(j, block.x)
    stage(x, at=i7, in=shared, via=tma{more}) -> xs
    {second}"""


@pytest.mark.parametrize(
    ("more", "kinds"),
    [
        ("", []),
        (", fill=weak", []),
        (", save_traffic=true", [(2, k.BarrierArrive)]),
        (", fill=weak, save_traffic=false", []),
        (", fill=zero", [(1, k.CopyTensor)]),
        (", fill=zero, save_traffic=true", [(1, k.CopyTensor)]),
    ],
)
def test_figure_2_from_a_schedule(more: str, kinds: list[tuple[int, type[Any]]]) -> None:
    """I5 alone is not protected: i7 < 2 is asked, and nothing of I2, I4 and I1."""
    found = laid(ROWS, figure_2(more))
    asked = [s for s in questions(found) if s.orelse]
    assert [(len(s.then), type(s.orelse[-1])) for s in asked] == kinds
    assert all(said(s.condition) == ["i7 < 2"] for s in asked)
    for rows in (12, 13, 1, 0):
        assert wrong(found, {"x": integers(rows, 32)}, {"n": rows}, SHORT) is None


@pytest.mark.parametrize("more", ["", ", fill=zero", ", save_traffic=true"])
def test_figure_2_in_a_ring(more: str) -> None:
    """Phases of each slot are counted alike, whether a box is copied, filled or left out."""
    found = laid(ROWS, figure_2(more, "pipeline(i7, stages=2)"))
    assert {each.verdict for each in proved(found.function, found.plan).obligations} == {Verdict.PROVED}
    for rows in (12, 13, 0):
        assert wrong(found, {"x": integers(rows, 32)}, {"n": rows}, SHORT) is None


def test_a_store_of_holes_is_left_out() -> None:
    """Without the test, what lies in holes would be stored over items of another tile."""
    found = laid(ROWS, figure_2("", "stage(y, at=i7, in=shared, via=tma) -> ys"))
    (store,) = (s for s in questions(found) if any(isinstance(inner, k.StoreTensor) for inner in s.then))
    assert said(store.condition) == ["i7 < 2"]
    for rows in (12, 13, 1, 0):
        assert wrong(found, {"x": integers(rows, 32)}, {"n": rows}, SHORT) is None


def test_coordinates_are_right_in_holes_too() -> None:
    """One box is the tensor: only in its iteration is the coordinate 0. Elsewhere what is at 0 is another tile's."""
    text = "fn f(x: f32[32] align(16)): f32[32] { new y: f32[32] par 32 |i| { y[i] = x[31 - i] } return y }"
    cut = "split(i, 32) -> (b, t)  split(b, 3) -> (o, q)  bind(o, grid.y)  bind(q, grid.x)  bind(t, block.x)"
    found = laid(text, f"{cut}\nstage(y, at=q, in=shared, via=tma) -> ys")
    (store,) = (s for s in found.statements if isinstance(s, k.StoreTensor))
    assert [str(e) for e in store.at] == ["32 * q"]
    assert not any(s.orelse for s in questions(found))
    assert wrong(found, {"x": integers(32)}, {}, SHORT) is None


# A tensor that may be empty where a copy of it is made.

EMPTY = """
fn f(x: f32[m, n] align(16)): f32[4, 32] where n % 4 == 0 {
    new z: f32[4, 32]
    par 1 |g| #bind(grid.x) {
        new s: f32[4, 32]
        par 4 |a| #tma(0, 4, 32) { par 32 |b| { if a < m and b < n { s[a, b] = x[a, b] } MORE } }
        par 4 |c| { par 32 |d| { READ } }
    }
    return z
}"""


@pytest.mark.parametrize("more", ["else { s[a, b] = 0.0 }", ""])
def test_an_empty_tensor_is_not_touched(more: str) -> None:
    """Its map is of a tensor with an element, which is not there; so the copy goes elsewhere, or is left out."""
    read = "z[c, d] = s[c, d]" if more else "if c < m and d < n { z[c, d] = s[c, d] } else { z[c, d] = 7.0 }"
    found = made(EMPTY.replace("MORE", more).replace("READ", read))
    (asked,) = (s for s in questions(found) if s.orelse)
    assert set(said(asked.condition)) == {"0 < m", "0 < n"}
    for m, n in ((0, 0), (0, 4), (3, 0), (3, 4), (7, 40)):
        assert wrong(found, {"x": integers(m, n)}, {"m": m, "n": n}, (None, 0)) is None


# Bugs, each with the check that finds it.


def _dropped(kind: type[Any]) -> Callable[[k.Kernel], k.Kernel]:
    return lambda kernel: replace(kernel, body=_mapped(kernel.body, lambda s: () if isinstance(s, kind) else (s,)))


def _changed(kind: type[Any], change: Callable[[Any], Any]) -> Callable[[k.Kernel], k.Kernel]:
    return lambda kernel: replace(kernel, body=_mapped(kernel.body, lambda s: (change(s),) if isinstance(s, kind) else (s,)))


def _branches(change: Callable[[k.If], tuple[k.Stmt, ...]]) -> Callable[[k.Kernel], k.Kernel]:
    def visit(stmt: k.Stmt) -> tuple[k.Stmt, ...]:
        is_question = isinstance(stmt, k.If) and any(isinstance(s, k.CopyTensor) for s in (*stmt.then, *stmt.orelse))
        return change(stmt) if is_question and isinstance(stmt, k.If) and stmt.orelse else (stmt,)

    return lambda kernel: replace(kernel, body=_mapped(kernel.body, visit))


def _mapped(body: tuple[k.Stmt, ...], change: Change) -> tuple[k.Stmt, ...]:
    found: list[k.Stmt] = []
    for stmt in body:
        match stmt:
            case k.For():
                inner = replace(stmt, body=_mapped(stmt.body, change))
            case k.If():
                inner = replace(stmt, then=_mapped(stmt.then, change), orelse=_mapped(stmt.orelse, change))
            case _:
                inner = stmt
        found.extend(change(inner))
    return tuple(found)


def _map(**changes: Callable[[Any], Any]) -> Callable[[k.Kernel], k.Kernel]:
    return lambda kernel: replace(
        kernel,
        maps=tuple(replace(m, **{name: change(getattr(m, name)) for name, change in changes.items()}) for m in kernel.maps),
    )


SWAPPED = """
fn f(x: f16[n, 96] align(16)): f16[n, 96] {
    new z: f16[n, 96]
    par n |i| { par 96 |j| { z[i, j] = x[i, j] } }
    return z
}"""

SWAPPING = """
    split(i, 8) -> (g, c)  split(j, 64) -> (r, d)
    reorder(g, r, c, d)
    bind(g, grid.x)  bind(c, block.y)  bind(d, block.x)
    stage(x, at=r, in=shared, via=tma, fill=zero, swizzle=128B) -> s"""
"""Two coordinates and a swizzle."""

STORED = """
fn f(x: f32[n, 36]): f32[n, 36] {
    new z: f32[n, 36]
    par (n + 7) / 8 |g| #bind(grid.x) {
        seq 2 |r| {
            new s: f32[8, 32]
            par 8 |c| { par 32 |d| {
                if 8 * g + c < n and 32 * r + d < 36 { s[c, d] = x[8 * g + c, 32 * r + d] } else { s[c, d] = 9.0 }
            } }
            par 8 |a| #tma(0, 8, 32) { par 32 |b| {
                if 8 * g + a < n and 32 * r + b < 36 { z[8 * g + a, 32 * r + b] = s[a, b] }
            } }
        }
    }
    return z
}"""

SUBJECTS: dict[str, tuple[Callable[[], Laid], Mapping[str, NDArray[Any]], Mapping[str, int]]] = {
    "filled": (lambda: made(tiles(f"r < 2 and {INSIDE}")), arrays(19), {"n": 19}),
    "saved": (lambda: made(SAVED), arrays(19), {"n": 19}),
    "swizzled": (lambda: laid(SWAPPED, SWAPPING), {"x": integers(11, 96, dtype="float16") + np.float16(9)}, {"n": 11}),
    "stored": (lambda: made(STORED), {"x": integers(11, 36)}, {"n": 11}),
}

BUGS: dict[str, tuple[str, Callable[[k.Kernel], k.Kernel], str]] = {
    "half of the bytes": ("filled", _changed(k.BarrierExpect, lambda s: replace(s, bytes=s.bytes // 2)), "unfinished_copy"),
    "twice the bytes": ("filled", _changed(k.BarrierExpect, lambda s: replace(s, bytes=2 * s.bytes)), "deadlock"),
    "the other parity": ("filled", _changed(k.BarrierWait, lambda s: replace(s, parity=1 - s.parity)), "unfinished_copy"),
    "one parity": ("filled", _changed(k.BarrierWait, lambda s: replace(s, parity=s.parity - s.parity)), "unfinished_copy"),
    "no wait": ("filled", _dropped(k.BarrierWait), "unfinished_copy"),
    "no barrier": ("filled", _dropped(k.Barrier), "race"),
    "no fence of barriers": ("filled", _dropped(k.Fence), "missing_fence"),
    "no else": ("filled", _branches(lambda s: (replace(s, orelse=()),)), "deadlock"),
    "else alone": ("filled", _branches(lambda s: s.orelse), "z differs"),
    "nothing asked": ("filled", _branches(lambda s: s.then), "z differs"),
    "sides swapped": ("filled", _branches(lambda s: (replace(s, then=s.orelse, orelse=s.then),)), "z differs"),
    "else inside of the tensor": (
        "filled",
        _changed(k.CopyTensor, lambda s: replace(s, at=tuple(e * 0 if e.is_constant else e for e in s.at))),
        "z differs",
    ),
    "else half outside": (
        "filled",
        _changed(k.CopyTensor, lambda s: replace(s, at=tuple(e // 2 if e.is_constant else e for e in s.at))),
        "z differs",
    ),
    "no arrival where nothing is copied": ("saved", _dropped(k.BarrierArrive), "deadlock"),
    "left out what is read": ("saved", _branches(lambda s: (replace(s, then=s.orelse),)), "uninitialised"),
    "swapped coordinates": ("swizzled", _changed(k.CopyTensor, lambda s: replace(s, at=s.at[::-1])), "z differs"),
    "a coordinate off": ("swizzled", _changed(k.CopyTensor, lambda s: replace(s, at=(s.at[0] + 8, s.at[1]))), "z differs"),
    "another swizzle": ("swizzled", _map(swizzle=lambda _: 0), "z differs"),
    "a box too large": ("swizzled", _map(box=lambda b: (b[0], b[1] + 1)), "out_of_bounds"),
    "a box too small": ("swizzled", _map(box=lambda b: (b[0], b[1] - 1)), "deadlock"),
    "a stride off": ("swizzled", _map(strides=lambda s: (s[0] + 16,)), "out_of_bounds"),
    "a size off": ("swizzled", _map(sizes=lambda s: (s[0] + 8, *s[1:])), "out_of_bounds"),
    "a store without its fence": (
        "stored",
        lambda kernel: _changed(k.Fence, lambda s: k.Fence("init"))(kernel),
        "missing_fence",
    ),
    "a store without its barrier": ("stored", _dropped(k.Barrier), "uninitialised"),
    "a store that is not waited for": ("stored", _changed(k.WaitBulk, lambda s: replace(s, pending=1)), "unfinished_copy"),
    "a store not committed": ("stored", _dropped(k.CommitBulk), "unfinished_copy"),
    "a store elsewhere": ("stored", _changed(k.StoreTensor, lambda s: replace(s, at=(s.at[0], s.at[1] + 1))), "z differs"),
    "a store of a larger box": ("stored", _map(box=lambda b: (b[0], b[1] + 1)), "out_of_bounds"),
}
"""What is wrong with which subject, and the check that says so."""


@pytest.mark.parametrize("bug", BUGS)
def test_every_planted_bug_is_found(bug: str) -> None:
    subject, plant, check = BUGS[bug]
    make, given, sizes = SUBJECTS[subject]
    found = make()
    (kernel,) = k.kernels(found.plan.steps)
    planted = plant(kernel)
    assert planted != kernel
    bad = replace(found, plan=replace(found.plan, steps=(k.Launch(planted),)))
    assert wrong(bad, given, sizes) == f"{check} in order None"


@pytest.mark.planted
def test_what_is_not_asked_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted in the compiler: that every test follows from the engine's own."""

    def always(*given: object) -> bool:
        return bool(given)

    monkeypatch.setattr("texpr.lowering.engine.holes.follows", always)
    assert wrong(made(tiles(f"r < 2 and {INSIDE}")), arrays(19), {"n": 19}, (None,)) == "z differs in order None"


@pytest.mark.parametrize("subject", SUBJECTS)
def test_without_a_bug_nothing_is_found(subject: str) -> None:
    make, given, sizes = SUBJECTS[subject]
    assert wrong(make(), given, sizes, (None, LOCKSTEP, *range(6))) is None
