"""Sums that a schedule keeps in f32, though the program has them in a narrower type, put back into that type.

    new s: f32; s = 0; seq K |k| reduce(s) { s += f32(A[k]) * f32(B[k]) }; C = f16(s)        is        new s: f16; …; C = s

A `reduce` frees how partial sums, and products in them, are rounded (`docs/language.md`), but for the marks `#ieee`. So a
scheduled program may differ from one that computes what was written in this alone: a local of f32 stands for one of a narrow
type T; what is stored there is a value of T, or is added where a `reduce` frees that, without being rounded; and any other read
of it is rounded to T. Which locals these are the notes of statements say, which are not trusted: what is put back is proved
like any program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value
from texpr.ir.value.types import F32, DType
from texpr.support.record import replace

FREED = ("add", "max", "min")
"""Updates of which a wider type changes the rounding alone."""

WHOLE = 8
"""Whole numbers up to this one are those of every floating type."""


class Wider(Exception):
    """A local of f32 that stands for no sum of a narrow type."""


def narrowed(written: ir.Function, laid: ir.Function) -> ir.Function:
    """`laid` with such locals of the type that `written`, whose statements are numbered, gives them; `laid` itself where
    there is none, or one of them is used otherwise."""
    types = _types(written, laid)
    try:
        body = _narrowing({old: replace(old, dtype=dtype) for old, dtype in types.items()}).block(laid.body)
    except Wider:
        return laid
    return replace(laid, body=body) if types else laid


def _types(written: ir.Function, laid: ir.Function) -> Mapping[Buffer, DType]:
    """The locals of f32 all of whose statements, by their notes, have a target of one narrow type, with that; none whose
    updates are not free in both programs."""
    meant = {stmt.instance[0]: stmt for stmt in _free(written.body, frozenset()) if stmt.instance}
    free, found = {*_free(laid.body, frozenset())}, dict[Buffer, set[DType]]()
    for stmt in (each for each in ir.walk(laid.body) if isinstance(each, ir.Bind)):
        known = meant.get(stmt.instance[0]) if stmt.instance and stmt in free else None
        for at, target in enumerate(stmt.targets):
            if stmt.instance or stmt not in free:
                type = known.targets[at].dtype if known is not None and len(known.targets) > at else F32
                found.setdefault(target.buffer, set()).add(type)
    one = ((b, next(iter(types))) for b, types in found.items() if b.role == "local" and b.dtype == F32 and len(types) == 1)
    return {buffer: dtype for buffer, dtype in one if dtype.is_float and dtype.bits < F32.bits}


def _free(body: tuple[ir.Stmt, ...], freed: frozenset[Buffer]) -> Iterator[ir.Bind]:
    """Stores, and updates whose rounding loops around them free."""
    for stmt in body:
        if isinstance(stmt, ir.Bind) and (stmt.update is None or (stmt.update in FREED and stmt.targets[0].buffer in freed)):
            yield stmt
        more = stmt.reduce if isinstance(stmt, ir.Par | ir.Seq) and not stmt.ieee else ()
        for block in ir.blocks(stmt):
            yield from _free(block, freed | {*more})


class _Narrowing(Rewriter):
    """Rewrites statements, and what is stored in what the rewrite made narrow."""

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        """Raises Wider."""
        found = super().stmt(stmt)
        if not (isinstance(found, ir.Bind) and isinstance(stmt, ir.Bind)):
            return found
        values = [
            value if new.dtype == old.dtype else _term(value, new.dtype, stmt.update == "add")
            for old, new, value in zip(stmt.targets, found.targets, found.values, strict=True)
        ]
        return replace(found, values=tuple(values))


def _narrowing(made: Mapping[Buffer, Buffer]) -> Rewriter:
    def read(node: Value) -> Value | None:
        match node:
            case Cast(Load() as load, dtype) if load.buffer in made and made[load.buffer].dtype == dtype:
                return replace(load, buffer=made[load.buffer])
            case Load() if node.buffer in made:
                raise Wider
            case _:
                return None

    def buffer(old: Buffer) -> Buffer:
        return made.get(old, old)

    return _Narrowing(
        value=lambda value: map_value(value, read),
        target=lambda load: replace(load, buffer=buffer(load.buffer)),
        buffer=buffer,
    )


def _term(value: Value, dtype: DType, added: bool) -> Value:
    """A value of f32 that is one of the narrow type, as that; a product that is `added` is a product of that type. Raises
    Wider."""
    match value:
        case Op("mul", args) if added:
            return Op("mul", tuple(_term(arg, dtype, False) for arg in args), dtype)
        case Literal(number) if abs(number) <= WHOLE and number == int(number):
            return Literal(number, dtype)
        case Cast(arg) if arg.dtype == dtype:
            return arg
        case Cast(arg) if arg.dtype.is_float and arg.dtype.bits == 8 and dtype.bits == 16:
            return Cast(arg, dtype)
        case _:
            raise Wider
