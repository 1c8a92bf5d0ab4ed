"""Level 3, where a tile is part data and part holes: each refusal word by word, with the dimension, S, B, e, and what helps."""

from __future__ import annotations

import pytest
from tests.lowering.test_columns import CONV, TILES
from tests.lowering.test_gathered_rows import GATHER
from tests.lowering.test_gathered_rows import TARGET as ROWS_TARGET
from tests.lowering.test_gathered_rows import TILES as GATHERING
from tests.lowering.test_holes import INSIDE, made, tiles
from tests.lowering.test_strided_tiles import EVERY
from tests.lowering.test_strided_tiles import tiles as every
from tests.schedule.laid import integers, laid, wrong
from tests.schedule.test_unguard import ROWSUM, STRIDED

from texpr.affine.expr import Sym, expr
from texpr.domain import DomainGraph
from texpr.domain.contiguity import Memory
from texpr.domain.correctness.holes import Strong
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.value import Index, Op
from texpr.ir.value.types import BOOL, I64
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.schedule.apply import apply_schedule
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.tma.correctness import lower_load, lower_store
from texpr.tma.elements import ELEMENTS
from texpr.tma.model import Copy, Refusal, plan


def told(raised: TexprError) -> tuple[str, str]:
    (found,) = raised.diagnostics
    return found.message, found.help or ""


def graph(size: int, box: int, step: int) -> Copy:
    made = (
        DomainGraph.of(("y", size), ("x", 4))
        .split("y", box, ("c", "b"))
        .split("b", step, ("t", "s"))
        .reorder("c", "s", "t", "x")
    )
    copy = plan(Memory.dense(made), ["t", "x"], ELEMENTS["int32"])
    assert isinstance(copy, Copy)
    return copy


@pytest.mark.parametrize("direction", ["load", "store"])
@pytest.mark.parametrize(("size", "box", "step"), [(8, 4, 3), (64, 10, 7), (17, 16, 5)])
def test_a_graph(direction: str, size: int, box: int, step: int) -> None:
    copy = graph(size, box, step)
    refusal = lower_load(copy, Strong(0)) if direction == "load" else lower_store(copy)
    assert isinstance(refusal, Refusal) and refusal.domain is not None and refusal.domain.sym.name == "b"
    assert refusal.reason == (
        f"in dimension 1, the element stride {step} is less than the box {box} and does not divide it, "
        f"and the size {size} is not seen to be at most {box}"
    )
    assert refusal.helps == (
        f"choose a box that {step} divides, a box as large as the tensor, or an element stride of at least {box}"
    )


PART = "a tile of `s` is part data and part holes inside of `x` that must be zero: "
BOX = "dimension 0, of size S = n, box B = 4, element stride e = 1"
TWO = f"{BOX} and dimension 1, of size S = 32, box B = 32, element stride e = 1"
COPIES = {
    "an element": (tiles(f"a < 3 and {INSIDE}"), f"{PART}a test parts {BOX}"),
    "every other row": (
        tiles(f"a < 3 and {INSIDE}").replace("4 * r + a", "4 * r + 2 * a"),
        f"{PART}a test parts dimension 0, of size S = n, box B = 8, element stride e = 2",
    ),
    "a row and a column": (tiles(f"a + b < 9 and {INSIDE}"), f"{PART}a test parts {TWO}"),
    "by data": (tiles(f"p[r] > 0 and {INSIDE}"), f"{PART}a test of data parts {TWO}"),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_in_the_plain_program(name: str) -> None:
    text, reason = COPIES[name]
    with pytest.raises(TexprError) as found:
        made(text)
    assert told(found.value) == (reason, "")


def test_boxes_with_a_stride() -> None:
    """Several boxes of which each begins in the middle of a step; one alone is whole."""
    with pytest.raises(TexprError) as found:
        laid(EVERY, every(", stride=(2, 1), box=(15, 32)"))
    reason = "a stride of 2 does not divide the box of 15 in dimension 0, of size M, and there are several of them"
    assert told(found.value) == (reason, "ask for box=(16, 32)")
    one = laid(EVERY, every(", fill=zero, stride=(2, 1), box=(31, 32)"))
    for rows, columns in ((19, 44), (0, 4), (64, 36)):
        assert wrong(one, {"A": integers(rows, columns)}, {"M": rows, "K": columns}, (None, 0)) is None


def test_holes_that_compute() -> None:
    with pytest.raises(TexprError) as found:
        laid(ROWSUM, STRIDED.format(3, "tma"))
    assert told(found.value) == (
        "holes cannot be computed: in a hole `As` may hold an element of the tensor, and not its fill: "
        "dimension 0, of size S = M, box B = 16, element stride e = 3",
        "let the split of that loop divide: then no hole lies inside of a box",
    )


ENGINES = {
    "pixels": (
        CONV, TILES.format(", fill=zero"), "sm_90a", "Xs_0 < 5",
        "a tile of `Xs` is part data and part holes inside of `X` that must be zero: a test parts "
        "the pixels, of size S = B × 13 × 11, box B = 32, element stride e = 1 × 2 × 2",
    ),
    "channels": (
        CONV, TILES.format(", fill=zero"), "sm_90a", "Xs_1 < 5",
        "a tile of `Xs` is part data and part holes inside of `X` that must be zero: a test parts "
        "dimension 3, of size S = C, box B = 16, element stride e = 1",
    ),
    "rows of a table": (
        GATHER, GATHERING.format(", fill=zero"), ROWS_TARGET, "T_1 < 5",
        "a tile of `T` is part data and part holes inside of `table` that must be zero: a test parts "
        "dimension 1, of size S = D, box B = 48, element stride e = 1",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
def test_other_engines(name: str) -> None:
    """A test that no schedule makes, planted in the plain program behind it."""
    text, schedule, target, test, reason = ENGINES[name]
    fn = text.split("fn ")[1].split("(")[0]
    (function,) = parse(f'{text}\nschedule {fn} "s" for cuda {{\n{schedule}\n}}\n', "t.te").functions
    laid_out = apply_schedule(function, function.schedules[0], resolve(target))
    assert laid_out is not None
    planted = replace(laid_out.function, body=with_test(laid_out.function.body, *test.split(" < ")))
    with pytest.raises(TexprError) as found:
        lower(planted, resolve(target), {})
    assert told(found.value) == (reason, "")


def with_test(body: tuple[ir.Stmt, ...], index: str, most: str) -> tuple[ir.Stmt, ...]:
    """The copy that fills, with one comparison more of the loop `index`."""
    found: list[ir.Stmt] = []
    for stmt in body:
        blocks = tuple(with_test(block, index, most) for block in ir.blocks(stmt))
        stmt = with_blocks(stmt, blocks)
        if isinstance(stmt, ir.If) and stmt.orelse and any(s.base == index for s in symbols(stmt)):
            sym = next(s for s in symbols(stmt) if s.base == index)
            test = Op("lt", (Index(expr(sym), I64), Index(expr(int(most)), I64)), BOOL)
            stmt = replace(stmt, condition=Op("and", (test, stmt.condition), BOOL))
        found.append(stmt)
    return tuple(found)


def symbols(stmt: ir.If) -> frozenset[Sym]:
    (bind,) = stmt.then
    assert isinstance(bind, ir.Bind)
    return frozenset(s for e in bind.targets[0].index for s in e.syms())
