"""Each rule of the hardware, on both sides of its limit; with symbolic sizes, proved, refuted, or left to a launch check."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from texpr.affine.expr import sym
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.domain.validity import NOTHING
from texpr.presburger.formula import holds
from texpr.support.record import replace
from texpr.tma.descriptor import BulkUse, Im2col, Interleave, TensorMap, Tiled, Use, exprs
from texpr.tma.elements import ELEMENTS, Fill
from texpr.tma.rules import BULK_RULES, RULES, SHAPE_RULES, USE_RULES, findings
from texpr.tma.swizzle import Swizzle

F16, I32 = ELEMENTS["float16"], ELEMENTS["int32"]
PLAIN = TensorMap(F16, *exprs(256), exprs(100, 50, 20), exprs(224, 11200), Tiled(exprs(64, 8, 4)), exprs(1, 1, 1))
COLUMN = Im2col(exprs(-1, -1), exprs(-1, -1), *exprs(32, 64))
CHANNELS = TensorMap(F16, *exprs(256), exprs(64, 9, 14, 7), exprs(128, 1152, 16128), COLUMN, exprs(1, 1, 1, 1))
MATRIX = TensorMap(F16, *exprs(256), exprs(100, 50), exprs(224), Tiled(exprs(64, 1)), exprs(1, 1))
USE = Use(PLAIN, exprs(0, 0, 0), *exprs(1024))
GATHER = Use(MATRIX, exprs(0, 0), *exprs(1024), rows=exprs(1, 5, -1, 9))
BULK = BulkUse(*exprs(0, 16, 48))


def with_box(map: TensorMap, *box: int) -> TensorMap:
    return replace(map, traversal=Tiled(exprs(*box)))


def swizzled(swizzle: Swizzle, row: int) -> TensorMap:
    """With a box whose rows are `row` bytes long."""
    return replace(with_box(PLAIN, row // 2, 2, 2), swizzle=swizzle)


def flat(rank: int) -> TensorMap:
    ones = exprs(*[1] * rank)
    return replace(
        PLAIN, sizes=ones, strides=exprs(*[16] * (rank - 1)), traversal=Tiled(exprs(8, *ones[1:])), element_strides=ones
    )


def pixels(rank: int = 4, **changes: object) -> TensorMap:
    """`CHANNELS` of another rank, with fields of its traversal changed."""
    spaces = rank - 2
    sizes, strides = exprs(64, *[40000] * spaces, 2), exprs(*[128] * (rank - 1))
    corners: dict[str, object] = {"lower": exprs(*[-1] * spaces), "upper": exprs(*[-1] * spaces), **changes}
    traversal = replace(CHANNELS.traversal, **corners)  # type: ignore[arg-type]
    return replace(CHANNELS, sizes=sizes, strides=strides, traversal=traversal, element_strides=exprs(*[1] * rank))


Subject: TypeAlias = "TensorMap | Use | BulkUse"
SLICES = replace(PLAIN, interleave=Interleave.B32, swizzle=Swizzle.B32)
LIMITS: list[tuple[str, Subject, Subject]] = [
    ("rank", flat(5), flat(6)),
    ("rank", flat(1), flat(0)),
    ("rank", replace(flat(3), interleave=Interleave.B16), replace(flat(2), interleave=Interleave.B16)),
    ("rank", pixels(3), pixels(2)),
    ("rank", pixels(5), pixels(6)),
    ("counts", PLAIN, replace(PLAIN, strides=exprs(224))),
    ("counts", PLAIN, with_box(PLAIN, 64, 8)),
    ("counts", PLAIN, replace(PLAIN, element_strides=exprs(1, 1))),
    ("counts", CHANNELS, pixels(4, lower=exprs(-1))),
    ("base", replace(PLAIN, base=exprs(16)[0]), replace(PLAIN, base=exprs(24)[0])),
    ("base", replace(SLICES, base=exprs(32)[0]), replace(SLICES, base=exprs(48)[0])),
    ("stride alignment", PLAIN, replace(PLAIN, strides=exprs(224, 11208))),
    ("stride alignment", replace(SLICES, strides=exprs(224, 11200)), replace(SLICES, strides=exprs(224, 11216))),
    ("stride range", replace(PLAIN, strides=exprs(224, 2**40 - 16)), replace(PLAIN, strides=exprs(224, 2**40))),
    ("stride range", replace(PLAIN, strides=exprs(224, 0)), replace(PLAIN, strides=exprs(224, -16))),
    ("size", replace(PLAIN, sizes=exprs(100, 1, 20)), replace(PLAIN, sizes=exprs(100, 0, 20))),
    ("size", replace(PLAIN, sizes=exprs(2**32, 1, 1)), replace(PLAIN, sizes=exprs(2**32 + 1, 1, 1))),
    ("box", with_box(PLAIN, 64, 256, 1), with_box(PLAIN, 64, 257, 1)),
    ("box", with_box(PLAIN, 64, 1, 1), with_box(PLAIN, 64, 0, 1)),
    ("inner box alignment", with_box(PLAIN, 24, 8, 4), with_box(PLAIN, 20, 8, 4)),
    ("inner box alignment", CHANNELS, pixels(4, channels=exprs(33)[0])),
    *(
        ("inner box span", swizzled(s, s.span), swizzled(s, s.span + 16))
        for s in (Swizzle.B32, Swizzle.B64, Swizzle.B128)
    ),
    ("inner box span", replace(CHANNELS, swizzle=Swizzle.B64), replace(CHANNELS, swizzle=Swizzle.B32)),
    ("element stride", replace(PLAIN, element_strides=exprs(1, 8, 1)), replace(PLAIN, element_strides=exprs(1, 9, 1))),
    ("element stride", PLAIN, replace(PLAIN, element_strides=exprs(1, 1, 0))),
    ("inner element stride", PLAIN, replace(PLAIN, element_strides=exprs(2, 1, 1))),
    ("inner element stride", replace(SLICES, element_strides=exprs(2, 1, 1)), replace(PLAIN, element_strides=exprs(3, 1, 1))),
    ("interleave", SLICES, replace(SLICES, swizzle=Swizzle.NONE)),
    ("interleave", replace(PLAIN, interleave=Interleave.B16), replace(SLICES, swizzle=Swizzle.B128)),
    ("fill", replace(PLAIN, fill=Fill.NAN), replace(PLAIN, element=I32, fill=Fill.NAN)),
    *(
        ("corner", *(pixels(rank, **{which: exprs(*[at] * (rank - 2))}) for at in (end, end + beyond)))
        for rank, ends in ((3, (-32768, 32767)), (4, (-128, 127)), (5, (-16, 15)))
        for which in ("lower", "upper")
        for end, beyond in zip(ends, (-1, 1), strict=True)
    ),
    ("bounding box", *(replace(pixels(4, upper=exprs(at, at)), sizes=exprs(64, 1, 14, 7)) for at in (-1, -2))),
    ("channels", pixels(4, channels=exprs(256)[0]), pixels(4, channels=exprs(264)[0])),
    ("channels", pixels(4, channels=exprs(8)[0]), pixels(4, channels=exprs(0)[0])),
    ("pixels", pixels(4, pixels=exprs(1024)[0]), pixels(4, pixels=exprs(1025)[0])),
    ("pixels", pixels(4, pixels=exprs(1)[0]), pixels(4, pixels=exprs(0)[0])),
    ("coordinate", replace(USE, coordinates=exprs(2**31 - 8, -(2**31), 0)), replace(USE, coordinates=exprs(2**31, 0, 0))),
    ("coordinate", USE, replace(USE, coordinates=exprs(0, -(2**31) - 1, 0))),
    ("coordinate", USE, replace(USE, coordinates=exprs(0, 0))),
    ("coordinate", replace(USE, coordinates=exprs(0, 2**31 - 1, 0)), replace(USE, coordinates=exprs(0, 2**31, 0))),
    ("coordinate alignment", replace(USE, coordinates=exprs(-8, 3, -1)), replace(USE, coordinates=exprs(-4, 8, 8))),
    ("coordinate alignment", USE, replace(USE, coordinates=exprs(1, 0, 0))),
    ("coordinate alignment", replace(GATHER, coordinates=exprs(8, 1)), replace(GATHER, coordinates=exprs(2, 1))),
    ("store coordinate", *(replace(USE, coordinates=exprs(0, -1, 0), stores=stores) for stores in (False, True))),
    ("store coordinate", *(replace(USE, coordinates=exprs(at, 0, 0), stores=True) for at in (8, -8))),
    ("shared address", replace(USE, shared=exprs(128)[0]), replace(USE, shared=exprs(64)[0])),
    *(
        ("shared address", *(Use(swizzled(s, 32), exprs(0, 0, 0), *exprs(s.period // part)) for part in (1, 2)))
        for s in (Swizzle.B32, Swizzle.B64, Swizzle.B128)
    ),
    ("transaction", replace(USE, map=with_box(PLAIN, 256, 256, 7)), replace(USE, map=with_box(PLAIN, 256, 256, 8))),
    *(
        ("offset", *(Use(pixels(rank), exprs(*[0] * rank), *exprs(1024), exprs(*[at] * (rank - 2))) for at in (most, most + 1)))
        for rank, most in ((3, 65535), (4, 255), (5, 31))
    ),
    ("offset", USE, replace(USE, offsets=exprs(1))),
    ("rows", GATHER, replace(GATHER, map=with_box(MATRIX, 64, 2))),
    ("rows", GATHER, replace(GATHER, rows=exprs(1, 2, 3))),
    ("rows", GATHER, replace(USE, rows=exprs(1, 2, 3, 4))),
    ("bulk", BULK, replace(BULK, size=exprs(40)[0])),
    ("bulk", BULK, replace(BULK, shared=exprs(8)[0])),
    ("bulk", BULK, replace(BULK, base=exprs(4)[0])),
]  # fmt: skip


def violated(subject: Subject) -> list[str]:
    found = findings(subject, NOTHING)
    assert not found.checked, "with numbers, nothing is open"
    return [each.rule.name for each in found.violated]


@pytest.mark.parametrize(("name", "good", "bad"), LIMITS, ids=lambda v: v if isinstance(v, str) else "")
def test_both_sides_of_a_limit(name: str, good: Subject, bad: Subject) -> None:
    assert violated(good) == []
    assert name in violated(bad)
    assert set(violated(bad)) <= {name, "counts", "inner box alignment", "box", "rank", "bounding box"}


def test_every_rule_has_a_limit_that_is_tested() -> None:
    assert {rule.name for rule in (*SHAPE_RULES, *RULES, *USE_RULES, *BULK_RULES)} == {name for name, _, _ in LIMITS}


def test_a_finding_says_where_why_and_what_helps() -> None:
    (found,) = findings(with_box(PLAIN, 20, 8, 4), NOTHING).violated
    assert str(found) == (
        "inner box: the innermost row of a box is a multiple of 16 bytes; "
        "make the box wider; what lies behind the tensor is filled"
    )


N, M = sym("N"), sym("M")
SYMBOLIC = replace(PLAIN, sizes=exprs(N, M, 20), strides=exprs(N * 2, N * M * 2))


def names(which: Callable[[Known], tuple[object, ...]], known: Known) -> set[str]:
    return {f"{each.rule.name} {each.asked.subject}" for each in which(known)}  # type: ignore[attr-defined]


def test_symbolic_sizes_are_checked_before_a_launch() -> None:
    found = findings(SYMBOLIC, NOTHING)
    assert not found.violated
    assert {f"{each.rule.name}: {each.asked.subject}" for each in found.checked} == {
        "stride alignment: stride 1",
        "stride alignment: stride 2",
        "stride range: stride 1",
        "stride range: stride 2",
        "size: size 0",
        "size: size 1",
    }
    at = {s: v for s, v in zip((*N.syms(), *M.syms()), (24, 5), strict=True)}
    assert all(holds(each.asked.condition, at) for each in found.checked)
    assert not all(holds(each.asked.condition, {**at, next(iter(N.syms())): 25}) for each in found.checked)


def test_what_is_known_proves_or_refutes() -> None:
    most = Fact(1, N, 2**16), Fact(1, M, 2**16)
    assert not findings(SYMBOLIC, Known({}, (*most, multiple_of(N, 8)))).checked
    assert not findings(SYMBOLIC, Known({}, (*most, multiple_of(N, 8)))).violated
    odd = findings(replace(SYMBOLIC, strides=exprs(N * 16 + 8, N * M * 16)), Known({}, most))
    assert [each.asked.subject for each in odd.violated] == ["stride 1"]
    empty = findings(replace(PLAIN, sizes=exprs(N, 1, 1)), Known({}, [Fact(None, N, 1)]))
    assert [each.rule.name for each in empty.violated] == ["size"]
