"""Search and replacement of statements by identity. Statements off the path to a change stay the same objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from texpr.ir import program as ir
from texpr.ir.program.rewrite import with_blocks

Body = tuple[ir.Stmt, ...]


def path_to(body: Body, wanted: ir.Stmt) -> tuple[ir.Stmt, ...] | None:
    """The statements from the outermost one down to `wanted`, the last; None where it is not in `body`."""
    for stmt in body:
        if stmt is wanted:
            return (stmt,)
        for block in ir.blocks(stmt) if wanted in below(stmt) else ():
            rest = path_to(block, wanted)
            if rest is not None:
                return (stmt, *rest)
    return None


@lru_cache(maxsize=1 << 12)
def below(stmt: ir.Stmt) -> frozenset[ir.Stmt]:
    """Every statement below `stmt`; memoised, as most of a program survives a directive."""
    inner = [each for block in ir.blocks(stmt) for each in block]
    return frozenset(inner).union(*map(below, inner))


def replaced(body: Body, wanted: ir.Stmt, change: Callable[[ir.Stmt], Body]) -> Body:
    """`body` with the statement `wanted` replaced by what `change` makes of it."""
    path = path_to(body, wanted)
    return body if path is None else _replaced(body, path, change)


def _replaced(body: Body, path: tuple[ir.Stmt, ...], change: Callable[[ir.Stmt], Body]) -> Body:
    here, *rest = path
    if not rest:
        return tuple(new for stmt in body for new in (change(stmt) if stmt is here else (stmt,)))
    blocks = [_replaced(b, tuple(rest), change) if any(s is rest[0] for s in b) else b for b in ir.blocks(here)]
    return tuple(with_blocks(stmt, tuple(blocks)) if stmt is here else stmt for stmt in body)


def loops(body: Body) -> tuple[ir.Loop, ...]:
    """Every loop of `body`, outermost first, in textual order."""
    return tuple(loop for stmt in body for loop in _loops(stmt))


def called(name: str, body: Body) -> tuple[ir.Loop, ...]:
    """The loops that `name` may refer to: `i'1` exactly that one, `i'0` the first named `i`, `i` all."""
    every = loops(body)
    if "'" in name:
        very = name.removesuffix("'0")
        return tuple(loop for loop in every if loop.sym.name == name) or tuple(s for s in every if s.sym.name == very)
    return tuple(loop for loop in every if loop.sym.base == name)


def exactly(name: str, body: Body) -> str:
    """The name that refers to the loop `name` only, where others have the same base name."""
    alone = "'" in name or len(called(name, body)) < 2 or all(loop.sym.name != name for loop in loops(body))
    return name if alone else f"{name}'0"


@lru_cache(maxsize=1 << 12)
def _loops(stmt: ir.Stmt) -> tuple[ir.Loop, ...]:
    own = (stmt,) if isinstance(stmt, ir.Par | ir.Seq) else ()
    return (*own, *(loop for block in ir.blocks(stmt) for loop in loops(block)))
