"""Reads the text of statements that transfer; the grammar stands in `texpr.ir.kernel_text`."""

from __future__ import annotations

import json

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir import transfer as t
from texpr.ir.scanner import Scanner
from texpr.ir.value import Value
from texpr.ir.value_parse import ValueParser, index, index_list, integer_list, separated


def named(scan: Scanner) -> Sym:
    """A name, as a symbol."""
    return Sym(scan.name())


def option(scan: Scanner, word: str) -> bool:
    """Takes a word that may end a statement, but not one that begins the next."""
    return scan.second.text not in ("=", "[") and scan.accept(word)


def covers(scan: Scanner) -> tuple[t.Covered, ...]:
    """Why a wait is there, where anything is said."""
    return tuple(separated(scan, _covered)) if option(scan, "covers") else ()


def _covered(scan: Scanner) -> t.Covered:
    start = scan.next.start
    kind = scan.name()
    buffer = str(json.loads(scan.take().text)) if scan.next.kind == "string" else scan.name()
    source, sink = (scan.place(scan.integer() if option(scan, word) else None, start) for word in ("from", "to"))
    return t.Covered(kind, buffer, source, sink, named(scan) if option(scan, "carried") else None)


class TransferParser:
    """Reads one statement at a time, its elements and values by `values`."""

    def __init__(self, values: ValueParser):
        self.scan = values.scan
        self.values = values

    def statement(self, word: str) -> t.Transfer | None:
        """The statement that begins with `word`, the next token; None where none does."""
        match word:
            case "vector":
                return self._vector()
            case "copy":
                return self._copy()
            case "commit":
                return t.CommitAsync(self.scan.span(self.scan.take().start))
            case "wait":
                start = self.scan.take().start
                return t.WaitAsync(self.scan.integer(), covers(self.scan), self.scan.span(start))
            case "tensor":
                return self._tensor()
            case "bulk":
                return self._bulk()
            case "commit_bulk":
                return t.CommitBulk(self.scan.span(self.scan.take().start))
            case "wait_bulk":
                start = self.scan.take().start
                pending, read = self.scan.integer(), option(self.scan, "read")
                return t.WaitBulk(pending, read, covers(self.scan), self.scan.span(start))
            case "mbarrier":
                return self._barrier()
            case "fence" | "prefetch":
                start = self.scan.take().start
                made = t.Fence if word == "fence" else t.PrefetchMap
                return made(self.scan.name(), self.scan.span(start))
            case _:
                return None

    def _vector(self) -> t.LoadVector | t.StoreVector:
        scan, start = self.scan, self.scan.take().start
        if scan.second.text == "[":
            target = self.values.element()
            scan.expect("=")
            given = separated(scan, lambda _: self.values.value())
            return t.StoreVector(target, tuple(given), scan.span(start))
        targets = tuple(separated(scan, named))
        scan.expect("=")
        source = self.values.element()
        self.values.types.update(dict.fromkeys(targets, source.dtype))
        return t.LoadVector(targets, source, scan.span(start))

    def _copy(self) -> t.CopyAsync:
        scan, start = self.scan, self.scan.take().start
        target = self.values.element()
        scan.expect("=")
        source = self.values.element()
        when = self.values.value() if scan.accept("when") else None
        scan.expect("count")
        return t.CopyAsync(target, source, scan.integer(), when, scan.span(start))

    def _tensor(self) -> t.CopyTensor | t.StoreTensor:
        scan, start = self.scan, self.scan.take().start
        match scan.name("load, store or reduce"):
            case "load":
                target = self.values.element()
                scan.expect("=")
                map, at = scan.name(), index_list(scan)
                offsets = index_list(scan) if scan.accept("offsets") else ()
                rows = self._rows()
                scan.expect("arrives")
                barrier = self.values.element()
                peers = integer_list(scan) if scan.accept("to") else ()
                if peers:
                    scan.expect("from")
                first = index(scan) if peers else ZERO
                return t.CopyTensor(target, map, at, barrier, scan.span(start), peers, first, offsets, rows)
            case "store" | "reduce" as verb:
                op = scan.name("an operation") if verb == "reduce" else None
                map, at, rows = scan.name(), index_list(scan), self._rows()
                scan.expect("=")
                return t.StoreTensor(map, at, self.values.element(), op, scan.span(start), rows)
            case other:
                scan.reject(f"`{other}` is nothing that is done with a tensor")

    def _rows(self) -> tuple[Value, ...]:
        return tuple(separated(self.scan, lambda _: self.values.value())) if self.scan.accept("rows") else ()

    def _bulk(self) -> t.CopyBulk:
        scan, start = self.scan, self.scan.take().start
        op = scan.name("an operation") if option(scan, "reduce") else None
        target = self.values.element()
        scan.expect("=")
        source = self.values.element()
        scan.expect("count")
        count, exactly = scan.integer(), self._exactly()
        barrier = self.values.element() if option(scan, "arrives") else None
        return t.CopyBulk(target, source, count, barrier, scan.span(start), op, exactly)

    def _exactly(self) -> Expr | None:
        return index(self.scan) if option(self.scan, "exactly") else None

    def _barrier(self) -> t.BarrierInit | t.BarrierExpect | t.BarrierArrive | t.BarrierWait:
        scan, start = self.scan, self.scan.take().start
        verb = scan.name("what is done with a barrier")
        barrier = self.values.element()
        match verb:
            case "init":
                scan.expect("count")
                return t.BarrierInit(barrier, scan.integer(), scan.span(start))
            case "expect":
                scan.expect("bytes")
                bytes, exactly = scan.integer(), self._exactly()
                return t.BarrierExpect(barrier, bytes, scan.span(start), exactly)
            case "arrive":
                return t.BarrierArrive(barrier, scan.span(start))
            case "wait":
                scan.expect("parity")
                return t.BarrierWait(barrier, index(scan), covers(scan), scan.span(start))
            case _:
                scan.reject(f"`{verb}` is nothing that is done with a barrier")
