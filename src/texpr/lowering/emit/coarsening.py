"""Thread coarsening: the points of a tile in sequence around the whole body, or interleaved in its `seq`s.

Before (a tile of 4 × 16 points): `c = 0; seq K |k| { c += A[i, k] * B[k, j] }; C[i, j] = c`. After:

    if (the tile is whole)
        for u, v: c[u, v] = 0
        for k: for u, v: c[u, v] += A[i + u, k] * B[k, j + v]
        for u, v: C[i + u, j + v] = c[u, v]
    else
                the same, for the points inside

Every point has scalars of its own; a scalar that is used within one group of statements needs no memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, minimum
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.program.rewrite import substitute_block
from texpr.ir.program.uses import loads
from texpr.ir.steps import Along
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Index, Op, Value, conjunction
from texpr.ir.value.types import BOOL, I64
from texpr.lowering.emit.emitter import Emitter, is_simple
from texpr.mapping.distribute import distributes, is_around_loops
from texpr.support.record import Mutable, Record, field, replace


class Tile(Record):
    """The points of one loop: the loop and the expression of its first index."""

    along: Along
    start: Expr


def around(tiles: tuple[Tile, ...], body: tuple[ir.Stmt, ...], emitter: Emitter) -> tuple[k.Stmt, ...]:
    """`body` for every point of `tiles`. Atomics are not interleaved: lanes do not speed them up."""
    if not tiles or emitter.atomics or not distributes(body, frozenset(t.along.loop.sym for t in tiles)):
        return _each_point(tiles, body, emitter)
    points = [emitter.names.sym(f"{t.along.loop.sym.base}_point") for t in tiles]
    moved = {t.along.loop.sym: t.start + expr(point) for t, point in zip(tiles, points, strict=True)}
    side = _SideBySide(emitter, tuple(Points(p, t.along.tile, expr(t.along.tile)) for p, t in zip(points, tiles, strict=True)))
    body = substitute_block(body, moved)
    every, test = side.block(body), conjunction(list(_is_whole(tiles)))
    if test is None:
        return every
    left = (minimum(t.along.tile, t.along.loop.extent - t.start) for t in tiles)
    side.points = tuple(replace(p, count=count) for p, count in zip(side.points, left, strict=True))
    return (k.If(test, every, side.block(body), span=tiles[0].along.loop.span),)


def _each_point(tiles: tuple[Tile, ...], body: tuple[ir.Stmt, ...], emitter: Emitter) -> tuple[k.Stmt, ...]:
    kind = "simd" if emitter.simd and is_simple(body, emitter.atomics) else "serial"
    found = emitter.block(body)
    for tile in reversed(tiles):
        loop = tile.along.loop
        end = minimum(tile.start + tile.along.tile, loop.extent)
        found = (k.For(loop.sym, tile.start, end, found, ONE, kind, span=loop.span),)
        kind = "serial"
    return found


def _is_whole(tiles: tuple[Tile, ...]) -> Iterator[Value]:
    for tile in tiles:
        extent = tile.along.loop.extent
        if not (extent.is_constant and extent.constant % tile.along.tile == 0):
            yield Op("le", (Index(tile.start + tile.along.tile, I64), Index(extent, I64)), BOOL)


class Points(Record):
    """The points of a loop, `most` in a whole tile, `count` in this one."""

    sym: Sym
    most: int
    count: Expr


class _SideBySide(Mutable):
    emitter: Emitter
    points: tuple[Points, ...]
    arrays: dict[Buffer, Place] = field(default_factory=dict[Buffer, Place])

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[k.Stmt, ...]:
        groups = list(_groups(body))
        for group in groups:
            for stmt in group:
                if isinstance(stmt, ir.New) and _used_beyond(stmt.buffer, group, body):
                    self._expand(stmt.buffer)
        return tuple(stmt for group in groups for stmt in self._group(group))

    def _group(self, group: tuple[ir.Stmt, ...]) -> Iterator[k.Stmt]:
        match group:
            case (ir.Seq() as loop,):
                yield k.For(loop.sym, ZERO, loop.extent, self.block(loop.body), ONE, span=loop.span)
                return
            case (ir.If() as test,) if is_around_loops(test):
                arms = self.block(test.then), self.block(test.orelse)
                yield k.If(self.emitter.value(test.condition), *arms, span=test.span)
                return
            case _:
                pass
        found = self.emitter.block(group)
        kind = "simd"
        for each in reversed(self.points):
            found = (k.For(each.sym, ZERO, each.count, found, ONE, kind, span=group[0].span),)
            kind = "unroll" if each.count.is_constant else "serial"
        yield from found if any(not isinstance(s, ir.New) for s in group) else ()

    def _expand(self, buffer: Buffer) -> None:
        if buffer not in self.arrays:
            why, shape = "each point of the tile keeps its own", tuple(expr(each.most) for each in self.points)
            made = Buffer(self.emitter.names.name(f"{buffer.name}_tile"), buffer.dtype, shape, "local", span=buffer.span)
            self.emitter.arrays.append(k.Array(made, k.Space.LOCAL, why))
            at = tuple(expr(each.sym) for each in self.points)
            self.arrays[buffer] = Place(k.Space.LOCAL, made, leading=at, reason=why)
        self.emitter.places[buffer] = self.arrays[buffer]


def _groups(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, ...]]:
    """Sequences of statements without a `seq`, and each `seq`, or test around one, by itself."""
    run: list[ir.Stmt] = []
    for stmt in body:
        if is_around_loops(stmt):
            if run:
                yield tuple(run)
            yield (stmt,)
            run = []
        else:
            run.append(stmt)
    if run:
        yield tuple(run)


def _used_beyond(buffer: Buffer, group: tuple[ir.Stmt, ...], body: tuple[ir.Stmt, ...]) -> bool:
    inside = set(ir.walk(group))
    return any(load.buffer is buffer for s in ir.walk(body) if s not in inside for load in loads(s))
