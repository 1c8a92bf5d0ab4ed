"""Extents of arrays are not negative, divisors in indices are not zero, and the targets of one bind are distinct."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Expr, FloorDiv, Mod, Sym, children, expr
from texpr.affine.facts import Known
from texpr.checks.offers import promised, where
from texpr.checks.subject import Subject, element_text, hidden_text, place, statement, text, written
from texpr.ir.program import Bind, Loop, Monotone, New, Par, Seq, Stmt, blocks, walk
from texpr.ir.value import Buffer, Index
from texpr.ir.value import walk as walk_value
from texpr.presburger.formula import Eq, Formula, Ge, between, compare, conj, equal
from texpr.presburger.isl.raw import Undecided
from texpr.relation.data import told
from texpr.relation.dependence import comparable, extended_syms
from texpr.relation.facts import facts_of, in_loop, known, never_negative
from texpr.relation.model import Access, Frame
from texpr.support.diagnostic import Diagnostic, Note, Offer
from texpr.support.record import Record
from texpr.support.span import Span


def extents(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each `new` with an extent that may be negative."""
    for stmt in walk(subject.function.body):
        if isinstance(stmt, New):
            yield from _new(subject, stmt.buffer, subject.model.frames[stmt.buffer])


def _new(subject: Subject, buffer: Buffer, frame: Frame) -> Iterator[Diagnostic]:
    inside = (*frame.formulas, *told(frame.lets))
    facts = known((*subject.given, *facts_of(inside)))
    dims = (*(loop.sym for loop in frame.loops), *(each.sym for each in frame.lets))
    for extent in buffer.shape:
        if facts.nonnegative(extent):
            continue
        shown, offers = text(extent, data=frame.lets), tuple(_nonnegative(subject, frame, extent))
        try:
            closed, affine = subject.close(conj((*inside, Ge(-extent - 1))))
            witness = subject.point(dims, closed)
            if witness is not None and not affine:
                raise Undecided("a condition that is not affine")
        except Undecided:
            shape = element_text(buffer.name, buffer.shape)
            message = f"cannot decide whether the extent `{shown}` of `{shape}` can be negative"
            yield Diagnostic("E0505", written(buffer.span), message, offers=offers)
            return
        if witness is not None:
            values = [*subject.sizes_text(witness), *(f"{loop.sym.base} = {witness[loop.sym]}" for loop in frame.loops)]
            values += [f"`{hidden_text(each)}` = {witness[each.sym]}" for each in frame.lets if each.sym in extent.syms()]
            message = f"the extent `{shown}` of `{buffer.name}` is {extent.evaluate(witness)}, at {', '.join(values)}"
            yield Diagnostic("E0406", written(buffer.span), message, offers=offers)
            return


def _nonnegative(subject: Subject, frame: Frame, extent: Expr) -> Iterator[Offer]:
    """Promises that make an extent non-negative."""
    yield from where(subject.function, (extent, ">=", 0))
    tables = (each.source.buffer for each in frame.lets if each.source is not None and each.sym in extent.syms())
    for table in dict.fromkeys(tables):
        if table.rank == 1:
            said = f"if no element of `{table.name}` is less than the one before it, say `assume monotone({table.name})`"
            yield from promised(subject.function, Monotone(table), said)


class _Written(Record, eq=False):
    """An index expression, its span, and what is known there."""

    value: Expr
    span: Span | None
    facts: Known
    context: Formula
    dims: tuple[Sym, ...]


def divisors(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each divisor in an index that may be zero."""
    seen: set[Expr] = set()
    for found in _expressions(subject):
        for den in _divisors(found.value):
            if den in seen or found.facts.positive(den) or found.facts.positive(-den):
                continue
            if never_negative((den - 1,), found.facts.nonnegatives()):
                continue
            seen.add(den)
            yield from _divisor(subject, found, den)


def _divisor(subject: Subject, found: _Written, den: Expr) -> Iterator[Diagnostic]:
    try:
        closed, affine = subject.close(conj((found.context, Eq(den))))
        witness = subject.point(found.dims, closed) if affine else None
        if not affine:
            raise Undecided("a divisor that is not affine")
    except Undecided:
        message = f"cannot decide whether the divisor `{text(den)}` can be zero"
        yield Diagnostic("E0507", found.span, message, offers=tuple(_positive(subject, den)))
        return
    if witness is not None:
        values = [f"{s.base} = {witness[s]}" for s in sorted(den.syms(), key=lambda s: s.name) if s in witness]
        message = f"the divisor `{text(den)}` of an index is zero, at {', '.join(values)}"
        yield Diagnostic("E0408", found.span, message, offers=tuple(_positive(subject, den)))


def _extents(subject: Subject, body: tuple[Stmt, ...], around: tuple[Loop, ...]) -> Iterator[_Written]:
    """The extents of loops. An extent that is invariant in the loops around it may be evaluated before any of them runs."""
    for stmt in body:
        inside = around
        if isinstance(stmt, Par | Seq):
            needed = around if stmt.extent.syms() & {loop.sym for loop in around} else ()
            facts = known((*subject.given, *(fact for loop in needed for fact in in_loop(loop.sym, loop.extent))))
            context = conj(between(0, loop.sym, loop.extent) for loop in needed)
            yield _Written(stmt.extent, written(stmt.span), facts, context, tuple(loop.sym for loop in needed))
            inside = (*around, stmt)
        for block in blocks(stmt):
            yield from _extents(subject, block, inside)


def _positive(subject: Subject, den: Expr) -> Iterator[Offer]:
    """Promises that make a divisor positive."""
    yield from where(subject.function, (den, ">=", 1))
    yield from where(subject.function, *((expr(sym), ">=", 1) for sym in sorted(den.syms(), key=str)))


def _expressions(subject: Subject) -> Iterator[_Written]:
    """Every index expression with a divisor, with what is known at its place."""
    everywhere = known(subject.given)
    nothing = conj(())
    for buffer in (*subject.function.params, *(s.buffer for s in walk(subject.function.body) if isinstance(s, New))):
        for extent in buffer.shape:
            yield _Written(extent, written(buffer.span), everywhere, nothing, ())
    for fact in subject.function.where:
        for side in (fact.left, fact.right):
            yield _Written(side, written(fact.span), everywhere, nothing, ())
    yield from _extents(subject, subject.function.body, ())
    for access in subject.model.accesses:
        for index in access.load.index:
            if any(True for _ in _divisors(index)):
                yield _Written(index, place(access), access.known, access.formula, extended_syms(access))
    for instance in subject.model.instances:
        for value in subject.values_of(instance):
            for node in walk_value(value):
                if isinstance(node, Index) and any(True for _ in _divisors(node.expr)):
                    dims, around = subject.around(instance, node.expr)
                    yield _Written(node.expr, statement(instance), instance.known, around, dims)


def _divisors(value: Expr) -> Iterator[Expr]:
    """Divisors in `value` that are not constants."""
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv | Mod) and not atom.den.is_constant:
                yield atom.den
            for child in children(atom):
                yield from _divisors(child)


def targets(subject: Subject) -> Iterator[Diagnostic]:
    """The targets of one bind, which are written at once, are distinct elements."""
    for instance in subject.model.instances:
        if isinstance(instance.stmt, Bind) and len(instance.stmt.targets) > 1:
            written_by = [a for a in instance.accesses if a.writes]
            for position, a in enumerate(written_by):
                for b in written_by[position + 1 :]:
                    if a.buffer is b.buffer:
                        yield from _pair(subject, a, b)


def _pair(subject: Subject, a: Access, b: Access) -> Iterator[Diagnostic]:
    dims = tuple(dict.fromkeys((*extended_syms(a), *extended_syms(b))))
    note = Note("the other target is here", place(b))
    name = a.buffer.name
    undecided = Diagnostic(
        "E0502", place(a), f"cannot decide whether two targets of this bind are one element of `{name}`", (note,)
    )
    if not comparable(a, b) or not a.affine or not b.affine:
        yield undecided
        return
    try:
        witness = subject.point(dims, conj((a.formula, b.formula, equal(a.index, b.index))))
    except Undecided:
        yield undecided
        return
    if witness is not None:
        element = element_text(name, [e.evaluate(witness) for e in a.load.index])
        where = subject.at(witness, a.instance, a.hidden)
        yield Diagnostic("E0418", place(a), f"two targets of this bind are the same element `{element}`{where}", (note,))


def satisfiable(subject: Subject) -> Iterator[Diagnostic]:
    """Some sizes satisfy `where`."""
    clauses = subject.function.where
    if not clauses:
        return
    try:
        closed, affine = subject.close(conj(compare(c.op, c.left, c.right) for c in clauses))
        if not affine or subject.may_be(closed) or subject.point((), closed) is not None:
            return
    except Undecided:
        return
    message = f"no sizes satisfy the `where` clause of `{subject.function.name}`"
    yield Diagnostic("E0420", written(clauses[0].span) or written(subject.function.span), message)
