"""Distribution of a local over the blocks of a cluster, from the relation.

    par 4 |c| #cluster { par 1024 |t| { row[1024 * c + t] = … } }      element e: block e / 1024 % 4, index e % 1024 there

Writers own elements: an element is in the block that writes it, so that only reads are remote. Runs of consecutive elements
along one dimension are distributed cyclically; the length of a run is the coefficient of the block's index in a subscript, and
it is proved that each write is local. If all reads are local, too, the cluster is irrelevant: it is shared memory of a block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd

from texpr.affine.expr import Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.steps import Node
from texpr.ir.steps.digits import Digit
from texpr.ir.steps.place import Parts
from texpr.ir.value import Buffer
from texpr.lowering.dependences.conflict import End
from texpr.lowering.dependences.needs import Needs
from texpr.mapping.nest import LoopMap, Nest
from texpr.presburger.formula import compare, conj
from texpr.presburger.isl.maps import left
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.points import Points
from texpr.support.record import Record


class Distributed(Record):
    """The distribution of one local over blocks; `crosses`: whether a block reads elements of another one."""

    parts: Parts
    crosses: bool


def distributed(needs: Needs, nest: Nest, nodes: tuple[Node, ...], buffer: Buffer, rank: Sym) -> Distributed | None:
    """The distribution of `buffer`, if each element is written by one block in a known pattern; else None.

    `rank`: the rank of a block in its cluster.
    """
    ends = [end for end in needs.ends_of(nest, nodes) if end.access.buffer is buffer]
    writers = [end for end in ends if end.access.writes]
    if any(end.access.load.data or end.access.shape != end.access.buffer.shape for end in ends):
        return None
    for dim, run in _candidates(writers, nest):
        plain = Parts(dim, run, nest.blocks, rank)
        if all(_is_own(end, plain, nest, needs) for end in writers):
            own = [end for end in ends if end.access.writes or _is_own(end, plain, nest, needs)]
            return Distributed(Parts(dim, run, nest.blocks, rank, _indices(ends, own, plain)), len(own) < len(ends))
    return None


def _candidates(writers: Iterable[End], nest: Nest) -> Iterator[tuple[int | None, int]]:
    """Candidate dimensions with lengths of runs along them; None: all elements are in the first block."""
    found: dict[tuple[int | None, int], None] = {}
    for end in writers:
        maps = {m.loop.sym: m for m in _maps(end, nest)}
        for dim, subscript in enumerate(end.access.index):
            for monomial, coefficient in subscript.terms:
                atom = monomial[0] if len(monomial) == 1 else None
                for digit in maps[atom].digits if isinstance(atom, Sym) and atom in maps else ():
                    if digit.stride * digit.radix > nest.threads:
                        found[dim, abs(coefficient) * _step(digit, nest.threads)] = None
    found[None, 1] = None
    return iter(found)


def _maps(end: End, nest: Nest) -> Iterator[LoopMap]:
    for loop in end.access.instance.loops:
        if isinstance(loop, ir.Par) and loop in nest.loops:
            yield nest.loops[loop]


def _step(digit: Digit, threads: int) -> int:
    """The difference in the index of a loop with this digit between neighbouring blocks."""
    return digit.weight * (threads // gcd(threads, digit.stride))


def _is_own(end: End, parts: Parts, nest: Nest, needs: Needs) -> bool:
    """Whether each element that `end` accesses is proved to be in the accessing block."""
    if end.thread is None:
        return False
    happens, (at, *_) = end.access.as_source
    block = (end.thread // nest.threads).substitute({s: expr(left(s)) for s in end.access.instance.syms})
    elsewhere = compare("!=", parts.block(at), block)
    try:
        return Points(conj((needs.model.facts, happens, elsewhere)), needs.model.params).is_empty()
    except (NotAffine, Undecided):
        return False


def _indices(ends: Iterable[End], own: Iterable[End], parts: Parts) -> dict[tuple[Expr, ...], tuple[Expr, ...]]:
    """The rank and index for each subscript of the program, simplified by the facts at the access.

    Subscripts of several accesses, one of which may be remote, have no local rank.
    """
    found: dict[tuple[Expr, ...], tuple[Expr, ...]] = {}
    kept = {id(end) for end in own}
    crossing = {end.access.load.index for end in ends if id(end) not in kept}
    for end in ends:
        simple = Simplifier(end.access.instance.known)
        block, *places = parts.index(end.access.load.index)
        if end.access.load.index not in crossing:
            block = expr(parts.rank)
        found[end.access.load.index] = tuple(map(simple, (block, *places)))
    return found


def ranges(thread: Sym, threads: int, rank: Sym, blocks: int) -> Known:
    """The ranges of a thread's coordinates in its cluster."""
    return Known({thread: (0, threads - 1), rank: (0, blocks - 1)})
