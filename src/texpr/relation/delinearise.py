"""Delinearisation: from a polynomial subscript into flat memory to one index a dimension; and the reverse.

    x[i * N + j]  with 0 ≤ j < N  ⇒  x as [⌊extent / N⌋, N], element [i, j]
    x[t / N, t % N]  of [M, N]    ⇒  x as [M * N], element [t]

The strides are read off all accesses of a buffer (after Grosser and others, "Optimistic delinearization of parametrically
sized arrays", ICS 2015, https://doi.org/10.1145/2751205.2751248), and an access takes the view only if each inner index is
proved to lie in its dimension. Two different tuples of in-range inner indices are then two different elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, repeat
from itertools import product as choices
from math import gcd

from texpr.affine.expr import ONE, ZERO, Expr, FloorDiv, Mod, Monomial, Sym, term, without
from texpr.affine.facts import Known
from texpr.ir.value import Buffer
from texpr.presburger.linear import is_affine
from texpr.relation.facts import known
from texpr.relation.opaque import Opaque
from texpr.support.record import Record


class Subscripts(Record):
    """The subscripts of one access, and expressions known to be ≥ 0 where it happens."""

    index: tuple[Expr, ...]
    facts: tuple[Expr, ...]


class View(Record):
    """Subscripts and extents, of the buffer as declared or with dimensions split or joined.

    `is_whole`: the extents cover every element of the buffer; other views may omit elements at the end.
    """

    index: tuple[Expr, ...]
    shape: tuple[Expr, ...]
    is_whole: bool = True


def views(buffer: Buffer, accesses: Sequence[Subscripts], opaque: Opaque) -> list[View]:
    """The view of each access: the common one, or the buffer as declared for accesses that cannot take it."""
    plain = [View(a.index, buffer.shape) for a in accesses]
    crooked = [d for d in range(buffer.rank) if not all(is_affine(opaque.close(a.index[d])) for a in accesses)]
    if not crooked:
        return plain
    together = [d for d in range(buffer.rank - 1) if all(_is_next(a.index, buffer.shape, d) for a in accesses)]
    if together:
        joined = [_joined(a.index, buffer.shape, together) for a in accesses]
        whole = Buffer(buffer.name, buffer.dtype, joined[0].shape, buffer.role)
        return views(whole, [Subscripts(view.index, a.facts) for view, a in zip(joined, accesses, strict=True)], opaque)
    proofs = [known(a.facts) for a in accesses]
    splits = {d: _split([a.index[d] for a in accesses], buffer.shape[d], proofs, opaque.params) for d in crooked}
    found: list[View] = []
    for at, access in enumerate(accesses):
        index: list[Expr] = []
        shape: list[Expr] = []
        for d, (subscript, extent) in enumerate(zip(access.index, buffer.shape, strict=True)):
            parts = splits[d].parts[at] if d in splits else (subscript,)
            if parts is None:
                break
            index.extend(parts)
            shape.extend(splits[d].shape if d in splits else (extent,))
        else:
            found.append(View(tuple(index), tuple(shape), all(split.is_whole for split in splits.values())))
            continue
        found.append(plain[at])
    return found


def _is_next(index: tuple[Expr, ...], shape: tuple[Expr, ...], d: int) -> bool:
    """Whether dimensions `d` and `d + 1` are indexed by consecutive digits of one number.

    That is: t % N in the second, of extent N, and in the first ⌊t / N⌋, modulo anything or not; t may itself be a quotient.
    """
    rest, first = index[d + 1].as_atom, index[d].as_atom
    if not isinstance(rest, Mod) or rest.den is not shape[d + 1]:
        return False
    quotient = rest.num // rest.den
    return index[d] is quotient or (isinstance(first, Mod) and first.num is quotient)


def _joined(index: tuple[Expr, ...], shape: tuple[Expr, ...], together: Sequence[int]) -> View:
    """The view with each dimension of `together` joined with the next one: ⌊t / N⌋, t % N become t.

    (⌊t / N⌋ % M) · N + t % N = t % (M · N)
    """
    for d in reversed(together):
        rest, first = index[d + 1].as_atom, index[d].as_atom
        assert isinstance(rest, Mod)
        number = rest.num
        if isinstance(first, Mod) and index[d] is not rest.num // rest.den:
            number = number % (first.den * rest.den)
        index = (*index[:d], number, *index[d + 2 :])
        shape = (*shape[:d], shape[d] * shape[d + 1], *shape[d + 2 :])
    return View(index, shape)


class _Split(Record):
    """A dimension split by strides: the extents, and the indices of each access (None where not proved)."""

    shape: tuple[Expr, ...]
    parts: tuple[tuple[Expr, ...] | None, ...]
    is_whole: bool = True

    @property
    def count(self) -> int:
        return sum(p is not None for p in self.parts)


def _split(indices: Sequence[Expr], extent: Expr, proofs: Sequence[Known], params: frozenset[Sym]) -> _Split:
    """The chain of strides under which most accesses are proved."""
    best = _Split((extent,), (None,) * len(indices))
    for strides in _chains(indices, params):
        shape, is_whole = _extents(extent, strides, proofs)
        parts = tuple(_digits(e, strides, shape, proof) for e, proof in zip(indices, proofs, strict=True))
        found = _Split(shape, parts, is_whole)
        if found.count > best.count:
            best = found
        if best.count == len(indices):
            break
    return best


def _chains(indices: Sequence[Expr], params: frozenset[Sym]) -> list[tuple[Expr, ...]]:
    """Candidate chains of strides, largest first, each dividing the one before, the last 1.

    The first chain has each product of sizes as it is, the second with the constant factor common to its terms (i * 2N + j).
    """
    factors: dict[Monomial, int] = {(): 0}
    for index in indices:
        for monomial, coefficient in index.terms:
            stride = tuple(a for a in monomial if term((a,)).syms() <= params)
            if stride != monomial:
                factors[stride] = gcd(factors.get(stride, 0), coefficient)
    ordered = sorted(factors, key=lambda m: (-len(m), str(term(m))))
    plain = tuple(term(m) for m in ordered)
    scaled = tuple(term(m) * (factors[m] or 1) for m in ordered)
    if scaled[-1] is not ONE:
        scaled = (*scaled, ONE)
    candidates = [c for c in dict.fromkeys((plain, scaled)) if len(c) > 1]
    return [c for c in candidates if all(quotient(big, small)[1] is ZERO for big, small in pairwise(c))]


def _extents(extent: Expr, strides: Sequence[Expr], proofs: Sequence[Known]) -> tuple[tuple[Expr, ...], bool]:
    """Extents of the dimensions under strides. Where G > 0 divides the extent C by a promise of callers, the outer extent is
    C / G.

    Also whether they cover the whole buffer: otherwise its end leaves an incomplete row, which is not part of the view.
    """
    (whole, rest), part = quotient(extent, strides[0]), strides[0].as_atom
    if rest is not ZERO:
        whole = extent // strides[0]
    is_whole = rest is ZERO or all(map(_promised, proofs, repeat(extent), repeat(strides[0])))
    if isinstance(part, FloorDiv) and part.num is extent and all(map(_promised, proofs, repeat(extent), repeat(part.den))):
        whole, is_whole = part.den, True
    return (whole, *(quotient(big, small)[0] for big, small in pairwise(strides))), is_whole


def _promised(proof: Known, extent: Expr, divisor: Expr) -> bool:
    return proof.positive(divisor) and proof.nonnegative(-(extent % divisor))


def _digits(index: Expr, strides: Sequence[Expr], shape: Sequence[Expr], proof: Known) -> tuple[Expr, ...] | None:
    """The index under each stride; None where an inner one is not proved to lie in its dimension."""
    digits: list[Expr] = []
    for stride in strides:
        digit, index = quotient(index, stride)
        digits.append(digit)
    for borrows in choices((0, 1, -1), repeat=len(digits) - 1):
        moved = list(digits)
        for position, borrow in enumerate(borrows, start=1):
            moved[position] = moved[position] + shape[position] * borrow
            moved[position - 1] = moved[position - 1] - borrow
        if all(proof.nonnegative(d) and proof.nonnegative(e - 1 - d) for d, e in zip(moved[1:], shape[1:], strict=True)):
            return tuple(moved)
    return None


def quotient(value: Expr, den: Expr) -> tuple[Expr, Expr]:
    """(q, r) with value = q · den + r, term by term, for a `den` of one term; r has the terms that it does not divide."""
    monomial, coefficient = den.terms[0] if den.terms else ((), den.constant)
    if den.terms and (den.constant or len(den.terms) > 1):
        return ZERO, value
    whole, rest = ZERO, ZERO
    for part, factor in (((), value.constant), *value.terms):
        left = without(part, monomial)
        if left is None or factor % coefficient:
            rest = rest + term(part) * factor
        else:
            whole = whole + term(left) * (factor // coefficient)
    return whole, rest
