"""Software pipelining of statements of a loop: the last ones of an iteration run a turn late, between those of the next one.

    seq E |k| #overlap(c, a) {        seq E + 1 |k| {
        copy x, y                         if k < E { copy x of k }        if k >= 1 { copy y of k − 1 }
        A                                 if k < E {
        B                                     if k >= 1 { A of k    C of k − 1    B of k } else { A of k    B of k }
        C, which reads y              →   } else {
    }                                         if k >= 1 { C of k − 1 }
                                      } }

The first turn has no C (prologue), the last one nothing else (epilogue), and without an iteration nothing runs. Each arm is
straight code, so that what goes on by itself, as a product of a warpgroup, is started and waited for in one list. Copies into
locals of the iteration depend on nothing in it; they are done once a turn, and of what C alone reads a turn late, too. Locals
that go from one turn to the next are there once, around the loop. That no dependence runs backwards in the new order is proved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import count

from texpr.affine.expr import expr
from texpr.checks.subject import Subject
from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.marked import mark, marked, unmarked
from texpr.ir.program.marks import Apart, Overlap
from texpr.ir.program.rewrite import substitute_block
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Cast, Literal, Load
from texpr.presburger.formula import TRUE, between
from texpr.presburger.isl.maps import left, right
from texpr.relation.dependence import candidates
from texpr.relation.facts import in_loop
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.rewrite.ring import compared, fills_of, require_none, written
from texpr.schedule.tree import Body, loops, path_to, replaced
from texpr.schedule.turns.settled import settled
from texpr.support.diagnostic import Note, error
from texpr.support.record import Record, replace
from texpr.support.span import Span


class _Parts(Record):
    """An iteration: its locals, those that go from turn to turn among them, copies for this and for the late part, and three
    parts: first, between, late."""

    own: tuple[ir.New, ...]
    kept: tuple[ir.New, ...]
    early: Body
    lagging: Body
    first: Body
    between: Body
    late: Body

    @property
    def groups(self) -> tuple[tuple[Body, int], ...]:
        """What a turn does, in order, and how many turns late."""
        return ((self.early, 0), (self.lagging, 1), (self.first, 0), (self.late, 1), (self.between, 0))


def overlapped(function: ir.Function) -> ir.Function:
    """`function` with its loops marked `#overlap` as loops whose turns overlap; the marks are removed.

    Raises TexprError with the directive's span where that would change the result, Limitation where undecided.
    """
    while True:
        asked = [loop for loop in loops(function.body) if mark(loop, Overlap)]
        if not asked:
            return function
        function = _overlapped(function, asked[-1])


def _overlapped(function: ir.Function, loop: ir.Loop) -> ir.Function:
    asked = mark(loop, Overlap)
    assert asked is not None
    outer = [each for each in path_to(function.body, loop) or () if isinstance(each, ir.Par | ir.Seq)]
    facts = (*given(function), *(fact for each in outer for fact in in_loop(each.sym, each.extent)))
    whole = replace(loop, body=settled(loop.body, facts))
    function, loop = replace(function, body=replaced(function.body, loop, lambda _: (whole,))), whole
    parts = _parted(loop, asked)
    inner = tuple(s for s in loop.body if s not in parts.kept)
    around = replace(loop, body=inner)
    function = replace(function, body=replaced(function.body, loop, lambda _: (*parts.kept, around)))
    _require_order(function, around, parts, asked.span)
    names = _Names(function)
    return replace(function, body=replaced(function.body, around, lambda _: (_turned(around, parts, names),)))


# The parts of an iteration.


def _parted(loop: ir.Loop, asked: Overlap) -> _Parts:
    news = tuple(s for s in loop.body if isinstance(s, ir.New))
    kept = next((s for s in loop.body if isinstance(s, ir.Let | ir.Anchor)), None)
    if kept is not None:
        reason = f"an iteration of `{loop.sym.base}` names a value, which parts of two turns would have to share"
        help = "a `new` that is assigned is memory, which both may have"
        raise error("E0905", asked.span, reason, Note("it is named here", kept.span), help=help)
    copies = frozenset(stmt for stmt in _copies(loop, news) if not _has(stmt, (asked.behind, asked.late)))
    rest = tuple(s for s in loop.body if not isinstance(s, ir.New) and s not in copies)
    behind, late = (_position(rest, name, loop, asked.span) for name in (asked.behind, asked.late))
    if late <= behind:
        reason = f"`{asked.late}` does not come after `{asked.behind}` in an iteration of `{loop.sym.base}`"
        help = "what comes last in an iteration may run behind what comes first in the next"
        raise error("E0905", asked.span, reason, help=help)
    first, between, last = rest[: behind + 1], rest[behind + 1 : late], rest[late:]
    here, there = (frozenset(_touched(body)) for body in ((*first, *between), last))
    lagging = tuple(s for s in loop.body if s in copies and here.isdisjoint(written(s)))
    early = tuple(s for s in loop.body if s in copies and s not in lagging)
    here, there = here.union(_touched(early)), there.union(_touched(lagging))
    both = tuple(s for s in news if s.buffer in here and s.buffer in there)
    for new in both:
        if any(loop.sym in e.syms() for e in new.buffer.shape):
            reason = f"`{new.buffer.name}` goes from turn to turn, and how large it is depends on `{loop.sym.base}`"
            raise error("E0905", asked.span, reason, Note("it is made here", new.span))
    return _Parts(tuple(s for s in news if s not in both), both, early, lagging, first, between, last)


def _copies(loop: ir.Loop, news: tuple[ir.New, ...]) -> Iterator[ir.Stmt]:
    """The statements that only bring elements to locals of the iteration, those that the iteration does not write."""
    changed = frozenset(b for stmt in loop.body for b in written(stmt))
    filled = frozenset(new.buffer for new in fills_of(loop, [new.buffer.name for new in news]))
    for stmt in loop.body:
        into = frozenset(written(stmt))
        if into and into <= filled and _brings(stmt) and all(load.buffer not in changed for load in _read(stmt)):
            yield stmt


def _brings(stmt: ir.Stmt) -> bool:
    """Whether a statement computes nothing."""
    values = (value for each in ir.walk((stmt,)) if isinstance(each, ir.Bind) for value in each.values)
    return all(isinstance(value.arg if isinstance(value, Cast) else value, Load | Literal) for value in values)


def _has(stmt: ir.Stmt, names: Collection[str]) -> bool:
    return any(inner.sym.name in names for inner in loops((stmt,)))


def _read(stmt: ir.Stmt) -> Iterator[Load]:
    for each in ir.walk((stmt,)):
        targets = each.targets if isinstance(each, ir.Bind) else ()
        yield from (load for load in loads(each) if not any(load is target for target in targets))


def _touched(body: Body) -> Iterator[Buffer]:
    """What statements read or write."""
    for stmt in ir.walk(body):
        yield from (load.buffer for load in loads(stmt))
        yield from (target.buffer for target in stmt.targets) if isinstance(stmt, ir.Bind) else ()


def _position(body: Body, name: str, loop: ir.Loop, span: Span) -> int:
    """The number of the statement with the loop of that name."""
    found = [at for at, stmt in enumerate(body) if _has(stmt, (name,))]
    if not found:
        reason = f"no statement of an iteration of `{loop.sym.base}` has the loop `{name}`"
        raise error("E0905", span, reason, help="both are loops of statements of an iteration")
    return found[0]


# Legality.


def _require_order(function: ir.Function, loop: ir.Loop, parts: _Parts, span: Span) -> None:
    """No dependence between parts of an iteration runs backwards, in its iteration or from one to the next. Raises E0906 with
    two instances."""
    subject = Subject(function)
    place = {stmt: (turns, at) for at, (body, turns) in enumerate(parts.groups) for stmt in ir.walk(body)}
    every = [(a, place[a.instance.stmt]) for i in subject.model.instances for a in i.accesses if a.instance.stmt in place]
    for source, (turns, at) in every:
        for sink, (later, behind) in every:
            if source.buffer is not sink.buffer or not (source.writes or sink.writes) or at == behind:
                continue
            for found in candidates(source, sink, frozenset(subject.model.scope_syms(source.buffer))):
                if found.carrier is loop:
                    if turns > later and at > behind:
                        distance = expr(right(loop.sym)) - left(loop.sym)
                        require_none(subject, found, between(1, distance, 2), span, "overlap")
                elif (found.carrier is None or found.carrier in _below(loop)) and (turns, at) > (later, behind):
                    require_none(subject, found, TRUE, span, "overlap")


def _below(loop: ir.Loop) -> Iterable[ir.Loop]:
    return loops(loop.body)


# The loop whose turns overlap.


class _Names:
    """Names that a function does not have."""

    def __init__(self, function: ir.Function) -> None:
        syms = {s.sym.name for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}
        buffers = {s.buffer.name for s in ir.walk(function.body) if isinstance(s, ir.New)}
        known = {b.name for b in (*function.params, *function.results)}
        self.taken = syms | buffers | known | {s.name for s in function.sizes} | {s.name for s, _ in function.consts}

    def fresh(self, base: str) -> str:
        """`base` with the first number that is free."""
        plain, _, _ = base.partition("'")
        name = next(n for k in count(1) if (n := f"{plain}_{k}") not in self.taken)
        self.taken.add(name)
        return name


def _turned(loop: ir.Loop, parts: _Parts, names: _Names) -> ir.Loop:
    turn = expr(loop.sym)
    lagging, late = (substitute_block(body, {loop.sym: turn - 1}) for body in (parts.lagging, parts.late))
    inside, after = compared("lt", turn, loop.extent), compared("ge", turn, expr(1))
    steady, start = (*parts.first, *late, *parts.between), copied((*parts.first, *parts.between), names.fresh)
    span = loop.span
    body = (
        *parts.own,
        *((ir.If(inside, parts.early, span=span),) if parts.early else ()),
        *((ir.If(after, lagging, span=span),) if lagging else ()),
        ir.If(
            inside,
            (ir.If(after, steady, start, span=span),),
            (ir.If(after, copied(late, names.fresh), span=span),),
            span=span,
        ),
    )
    plain = marked(unmarked(loop, Overlap), Apart(1, 1))
    return ir.Seq(loop.sym, loop.extent + 1, body, loop.reduce, loop.label, plain.directives, span, loop.ieee)
