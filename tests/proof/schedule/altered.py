"""Programs as schedules lay them out, altered at random: a number, a guard, a statement, a loop, or what is noted of one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from texpr.affine.expr import Expr, expr, term
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block
from texpr.ir.value import Index, Load, Op, Value
from texpr.support.record import replace

Body = tuple[ir.Stmt, ...]
Change = Callable[[ir.Stmt, Random], Body | None]


def altered(function: ir.Function, random: Random) -> ir.Function:
    """`function` with one change, somewhere; itself where there is nothing to change in the way that was drawn."""
    change = random.choice(CHANGES)
    spots = [stmt for stmt in ir.walk(function.body) if change(stmt, Random(0)) is not None]
    if not spots:
        return function
    spot, seed = random.choice(spots), random.random()
    return replace(function, body=_changed(function.body, spot, lambda stmt: change(stmt, Random(seed)) or (stmt,)))


def noted_otherwise(function: ir.Function, random: Random) -> ir.Function:
    """`function` with another note of what a statement does."""
    noted = [stmt for stmt in ir.walk(function.body) if isinstance(stmt, ir.Bind | ir.Let) and stmt.instance]
    if not noted:
        return function
    spot = random.choice(noted)
    assert isinstance(spot, ir.Bind | ir.Let)
    number, *at = spot.instance
    if at and random.random() < 0.7:
        where = random.randrange(len(at))
        at[where] = random.choice([at[where] + 1, at[where] - 1, random.choice(at), expr(0)])
    else:
        other = random.choice(noted)
        assert isinstance(other, ir.Bind | ir.Let)
        number, *at = other.instance
    return replace(function, body=_changed(function.body, spot, lambda stmt: (replace(stmt, instance=(number, *at)),)))


def _changed(body: Body, spot: ir.Stmt, change: Callable[[ir.Stmt], Body]) -> Body:
    found: list[ir.Stmt] = []
    for stmt in body:
        if stmt is spot:
            found += change(stmt)
        elif isinstance(stmt, ir.If):
            found.append(replace(stmt, then=_changed(stmt.then, spot, change), orelse=_changed(stmt.orelse, spot, change)))
        elif isinstance(stmt, ir.Par | ir.Seq | ir.Instruction):
            found.append(replace(stmt, body=_changed(stmt.body, spot, change)))
        else:
            found.append(stmt)
    return tuple(found)


def _nudged(value: Expr, random: Random) -> Expr:
    """Another number: one more, or less, one of its parts left out, or twice."""
    ways = [value + 1, value - 1]
    ways += [value - term(m) * c for m, c in value.terms]
    ways += [value + term(m) * c for m, c in value.terms]
    return random.choice(ways)


def subscript(stmt: ir.Stmt, random: Random) -> Body | None:
    """A subscript of what is written, or read."""
    if not isinstance(stmt, ir.Bind):
        return None
    loads: list[Load] = [t for t in stmt.targets if t.index]
    for value in stmt.values:
        replace_loads(value, lambda load: loads.append(load) if load.index else None)
    if not loads:
        return None
    load = random.choice(loads)
    at = random.randrange(len(load.index))
    moved = replace(load, index=(*load.index[:at], _nudged(load.index[at], random), *load.index[at + 1 :]))
    targets = tuple(moved if t is load else t for t in stmt.targets)
    values = tuple(replace_loads(v, lambda other: moved if other is load else None) for v in stmt.values)
    return (replace(stmt, targets=targets, values=values),)


def number(stmt: ir.Stmt, random: Random) -> Body | None:
    """A number in a value, or in a test."""
    found = list[Value]()

    def note(value: Value) -> None:
        map_value(value, lambda node: found.append(node) if isinstance(node, Index) else None)

    values = stmt.values if isinstance(stmt, ir.Bind) else (stmt.condition,) if isinstance(stmt, ir.If) else ()
    for value in values:
        note(value)
    if not found:
        return None
    chosen = random.choice(found)
    assert isinstance(chosen, Index)
    other = replace(chosen, expr=_nudged(chosen.expr, random))
    changed = tuple(map_value(value, lambda node: other if node is chosen else None) for value in values)
    return (replace(stmt, values=changed),) if isinstance(stmt, ir.Bind) else (replace(stmt, condition=changed[0]),)


def extent(stmt: ir.Stmt, random: Random) -> Body | None:
    """How long a loop is."""
    return (replace(stmt, extent=_nudged(stmt.extent, random)),) if isinstance(stmt, ir.Par | ir.Seq) else None


def unguarded(stmt: ir.Stmt, random: Random) -> Body | None:
    """What stands under a test runs always."""
    return stmt.then if isinstance(stmt, ir.If) else None


def otherwise(stmt: ir.Stmt, random: Random) -> Body | None:
    """A test, or one part of it, is turned round."""
    if not isinstance(stmt, ir.If) or not isinstance(stmt.condition, Op):
        return None
    condition = stmt.condition
    return (replace(stmt, condition=Op("not", (condition,), condition.dtype)),)


def dropped(stmt: ir.Stmt, random: Random) -> Body | None:
    """A statement is left out."""
    return () if isinstance(stmt, ir.Bind | ir.If) else None


def repeated(stmt: ir.Stmt, random: Random) -> Body | None:
    """A statement is done twice."""
    return (stmt, _anew(stmt)) if isinstance(stmt, ir.Bind) else None


def swapped(stmt: ir.Stmt, random: Random) -> Body | None:
    """Two neighbours in a loop change places."""
    if not isinstance(stmt, ir.Par | ir.Seq) or len(stmt.body) < 2:
        return None
    at = random.randrange(len(stmt.body) - 1)
    one, other = stmt.body[at : at + 2]
    if isinstance(one, ir.New | ir.Let):
        return None
    return (replace(stmt, body=(*stmt.body[:at], other, one, *stmt.body[at + 2 :])),)


def interchanged(stmt: ir.Stmt, random: Random) -> Body | None:
    """A loop in a loop goes outside."""
    match stmt:
        case (ir.Par() | ir.Seq()) as outer if len(outer.body) == 1 and isinstance(outer.body[0], ir.Par | ir.Seq):
            inner = outer.body[0]
            return None if outer.sym in inner.extent.syms() else (replace(inner, body=(replace(outer, body=inner.body),)),)
        case _:
            return None


def parted(stmt: ir.Stmt, random: Random) -> Body | None:
    """A loop is run once for each of its statements."""
    if not isinstance(stmt, ir.Par | ir.Seq) or len(stmt.body) < 2 or any(isinstance(s, ir.New | ir.Let) for s in stmt.body):
        return None
    return tuple(_anew(replace(stmt, body=(inner,))) for inner in stmt.body)


def reversed_(stmt: ir.Stmt, random: Random) -> Body | None:
    """A loop runs the other way round, notes and all."""
    if not isinstance(stmt, ir.Par | ir.Seq):
        return None
    turned = {stmt.sym: stmt.extent - 1 - stmt.sym}
    return (replace(stmt, body=substitute_block(stmt.body, turned)),)


def _anew(stmt: ir.Stmt) -> ir.Stmt:
    return Rewriter().stmt(stmt)


CHANGES: tuple[Change, ...] = (
    subscript, subscript, number, extent, extent, unguarded, otherwise, dropped, repeated, swapped, interchanged, parted,
    reversed_,
)  # fmt: skip
