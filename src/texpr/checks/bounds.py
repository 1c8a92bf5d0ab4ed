"""Accesses are in bounds: 0 ≤ index < extent, for all sizes and at each instance."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import ZERO, Expr, FloorDiv, children, expr
from texpr.checks.offers import fixed, promised, where, wider
from texpr.checks.subject import Subject, Witness, hidden_text, place, text, value_at, written
from texpr.ir import program as ir
from texpr.ir.program import InRange
from texpr.ir.value import Load, Op, walk
from texpr.presburger.formula import Formula, Ge, conj, disj
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import is_affine
from texpr.relation.data import Hidden, bounds_formula
from texpr.relation.dependence import extended_syms
from texpr.relation.facts import facts_of, never_negative
from texpr.relation.model import Access
from texpr.support.diagnostic import Diagnostic, Note, Offer
from texpr.support.limits import LARGEST_SIZE


def bounds(subject: Subject) -> Iterator[Diagnostic]:
    """One finding for each access that may be out of bounds."""
    for access in subject.model.accesses:
        pairs = list(zip(access.load.index, access.buffer.shape, strict=True))
        doubtful = [position for position, (index, extent) in enumerate(pairs) if not _proved(access, index, extent)]
        if doubtful:
            yield from _access(subject, access, doubtful)


def _proved(access: Access, index: Expr, extent: Expr) -> bool:
    """A cheap proof."""
    goals = (index, extent - 1 - index)
    return all(map(access.known.nonnegative, goals)) or never_negative(goals, access.facts)


def _access(subject: Subject, access: Access, doubtful: list[int]) -> Iterator[Diagnostic]:
    for position in doubtful:
        refused = _unbounded(subject, access, position)
        if refused is not None:
            yield refused
            return
    try:
        witness = _violation(subject, access, doubtful)
    except Undecided:
        yield _undecided(subject, access, doubtful[0])
        return
    if witness is None:
        return
    outside = [position for position in doubtful if _outside(access, position, witness)]
    yield _out_of_bounds(subject, access, outside[0], witness) if outside else _undecided(subject, access, doubtful[0])


def _violation(subject: Subject, access: Access, doubtful: list[int]) -> Witness | None:
    """A point at which a subscript is out of bounds, of sizes that launchers take. Raises Undecided."""
    if not access.draft.affine:
        raise Undecided("a subscript that is not affine")
    split = len(access.shape) != access.buffer.rank
    positions = range(len(access.shape)) if split else doubtful
    outside = disj(_leaves(access.index[k], access.shape[k]) for k in positions)
    dims, asked = extended_syms(access), conj((access.formula, outside))
    witness = subject.point(dims, asked)
    if witness is not None and any(witness.get(size, 0) > LARGEST_SIZE for size in subject.function.sizes):
        witness = subject.point(dims, conj((asked, *(Ge(LARGEST_SIZE - expr(size)) for size in subject.function.sizes))))
    if witness is not None and not access.instance.affine:
        raise Undecided("a condition that is not affine")
    return witness


def _leaves(index: Expr, extent: Expr) -> Formula:
    if not is_affine(extent):
        raise Undecided("an extent that is not affine")
    return disj((Ge(-index - 1), Ge(index - extent)))


def _outside(access: Access, position: int, witness: Witness) -> bool:
    """Whether the subscript as written is out of bounds at a witness found for the view."""
    index, extent = access.load.index[position], access.buffer.shape[position]
    value, size = value_at(index, witness), value_at(extent, witness)
    return value is not None and size is not None and not 0 <= value < size


def _out_of_bounds(subject: Subject, access: Access, position: int, witness: Witness) -> Diagnostic:
    index, extent = access.load.index[position], access.buffer.shape[position]
    dimension = f" in dimension {position + 1}" if access.buffer.rank > 1 else ""
    where = subject.at(witness, access.instance, access.hidden)
    return Diagnostic(
        "E0401",
        place(access),
        f"index {index.evaluate(witness)} is out of bounds for `{access.buffer.name}` of extent {extent.evaluate(witness)}"
        f"{dimension}{where}",
        _declared(access),
        _both_sides(subject, access),
        offers=tuple(_offers(subject, access, witness)),
    )


def _offers(subject: Subject, access: Access, witness: Witness | None = None) -> Iterator[Offer]:
    """Promises that may put an index in bounds: that sizes are not 0, as in a witness, and that divisors divide."""
    function = subject.function
    yield from wider(function, {each.source.buffer for each in access.hidden if each.source is not None})
    named = [value for pair in zip(access.load.index, access.buffer.shape, strict=True) for value in pair]
    named += [loop.extent for loop in access.instance.loops]
    sizes = [size for size in function.sizes if any(size in value.syms() for value in named)]
    small = [size for size in sizes if witness is None or witness.get(size) == 0]
    yield from where(function, *((expr(size), ">=", 1) for size in small))
    divided = [each for value in named for each in _divisions(value)]
    for num, den in dict.fromkeys(divided):
        yield from where(function, (num % den, "==", 0), *(((den, ">=", 1),) if den.syms() else ()))


def _divisions(value: Expr) -> Iterator[tuple[Expr, Expr]]:
    for monomial, _ in value.terms:
        for atom in monomial:
            if isinstance(atom, FloorDiv):
                yield atom.num, atom.den
            for below in children(atom):
                yield from _divisions(below)


def _both_sides(subject: Subject, access: Access) -> str | None:
    """Advice, where an `and` or `or` seems to guard the element in its second operand."""
    at = access.load.span
    values = (value for stmt in ir.walk(subject.function.body) for value in ir.values(stmt))
    for op in (node for value in values for node in walk(value) if isinstance(node, Op) and node.name in ("and", "or")):
        side = op.args[1]
        if isinstance(side, Op | Load) and side.span.source is at.source and side.span.start <= at.start < side.span.end:
            return f"`{op.name}` evaluates both sides: ask first whether there is such an element, `if … {{ if … }}`"
    return None


def _declared(access: Access) -> tuple[Note, ...]:
    return (Note(f"`{access.buffer.name}` gets its shape here", written(access.buffer.span)),)


def _unbounded(subject: Subject, access: Access, position: int) -> Diagnostic | None:
    """A refusal if the subscript depends on data without bounds."""
    index, extent = access.load.index[position], access.buffer.shape[position]
    for hidden in access.hidden:
        if hidden.sym in index.syms() and hidden.free and not hidden.widened and not _guarded(access, hidden):
            advice = "guard the access with `if`, or clamp the value with `min` and `max`"
            offers: tuple[Offer, ...] = ()
            sizes = {*subject.function.sizes, *(s for s, _ in subject.function.consts)}
            if hidden.source is not None and extent.syms() <= sizes:
                table = hidden.source.buffer
                said = f"if the data promise it, say `assume {table.name} in 0..{text(extent)}`"
                offers = tuple(promised(subject.function, InRange(table, ZERO, extent), said))
            return Diagnostic(
                "E0416",
                place(access),
                f"`{text(index, access)}` is data, and nothing says that it is an index of `{access.buffer.name}`: "
                f"`{hidden_text(hidden)}` may be any integer",
                _declared(access),
                advice,
                offers=offers,
            )
    return None


def _guarded(access: Access, hidden: Hidden) -> bool:
    """Whether a condition around the access mentions a data-dependent symbol."""
    own = set(facts_of([bounds_formula(hidden)]))
    return any(hidden.sym in fact.syms() and fact not in own for fact in access.facts)


def _undecided(subject: Subject, access: Access, position: int) -> Diagnostic:
    index, extent = access.load.index[position], access.buffer.shape[position]
    return Diagnostic(
        "E0501",
        place(access),
        f"cannot decide whether 0 ≤ {text(index, access)} < {text(extent)} for `{access.buffer.name}`",
        _declared(access),
        "guard the access with `if`, or write one subscript for each dimension",
        offers=(*_offers(subject, access), *fixed(subject.function)),
    )
