"""Software pipelining: the fills of buffers run iterations ahead, into rings of slots (multi-buffering).

    seq E |k| #pipeline(3, s) {                       new s: f32[3, 64]
        new s: f32[64]                                seq E + 2 |k| {
        par 64 |a| { s[a] = x[k, a] }                     if k < E { par 64 |a| { s[k % 3, a] = x[k, a] } }
        par 64 |b| { y[k, b] = s[63 - b] }                if k >= 2 { par 64 |b| { y[k - 2, b] = s[(k - 2) % 3, 63 - b] } }
    }                                                 }

A turn of the new loop fills for iteration k, and does the rest of iteration k − ahead, where ahead = stages − 1 − lag. So the
first turns only fill (prologue), the last ones only use (epilogue), at every extent: the loop is skewed, and no statement is
duplicated. What is filled in turn k is last used in turn k + ahead, and overwritten in turn k + stages: no slot is
overwritten while in use. The rewrite is legal if nothing that fills depends on what the rest does in one of the `ahead`
iterations before, or before it in its own, which is proved. The result is a plain function: barriers and waits are inserted
as in any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd, prod

from texpr.affine.expr import Expr, expr
from texpr.affine.simplify import Simplifier
from texpr.checks.subject import Subject
from texpr.ir import program as ir
from texpr.ir.program.marked import mark, marked, unmarked
from texpr.ir.program.marks import Apart, Pipeline, Tensor
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, with_blocks
from texpr.ir.program.uses import loads, symbols
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value, walk
from texpr.ir.value.types import BOOL, I64
from texpr.isa.engine import CHUNK
from texpr.presburger.formula import TRUE, Formula, between, conj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.relation.dependence import Dependence, candidates, comparable, extended_syms
from texpr.relation.facts import in_loop, known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.rewrite.order import conflict, undecided
from texpr.schedule.stage.region import table_of
from texpr.schedule.tree import Body, loops, path_to, replaced
from texpr.support.diagnostic import Limitation, Note, TexprError, error
from texpr.support.record import Record, replace
from texpr.support.span import Span
from texpr.tma.swizzle import Swizzle

SLOT = CHUNK
"""The alignment of a slot in shared memory in bytes, so that a vector that is aligned in one slot is so in all."""


class _Parts(Record):
    """The body of a loop: `new`s of the ring's buffers, other `new`s, the fills, and the rest."""

    ring: tuple[ir.New, ...]
    own: tuple[ir.New, ...]
    fills: Body
    rest: Body


def pipelined(function: ir.Function) -> ir.Function:
    """`function` with its loops marked `#pipeline` as rings; the marks are removed.

    Raises TexprError with the directive's span where that would change the result, Limitation where undecided.
    """
    while True:
        asked = [loop for loop in loops(function.body) if mark(loop, Pipeline)]
        if not asked:
            return function
        function = _pipelined(function, asked[-1])


def fills_of(loop: ir.Loop, names: Sequence[str]) -> tuple[ir.New, ...]:
    """The `new`s of `names` in the body of `loop` whose writers write nothing else."""
    found = tuple(s for s in loop.body if isinstance(s, ir.New) and s.buffer.name in names)
    return tuple(new for new in found if not _writes_also(loop.body, new.buffer))


def _writes_also(body: Body, buffer: Buffer) -> bool:
    """Whether some writer of `buffer` also writes another buffer, or uses it, or there is none."""
    steps = [step for step in _steps(body) if buffer in written(step)]
    mixed = any(len(set(written(step))) > 1 or _reads(step, buffer) for step in steps)
    return mixed or not steps


def _steps(body: Body) -> Iterator[ir.Stmt]:
    """The statements of a body, with branches replaced by their statements."""
    for stmt in body:
        if isinstance(stmt, ir.If):
            yield from _steps((*stmt.then, *stmt.orelse))
        elif not isinstance(stmt, ir.New):
            yield stmt


def written(step: ir.Stmt) -> list[Buffer]:
    """What a statement writes of what it does not make."""
    inside = {s.buffer for s in ir.walk((step,)) if isinstance(s, ir.New)}
    every = (t.buffer for s in ir.walk((step,)) if isinstance(s, ir.Bind) for t in s.targets)
    return [b for b in every if b not in inside]


def _reads(step: ir.Stmt, buffer: Buffer) -> bool:
    for stmt in ir.walk((step,)):
        targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
        kept = stmt.update is None if isinstance(stmt, ir.Bind) else True
        if any(load.buffer is buffer and not (kept and any(load is t for t in targets)) for load in loads(stmt)):
            return True
    return False


def _pipelined(function: ir.Function, loop: ir.Loop) -> ir.Function:
    asked = mark(loop, Pipeline)
    assert asked is not None
    stages = asked.stages
    parts = _parted(loop, asked.buffers, asked.span)
    if loop.extent.is_constant and loop.extent.constant <= 0:  # nothing to prefetch
        return replace(function, body=replaced(function.body, loop, lambda _: (unmarked(loop, Pipeline),)))
    _require_early(function, loop, parts, asked.ahead, asked.span)
    outer = [each for each in path_to(function.body, loop) or () if isinstance(each, ir.Par | ir.Seq) and each is not loop]
    around = [fact for each in outer for fact in in_loop(each.sym, each.extent)]
    around += in_loop(loop.sym, loop.extent + asked.ahead)
    rings = {new.buffer: ring_of(new.buffer, stages, begin_of(loop, new.buffer)) for new in parts.ring}
    turned = _turned(loop, parts, rings, asked, Simplifier(known((*given(function), *around))))
    made = tuple(ir.New(rings[new.buffer], new.space, span=new.span) for new in parts.ring)
    return replace(function, body=replaced(function.body, loop, lambda _: (*made, turned)))


def _parted(loop: ir.Loop, names: tuple[str, ...], span: Span) -> _Parts:
    ring = fills_of(loop, names)
    buffers = frozenset(new.buffer for new in ring)
    missing = [name for name in names if all(b.name != name for b in buffers)]
    if missing:
        raise error("E0912", span, f"`{missing[0]}` is not filled at the start of an iteration of `{loop.sym.base}` any more")
    for new in ring:
        if not all(e.is_constant for e in new.buffer.shape):
            reason = f"the extents of `{new.buffer.name}` are not constants, so a ring of it has no fixed size"
            raise error("E0912", span, reason, Note("it is made here", new.span))
    own = tuple(s for s in loop.body if isinstance(s, ir.New) and s not in ring)
    inner = tuple(s for s in loop.body if not isinstance(s, ir.New))
    fills, rest = _kept(inner, buffers, True), _kept(inner, buffers, False)
    for stmt in reversed(rest):  # numbers of tables, by which only fills say what they copy
        if isinstance(stmt, ir.Let) and stmt.sym in symbols(fills) and table_of(stmt.value) is not None:
            rest = tuple(s for s in rest if s is not stmt)
            if stmt.sym in symbols(rest):
                reason = "what fills the ring, and what does not, read one number of a table"
                raise error("E0906", span, reason, Note("here", stmt.span))
            fills = (stmt, *fills)
    parts = _Parts(ring, own, fills, rest)
    local = {s.buffer for s in own}
    for stmt in ir.walk(parts.fills):
        if any(load.buffer in local for load in loads(stmt)) or any(isinstance(s, Ref) for s in _values(stmt)):
            reason = "what fills the ring depends on what the iteration itself computes, so it cannot come earlier"
            raise error("E0906", span, reason, Note("here", stmt.span))
    return parts


def _values(stmt: ir.Stmt) -> Iterator[Value]:
    own = {s.sym for s in ir.walk((stmt,)) if isinstance(s, ir.Let)}
    for value in ir.values(stmt):
        yield from (v for v in walk(value) if not (isinstance(v, Ref) and v.sym in own))


def _kept(body: Body, buffers: frozenset[Buffer], filling: bool) -> Body:
    """The steps that fill `buffers`, or the others; in branches, too."""
    found: list[ir.Stmt] = []
    for stmt in body:
        if isinstance(stmt, ir.If):
            then, orelse = (_kept(block, buffers, filling) for block in (stmt.then, stmt.orelse))
            if then or orelse:
                found.append(with_blocks(stmt, (then, orelse)))
        elif bool(buffers & set(written(stmt))) is filling:
            found.append(stmt)
    return tuple(found)


# Legality.


def _require_early(function: ir.Function, loop: ir.Loop, parts: _Parts, ahead: int, span: Span) -> None:
    """The fills depend on nothing that the rest does in one of the `ahead` iterations before, or earlier in their own.

    Raises E0906 with two instances.
    """
    subject = Subject(function)
    others, fills = (set(ir.walk(body)) for body in (parts.rest, parts.fills))
    every = [a for i in subject.model.instances for a in i.accesses]
    for source in (a for a in every if a.instance.stmt in others):
        for sink in (a for a in every if a.instance.stmt in fills and a.buffer is source.buffer):
            if not (source.writes or sink.writes):
                continue
            for found in candidates(source, sink, frozenset(subject.model.scope_syms(source.buffer))):
                if found.carrier is None:
                    require_none(subject, found, TRUE, span, "pipeline")
                elif found.carrier is loop:
                    near = between(1, expr(right(loop.sym)) - left(loop.sym), ahead + 1)
                    require_none(subject, found, near, span, "pipeline")


def require_none(subject: Subject, found: Dependence, near: Formula, span: Span, name: str) -> None:
    """Refuses a dependence where `near` holds: the directive `name` would have it run backwards."""
    dims = (*map(left, extended_syms(found.source)), *map(right, extended_syms(found.sink)))
    try:
        witness = subject.point(dims, conj((found.formula, near)))
    except Undecided:
        raise Limitation([undecided(found, span, name)]) from None
    if witness is None:
        return
    if not (comparable(found.source, found.sink) and found.source.affine and found.sink.affine):
        raise Limitation([undecided(found, span, name)])
    raise TexprError([conflict(subject, found, witness, span, name)])


# The loop with its ring.


def begin_of(loop: ir.Loop, buffer: Buffer) -> int:
    """The alignment of a slot in bytes, as the copies by the engine into it, or from it, require."""
    for stmt in ir.walk(loop.body):
        asked = mark(stmt, Tensor) if isinstance(stmt, ir.Par | ir.Seq) else None
        if asked is not None and any(load.buffer is buffer for inner in ir.walk((stmt,)) for load in loads(inner)):
            return Swizzle(asked.swizzle).period
    return SLOT


def ring_of(buffer: Buffer, stages: int, begin: int) -> Buffer:
    """`stages` slots of `buffer`, padded by rows so that every slot is aligned to so many bytes."""
    shape = [e.constant for e in buffer.shape]
    if shape:
        row = prod(shape[1:]) * buffer.dtype.bytes
        rows = begin // gcd(row, begin)
        shape[0] = -(-shape[0] // rows) * rows
    return replace(buffer, shape=tuple(map(expr, (stages, *shape))))


def _turned(loop: ir.Loop, parts: _Parts, rings: Mapping[Buffer, Buffer], asked: Pipeline, simple: Simplifier) -> ir.Loop:
    """The new loop: each turn fills for its own iteration, and does the rest of an earlier one."""
    ahead, stages = asked.ahead, asked.stages
    turn = expr(loop.sym)
    fills = slotted(parts.fills, rings, turn % stages)
    rest = slotted(substitute_block(parts.rest, {loop.sym: turn - ahead}), rings, simple((turn - ahead) % stages))
    own = substitute_block(parts.own, {loop.sym: turn - ahead})
    body = (
        *own,
        ir.If(compared("lt", turn, loop.extent), fills, span=loop.span),
        ir.If(compared("ge", turn, expr(ahead)), rest, span=loop.span),
    )
    plain = unmarked(loop, Pipeline)
    if (apart := mark(plain, Apart)) is not None:
        plain = marked(unmarked(plain, Apart), replace(apart, first=apart.first + ahead))
    return ir.Seq(loop.sym, loop.extent + ahead, body, loop.reduce, loop.label, plain.directives, loop.span, loop.ieee)


def compared(name: str, one: Expr, other: Expr) -> Value:
    """A comparison of indices."""
    return Op(name, (Index(one, I64), Index(other, I64)), BOOL)


def slotted(body: Body, rings: Mapping[Buffer, Buffer], slot: Expr) -> Body:
    """`body` with accesses of the ring's buffers redirected to the slot."""

    def load(old: Load) -> Load | None:
        ring = rings.get(old.buffer)
        return None if ring is None else replace(old, buffer=ring, index=(slot, *old.index))

    def value(old: Value) -> Value:
        return replace_loads(old, load)

    def target(old: Load) -> Load:
        moved = value(old)
        assert isinstance(moved, Load)
        return moved

    return Rewriter(value=value, target=target).block(body)
