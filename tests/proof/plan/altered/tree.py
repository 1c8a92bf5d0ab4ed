"""Kernels as trees: their parts, lists of statements and places, and what is made by changing one of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir.value import Buffer
from texpr.ir.value.types import DType
from texpr.support.record import is_record, names, replace
from texpr.support.span import Span

Body: TypeAlias = tuple[k.Stmt, ...]
Spot: TypeAlias = tuple[tuple[tuple[int, int], ...], int]
"""A statement: which statement and which list below it, from outside, and which of the last list."""


def transformed(node: Any, change: Callable[[Any], Any | None]) -> Any:
    """`node` with what `change` gives for a part of it in its place, outermost first; None leaves it as it is."""
    found = change(node)
    if found is not None:
        return found
    if isinstance(node, tuple):
        items = cast("tuple[Any, ...]", node)
        made = tuple(transformed(item, change) for item in items)
        return items if all(a is b for a, b in zip(items, made, strict=True)) else made
    if not is_record(node) or isinstance(node, Buffer | Span | DType | Sym | k.Covered):
        return node
    new = {name: transformed(getattr(node, name), change) for name in names(node)}
    changed = any(new[name] is not getattr(node, name) for name in new)
    return replace(cast("Any", node), **new) if changed else node


def parts(node: Any, wanted: Callable[[Any], bool]) -> list[Any]:
    """The parts of `node` that are wanted, in order."""
    found: list[Any] = []

    def see(part: Any) -> None:
        if wanted(part):
            found.append(part)

    transformed(node, see)
    return found


def at_one(node: Any, wanted: Callable[[Any], bool], change: Callable[[Any], Any], rng: random.Random) -> Any:
    """`node` with one of the wanted parts of it changed."""
    count = len(parts(node, wanted))
    if not count:
        return None
    left = iter(range(count))
    chosen = rng.randrange(count)
    return transformed(node, lambda part: change(part) if wanted(part) and next(left) == chosen else None)


def lists(body: Body, path: tuple[tuple[int, int], ...] = ()) -> Iterator[tuple[tuple[tuple[int, int], ...], Body]]:
    """Every list of statements, with the way to it."""
    yield path, body
    for at, stmt in enumerate(body):
        for number, block in enumerate(k.blocks(stmt)):
            yield from lists(block, (*path, (at, number)))


def spots(body: Body) -> list[tuple[Spot, k.Stmt]]:
    """Every statement, with its spot."""
    return [((path, at), stmt) for path, block in lists(body) for at, stmt in enumerate(block)]


def with_list(body: Body, path: tuple[tuple[int, int], ...], change: Callable[[Body], Body]) -> Body:
    """`body` with one list of it changed."""
    if not path:
        return change(body)
    (at, number), *rest = path
    stmt, inner = body[at], tuple(rest)
    if isinstance(stmt, k.For):
        made: k.Stmt = replace(stmt, body=with_list(stmt.body, inner, change))
    elif isinstance(stmt, k.If):
        name = ("then", "orelse")[number]
        made = replace(stmt, **cast("Any", {name: with_list(getattr(stmt, name), inner, change)}))
    else:
        raise ValueError("nothing stands below it")
    return (*body[:at], made, *body[at + 1 :])


def put(body: Body, spot: Spot, *stmts: k.Stmt, drop: int = 0) -> Body:
    """`stmts` at a spot, in place of `drop` of those that stand there."""
    path, at = spot
    return with_list(body, path, lambda block: (*block[:at], *stmts, *block[at + drop :]))


def places(body: Body) -> list[Spot]:
    """Wherever a statement could stand."""
    return [(path, at) for path, block in lists(body) for at in range(len(block) + 1)]


def near(body: Body, spot: Spot, rng: random.Random) -> Spot:
    """A place, a neighbour more often."""
    every = places(body)
    close = [p for p in every if abs(len(p[0]) - len(spot[0])) <= 1 and p[0][:-1] == spot[0][:-1]]
    return rng.choice(close if close and rng.random() < 0.6 else every)


def fresh(body: Body, base: str) -> Sym:
    """A name that nothing has."""
    taken = {p.name for p in parts(body, lambda p: isinstance(p, Sym))} | {s.name for s in k.symbols(body)}
    return next(Sym(f"{base}_{n}") for n in range(1000) if f"{base}_{n}" not in taken)


def renamed(stmts: Body, names: dict[Sym, Sym]) -> Body:
    """`stmts` with other symbols."""
    values = {old: expr(new) for old, new in names.items()}

    def change(part: Any) -> Any:
        if isinstance(part, Sym):
            return names.get(part)
        return part.substitute(values) if isinstance(part, Expr) else None

    return transformed(stmts, change)


def copied(stmts: Body, body: Body, mark: str) -> Body:
    """`stmts` with their own variables and loops under other names."""
    own = [s.sym for s in k.walk(stmts) if isinstance(s, k.Declare | k.For)]
    own += [s.target for s in k.walk(stmts) if isinstance(s, k.Exchange | k.Shuffle)]
    own += [sym for s in k.walk(stmts) if isinstance(s, k.LoadVector) for sym in s.targets]
    return renamed(stmts, {sym: fresh(body, f"{sym.name}_{mark}") for sym in own})
