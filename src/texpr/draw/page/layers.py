"""Layered graph drawing: positions of nodes and routes of edges, without overlaps of boxes, or of edges and boxes.

Three steps, as in Sugiyama, Tagawa and Toda (1981): edges over several layers get a dummy node in each; the nodes of a layer
are ordered by the barycentres of their neighbours; then each layer is shifted towards its neighbours as far as the gaps
between its nodes permit.
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
_FINE = 2000  # a budget of node moves for the final straightening: the fewer nodes, the more rounds
_STILL = 0.1  # pixels; the iteration stops when all moves together are smaller
_NOTHING = 1e-6  # a distance within rounding error
_STRAIGHT = 8.0  # the extra weight of a straight edge that is the only one at both of its ends


class Node(Record):
    """A node with its extent, measured from its anchor, the point at which edges aim."""

    layer: int
    left: float
    right: float
    height: float


class Edge(Record):
    """An edge from a node to one of a later layer; its end points are relative to their anchors."""

    source: int
    target: int
    leave: tuple[float, float]
    enter: tuple[float, float]


class Station(Record):
    """A point that an edge passes vertically at x, from `top` to `bottom`."""

    x: float
    top: float
    bottom: float


class Layered(Record):
    """Anchors of the nodes, routes of the edges, and the total size. The first node or edge touches x = 0 and y = 0."""

    anchors: tuple[tuple[float, float], ...]
    ways: tuple[tuple[Station, ...], ...]
    width: float
    height: float


class _Member(Mutable):
    """A node, or a dummy node of an edge (without extent), during placement."""

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
    """A neighbour, and the horizontal offset of the edge at this member (`here`) and at that one (`there`)."""

    other: _Member
    here: float
    there: float


_Pull: TypeAlias = tuple[_Member, float, float]
"""A neighbour, the offset at which the edge would be vertical, and its weight."""


class _Row(Record, eq=False):
    """A layer during shifting: `_offsets` of its members, and the pulls on each, with their total weight."""

    members: list[_Member]
    offsets: list[float]
    pulls: list[tuple[list[_Pull], float]]


def layered(nodes: Sequence[Node], edges: Sequence[Edge], pinned: frozenset[int] = frozenset()) -> Layered:
    """Positions and routes. Layers in `pinned` keep the order in which their nodes are given."""
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
    """The members on an edge, its ends included, each linked with the next."""
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
    """Sorts each layer that is not pinned by the barycentres of its neighbours, up and down, and keeps the order with fewest
    crossings."""
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
    """The position of an edge's end in the layer; ends at one member are distinguished by their offsets."""
    return member.place + offset / 1000


def _crossings(layers: list[list[_Member]]) -> int:
    """The number of pairs of edges that cross."""
    found = 0
    for layer in layers:
        ends = [(_port(m, link.here), _port(link.other, link.there)) for m in layer for link in m.below]
        seen: list[float] = []
        for _, end in sorted(ends):
            found += len(seen) - bisect_right(seen, end)
            insort(seen, end)
    return found


def _shift(layers: list[list[_Member]]) -> None:
    """Moves members horizontally: near their neighbours above, then below, then both; then straightens edges."""
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
    """The pull of a link on one of its ends: stronger where it is the only one on that side of both."""
    return link.other, link.there - link.here, _STRAIGHT if here == there == 1 else 1.0


def _is_alone(pulls: list[_Pull]) -> bool:
    return len(pulls) == 1 and pulls[0][2] == _STRAIGHT


def _attract(row: _Row) -> float:
    """Shifts a layer towards the pulls on its members; gives the greatest move."""
    before = [member.x for member in row.members]
    wished: list[float] = []
    weights: list[float] = []
    for x, (pulls, total) in zip(before, row.pulls, strict=True):
        wished.append(sum([weight * (other.x + aside) for other, aside, weight in pulls]) / total if pulls else x)
        weights.append(total or 0.1)
    _settle(row.members, row.offsets, wished, weights)
    return max([abs(member.x - x) for member, x in zip(row.members, before, strict=True)], default=0.0)


def _straighten(top: _Member, layers: list[list[_Member]]) -> None:
    """Puts the chain of members below `top`, each the only neighbour of the next, on as few vertical lines as possible."""
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
    """`top` and the chain below it, each with its offset from the line."""
    member, aside = top, 0.0
    yield member, aside
    while _is_alone(member.down):
        ((member, apart, _),) = member.down
        aside -= apart
        yield member, aside


def _align(run: list[tuple[_Member, float]], low: float, high: float) -> None:
    """Puts the members of `run` on the nearest vertical line between `low` and `high`."""
    mean = sum([member.x - aside for member, aside in run]) / len(run)
    for member, aside in run:
        member.x = min(max(mean, low), high) + aside


def _close(layers: list[list[_Member]]) -> None:
    """Moves each connected component as far to the left as the ones before it permit."""
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
    """The members by connected component."""
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
    """The offset of each member from the first one at minimal gaps."""
    return [*accumulate((_apart(left, right) for left, right in pairwise(layer)), initial=0.0)] if layer else []


def _settle(layer: list[_Member], offsets: list[float], wished: list[float], weights: list[float]) -> None:
    """Gives the members the positions nearest to the wished ones, in weighted least squares, with order and gaps kept.

    After subtraction of the gaps it is isotonic regression, solved by pooling adjacent violators.
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
    """The upper edge of each layer; there is more room where edges run far sideways, so that they stay steep."""
    tops = [0.0]
    for layer, height in zip(layers[:-1], heights, strict=False):
        aside = max((abs(m.x + k.here - k.other.x - k.there) for m in layer for k in m.below), default=0.0)
        tops.append(tops[-1] + height + min(24 + aside * 0.12, 64))
    return tops


def _way(
    edge: Edge, chain: list[_Member], anchors: Sequence[tuple[float, float]], tops: list[float], heights: list[float]
) -> tuple[Station, ...]:
    """The route from the rim of the source to that of the target: every dummy node spans the height of its layer."""

    first, *between, last = chain
    start = anchors[edge.source][1] + edge.leave[1]
    end = anchors[edge.target][1] + edge.enter[1]
    return (
        Station(first.x + edge.leave[0], start, tops[first.layer] + heights[first.layer]),
        *(Station(m.x, tops[m.layer], tops[m.layer] + heights[m.layer]) for m in between),
        Station(last.x + edge.enter[0], tops[last.layer], end),
    )
