"""Iterations of a `par` are independent: no two access one element if one of them writes it, `reduce` aside."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym
from texpr.checks.offers import fixed, in_order, promised, reduced
from texpr.checks.structure import reduction_fault
from texpr.checks.subject import Subject, Witness, element_at, hidden_text, place, sides, statement, written
from texpr.ir.program import Bind, Injective, Monotone, Par
from texpr.ir.value import Buffer
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.relation.dependence import Dependence, comparable, extended_syms, obviously_empty
from texpr.relation.model import Access
from texpr.support.diagnostic import Diagnostic, Note, Offer


def independence(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each `par` and buffer with a carried dependence."""
    for loop, buffers in _inside(subject).items():
        for buffer in (b for b in subject.model.by_buffer if b in buffers):
            if buffer in loop.reduce and reduction_fault(subject, loop, buffer) is not None:
                continue  # reported already, for the clause
            if any(a.writes for a in buffers[buffer]):
                yield from _buffer(subject, loop, buffer, buffers[buffer])


def _inside(subject: Subject) -> dict[Par, dict[Buffer, list[Access]]]:
    """The accesses of each buffer inside of each `par`."""
    found: dict[Par, dict[Buffer, list[Access]]] = {}
    for instance in subject.model.instances:
        for loop in instance.loops:
            if isinstance(loop, Par):
                buffers = found.setdefault(loop, {})
                for access in instance.accesses:
                    buffers.setdefault(access.buffer, []).append(access)
    return found


def _buffer(subject: Subject, loop: Par, buffer: Buffer, inside: list[Access]) -> Iterator[Diagnostic]:
    scope = subject.model.scope_syms(buffer)
    if loop.sym in scope:
        return  # private to each iteration
    for dependence in _meetings(loop, _unlike(inside), scope):
        found = _meeting(subject, loop, dependence)
        if found is not None:
            yield found
            return


def _unlike(accesses: list[Access]) -> list[Access]:
    """One access of each class of equal ones, which have the same dependences."""
    found: dict[object, Access] = {}
    for access in accesses:
        stmt = access.instance.stmt
        update = (stmt.update, tuple(t.buffer for t in stmt.targets)) if isinstance(stmt, Bind) else None
        own = () if not access.hidden else (access.instance.number,)
        where = access.load.index, access.index, access.shape, access.formula, access.affine
        found.setdefault((access.kind, update, own, where, access.instance.loops), access)
    return list(found.values())


def _meetings(loop: Par, inside: list[Access], scope: frozenset[Sym]) -> Iterator[Dependence]:
    """The candidate dependences that `loop` carries, pairs of writes first."""
    for both in (True, False):
        for source in inside:
            for sink in inside:
                if (source.writes and sink.writes) if both else (source.writes != sink.writes):
                    found = Dependence(source, sink, loop, scope)
                    if not obviously_empty(source, sink, loop, scope) and not found.relaxed:
                        yield found


def _meeting(subject: Subject, loop: Par, dependence: Dependence) -> Diagnostic | None:
    source, sink = dependence.source, dependence.sink
    dims = (*map(left, extended_syms(source)), *map(right, extended_syms(sink)))
    try:
        witness = subject.point(dims, dependence.formula)
    except Undecided:
        return _undecided(subject, loop, dependence)
    if witness is None:
        return None
    if not (comparable(source, sink) and source.affine and sink.affine):
        return _undecided(subject, loop, dependence)
    return _conflict(subject, loop, dependence, witness)


def _conflict(subject: Subject, loop: Par, dependence: Dependence, witness: Witness) -> Diagnostic:
    source, sink = dependence.source, dependence.sink
    first, second = sides(dependence, witness)
    name = loop.sym.base
    one, other = f"{name} = {first[loop.sym]}", f"{name} = {second[loop.sym]}"
    element = element_at(source, first)
    sizes = subject.sizes_text(witness)
    where = f", at {', '.join(sizes)}" if sizes else ""
    data = [h for a in (source, sink) for h in a.hidden if not h.defined]
    may = "may " if data else ""
    if source.writes and sink.writes:
        message = f"iterations {one} and {other} of this `par` {may}both write `{element}`{where}"
    else:
        writer, reader = (one, other) if source.writes else (other, one)
        reads = "may read" if data else "reads"
        message = f"iteration {reader} of this `par` {reads} `{element}`, which iteration {writer} writes{where}"
    notes = [_note(source, first, one, loop)]
    if sink is not source:
        notes.append(_note(sink, second, other, loop))
    return Diagnostic(
        "E0417" if data else "E0402",
        written(loop.span) or statement(source.instance),
        message,
        tuple(notes),
        offers=tuple(_offers(subject, loop, dependence)),
    )


def _note(access: Access, values: Witness, iteration: str, loop: Par) -> Note:
    inner = [f"{s.base} = {values[s]}" for s in access.instance.syms[access.instance.loops.index(loop) + 1 :]]
    said = (f"`{hidden_text(h)}` = {values[h.sym]}" for h in access.hidden if h.sym in values and not h.defined)
    data = [*dict.fromkeys(said)]
    verb = {"read": "reads", "write": "writes", "update": "updates"}[access.kind]
    more = f" (at {', '.join(inner + data)})" if inner or data else ""
    return Note(f"iteration {iteration} {verb} `{element_at(access, values)}` here{more}", place(access))


def _offers(subject: Subject, loop: Par, dependence: Dependence) -> Iterator[Offer]:
    name = dependence.buffer.name
    if dependence.source.kind == dependence.sink.kind == "update":
        help = f"if the iterations are meant to meet in `{name}`, in any order, write `reduce({name})` on this `par`"
        yield from reduced(loop, dependence.buffer, help)
    tables = (h.source.buffer for h in (*dependence.source.hidden, *dependence.sink.hidden) if h.source is not None)
    for table in dict.fromkeys(tables):
        text = f"if no two elements of `{table.name}` are equal, say `assume injective({table.name})`"
        yield from promised(subject.function, Injective(table), text)
        if table.rank == 1:
            text = f"if no element of `{table.name}` is less than the one before it, say `assume monotone({table.name})`"
            yield from promised(subject.function, Monotone(table), text)
    yield from in_order(loop, "use `seq` where the order of the iterations matters")


def _undecided(subject: Subject, loop: Par, dependence: Dependence) -> Diagnostic:
    name = dependence.buffer.name
    notes = tuple(
        Note(f"`{name}` is {'read' if access.kind == 'read' else 'written'} here", place(access))
        for access in dict.fromkeys((dependence.source, dependence.sink))
    )
    return Diagnostic(
        "E0502",
        written(loop.span),
        f"cannot decide whether two iterations of this `par` over `{loop.sym.base}` meet in an element of `{name}`",
        notes,
        offers=(*fixed(subject.function), *_offers(subject, loop, dependence)),
    )
