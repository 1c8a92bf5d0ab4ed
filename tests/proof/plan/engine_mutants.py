"""Bugs put into copies of the tensor memory accelerator, one at a time, each of a class with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir.value import Load
from texpr.support.record import Record, replace

Body = tuple[k.Stmt, ...]
Change = Callable[[k.Stmt], Iterator[tuple[str, Body]]]


class Planted(Record, dict=True):
    """A plan with one bug, of a class."""

    kind: str
    name: str
    plan: k.Plan


def planted(plan: k.Plan) -> Iterator[Planted]:
    """Every bug of every class, one by one."""
    for kernel in dict.fromkeys(k.kernels(plan.steps)):
        for kind, name, made in _of_kernel(kernel):
            steps = tuple(k.Launch(made) if isinstance(s, k.Launch) and s.kernel is kernel else s for s in plan.steps)
            yield Planted(kind, f"{kernel.name}: {name}", replace(plan, steps=steps))


def _of_kernel(kernel: k.Kernel) -> Iterator[tuple[str, str, k.Kernel]]:
    for kind, name, body in _of_body(kernel.body, kernel):
        yield kind, name, replace(kernel, body=body)
    for at, map in enumerate(kernel.maps):
        for kind, changed in _of_map(map):
            yield kind, map.name, replace(kernel, maps=(*kernel.maps[:at], changed, *kernel.maps[at + 1 :]))


def _of_map(map: k.TensorMap) -> Iterator[tuple[str, k.TensorMap]]:
    for at in range(map.rank):
        grown = tuple(size + (dim == at) for dim, size in enumerate(map.sizes))
        yield "map: a size off", replace(map, sizes=grown)
        if at and map.strides[at - 1].terms:
            wider = tuple(stride * (1 + (dim == at - 1)) for dim, stride in enumerate(map.strides))
            yield "map: a stride off", replace(map, strides=wider)
        if at and not map.corners:
            yield "map: a step off", replace(map, steps=tuple(step + (dim == at) for dim, step in enumerate(map.steps)))
    for at in range(len(map.box)):
        if at or not map.swizzle:
            box = tuple(extent + (dim == at) * (1 if at else 4) for dim, extent in enumerate(map.box))
            yield "map: a box off", replace(map, box=box)
    yield "map: begins elsewhere", replace(map, offset=map.offset + 1)
    yield "map: another swizzle", replace(map, swizzle={0: 32, 32: 64, 64: 128, 128: 64}[map.swizzle])
    if map.buffer.dtype.is_float:
        yield "map: another fill", replace(map, fill="nan" if map.fill == "zero" else "zero")
    for at, (low, high) in enumerate(map.corners):
        for moved in ((low + 1, high), (low, high + 1)):
            yield "map: a corner off", replace(map, corners=(*map.corners[:at], moved, *map.corners[at + 1 :]))


def _of_body(body: Body, kernel: k.Kernel) -> Iterator[tuple[str, str, Body]]:
    for at, stmt in enumerate(body):
        before, after = body[:at], body[at + 1 :]
        for kind, made in _of_stmt(stmt, kernel):
            yield kind, _word(stmt), (*before, *made, *after)
        if isinstance(stmt, _WAITS) and after:
            yield "later", _word(stmt), (*before, after[0], stmt, *after[1:])
        if isinstance(stmt, _WAITS) and before:
            yield "earlier", _word(stmt), (*before[:-1], stmt, before[-1], *after)
        for name, inner, rebuild in _inner(stmt):
            for kind, word, made in _of_body(inner, kernel):
                yield kind, f"{name}{word}", (*before, rebuild(made), *after)


_WAITS = k.Barrier | k.BarrierWait | k.Fence | k.WaitBulk | k.CommitBulk


def _inner(stmt: k.Stmt) -> Iterator[tuple[str, Body, Callable[[Body], k.Stmt]]]:
    match stmt:
        case k.For():
            yield f"{stmt.sym}: ", stmt.body, lambda body: replace(stmt, body=body)
        case k.If():
            yield "", stmt.then, lambda body: replace(stmt, then=body)
            yield "else: ", stmt.orelse, lambda body: replace(stmt, orelse=body)
        case _:
            return


def _word(stmt: k.Stmt) -> str:
    return type(stmt).__name__.lower()


def _slot(barrier: Load) -> Load | None:
    """The barrier of the next slot."""
    (index,), (slots,) = barrier.index, barrier.buffer.shape
    if slots.constant == 1:
        return None
    moved = index.substitute({sym: expr(sym) + 1 for sym in index.syms()}) if index.syms() else (index + 1) % slots
    return replace(barrier, index=(moved,))


def _of_stmt(stmt: k.Stmt, kernel: k.Kernel) -> Iterator[tuple[str, Body]]:
    word = _word(stmt)
    match stmt:
        case k.Barrier():
            yield "barrier dropped", ()
            if stmt.level is k.Level.CLUSTER:
                yield "barrier of a block for one of a cluster", (replace(stmt, level=k.Level.BLOCK),)
            if stmt.level is k.Level.BLOCK and kernel.threads > 32:
                yield "barrier of a warp for one of a block", (replace(stmt, level=k.Level.WARP),)
        case k.Fence():
            yield f"fence dropped: {stmt.kind}", ()
        case k.BarrierInit():
            yield f"{word} dropped", ()
            yield "more arrivals awaited", (replace(stmt, count=stmt.count + 1),)
        case k.BarrierExpect():
            yield f"{word} dropped", ()
            yield "fewer bytes expected", (replace(stmt, bytes=stmt.bytes - 16),)
            yield "more bytes expected", (replace(stmt, bytes=stmt.bytes + 16),)
            yield "arrives twice", (stmt, stmt)
        case k.BarrierWait():
            yield f"{word} dropped", ()
            yield "other parity", (replace(stmt, parity=(stmt.parity + 1) % 2),)
            if not stmt.parity.is_constant:
                yield "parity of the first phase", (replace(stmt, parity=expr(0)),)
        case k.CopyTensor():
            yield from _of_load(stmt)
        case k.StoreTensor():
            yield f"{word} dropped", ()
            yield from ((kind, (replace(stmt, at=at),)) for kind, at in _coordinates(stmt.at))
            yield from (("tile off", (replace(stmt, source=tile),)) for tile in _tiles(stmt.source))
            if stmt.reduce is None:
                yield "combined, not stored", (replace(stmt, reduce="add"),)
            else:
                yield "stored, not combined", (replace(stmt, reduce=None),)
                yield "combined in another way", (replace(stmt, reduce="max"),)
        case k.CommitBulk():
            yield f"{word} dropped", ()
        case k.WaitBulk():
            yield f"{word} dropped", ()
            yield "one group less waited for", (replace(stmt, pending=stmt.pending + 1),)
            if not stmt.read:
                yield "waits for reads alone", (replace(stmt, read=True),)
        case k.If():
            yield "guard dropped", stmt.then
        case k.For():
            yield "first turn dropped", (replace(stmt, lo=stmt.lo + 1),)
            yield "last turn dropped", (replace(stmt, hi=stmt.hi - 1),)
        case _:
            return
    if isinstance(stmt, k.BarrierExpect | k.BarrierWait) and (other := _slot(stmt.barrier)) is not None:
        yield "wrong stage of a barrier", (replace(stmt, barrier=other),)


def _of_load(stmt: k.CopyTensor) -> Iterator[tuple[str, Body]]:
    yield "copytensor dropped", ()
    yield "copied twice", (stmt, stmt)
    yield from ((kind, (replace(stmt, at=at),)) for kind, at in _coordinates(stmt.at))
    yield from (("tile off", (replace(stmt, target=tile),)) for tile in _tiles(stmt.target))
    if (other := _slot(stmt.barrier)) is not None:
        yield "arrives at another stage", (replace(stmt, barrier=other),)
    if stmt.offsets:
        yield "offsets swapped", (replace(stmt, offsets=stmt.offsets[::-1]),)
    if stmt.peers:
        yield "to fewer blocks", (replace(stmt, peers=stmt.peers[:-1]),)
        yield "to this block alone", (replace(stmt, peers=(), first=expr(0)),)
        yield "to other blocks", (replace(stmt, peers=tuple(3 - p for p in reversed(stmt.peers))),)
        yield "from another block on", (replace(stmt, first=expr(0)),)


def _coordinates(at: tuple[Expr, ...]) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    for dim, each in enumerate(at):
        yield "coordinate off", (*at[:dim], each + 1, *at[dim + 1 :])
    if len(at) > 1 and at[0] is not at[1]:
        yield "coordinates swapped", (at[1], at[0], *at[2:])


def _tiles(tile: Load) -> Iterator[Load]:
    for dim, (index, extent) in enumerate(zip(tile.index, tile.buffer.shape, strict=True)):
        if not index.is_constant:
            moved = (index + 1) % extent
            yield replace(tile, index=(*tile.index[:dim], moved, *tile.index[dim + 1 :]))
        elif dim == 0:
            yield replace(tile, index=(index + 1, *tile.index[1:]))
