"""`widen(s, f32)`: a sum of a narrow floating type kept in f32, and rounded to its own type where it is read.

Before: new s: f16; s = 0; seq K |k| reduce(s) { s += A[i, k] * B[j, k] }; C[i, j] = s
After:  new s: f32; s = 0; seq K |k| reduce(s) { s += f32(A[i, k]) * f32(B[j, k]) }; C[i, j] = f16(s)

A `reduce` frees how partial sums, and products in them, are rounded: every update has to be in one, without `#ieee`. Memory
of callers keeps its type; what is staged of it is a local.
"""

from __future__ import annotations

from texpr.ir import program as ir
from texpr.ir.program.rewrite import replace_loads, with_blocks
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value
from texpr.ir.value.types import F32, DType
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import left_out
from texpr.schedule.rewrite.allocation import stage_offers
from texpr.schedule.state import State
from texpr.schedule.tree import Body
from texpr.support.diagnostic import Note
from texpr.support.record import replace

FREE = ("add", "max", "min")
"""Updates that may be done in a wider type: sums are rounded in the end, and extrema not at all."""

WHOLE = 8
"""Whole numbers up to this one are those of every floating type."""


def _apply(call: Call) -> State:
    call.expect(2)
    call.no_results()
    buffer = call.buffer(call.plain[0])
    call.word(call.plain[1], (F32.name,))
    body = call.state.function.body
    if not any(isinstance(s, ir.New) and s.buffer is buffer for s in ir.walk(body)) or buffer in call.state.function.results:
        reason = f"the memory of `{buffer.name}` is the caller's, and keeps its type"
        raise call.refuse("E0913", reason, at=call.plain[0], offers=stage_offers(call, buffer.name, "registers"))
    if not buffer.dtype.is_float or buffer.dtype.bits >= F32.bits:
        reason = f"`{buffer.name}` is of {buffer.dtype}, which f32 does not widen"
        raise call.refuse("E0905", reason, at=call.plain[0], offers=left_out(call.directive.span, "leave it out"))
    if buffer in call.state.allocations:
        reason = f"`{buffer.name}` has an allocation of its own"
        raise call.refuse("E0905", reason, at=call.plain[0], help="`widen` comes before what shapes memory")
    _require_free(call, buffer, body, ())
    widening = _Widening(buffer, replace(buffer, dtype=F32))
    return call.state.with_body(widening.block(body))


def _require_free(call: Call, buffer: Buffer, body: Body, around: tuple[ir.Loop, ...]) -> None:
    """That a `reduce` frees how each update is rounded: E0906."""
    for stmt in body:
        if isinstance(stmt, ir.Instruction) and any(load.buffer is buffer for load in stmt.operands):
            reason = f"`{stmt.name}` has its registers of {buffer.dtype}"
            raise call.refuse("E0905", reason, Note("here", stmt.span), help="`widen` comes before `mma`")
        if isinstance(stmt, ir.Bind) and stmt.update is not None and any(t.buffer is buffer for t in stmt.targets):
            free = any(buffer in loop.reduce and not loop.ieee for loop in around)
            if not free or stmt.update not in FREE or len(stmt.targets) > 1:
                reason = f"no `reduce({buffer.name})` frees how this update of `{buffer.name}` is rounded"
                left = f"leave it out, and `{buffer.name}` is rounded to {buffer.dtype} each time"
                raise call.refuse("E0906", reason, Note("this update", stmt.span), offers=left_out(call.directive.span, left))
        inside = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
        for block in ir.blocks(stmt):
            _require_free(call, buffer, block, inside)


class _Widening:
    """`old` as `new`, which is wider."""

    def __init__(self, old: Buffer, new: Buffer) -> None:
        self.old, self.new = old, new

    def block(self, body: Body) -> Body:
        """Statements that use the wider memory."""
        return tuple(map(self.stmt, body))

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        """One of them; the others stay the same objects."""
        match stmt:
            case ir.New() if stmt.buffer is self.old:
                return replace(stmt, buffer=self.new)
            case ir.Bind():
                return self.bind(stmt)
            case ir.Let():
                value = self.read(stmt.value)
                return stmt if value is stmt.value else replace(stmt, value=value)
            case ir.If():
                made = with_blocks(stmt, tuple(map(self.block, ir.blocks(stmt))))
                assert isinstance(made, ir.If)
                return replace(made, condition=self.read(stmt.condition))
            case ir.Par() | ir.Seq():
                reduce = tuple(self.new if b is self.old else b for b in stmt.reduce)
                return replace(stmt, body=self.block(stmt.body), reduce=reduce)
            case _:
                return with_blocks(stmt, tuple(map(self.block, ir.blocks(stmt))))

    def bind(self, stmt: ir.Bind) -> ir.Bind:
        """A store, whose value may read the memory."""
        values, targets = list(map(self.read, stmt.values)), list(stmt.targets)
        for at, target in enumerate(targets):
            if target.buffer is self.old:
                targets[at] = replace(target, buffer=self.new)
                values[at] = product(values[at]) if stmt.update == "add" else widened(values[at])
        return replace(stmt, targets=tuple(targets), values=tuple(values))

    def read(self, value: Value) -> Value:
        """A value that reads the memory: rounded to the type that it had."""

        def own(load: Load) -> Value | None:
            return Cast(replace(load, buffer=self.new), self.old.dtype) if load.buffer is self.old else None

        return replace_loads(value, own)


def widened(value: Value) -> Value:
    """A value of a narrow type as one of f32, not rounded again."""
    match value:
        case Literal(number) if abs(number) <= WHOLE and number == int(number):
            return Literal(number, F32)
        case Cast(arg) if is_exact(arg.dtype, value.dtype):
            return Cast(arg, F32)
        case _:
            return Cast(value, F32)


def product(value: Value) -> Value:
    """The same of what is added up: a product is not rounded."""
    match value:
        case Op("mul", args):
            return Op("mul", tuple(map(widened, args)), F32)
        case _:
            return widened(value)


def is_exact(source: DType, target: DType) -> bool:
    """Whether a floating type has all values of a narrower one."""
    return source.is_float and source.bits == 8 and target.bits == 16


RULE = Rule("widen", "widen(BUFFER, f32)", _apply)
