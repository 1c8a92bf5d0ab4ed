"""Clusters of blocks in a schedule: which loops of the grid have clusters, and whether blocks copy the same boxes.

    cluster(bj, 2)                     blocks 2 · n and 2 · n + 1 along bj run together
    stage(A, …, multicast=bj)          and one copy of a box of A serves both

A box is shared where its corner is the same for every block of the cluster: bj and bj' with bj / 2 = bj' / 2 give one corner.
Blocks beyond the loop's end, which complete the last cluster, take part like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.marked import level_of, mark
from texpr.ir.program.marks import Cluster
from texpr.presburger.formula import Formula, Ge, compare, conj, differ, syms
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.isl.sets import Set
from texpr.presburger.linear import NotAffine
from texpr.relation.facts import in_loop
from texpr.schedule.call import Call
from texpr.schedule.edits import without
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.state import State
from texpr.support.record import Record


def blocks(loop: ir.Loop) -> int:
    """The blocks of a cluster along `loop`; 1 where it has none."""
    found = mark(loop, Cluster)
    return 1 if found is None else found.blocks


def dimension(loop: ir.Loop) -> str:
    """The grid dimension that `loop` is bound to; empty where it is not."""
    level = level_of(loop) or ""
    return level.removeprefix("grid.") if level.startswith("grid.") else ""


class Apart(Record):
    """A counter-example: two blocks of a cluster with different boxes, as values of every symbol, and the dimension."""

    one: Mapping[Sym, int]
    other: Mapping[Sym, int]
    dim: int
    first: int
    second: int


def apart(base: Sequence[Expr], among: Mapping[Sym, int], facts: Iterable[Expr], params: Iterable[Sym]) -> Apart | None:
    """Two blocks of one cluster for which `base` differs, or None: it is proved that there are none.

    `among`: the symbols of the loops along which blocks lie, with the size of the cluster. `facts` are ≥ 0. Raises NotAffine
    or Undecided.
    """
    if all(e.syms().isdisjoint(among) for e in base):
        return None
    one, other = ({s: expr(side(s)) for s in among} for side in (left, right))
    formula: list[Formula] = [Ge(e.substitute(side)) for e in facts for side in (one, other)]
    formula += [compare("==", one[s] // n, other[s] // n) for s, n in among.items()]
    here, there = ([e.substitute(side) for e in base] for side in (one, other))
    whole = conj((*formula, differ(here, there)))
    sizes = sorted(params, key=str)
    found = Set.of(sorted(syms(whole) - set(sizes), key=str), whole, params=sizes).sample()
    if found is None:
        return None
    values = [{**found, **{s: found[side(s)] for s in among if side(s) in found}} for side in (left, right)]
    corners = [[e.evaluate(v) for e in base] for v in values]
    dim = next(n for n, (a, b) in enumerate(zip(*corners, strict=True)) if a != b)
    return Apart(values[0], values[1], dim, corners[0][dim], corners[1][dim])


def around(state: State, outer: Sequence[ir.Loop]) -> tuple[Expr, ...]:
    """What is ≥ 0 in the loops `outer`; those with clusters may be past their end."""
    graph = state.graph(outer)
    indices = graph.indices()
    facts = list(given(state.function))
    for leaf, loop in zip(graph.leaves, outer, strict=True):
        facts += (expr(leaf.sym),) if blocks(loop) > 1 else in_loop(leaf.sym, leaf.extent.substitute(indices))
    return tuple(facts)


def peers(call: Call, argument: ir.Argument, outer: Sequence[ir.Loop], corner: Sequence[Expr]) -> tuple[ir.Loop, ...]:
    """The loops of `multicast=`, proved: blocks of a cluster along them copy the same boxes, at `corner`.

    Otherwise refused, with two blocks.
    """
    parts = argument.value.args if isinstance(argument.value, ir.Group) else (argument,)
    found = tuple(call.loop(part) for part in parts)
    for loop, part in zip(found, parts, strict=True):
        name = loop.sym.base
        if loop not in outer or blocks(loop) == 1:
            reason = f"blocks along `{name}` are in no cluster, so none of them can give to others"
            raise call.refuse("E0918", reason, at=part, offers=call.before("say before: %", f"cluster({name}, 2)"))
    if len(set(found)) < len(found):
        raise call.wrong("names a loop twice in `multicast=`", argument)
    among = {call.state.domain(loop).sym: blocks(loop) for loop in found}
    listed = ", ".join(f"`{loop.sym.base}`" for loop in found)
    buffer = call.plain[0].value
    try:
        differ = apart(corner, among, around(call.state, outer), call.state.function.sizes)
    except (NotAffine, Undecided):
        reason = f"cannot decide whether blocks of a cluster along {listed} copy the same part of `{buffer}`"
        raise call.refuse("E0914", reason, at=argument, offers=without(call.directive.span, "multicast")) from None
    if differ is None:
        return found
    one, other = (", ".join(f"{s.base} = {v[s]}" for s in among) for v in (differ.one, differ.other))
    reason = (
        f"blocks of one cluster copy other parts of `{buffer}`: dimension {differ.dim} begins at {differ.first} where {one}, "
        f"and at {differ.second} where {other}"
    )
    others = [loop.sym.base for loop in outer if blocks(loop) > 1 and loop not in found]
    alone = [loop.sym.base for loop in found if len(found) > 1]
    offers = [
        offer
        for name in (*others, *alone)
        for offer in call.instead(f"say multicast={name}", lambda said, name=name: said.having("multicast", name))
    ]
    raise call.refuse("E0918", reason, at=argument, offers=(*offers, *without(call.directive.span, "multicast")))


def many(loops: Iterable[ir.Loop]) -> int:
    """The blocks of a cluster along all of `loops`."""
    return prod(map(blocks, loops))
