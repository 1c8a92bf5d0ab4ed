"""`stage(A, in=global) -> A_g`: all of A is copied once, ahead of the first nest that reads it, into rows that begin where the
copy engine and accesses of whole vectors need it: at multiples of 16 bytes.

Before: par M |i| { … A[i, k] … }
After:  new A_g: f16[M, K] stride(8 * ((K + 7) / 8), 1)
        par M |A_g_0| { par K |A_g_1| { A_g[A_g_0, A_g_1] = A[A_g_0, A_g_1] } }
        par M |i| { … A_g[i, k] … }

What lies between the end of a row and the start of the next one is never written, and never read.
"""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load, Value, pitched
from texpr.isa.engine import CHUNK
from texpr.schedule.call import Call
from texpr.schedule.edits import left_out
from texpr.schedule.stage.touched import copy_loops
from texpr.schedule.state import State
from texpr.schedule.tree import Body
from texpr.support.diagnostic import Note
from texpr.support.record import replace


def copied_ahead(call: Call, buffer: Buffer) -> State:
    """The state with the copy, which all reads of the buffer are of."""
    body = call.state.function.body
    first = next((at for at, stmt in enumerate(body) if _reads(stmt, buffer)), None)
    if first is None or not buffer.rank:
        reason = "is a number" if first is not None else "is never read"
        raise call.refuse("E0912", f"`{buffer.name}` {reason}", offers=left_out(call.directive.span))
    _require_quiet(call, buffer, body[first:])
    (name,) = call.results(f"{buffer.name}_g")
    span = call.directive.span
    strides = pitched(buffer.shape, max(1, CHUNK // buffer.dtype.bytes))
    made = Buffer(name.name, buffer.dtype, buffer.shape, "local", strides, span=span)  # workspace begins at larger multiples
    at = copy_loops(call, name.name, buffer.rank)
    index = tuple(map(expr, at))
    copy: Body = (ir.Bind((Load(made, index, span=span),), (Load(buffer, index, span=span),), span=span),)
    for sym, extent in reversed([*zip(at, buffer.shape, strict=True)]):
        copy = (ir.Par(sym, extent, copy, span=span),)
    reads = Rewriter(value=lambda old: _from(old, buffer, made))
    return call.state.with_body((*body[:first], ir.New(made, span=span), *copy, *reads.block(body[first:])))


def _reads(stmt: ir.Stmt, buffer: Buffer) -> bool:
    return any(load.buffer is buffer for inner in ir.walk((stmt,)) for load in loads(inner))


def _from(value: Value, buffer: Buffer, made: Buffer) -> Value:
    return replace_loads(value, lambda load: replace(load, buffer=made) if load.buffer is buffer else None)


def _require_quiet(call: Call, buffer: Buffer, body: Body) -> None:
    """Nothing writes the buffer once it is copied."""
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.Bind) and any(target.buffer is buffer for target in stmt.targets):
            reason = f"`{buffer.name}` is written where it is read, or later, so a copy of it could be out of date"
            offers = left_out(call.directive.span, f"leave it out, and `{buffer.name}` is read where it is")
            raise call.refuse("E0912", reason, Note("it is written here", stmt.span), offers=offers)
