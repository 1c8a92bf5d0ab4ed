"""What tests of a kernel depend on: which coordinates, and from which turns of a loop on they have another outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Index, Literal, Op, Value, walk
from texpr.isa.levels import Level
from texpr.model.plan.operations import JOINS

_FROM = {"ge": (0,), "lt": (0,), "gt": (1,), "le": (1,), "eq": (0, 1), "ne": (0, 1)}
"""How far behind the greatest index that is no greater than a limit a comparison of both changes: `i >= n` at n, `i > n` at
n + 1."""
_TURNED = {"ge": "le", "le": "ge", "gt": "lt", "lt": "gt"}


def changes(loop: k.For, first: int, step: int, sizes: Mapping[Sym, int]) -> Iterator[int]:
    """The turns of a loop from which on a test in it that compares its index with what is known, and with nothing else, may
    have another outcome. `first`: its index in the first turn."""
    for stmt in k.walk(loop.body):
        said = [stmt.condition] if isinstance(stmt, k.If) else []
        said += [b.value for b in stmt.bound if b.value is not None] if isinstance(stmt, k.Operation) else []
        for test in (each for value in said for each in walk(value)):
            if isinstance(test, Op) and test.name in _FROM:
                yield from (-(-(at - first) // step) for at in _limits(test, loop.sym, sizes))


def _limits(test: Op, sym: Sym, sizes: Mapping[Sym, int]) -> Iterator[int]:
    sides = [_said(each) for each in test.args]
    if None in sides:
        return
    left = sum((e * sign for e, sign in zip(sides, (1, -1), strict=True) if e is not None), expr(0))
    own = left - left.substitute({sym: expr(0)})
    if own not in (expr(sym), -expr(sym)) or not (left - own).syms() <= sizes.keys():
        return
    limit, is_negative = (left - own).evaluate(dict(sizes)), own != expr(sym)
    name = _TURNED.get(test.name, test.name) if is_negative else test.name
    yield from ((limit if is_negative else -limit) + behind for behind in _FROM[name])


def _said(value: Value) -> Expr | None:
    match value:
        case Index(e):
            return e
        case Literal(number):
            return expr(int(number))
        case _:
            return None


def decides(kernel: k.Kernel) -> frozenset[Sym]:
    """Symbols on which tests and bounds depend."""
    found: set[Sym] = set()
    for stmt in k.walk(kernel.body):
        if isinstance(stmt, k.For):
            found |= stmt.lo.syms() | stmt.hi.syms()
        elif isinstance(stmt, k.If):
            found |= k.value_symbols(stmt.condition)
    for _, moved in k.moves(kernel):
        found |= frozenset() if moved.when is None else k.value_symbols(moved.when)
    return _made_of(found, _meaning(kernel))


def compared(kernel: k.Kernel) -> frozenset[Sym]:
    """Places of blocks that one comparison of a test relates, two or more of them."""
    grid, meaning = {axis.sym for axis in kernel.axes if axis.level is Level.GRID}, _meaning(kernel)
    tests = [stmt.condition for stmt in k.walk(kernel.body) if isinstance(stmt, k.If)]
    tests += [moved.when for _, moved in k.moves(kernel) if moved.when is not None]
    found: set[Sym] = set()
    for test in tests:
        for each in walk(test):
            if isinstance(each, Op) and each.name not in JOINS:
                related = _made_of(k.value_symbols(each), meaning) & grid
                found |= related if len(related) > 1 else frozenset()
    return frozenset(found)


def _meaning(kernel: k.Kernel) -> Mapping[Sym, frozenset[Sym]]:
    """The symbols of which what is bound to a name is made."""
    operations = [s for s in k.walk(kernel.body) if isinstance(s, k.Operation)]
    return {b.sym: k.value_symbols(b.value) for s in operations for b in s.bound if b.value is not None}


def _made_of(symbols: Iterable[Sym], meaning: Mapping[Sym, frozenset[Sym]]) -> frozenset[Sym]:
    """These, and all of which they are made."""
    found = set(symbols)
    waiting = list(found)
    while waiting:
        for sym in meaning.get(waiting.pop(), frozenset()):
            if sym not in found:
                found.add(sym)
                waiting.append(sym)
    return frozenset(found)
