"""Register layouts: the owner and the slot of each element of a local in lanes, as functions of its subscripts.

    par 64 |i| { t[i] = … }      by 32 threads: thread e % 32 owns t[e], in slot e / 32

They are derived from a write whose subscripts are sums of digits, of distributed loops and of loops within one thread; terms of
loops around the `new` are the same for all threads. That every write agrees is proved elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod

from texpr.affine.expr import ZERO, Expr, Sym, expr, maximum, minimum, term
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.steps.digits import Digit, radix, share, turns
from texpr.ir.steps.place import RegisterLayout
from texpr.ir.value import Buffer
from texpr.mapping.nest import LoopMap
from texpr.relation.facts import in_loop, known
from texpr.relation.model import Access
from texpr.support.diagnostic import Note
from texpr.support.record import Mutable, Record, field

THREAD = Sym("thread of the team")

_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
"""The subscripts of a buffer t are named t₀, t₁, …, which are no names of a program."""

WAYS = 4
"""The most slots among which a lane selects the element that it reads: each needs a shuffle."""


class Frame(Record):
    """The facts at a statement: `facts`, non-negative expressions; `turns`: the indices of distributed loops in terms of
    iteration number and thread; `ranges`: non-negative expressions of these."""

    facts: tuple[Expr, ...] = ()
    turns: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    ranges: tuple[Expr, ...] = ()

    def also(self, loop: ir.Par, digits: tuple[Digit, ...], turn: Sym | None, team: int) -> Frame:
        """The frame inside a distributed loop: `turn` is the number of a thread's iteration, None if it has one only."""
        index = share(digits, expr(THREAD), team)
        ranges = self.ranges
        if turn is not None:
            index = index + expr(turn) * radix(digits)
            ranges = (*ranges, *in_loop(turn, turns(loop.extent, digits)))
        return Frame(self.facts, {**self.turns, loop.sym: index}, ranges)

    def where(self, facts: Iterable[Expr]) -> Frame:
        """The frame with other facts on the program's indices."""
        return Frame(tuple(facts), self.turns, self.ranges)


def by_thread(team: int) -> Frame:
    """The frame of a statement that all threads of a team execute."""
    return Frame(ranges=tuple(in_loop(THREAD, expr(team))))


def by_first() -> Frame:
    """The frame of a statement that the first thread executes."""
    return Frame(ranges=tuple(in_loop(THREAD, expr(1))))


class RegisterRef(Record):
    """An element at a statement: its possible slots, over iteration numbers; the number of its owner, `thread`, and the slots
    `told`, over the program's indices; `own`: whether the executing thread is the owner.

    There are several `ways` if the slot depends on the lane.
    """

    ways: tuple[tuple[Expr, ...], ...]
    told: tuple[Expr, ...]
    thread: Expr
    own: bool

    @property
    def slots(self) -> tuple[Expr, ...]:
        """The slots, if they are the same in all lanes."""
        return self.ways[0]


def register_of(layout: RegisterLayout, index: tuple[Expr, ...], frame: Frame) -> RegisterRef:
    """The element with these subscripts, given the facts in `frame`."""
    element = dict(zip(layout.names, index, strict=True))
    facts = [fact.substitute(frame.turns) for fact in frame.facts]
    simple = Simplifier(known((*facts, *frame.ranges)))
    told, keeper = [slot.substitute(element) for slot in layout.slots], layout.thread.substitute(element)
    own = simple(keeper.substitute(frame.turns) - THREAD) is ZERO
    ways = product(*(_ways(simple(e.substitute(frame.turns)), n, simple) for e, n in zip(told, layout.shape, strict=True)))
    plain = Simplifier(known(frame.facts))
    nowhere = tuple(ZERO for _ in told)  # there is no such element, so none is read
    return RegisterRef(tuple(ways) or (nowhere,), tuple(map(plain, told)), plain(keeper), own)


def _ways(slot: Expr, count: int, simple: Simplifier) -> Iterator[Expr]:
    """The possible values of a slot, none of which depends on the lane, if there are few; else the slot itself."""
    moved = [(m, c) for m, c in slot.terms if THREAD in term(m).syms()]
    lane = sum((term(m, c) for m, c in moved), start=ZERO)
    least, most = simple.known.bounds(lane)
    if not moved or least is None or most is None or most - least >= WAYS:
        yield slot
        return
    for at in range(least, most + 1):
        way = simple(slot - lane + at)
        low, high = simple.known.bounds(way)
        if (low is None or low < count) and (high is None or high >= 0):
            yield simple(maximum(0, minimum(way, count - 1)))


class Unfit(Exception):
    """The reason why a local cannot be in lanes, with notes that show it."""

    def __init__(self, reason: str, *notes: Note):
        super().__init__(reason)
        self.reason, self.notes = reason, notes


class Price(Record):
    """The cost of a local in operations of a warp: `shuffles`, or requests to `shared` memory, with bank conflicts, and
    `barriers`."""

    shuffles: int
    shared: int
    barriers: int

    @property
    def is_less(self) -> bool:
        """Whether lanes are cheaper: a shuffle costs as much as a request to shared memory."""
        return self.shuffles < self.shared + self.barriers

    def __str__(self) -> str:
        meetings = f" and {_many(self.barriers, 'barrier')}" if self.barriers else ""
        asked = f"{_many(self.shared, 'request')} to shared memory{meetings}"
        return f"{_many(self.shuffles, 'shuffle')} a warp, in place of {asked}"


def _many(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


class Lanes(Record):
    """A local in lanes: its register layout `dealt`, and the cost. `unrolled`: the loops that slots depend on."""

    dealt: RegisterLayout
    price: Price
    unrolled: frozenset[Sym]

    @property
    def words(self) -> int:
        """The number of slots of a thread."""
        return prod(self.dealt.shape)


class _Digits(Mutable):
    """The digits derived from the subscripts so far."""

    shared: Mapping[ir.Loop, LoopMap]
    thread: Expr = ZERO
    slots: list[Expr] = field(default_factory=list[Expr])

    def take(self, loop: ir.Loop, value: Expr) -> None:
        """Records that `value` is the index of `loop`."""
        found = self.shared.get(loop)
        for digit in found.digits if found is not None else ():
            self.thread = self.thread + value // digit.weight % digit.radix * digit.stride
        self.slots.append(value if found is None else value // found.radix)


def subscripts(buffer: Buffer) -> tuple[Sym, ...]:
    """The names of an element's subscripts in a layout."""
    return tuple(Sym(f"{buffer.name}{str(dim).translate(_LOW)}") for dim in range(buffer.rank))


def dealt(access: Access, shared: Mapping[ir.Loop, LoopMap], scope: frozenset[Sym]) -> RegisterLayout | None:
    """The layout of the elements that `access` writes; None if its subscripts are no sums of digits.

    `shared`: the distributed loops. `scope`: indices of the loops around the `new`.
    """
    names = subscripts(access.buffer)
    loops = {loop.sym: loop for loop in access.instance.loops if loop.sym not in scope}
    found = _Digits(shared)
    for name, subscript, extent in zip(names, access.load.index, access.buffer.shape, strict=True):
        base, parts = expr(subscript.constant), list[tuple[int, ir.Loop]]()
        for monomial, c in subscript.terms:
            atom = monomial[0] if len(monomial) == 1 else None
            loop = loops.get(atom) if isinstance(atom, Sym) else None
            if loop is not None and loop.extent.is_constant:
                parts.append((c, loop))
                base = base + (0 if c > 0 else c * (loop.extent.constant - 1))
            elif term(monomial).syms().isdisjoint(loops):
                base = base + term(monomial, c)
            else:
                return None
        if not _take(expr(name), base, extent.constant, parts, found):
            return None
    ranges = [fact for name, extent in zip(names, access.buffer.shape, strict=True) for fact in in_loop(name, extent)]
    simple = Simplifier(known(ranges))
    slots, shape = list[Expr](), list[int]()
    for slot in map(simple, found.slots):
        low, high = simple.known.bounds(slot)
        if low is None or high is None:
            return None
        if high > low:
            slots.append(slot - low)
            shape.append(high - low + 1)
    return RegisterLayout(names, simple(found.thread), tuple(slots) or (ZERO,), tuple(shape) or (1,))


def _take(element: Expr, base: Expr, extent: int, parts: list[tuple[int, ir.Loop]], found: _Digits) -> bool:
    """Derives the digits of one subscript below `extent`, base + Σ parts; False if they overlap."""
    parts.sort(key=lambda part: abs(part[0]))
    weights = [abs(c) for c, _ in parts]
    least = weights[0] if weights else extent
    value = element - base + (base.constant % least if base.is_constant else 0)
    found.slots.append(value % least if weights else value)
    reach = 0
    for (c, loop), weight, above in zip(parts, weights, (*weights[1:], 0), strict=False):
        if weight <= reach or above % weight:
            return False
        reach += weight * (loop.extent.constant - 1)
        digit = (value % above if above else value) // weight
        found.take(loop, digit if c > 0 else loop.extent.constant - 1 - digit)
    return True
