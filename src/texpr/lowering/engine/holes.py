"""Residual predicates of a copy of boxes: the tests that the engine's own bounds test does not imply.

    if 3 * k1 + ko < (K + 7) / 8 and a + 16 * bi < M and b + 24 * k1 + 8 * ko < K { As[…] = A[…] } else { As[…] = 0 }
       ─────────────────────────     ─────────────────────────────────────────── the engine's own test
       is implied here: wherever it fails, b + 24 * k1 + 8 * ko ≥ K

A remaining test of a whole copy guards the operation that starts it (levels 1 and 2 of docs/theory/tma.md). One of elements in
a tile is impossible (level 3).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.value import Index, Load, Op, Value, conjuncts, walk
from texpr.ir.value.types import BOOL, I64
from texpr.lowering.engine.copies import filled
from texpr.presburger.formula import Formula, Ge, conj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of
from texpr.support.record import Record
from texpr.tma.correctness import fill_of
from texpr.tma.elements import Fill


class Tested(Record):
    """The copy of one element, and the tests around it. `fill`: the value of holes, if the program may depend on it."""

    bind: ir.Bind
    tests: tuple[Value, ...]
    fill: Fill | None = None


def tested(body: tuple[ir.Stmt, ...]) -> Tested | None:
    """The body of a copy's loops as the copy of an element with tests around it, None if it is something else."""
    match body:
        case (ir.Bind() as bind,):
            return Tested(bind, ())
        case (ir.If(orelse=()) as test,):
            inner = tested(test.then)
            if inner is None or inner.fill is not None:
                return inner  # holes of this test have no defined value
            return Tested(inner.bind, (*conjuncts(test.condition), *inner.tests))
        case (ir.If() as test,) if (found := filled(test)) is not None and (fill := fill_of(found[1])) is not None:
            return Tested(found[0], tuple(conjuncts(test.condition)), fill)
        case _:
            return None


def bounds(tensor: Load, dims: Iterable[int]) -> tuple[Expr, ...]:
    """Expressions that are non-negative for an element inside of the tensor along `dims`."""
    pairs = [(tensor.index[n], tensor.buffer.shape[n]) for n in dims]
    return tuple(e for index, size in pairs for e in (index, size - 1 - index))


class ResidualPredicates(Record):
    """The predicates of whole copies; `within`: a test that splits a tile, if there is one."""

    predicates: tuple[Value, ...]
    within: Value | None = None


def asked(
    tests: Sequence[Value], engine: Sequence[Expr], facts: Sequence[Expr], loops: Collection[Sym], sizes: Collection[Sym]
) -> ResidualPredicates:
    """`tests` without those that the others and the engine's own test imply.

    `engine`: expressions that are non-negative for elements that the engine finds in bounds. `facts`: expressions that are
    non-negative where the copy's `loops` execute.
    """
    own = {Ge(e) for e in engine}
    kept = [each for each in dict.fromkeys(tests) if condition(each).formula not in own]
    for each in reversed(kept):
        others = [other for other in kept if other is not each]
        given = (*facts, *engine, *(f for other in others for f in facts_of([condition(other).formula])))
        if follows(each, given, sizes):
            kept = others
    within = next((each for each in kept if not _is_uniform(each, loops)), None)
    return ResidualPredicates(tuple(each for each in kept if _is_uniform(each, loops)), within)


def follows(test: Value, given: Sequence[Expr], sizes: Collection[Sym]) -> bool:
    """Whether `given`, all non-negative, imply `test`."""
    meant = condition(test)
    if not meant.exact:
        return False
    formula: Formula = conj((*(Ge(e) for e in given if _is_linear(e)), negate(meant.formula)))
    try:
        return Points(formula, sorted(sizes, key=str)).is_empty()
    except (NotAffine, Undecided):
        return False


def _is_linear(e: Expr) -> bool:
    return all(len(monomial) < 2 for monomial, _ in e.terms)


def _is_uniform(test: Value, loops: Collection[Sym]) -> bool:
    return k.value_symbols(test).isdisjoint(loops) and not any(isinstance(part, Load) for part in walk(test))


def present(size: Expr) -> Value:
    """The condition that a dimension is not empty."""
    return Op("lt", (Index(ZERO, I64), Index(size, I64)), BOOL)
