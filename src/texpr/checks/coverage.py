"""Every element is written before it is read, and every element of a result is written, on every path.

A read is covered where some write of the same element comes before it. Only writes that certainly happen count; elements that
both branches of an `if` on data write are certain (`joins`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.checks.joins import Join, joins
from texpr.checks.subject import Subject, Witness, element_at, element_text, place, written
from texpr.ir.value import Buffer
from texpr.presburger.formula import And, Formula, between, conj, disj
from texpr.presburger.isl.maps import Map
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.relation.dependence import candidates, certain_map, comparable, extended_domain
from texpr.relation.model import Access, Ancestor, Branch
from texpr.support.diagnostic import Diagnostic, Note


def coverage(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each buffer with a read that may be undefined, and for each result with unwritten elements."""
    for buffer, accesses in subject.model.by_buffer.items():
        if buffer.role in ("local", "result"):
            yield from _reads(subject, buffer, accesses)
    for buffer in dict.fromkeys(subject.function.results):
        if buffer.role in ("result", "local"):
            yield from _result(subject, buffer, subject.model.by_buffer.get(buffer, ()))


def reads_undefined(subject: Subject, name: str) -> bool:
    """Whether some read of the buffer `name` may read an element that was never written; True also where that is undecided."""
    every = ((b, accesses) for b, accesses in subject.model.by_buffer.items() if b.name == name)
    return any(True for buffer, accesses in every for _ in _reads(subject, buffer, accesses))


def _reads(subject: Subject, buffer: Buffer, accesses: Sequence[Access]) -> Iterator[Diagnostic]:
    """The first read of `buffer`, in textual order, that is not covered."""
    for read in accesses:
        if read.reads and not any(_obviously_before(subject, write, read) for write in accesses if write.writes):
            found = _read(subject, buffer, accesses, read)
            if found is not None:
                yield found
                return


def _obviously_before(subject: Subject, write: Access, read: Access) -> bool:
    """Whether `write` covers `read` by position and subscripts alone.

    Either it writes the same element in an enclosing block, earlier; or its own loops cover the whole buffer, earlier.
    """
    if write.instance.number >= read.instance.number or not write.draft.sure:
        return False
    shared = 0
    for a, b in zip(write.instance.path, read.instance.path, strict=False):
        if not (a is b or (isinstance(a, Branch) and isinstance(b, Branch) and a.stmt is b.stmt and a.taken == b.taken)):
            break
        shared += 1
    own = write.instance.path[shared:]
    if not own:
        return write.draft.certain and write.load.index == read.load.index
    return not any(isinstance(a, Branch) for a in own) and _fills(subject, write, own)


def _fills(subject: Subject, write: Access, own: Sequence[Ancestor]) -> bool:
    """Whether the loops of a write that are in `own` cover the whole buffer, one loop a dimension."""
    extents = {loop.sym: subject.model.products.close(loop.extent) for loop in write.instance.loops if loop in own}
    if any(not each.widened for each in write.hidden):
        return False
    return any(view.is_whole and _are_the_loops(view.index, view.shape, extents) for view in write.views)


def _are_the_loops(index: Sequence[Expr], shape: Sequence[Expr], extents: Mapping[Sym, Expr]) -> bool:
    """Whether the subscripts of a view are the indices of all those loops, with the extents of the dimensions."""
    used = [e.as_sym for e in index]
    if len(set(used)) != len(used) or set(used) != set(extents):
        return False
    return all(sym is not None and extents[sym] == extent for sym, extent in zip(used, shape, strict=True))


def _read(subject: Subject, buffer: Buffer, accesses: Sequence[Access], read: Access) -> Diagnostic | None:
    try:
        if _uncovered(subject, buffer, accesses, read, certain=True) is None:
            return None
        bare = _uncovered(subject, buffer, accesses, read, certain=False) if read.affine else None
        witness = None if bare is None else subject.real(bare)
        if witness is None:
            return _read_undecided(buffer, read)
    except Undecided:
        return _read_undecided(buffer, read)
    where = subject.at(witness, read.instance, read.hidden)
    never = "" if any(a.writes and a is not read for a in accesses) else "; nothing writes it"
    return Diagnostic(
        "E0403",
        place(read),
        f"`{element_at(read, witness)}` is read before it is written{where}{never}",
        (Note(f"`{buffer.name}` starts undefined here", written(buffer.span)),),
        f"write all of `{buffer.name}` first" + (", the start of the sum for example" if read.kind == "update" else ""),
    )


def _uncovered(subject: Subject, buffer: Buffer, accesses: Sequence[Access], read: Access, *, certain: bool) -> Set | None:
    """An instance at which `read` reads an element that no earlier write has written; None if there is none.

    With `certain`, only writes that must happen count; without, every write that may. Bounds are checked by another rule.
    Raises Undecided.
    """
    scope = subject.model.scope_syms(buffer)
    left_over = extended_domain(read)
    if read.draft.is_whole:
        left_over = left_over.where(conj(between(0, i, e) for i, e in zip(read.index, read.shape, strict=True)))
    writes = [a for a in accesses if a.kind == "write"] + [a for a in accesses if a.kind == "update"]
    for write in writes:
        for found in candidates(write, read, scope):
            if certain and not comparable(write, read):
                continue
            pairs = certain_map(found) if certain else found.extended
            if pairs is not None:
                left_over = left_over.subtract(pairs.range())
                if left_over.is_empty():
                    return None
    if certain:
        for join in joins(subject.model, buffer, read.shape):
            left_over = left_over.subtract(_after(join, read, scope))
    return None if left_over.is_empty() else left_over


def _after(join: Join, read: Access, scope: frozenset[Sym]) -> Set:
    """The instances of a read, hidden symbols included, whose element `join` has written before."""
    ins = (*read.instance.syms, *(h.sym for h in read.hidden))
    element = Map.of(ins, join.written.outs, conj((read.formula, *_same_element(join, read))), params=read.instance.params)
    reached = element.then(join.written.inverse())
    before = reached.where(_before(join, read, scope, reached))
    return before.domain()


def _same_element(join: Join, read: Access) -> list[Formula]:
    return [between(expr(e), s, expr(e) + 1) for s, e in zip(join.written.outs, read.index, strict=True)]


def _before(join: Join, read: Access, scope: frozenset[Sym], pairs: Map) -> Formula:
    """The read comes after the join, in the same execution of the buffer's `new`."""
    common = [a.sym for a, b in zip(join.loops, read.instance.loops, strict=False) if a is b]
    same = [between(pairs.left(s), pairs.right(s), pairs.left(s) + 1) for s in common]
    options: list[Formula] = []
    if join.last < read.instance.number:
        options.append(And(tuple(same)))
    for depth, sym in enumerate(common):
        options.append(And((*same[:depth], between(0, pairs.right(sym), pairs.left(sym)))))
    kept = [f for s, f in zip(common, same, strict=True) if s in scope]
    return And((disj(options), *kept))


def _read_undecided(buffer: Buffer, read: Access) -> Diagnostic:
    return Diagnostic(
        "E0503",
        place(read),
        f"cannot prove that every element of `{buffer.name}` that is read here was written before",
        (Note(f"`{buffer.name}` starts undefined here", written(buffer.span)),),
        f"fill `{buffer.name}` before the loop, without conditions on data",
    )


def _result(subject: Subject, buffer: Buffer, accesses: Sequence[Access]) -> Iterator[Diagnostic]:
    writes = [a for a in accesses if a.writes]
    if not writes:
        yield Diagnostic(
            "E0404", written(buffer.span), f"the result `{buffer.name}` is never written", help=f"write all of `{buffer.name}`"
        )
        return
    if any(w.draft.sure and _top(w) and _fills(subject, w, w.instance.path) for w in writes):
        return
    try:
        unsure, witness = _hole(subject, buffer, writes)
    except Undecided:
        yield _result_undecided(buffer)
        return
    if not unsure:
        return
    if witness is None:
        yield _result_undecided(buffer)
        return
    sizes = subject.sizes_text(witness)
    where = f", at {', '.join(sizes)}" if sizes else ""
    element = element_text(buffer.name, [witness[_dim(buffer, k)] for k in range(buffer.rank)])
    notes = tuple(Note(f"`{buffer.name}` is written here", place(w)) for w in writes[:3])
    yield Diagnostic(
        "E0404",
        written(buffer.span),
        f"`{element}` of the result is never written{where}",
        notes,
        f"write all of `{buffer.name}`",
    )


def _top(write: Access) -> bool:
    return not any(isinstance(a, Branch) for a in write.instance.path)


def _dim(buffer: Buffer, position: int) -> Sym:
    return Sym(f"{buffer.name}.{position}")


def _hole(subject: Subject, buffer: Buffer, writes: Sequence[Access]) -> tuple[bool, Witness | None]:
    """Whether there are elements that no write certainly writes, and one of them that no write may write. Raises Undecided."""
    dims = tuple(_dim(buffer, k) for k in range(buffer.rank))
    split = next((w.shape for w in writes if len(w.shape) != buffer.rank), None)
    if split is not None:
        dims = tuple(_dim(buffer, k) for k in range(len(split)))
    if any(len(w.shape) != len(dims) or not w.draft.is_whole for w in writes):
        raise Undecided("a buffer seen in two ways")
    shape = buffer.shape if split is None else split
    params = subject.model.params
    shape = next((w.shape for w in writes), shape)
    whole = Set.of(
        dims, conj((subject.model.facts, *(between(0, d, e) for d, e in zip(dims, shape, strict=True)))), params=params
    )
    for write in writes:
        if write.exact:
            whole = whole.subtract(write.relation.range())
    for join in joins(subject.model, buffer, shape):
        whole = whole.subtract(join.written.range())
    if whole.is_empty():
        return False, None
    left_over = whole
    for write in writes:
        if not write.exact:
            left_over = left_over.subtract(write.relation.range())
    if split is not None:
        raise Undecided("a hole in a buffer taken apart")
    return True, subject.real(left_over)


def _result_undecided(buffer: Buffer) -> Diagnostic:
    return Diagnostic(
        "E0504",
        written(buffer.span),
        f"cannot prove that every element of the result `{buffer.name}` is written",
        help=f"fill `{buffer.name}` first, without conditions on data",
    )
