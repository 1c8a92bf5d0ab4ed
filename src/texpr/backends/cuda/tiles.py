"""Copies of tiles, and waits for what is copied, as C text in the words of texpr_tensor.h."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from texpr.affine.expr import Expr
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.text import Binds, comment, line_of
from texpr.backends.c.value import place_text, value_text
from texpr.ir import transfer as t
from texpr.ir.kernel import Kernel
from texpr.ir.value import Load, Value
from texpr.support.diagnostic import CompilerBug


def transfer_lines(stmt: t.Waited | t.Tiles, kernel: Kernel, scope: Scope) -> list[str]:
    """The lines of one statement: why it is there, and a call."""
    covers = stmt.covers if isinstance(stmt, t.WaitAsync | t.WaitBulk | t.BarrierWait) else ()
    return [*reasons(covers), _call(stmt, kernel, scope) + ";"]


def reasons(covers: Iterable[t.Covered]) -> list[str]:
    """What a wait is for, as comments."""
    return [f"// {comment(_covered(c))}" for c in covers]


def _covered(dependence: t.Covered) -> str:
    carried = f", carried by {dependence.carried.base}" if dependence.carried is not None else ""
    ends = [line_of(dependence.source), line_of(dependence.sink)]
    lines = "" if None in ends else f": line {ends[0]} -> line {ends[1]}"
    if dependence.kind == "END":
        lines = "" if ends[0] is None else f": line {ends[0]} -> the block's end"
    return f"{dependence.kind} {dependence.buffer}{lines}{carried}"


def _call(stmt: t.Waited | t.Tiles, kernel: Kernel, scope: Scope) -> str:
    match stmt:
        case t.CommitAsync():
            return "tx_commit_async()"
        case t.WaitAsync():
            return f"tx_wait_async<{stmt.pending}>()"
        case t.CopyTensor():
            ends = f"{_place(stmt.target, scope)}, {_map(stmt.map, kernel, scope)}, {_place(stmt.barrier, scope)}"
            if stmt.peers and stmt.rows:
                raise CompilerBug(f"kernel {kernel.name} shares a copy of four rows")
            if stmt.peers:
                verb = "columns" if stmt.offsets else "tensor"
                at = _coordinates((*stmt.at, *stmt.offsets), scope)
                return f"tx_load_{verb}_multicast({ends}, {_mask(stmt, scope)}, {at})"
            if stmt.rows:
                return f"tx_load_rows({ends}, {_coordinates(stmt.at, scope)}, {_rows(stmt.rows, scope)})"
            if stmt.offsets:
                return f"tx_load_columns({ends}, {_coordinates((*stmt.at, *stmt.offsets), scope)})"
            return f"tx_load_tensor({ends}, {_coordinates(stmt.at, scope)})"
        case t.StoreTensor():
            verb = "store" if stmt.reduce is None else f"reduce_{stmt.reduce}"
            ends = f"{_map(stmt.map, kernel, scope)}, {_place(stmt.source, scope)}"
            if stmt.rows and stmt.reduce is not None:
                raise CompilerBug(f"kernel {kernel.name} combines four rows")
            if stmt.rows:
                return f"tx_store_rows({ends}, {_coordinates(stmt.at, scope)}, {_rows(stmt.rows, scope)})"
            return f"tx_{verb}_tensor({ends}, {_coordinates(stmt.at, scope)})"
        case t.CopyBulk():
            ends = f"{_place(stmt.target, scope)}, {_place(stmt.source, scope)}"
            barrier = "" if stmt.barrier is None else f", {_place(stmt.barrier, scope)}"
            verb = "load" if stmt.barrier is not None else "store" if stmt.reduce is None else f"reduce_{stmt.reduce}"
            if stmt.exactly is not None:
                return f"tx_{verb}_bulk({ends}{barrier}, {index_text(stmt.exactly, scope)})"
            return f"tx_{verb}_bulk<{stmt.count}>({ends}{barrier})"
        case t.PrefetchMap():
            return f"tx_prefetch({_map(stmt.map, kernel, scope)})"
        case t.CommitBulk():
            return "tx_commit_bulk()"
        case t.WaitBulk():
            return f"tx_wait_bulk{'_read' if stmt.read else ''}<{stmt.pending}>()"
        case t.Fence():
            return f"tx_fence_{stmt.kind}()"
        case t.BarrierInit():
            return f"tx_barrier_init({_place(stmt.barrier, scope)}, {stmt.count})"
        case t.BarrierExpect():
            count = stmt.bytes if stmt.exactly is None else index_text(stmt.exactly, scope)
            return f"tx_barrier_expect({_place(stmt.barrier, scope)}, {count})"
        case t.BarrierArrive():
            return f"tx_barrier_arrive({_place(stmt.barrier, scope)})"
        case t.BarrierWait():
            return f"tx_barrier_wait({_place(stmt.barrier, scope)}, {index_text(stmt.parity, scope)})"
        case _:
            assert_never(stmt)


def _place(first: Load, scope: Scope) -> str:
    return f"{scope.named[first.buffer]}, {place_text(first, scope)}"


def _mask(stmt: t.CopyTensor, scope: Scope) -> str:
    """The blocks of the cluster that a box goes to, a bit each."""
    bits = sum(1 << peer for peer in stmt.peers)
    first = stmt.first
    return f"{bits << first.constant:#x}u" if first.is_constant else f"{bits:#x}u << {index_text(first, scope).at(Binds.SHIFT)}"


def _map(name: str, kernel: Kernel, scope: Scope) -> str:
    found = next((map for map in kernel.maps if map.name == name), None)
    if found is None:
        raise CompilerBug(f"kernel {kernel.name} has no map {name}")
    return scope.named[found]


def _rows(rows: tuple[Value, ...], scope: Scope) -> str:
    return ", ".join(str(value_text(row, scope)) for row in rows)


def _coordinates(at: tuple[Expr, ...], scope: Scope) -> str:
    return ", ".join(str(index_text(each, scope)) for each in at)
