"""Statements that transfer as text; the grammar stands in `texpr.ir.kernel_text`, `texpr.ir.transfer_parse` reads it back."""

from __future__ import annotations

import json
from typing import assert_never

from texpr.affine.expr import Expr
from texpr.ir import transfer as t
from texpr.ir.scanner import is_name
from texpr.ir.value import Value
from texpr.ir.value_text import Types, list_text, value_text
from texpr.support.span import NOWHERE


def transfer_text(stmt: t.Transfer, types: Types) -> str:
    """One statement, on one line."""
    match stmt:
        case t.LoadVector():
            text = f"vector {', '.join(map(str, stmt.targets))} = {value_text(stmt.source, types)}"
            types.update(dict.fromkeys(stmt.targets, stmt.source.dtype))
            return text
        case t.StoreVector():
            given = ", ".join(value_text(value, types) for value in stmt.values)
            return f"vector {value_text(stmt.target, types)} = {given}"
        case t.CopyAsync():
            when = "" if stmt.when is None else f" when {value_text(stmt.when, types)}"
            return f"copy {value_text(stmt.target, types)} = {value_text(stmt.source, types)}{when} count {stmt.count}"
        case t.CommitAsync():
            return "commit"
        case t.WaitAsync():
            return f"wait {stmt.pending}{covers_text(stmt.covers)}"
        case t.CopyTensor():
            offsets = f" offsets {list_text(stmt.offsets)}" if stmt.offsets else ""
            box = f"{stmt.map}{list_text(stmt.at)}{offsets}{_rows(stmt.rows, types)}"
            peers = f" to {list_text(stmt.peers)} from {stmt.first}" if stmt.peers else ""
            return f"tensor load {value_text(stmt.target, types)} = {box} arrives {value_text(stmt.barrier, types)}{peers}"
        case t.StoreTensor():
            verb = "store" if stmt.reduce is None else f"reduce {stmt.reduce}"
            box = f"{stmt.map}{list_text(stmt.at)}{_rows(stmt.rows, types)}"
            return f"tensor {verb} {box} = {value_text(stmt.source, types)}"
        case t.CopyBulk():
            arrives = "" if stmt.barrier is None else f" arrives {value_text(stmt.barrier, types)}"
            verb = "" if stmt.reduce is None else f"reduce {stmt.reduce} "
            ends = f"{value_text(stmt.target, types)} = {value_text(stmt.source, types)}"
            return f"bulk {verb}{ends} count {stmt.count}{_exactly(stmt.exactly)}{arrives}"
        case t.CommitBulk():
            return "commit_bulk"
        case t.WaitBulk():
            return f"wait_bulk {stmt.pending}{' read' if stmt.read else ''}{covers_text(stmt.covers)}"
        case t.Fence():
            return f"fence {stmt.kind}"
        case t.PrefetchMap():
            return f"prefetch {stmt.map}"
        case _:
            return _barrier(stmt, types)


def _rows(rows: tuple[Value, ...], types: Types) -> str:
    return f" rows {', '.join(value_text(row, types) for row in rows)}" if rows else ""


def _exactly(count: Expr | None) -> str:
    return "" if count is None else f" exactly {count}"


def _barrier(stmt: t.BarrierInit | t.BarrierExpect | t.BarrierArrive | t.BarrierWait, types: Types) -> str:
    barrier = value_text(stmt.barrier, types)
    match stmt:
        case t.BarrierInit():
            return f"mbarrier init {barrier} count {stmt.count}"
        case t.BarrierExpect():
            return f"mbarrier expect {barrier} bytes {stmt.bytes}{_exactly(stmt.exactly)}"
        case t.BarrierArrive():
            return f"mbarrier arrive {barrier}"
        case t.BarrierWait():
            return f"mbarrier wait {barrier} parity {stmt.parity}{covers_text(stmt.covers)}"
        case _:
            assert_never(stmt)


def covers_text(covers: tuple[t.Covered, ...]) -> str:
    """Why a wait is there, where anything is said."""
    return f" covers {', '.join(map(_covered, covers))}" if covers else ""


def _covered(covered: t.Covered) -> str:
    carried = "" if covered.carried is None else f" carried {covered.carried}"
    name = covered.buffer if is_name(covered.buffer) else json.dumps(covered.buffer)
    ends = (("from", covered.source), ("to", covered.sink))
    lines = "".join(f" {word} {span.line}" for word, span in ends if span.source is not NOWHERE.source)
    return f"{covered.kind} {name}{lines}{carried}"
