"""Places for the nodes of a graph drawn in layers, and ways for its edges: no two boxes meet, no edge runs through a box.

Three steps, as in Sugiyama, Tagawa and Toda (1981): edges over several layers get a station in each; stations and nodes of a
layer are put in order by the means of their neighbours' places; then each layer is shifted towards its neighbours as far as
the gaps between its members allow.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import inf
from typing import TypeAlias

from texpr.support.record import Mutable, Record, field

GAP = 26.0
"""Between two nodes of a layer."""
LANE = 14.0
"""Between an edge that passes a layer and its neighbour there."""

_ORDERINGS = 12
_SHIFTS = 3
_FINE = 2000  # members that are moved for the last time; the fewer there are, the more often
_STILL = 0.1  # pixels; when all moves together are less, no more are made
_NOTHING = 1e-6  # a distance that is an error of rounding
_STRAIGHT = 8.0  # how much more it matters that an edge is straight where it is the only one at both of its ends


class Node(Record):
    """A box of a layer. Its extent is given from its anchor, the point that edges aim at."""

    layer: int
    left: float
    right: float
    height: float


class Edge(Record):
    """From a node to one of a later layer; where it leaves and enters is given from their anchors."""

    source: int
    target: int
    leave: tuple[float, float]
    enter: tuple[float, float]


class Station(Record):
    """Where an edge passes: straight down at x from `top` to `bottom`."""

    x: float
    top: float
    bottom: float


class Layered(Record):
    """Anchors of the nodes, the ways of the edges, the size of it all. The first node or edge touches x = 0 and y = 0."""

    anchors: tuple[tuple[float, float], ...]
    ways: tuple[tuple[Station, ...], ...]
    width: float
    height: float


class _Member(Mutable):
    """A node, or a station of an edge (with no extent), while it is being placed."""

    layer: int
    left: float = 0.0
    right: float = 0.0
    node: bool = False
    above: list[_Link] = field(default_factory=list["_Link"])
    below: list[_Link] = field(default_factory=list["_Link"])
    up: list[_Pull] = field(default_factory=list["_Pull"])
    down: list[_Pull] = field(default_factory=list["_Pull"])
    place: int = 0
    x: float = 0.0


class _Link(Record):
    """A neighbour, and how far to the side the edge meets this member (`here`) and that one (`there`)."""

    other: _Member
    here: float
    there: float


_Pull: TypeAlias = tuple[_Member, float, float]
"""A neighbour, how far beside it a member would lie straight above or below it, and how much that matters."""


class _Row(Record, eq=False):
    """A layer as it is shifted: `_offsets` of its members, and what pulls each, with how much that matters in all."""

    members: list[_Member]
    offsets: list[float]
    pulls: list[tuple[list[_Pull], float]]


def layered(nodes: Sequence[Node], edges: Sequence[Edge], pinned: frozenset[int] = frozenset()) -> Layered:
    """Places and ways. Layers in `pinned` keep the order in which their nodes are given."""
    members = [_Member(node.layer, node.left, node.right, True) for node in nodes]
    layers: list[list[_Member]] = [[] for _ in range(1 + max((node.layer for node in nodes), default=0))]
    for member in members:
        layers[member.layer].append(member)
    chains = [_chain(edge, members, layers) for edge in edges]
    _order(layers, pinned)
    _shift(layers)
    least = min((m.x - m.left for layer in layers for m in layer), default=0.0)
    for layer in layers:
        for member in layer:
            member.x -= least
    heights = [max((n.height for n in nodes if n.layer == at), default=0.0) for at in range(len(layers))]
    tops = _tops(layers, heights)
    anchors = tuple((m.x, tops[m.layer] + heights[m.layer] / 2) for m in members)
    ways = tuple(_way(edge, chain, anchors, tops, heights) for edge, chain in zip(edges, chains, strict=True))
    right = max((m.x + m.right for layer in layers for m in layer), default=0.0)
    return Layered(anchors, ways, right, tops[-1] + heights[-1])


def _chain(edge: Edge, members: list[_Member], layers: list[list[_Member]]) -> list[_Member]:
    """The members that an edge passes, its ends included, each linked with the next."""
    first, last = members[edge.source], members[edge.target]
    stations = [_Member(at) for at in range(first.layer + 1, last.layer)]
    for station in stations:
        layers[station.layer].append(station)
    whole = [first, *stations, last]
    for above, below in pairwise(whole):
        there = edge.leave[0] if above.node else 0.0
        here = edge.enter[0] if below.node else 0.0
        below.above.append(_Link(above, here, there))
        above.below.append(_Link(below, there, here))
    return whole


def _order(layers: list[list[_Member]], pinned: frozenset[int]) -> None:
    """Sort each layer that is not pinned by the mean place of its neighbours, up and down, and keep the best order seen."""
    _number(layers)
    best = [list(layer) for layer in layers]
    fewest = _crossings(layers)
    for sweep in range(_ORDERINGS):
        if fewest == 0:
            break
        up = sweep % 2 == 0
        for at in reversed(range(len(layers))) if up else range(len(layers)):
            if at not in pinned:
                layers[at].sort(key=lambda member: _mean(member, member.below if up else member.above))
                _number(layers[at : at + 1])
        crossings = _crossings(layers)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    layers[:] = best
    _number(layers)


def _number(layers: list[list[_Member]]) -> None:
    for layer in layers:
        for place, member in enumerate(layer):
            member.place = place


def _mean(member: _Member, links: list[_Link]) -> float:
    if not links:
        return member.place
    return sum(_port(link.other, link.there) for link in links) / len(links)


def _port(member: _Member, offset: float) -> float:
    """The place of an edge's end among those of the layer: ends at one member are told apart by where they meet it."""
    return member.place + offset / 1000


def _crossings(layers: list[list[_Member]]) -> int:
    """How many pairs of edges cross."""
    found = 0
    for layer in layers:
        ends = [(_port(m, link.here), _port(link.other, link.there)) for m in layer for link in m.below]
        seen: list[float] = []
        for _, end in sorted(ends):
            found += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return found


def _shift(layers: list[list[_Member]]) -> None:
    """Move members sideways: near their neighbours above, then below, then both; then straighten what can be straight."""
    offsets = {id(layer): _offsets(layer) for layer in layers}

    def row(layer: list[_Member], pulls: Iterable[list[_Pull]]) -> _Row:
        return _Row(layer, offsets[id(layer)], [(each, sum([weight for _, _, weight in each])) for each in pulls])

    for layer in layers:
        _settle(layer, offsets[id(layer)], [0.0] * len(layer), [1.0] * len(layer))
        for member in layer:
            member.up = [_pull(link, len(member.above), len(link.other.below)) for link in member.above]
            member.down = [_pull(link, len(member.below), len(link.other.above)) for link in member.below]
    ups = [row(layer, (member.up for member in layer)) for layer in layers[1:]]
    downs = [row(layer, (member.down for member in layer)) for layer in reversed(layers[:-1])]
    for each in (*ups, *downs) * _SHIFTS:
        _attract(each)
    both = [row(layer, (member.up + member.down for member in layer)) for layer in layers]
    for _ in range(1 + _FINE // (1 + sum(map(len, layers)))):
        if sum(map(_attract, (*both, *reversed(both)))) < _STILL:
            break
    tops = [member for layer in layers for member in layer if not _is_alone(member.up)]
    for member in (*tops, *reversed(tops)):
        _straighten(member, layers)
    _close(layers)


def _pull(link: _Link, here: int, there: int) -> _Pull:
    """How a link pulls one of its ends: more where it is the only one on that side of both."""
    return link.other, link.there - link.here, _STRAIGHT if here == there == 1 else 1.0


def _is_alone(pulls: list[_Pull]) -> bool:
    return len(pulls) == 1 and pulls[0][2] == _STRAIGHT


def _attract(row: _Row) -> float:
    """Shift a layer towards what pulls its members; gives back how far the one that moved most did."""
    before = [member.x for member in row.members]
    wished: list[float] = []
    weights: list[float] = []
    for x, (pulls, total) in zip(before, row.pulls, strict=True):
        wished.append(sum([weight * (other.x + aside) for other, aside, weight in pulls]) / total if pulls else x)
        weights.append(total or 0.1)
    _settle(row.members, row.offsets, wished, weights)
    return max([abs(member.x - x) for member, x in zip(row.members, before, strict=True)], default=0.0)


def _straighten(top: _Member, layers: list[list[_Member]]) -> None:
    """Put the column of members below `top`, each the next one's only neighbour, on as few lines as there is room for."""
    run: list[tuple[_Member, float]] = []
    low, high = -inf, inf
    for member, aside in _column(top):
        layer, at = layers[member.layer], member.place
        left = layer[at - 1].x + _apart(layer[at - 1], member) - aside if at else -inf
        right = layer[at + 1].x - _apart(member, layer[at + 1]) - aside if at + 1 < len(layer) else inf
        if max(low, left) > min(high, right) + _NOTHING:
            _align(run, low, high)
            run, low, high = [], -inf, inf
        run.append((member, aside))
        low, high = max(low, left), min(high, right)
    _align(run, low, high)


def _column(top: _Member) -> Iterator[tuple[_Member, float]]:
    """`top` and what hangs on it alone, each with how far beside the line it is."""
    member, aside = top, 0.0
    yield member, aside
    while _is_alone(member.down):
        ((member, apart, _),) = member.down
        aside -= apart
        yield member, aside


def _align(run: list[tuple[_Member, float]], low: float, high: float) -> None:
    """Put the members of `run` on the line between `low` and `high` that is nearest to where they are."""
    mean = sum([member.x - aside for member, aside in run]) / len(run)
    for member, aside in run:
        member.x = min(max(mean, low), high) + aside


def _close(layers: list[list[_Member]]) -> None:
    """Move each part of the graph that no edge joins with the rest as far to the left as those before it allow."""
    parts = sorted(_parts(layers), key=lambda part: min(member.x - member.left for member in part))
    for part in parts[1:]:
        inside = {id(member) for member in part}
        rooms: list[float] = []
        for member in part:
            before = layers[member.layer][member.place - 1] if member.place else None
            if before is not None and id(before) not in inside:
                rooms.append(member.x - before.x - _apart(before, member))
        room = min(rooms, default=0.0)
        for member in part:
            member.x -= room


def _parts(layers: list[list[_Member]]) -> list[list[_Member]]:
    """The members, those that edges join together."""
    seen: set[int] = set()
    parts: list[list[_Member]] = []
    for first in (member for layer in layers for member in layer):
        if id(first) not in seen:
            seen.add(id(first))
            part = [first]
            for member in part:
                joined = [other for other, _, _ in (*member.up, *member.down) if id(other) not in seen]
                seen.update(map(id, joined))
                part += joined
            parts.append(part)
    return parts


def _apart(one: _Member, other: _Member) -> float:
    """The least distance between the anchors of two neighbours in a layer."""
    return one.right + other.left + (GAP if one.node and other.node else LANE)


def _offsets(layer: list[_Member]) -> list[float]:
    """How far each member is from the first one where all are as near as may be."""
    return [*accumulate((_apart(left, right) for left, right in pairwise(layer)), initial=0.0)] if layer else []


def _settle(layer: list[_Member], offsets: list[float], wished: list[float], weights: list[float]) -> None:
    """Give the members the places nearest to the wished ones, in least squares, that keep order and gaps.

    With the gaps taken off it is isotonic regression, solved by pooling neighbours that are out of order.
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, members
    for wish, weight, taken in zip(wished, weights, offsets, strict=True):
        mean, total, count = wish - taken, weight, 1
        while pools and pools[-1][0] >= mean:
            other, heavy, many = pools.pop()
            mean = (mean * total + other * heavy) / (total + heavy)
            total, count = total + heavy, count + many
        pools.append((mean, total, count))
    at = 0
    for mean, _, count in pools:
        for _ in range(count):
            layer[at].x = mean + offsets[at]
            at += 1


def _tops(layers: list[list[_Member]], heights: list[float]) -> list[float]:
    """The upper edge of each layer; where edges run far to the side there is more room, so that they stay steep."""
    tops = [0.0]
    for layer, height in zip(layers[:-1], heights, strict=False):
        aside = max((abs(m.x + k.here - k.other.x - k.there) for m in layer for k in m.below), default=0.0)
        tops.append(tops[-1] + height + min(24 + aside * 0.12, 64))
    return tops


def _way(
    edge: Edge, chain: list[_Member], anchors: Sequence[tuple[float, float]], tops: list[float], heights: list[float]
) -> tuple[Station, ...]:
    """From the rim of the source to that of the target: every station spans the height of its layer."""

    first, *between, last = chain
    start = anchors[edge.source][1] + edge.leave[1]
    end = anchors[edge.target][1] + edge.enter[1]
    return (
        Station(first.x + edge.leave[0], start, tops[first.layer] + heights[first.layer]),
        *(Station(m.x, tops[m.layer], tops[m.layer] + heights[m.layer]) for m in between),
        Station(last.x + edge.enter[0], tops[last.layer], end),
    )
