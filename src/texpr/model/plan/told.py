"""What statements are wherever they stand: it is found once, while a walk may come by thousands of times."""

from __future__ import annotations

from texpr.affine.expr import Sym
from texpr.ir import kernel as k
from texpr.ir.value import Buffer, Load
from texpr.model.plan.operations import Units, comparisons, conversions, fused, instructions, tests
from texpr.model.plan.reach import every_touch
from texpr.support.record import Record


class Told(Record, eq=False):
    """What an operation is, wherever it stands: what it touches, with the units of conversions; what it computes, and tests."""

    touches: tuple[tuple[Load, str, int, Units], ...]
    computed: tuple[Units, ...]
    compared: tuple[frozenset[Sym], ...]


class Around(Record, eq=False):
    """What a loop is, wherever it stands: the statements in it; what is written there; whether threads wait for each other."""

    inside: tuple[k.Stmt, ...]
    writes: frozenset[Buffer]
    meets: bool


def around_of(loop: k.For) -> Around:
    """What holds of a loop wherever it stands."""
    inside = tuple(k.walk(loop.body))
    meets = any(isinstance(each, k.Operation) and each.waits_for is not None for each in inside)
    return Around(inside, frozenset(each.buffer for each in k.memory(loop.body)[1]), meets)


def told_of(stmt: k.Operation) -> Told:
    """What holds of an operation wherever it stands. A value that only is an index counts where it is used."""
    made = dict(each for value in stmt.computed for each in conversions(value))
    touches = tuple((load, kind, count, made.get(load, {})) for load, kind, count in every_touch(stmt))
    computed, compared = list[Units](), list[frozenset[Sym]]()
    for value in stmt.computed:
        found = instructions(value)
        if getattr(stmt, "fused", False):
            found = fused(found, value.dtype)
        for test in tests(value):
            found.more(instructions(test), -1.0)
            compared += (k.value_symbols(each) for each in comparisons(test))
        computed += [found] if found else []
    return Told(touches, tuple(computed), tuple(compared))
