"""Which holes of a copy of boxes the engine does not find by itself: what has to be asked before it is started.

    if 3 * k1 + ko < (K + 7) / 8 and a + 16 * bi < M and b + 24 * k1 + 8 * ko < K { As[…] = A[…] } else { As[…] = 0 }
       ─────────────────────────     ─────────────────────────────────────────── the engine's own test
       follows from it here: wherever it fails, b + 24 * k1 + 8 * ko ≥ K

What is left decides whole copies, and is asked by who starts them (levels 1 and 2 of docs/theory/tma.md). What would decide
elements of one tile cannot be asked (level 3).
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
    """The copy of one element, and what is tested of it. `fill`: what is written elsewhere, where someone may count on it."""

    bind: ir.Bind
    tests: tuple[Value, ...]
    fill: Fill | None = None


def tested(body: tuple[ir.Stmt, ...]) -> Tested | None:
    """What the body of a copy's loops does, if it is the copy of an element and tests around it."""
    match body:
        case (ir.Bind() as bind,):
            return Tested(bind, ())
        case (ir.If(orelse=()) as test,):
            inner = tested(test.then)
            if inner is None or inner.fill is not None:
                return inner  # where this test fails nothing is promised
            return Tested(inner.bind, (*conjuncts(test.condition), *inner.tests))
        case (ir.If() as test,) if (found := filled(test)) is not None and (fill := fill_of(found[1])) is not None:
            return Tested(found[0], tuple(conjuncts(test.condition)), fill)
        case _:
            return None


def bounds(tensor: Load, dims: Iterable[int]) -> tuple[Expr, ...]:
    """What is not negative where an element is inside of the tensor along `dims`."""
    pairs = [(tensor.index[n], tensor.buffer.shape[n]) for n in dims]
    return tuple(e for index, size in pairs for e in (index, size - 1 - index))


class ResidualPredicates(Record):
    """What is asked before a copy is started, and a test that cannot be, as it parts a tile."""

    predicates: tuple[Value, ...]
    within: Value | None = None


def asked(
    tests: Sequence[Value], engine: Sequence[Expr], facts: Sequence[Expr], loops: Collection[Sym], sizes: Collection[Sym]
) -> ResidualPredicates:
    """`tests` without those that hold wherever all others and the engine's own do.

    `engine`: what is not negative where the engine finds an element inside. `facts`: the same, of where the copy's loops run,
    which are `loops`.
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
    """Whether `test` holds where `given` are not negative."""
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
    """That a dimension has elements at all."""
    return Op("lt", (Index(ZERO, I64), Index(size, I64)), BOOL)
