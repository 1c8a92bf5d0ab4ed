"""The kernels as events: for each assignment its threads, time, reads and writes.

An instance of an event is a point over the indices of host loops, the axes of the kernel and its loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.ranges import Range, bounds
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.operation import Agent, Arrives, Awaits, Brings, Closes, Fences, Group, Lasts, Operation, Phased, Releases, Waits
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value, operands
from texpr.isa.levels import Level, Space
from texpr.presburger.formula import TRUE, Eq, Formula, Ge, between, conj, negate
from texpr.proof.read.conditions import test
from texpr.support.record import Mutable, Record, derive, field, replace
from texpr.support.span import NOWHERE, Span

Host: TypeAlias = tuple["int | k.HostLoop", ...]
Block: TypeAlias = tuple[k.Stmt, ...]


class Launch(Record, eq=False):
    """One launch: its time and coordinates. `domain`: the ranges of host loops and axes."""

    kernel: k.Kernel
    time: Host
    domain: tuple[Formula, ...]
    blocks: tuple[Sym, ...]
    threads: tuple[Sym, ...]

    host: tuple[Sym, ...] = field(init=False)
    """The indices of the host's loops."""
    block: tuple[Expr, ...] = field(init=False)
    """The coordinates of a block."""
    channels: list[Channel] = field(default_factory=list["Channel"])
    """What reading finds of rings between roles."""
    relays: list[Relay] = field(default_factory=list["Relay"])
    """What it finds of groups that take turns."""
    thread: Expr = field(init=False)
    """The number of a thread in its block."""

    def __post_init__(self) -> None:
        derive(self, host=tuple([step.sym for step in self.time if isinstance(step, k.HostLoop)]))
        derive(self, block=tuple(map(expr, self.blocks)))
        total, stride = expr(0), 1
        for dim in "xyz":
            for axis in self.kernel.axes:
                if axis.level is Level.BLOCK and axis.dim == dim:
                    total, stride = total + expr(axis.sym) * stride, stride * axis.extent.constant
        derive(self, thread=total)


class Site(Record, eq=False):
    """A position in a kernel: time, loops, domain, and the tests of data around it. `path`: the lists that contain it."""

    launch: Launch
    time: tuple[int | k.For, ...] = ()
    loops: tuple[k.For, ...] = ()
    domain: tuple[Formula, ...] = ()
    tests: tuple[tuple[Value, Site], ...] = ()
    path: tuple[tuple[Block, int], ...] = ()
    names: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    bounds: Mapping[k.For, tuple[Expr, Expr]] = field(default_factory=dict[k.For, "tuple[Expr, Expr]"])
    sender: tuple[Expr, ...] = ()
    joint: bool = False
    """Whether lanes do it together, so that which of them reads memory for the others is not said."""
    readers: Site | None = None
    """Where all of the lanes are that start what reads shared memory by itself, if something does."""

    @property
    def block(self) -> tuple[Expr, ...]:
        """The coordinates of the block that executes an instance: of the sender, for a box from another block."""
        return self.sender or self.launch.block

    def at(self, number: int, block: Block, names: Mapping[Sym, Expr]) -> Site:
        """The site of a statement in a list at this site."""
        time, path = (*self.time, 2 * number), (*self.path, (block, number))
        return Site(self.launch, time, self.loops, self.domain, self.tests, path, names, self.bounds, self.sender, self.joint)

    @property
    def dims(self) -> tuple[Sym, ...]:
        """The coordinates of an instance."""
        return _dims(self)

    @property
    def role(self) -> k.Role | None:
        """The role that is around it, if one is."""
        nodes = (block[at] for block, at in self.path)
        return next((node.role for node in nodes if isinstance(node, k.If) and node.role), None)

    @property
    def where(self) -> tuple[Formula, ...]:
        """The conditions of an instance."""
        return (*self.launch.domain, *self.domain)


def over(site: Site, loops: tuple[k.For, ...]) -> Site:
    """A site in further loops that an operation implies."""
    domain = tuple(between(loop.lo, loop.sym, loop.hi) for loop in loops)
    bounds = {**site.bounds, **{loop: (loop.lo, loop.hi) for loop in loops}}
    time = (*site.time, *(step for loop in loops for step in (loop, 0)))
    return replace(site, time=time, loops=(*site.loops, *loops), domain=(*site.domain, *domain), bounds=bounds)


def in_arms(a: Site, b: Site) -> bool:
    """Whether two sites are in the two arms of one branch, of which one executes in an iteration of the loops around it."""
    parted = ((block is not other, at != to) for (block, at), (other, to) in zip(a.path, b.path, strict=False))
    return a.launch is b.launch and next((arms for arms, steps in parted if arms or steps), False)


@lru_cache(maxsize=1 << 12)
def _dims(site: Site) -> tuple[Sym, ...]:
    launch = site.launch
    return (*launch.host, *launch.blocks, *launch.threads, *[loop.sym for loop in site.loops])


@lru_cache(maxsize=1 << 12)
def ranged(site: Site) -> Simplifier:
    """A simplifier with the constant ranges of a site's coordinates and loops, and of sizes."""
    return _ranged(site.launch.kernel, tuple([(loop.sym, site.bounds[loop]) for loop in site.loops]))


@lru_cache(maxsize=1 << 10)
def _ranged(kernel: k.Kernel, loops: tuple[tuple[Sym, tuple[Expr, Expr]], ...]) -> Simplifier:
    """A simplifier shared by all sites in the same loops, for its cache."""
    ranges: dict[Sym, Range] = {size: (0, None) for size in kernel.sizes}
    ranges |= {a.sym: (0, a.extent.constant - 1) for a in kernel.axes if a.extent.is_constant}
    for sym, ends in loops:
        (low, _), (_, high) = (bounds(end, ranges) for end in ends)
        ranges[sym] = low, None if high is None else high - 1
    return Simplifier(Known(ranges))


def plainly(value: Expr, site: Site) -> Expr:
    """`value`, simplified for the instances of a site."""
    return ranged(site)(value)


class Variable(Record, eq=False):
    """A register. `value`: its value, None if it is reassigned."""

    sym: Sym
    site: Site
    value: Value | None
    name: Sym


class Event(Record, eq=False):
    """The assignment of a value to one element or variable. `kind`: plain, atomic, async, or exchange; `stmt`: its operation.

    `let`: a register that is never reassigned, which may be a `let` of the program. For an asynchronous copy, `signal`: its
    bytes at a barrier, at coordinates of which `afar` has those that differ from the event's; `group`: the kind of its group;
    `joins`: whether it combines with the target atomically.
    """

    site: Site
    target: Load | Ref
    value: Value
    stmt: k.Stmt
    kind: str = "plain"
    let: bool = False
    signal: Signal | None = None
    group: Group | None = None
    joins: bool = False
    afar: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])

    @property
    def atomic(self) -> bool:
        """Whether its read and write of the target are atomic."""
        return self.kind == "atomic" or self.joins

    @property
    def of_pair(self) -> bool:
        """Whether a thread of the first block of a pair starts it in tensor memory, for both."""
        return self.group is Group.TENSOR and bool(self.site.sender)

    @property
    def declares(self) -> bool:
        """Whether it is the declaration of a register."""
        return k.declares(self.stmt)

    @property
    def first(self) -> bool:
        """Whether it declares a register as a constant, perhaps for a later assignment."""
        return self.declares and isinstance(self.value, Literal)

    @property
    def engine(self) -> bool:
        """Whether it is done by an engine, not by a thread."""
        return isinstance(self.stmt, Operation) and self.stmt.AGENT is Agent.ENGINE

    @property
    def span(self) -> Span:
        """The position in the source."""
        return getattr(self.stmt, "span", NOWHERE)


class Signal(Record, eq=False):
    """An initialisation of a barrier, an arrival, a copy that brings bytes, or a wait, at an element of an array of
    barriers."""

    stmt: Operation
    site: Site
    what: Phased

    @property
    def barrier(self) -> Load:
        """The barrier."""
        return self.what.at

    @property
    def parity(self) -> Expr:
        """The parity that a wait names; an initialisation counts as a phase of parity 1 before the first one."""
        return self.what.parity if isinstance(self.what, Waits) else ONE

    @property
    def bytes(self) -> Expr:
        """The number of bytes that an arrival expects or a copy brings; 0 for a wait."""
        return self.what.bytes if isinstance(self.what, Arrives | Brings) else ZERO


class Relay(Record, eq=False):
    """Groups of threads that take the iterations of the loop `tiles` in turn, as the text has it; that they do so is proved
    (docs/theory/channels.md).

    `take`: the wait of a group for its turn; `give`: the arrival of its warps behind it, at the barrier of the next one.
    `threads`: the first thread of all groups, and the one behind the last.
    """

    tiles: k.For
    take: Signal
    give: Signal
    threads: tuple[int, int]

    @property
    def groups(self) -> int:
        """The number of groups: each has a barrier."""
        return self.take.barrier.buffer.shape[0].constant

    @property
    def size(self) -> int:
        """The number of threads of a group."""
        return (self.threads[1] - self.threads[0]) // self.groups

    def own(self, tile: Expr) -> tuple[Expr, Expr]:
        """The first thread of the group that has a tile, and the one behind the last."""
        first = self.threads[0] + self.size * (tile % self.groups)
        return first, first + self.size


class Channel(Record, eq=False):
    """A ring of slots between two sets of threads, as the text has it; that it is one is proved (docs/theory/channels.md).

    `acquire`: the wait for an empty slot; `fill`: the arrival, with bytes of an engine; `uses`: the waits for it, of which a
    turn passes one; `releases`: likewise, of a slot that was read. Each has ordinals: 0 in the turn `first` of its loop.
    `producers`: the first thread that fills, and the one behind the last; `consumers`: likewise those that use and release.
    `tiles`: the loop around, if there is one, each iteration of which has `count` turns, from ordinal 0 on. `last`: ordinals
    of releases behind the loop. `relay`: of groups of the consumers, which use the turns of a tile each.
    """

    loop: k.For
    acquire: Signal
    fill: Signal
    uses: tuple[Signal, ...]
    releases: tuple[Signal, ...]
    first: Mapping[Signal, int]
    producers: tuple[int, int]
    consumers: tuple[int, int]
    tiles: k.For | None = None
    last: Mapping[Signal, Expr] = field(default_factory=dict["Signal", Expr])
    relay: Relay | None = None

    def users(self, tile: Expr) -> tuple[Expr, Expr]:
        """The first thread that uses and releases the turns of a tile, and the one behind the last."""
        first, end = self.consumers
        return (expr(first), expr(end)) if self.relay is None else self.relay.own(tile)

    @property
    def users_count(self) -> int:
        """How many threads use a turn."""
        return self.consumers[1] - self.consumers[0] if self.relay is None else self.relay.size

    @property
    def producer(self) -> Expr:
        """The first thread that fills."""
        return expr(self.producers[0])

    @property
    def by_threads(self) -> bool:
        """Whether threads fill slots themselves, and each thread arrives: a ring of the text."""
        return not any(isinstance(each.what, Releases) for each in self.releases)

    @property
    def own(self) -> tuple[Buffer, ...]:
        """The barriers whose phases are those of the ring's turns; those of full slots count bytes of an engine, too."""
        full, empty = self.fill.barrier.buffer, self.acquire.barrier.buffer
        return (full, empty) if self.by_threads else (empty,)

    @property
    def is_wide(self) -> bool:
        """Whether slots are released for all blocks of a cluster, of which each may fill those of the others."""
        return any(isinstance(each.what, Releases) and each.what.blocks > 1 for each in self.releases)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.acquire.barrier.buffer.shape[0].constant

    @property
    def count(self) -> Expr:
        """The number of turns of a tile."""
        return self.uses[0].site.bounds[self.loop][1] - self.first[self.uses[0]]

    def slot(self, ordinal: Expr) -> Expr:
        """The slot of an ordinal, by that of the first fill."""
        first = self.fill.barrier.index[0].substitute({self.loop.sym: expr(self.first[self.fill])})
        return (ordinal + (first if first.is_constant else 0)) % self.slots

    def rank(self, tile: Expr, ordinal: Expr) -> Expr:
        """How many turns before have the slot of a turn."""
        before = ordinal // self.slots
        return before if self.tiles is None else tile * (before + 1 + (self.count - 1 - ordinal) // self.slots) + before

    def before(self, tile: Expr, ordinal: Expr) -> Iterator[tuple[Formula, Expr, Expr]]:
        """The turn before that has the slot of a turn, tile and ordinal, with the condition that it is this one."""
        yield Ge(ordinal - self.slots), tile, ordinal - self.slots
        if self.tiles is not None:
            latest = ordinal + (self.count - 1 - ordinal) // self.slots * self.slots
            yield conj((Ge(self.slots - 1 - ordinal), Ge(tile - 1))), tile - 1, latest

    def after(self, tile: Expr, ordinal: Expr) -> Iterator[tuple[Formula, Expr, Expr]]:
        """The turn after that has the slot of a turn, likewise, if there is one."""
        yield Ge(self.count - 1 - self.slots - ordinal), tile, ordinal + self.slots
        if self.tiles is not None:
            yield Ge(ordinal + self.slots - self.count), tile + 1, ordinal % self.slots

    def names(self, signal: Signal, tile: Expr, ordinal: Expr, names: Mapping[Sym, Sym | Expr]) -> dict[Sym, Sym | Expr]:
        """The coordinates of a signal with this ordinal in a tile, of a thread and block that have `names`."""
        turn = {self.loop.sym: ordinal + self.first[signal]} if signal in self.first else {}
        own = {**turn, **({self.tiles.sym: tile} if self.tiles is not None else {})}
        return {sym: own[sym] if sym in own else names[sym] for sym in signal.site.dims}

    def there(self, signal: Signal, ordinal: Expr) -> Formula:
        """The condition that a signal has this ordinal, where its coordinates do not say so."""
        return Eq(ordinal - self.last[signal]) if signal in self.last else TRUE


class Meeting(Record, eq=False):
    """Something that threads must reach together: `meets` as of operations, `what` in reports."""

    what: str
    meets: int
    site: Site
    span: Span = NOWHERE


class Step(Record, eq=False):
    """An operation that closes a group of copies, waits for groups, is a fence, or takes or frees tensor memory."""

    stmt: Operation
    site: Site
    what: Closes | Awaits | Fences | Lasts


class Reading(Mutable):
    """The events of a plan. `together`: what threads must reach together; `strange`: opaque statements; `steps`:
    operations that close groups of copies, wait for them, or are fences, in textual order. `named`: registers that index
    expressions use as a `let` of the program, each with the integer that it has to be; other registers are functions of the
    coordinates of their declaration. `needed`: the conditions under which the machine does what the events describe.
    """

    events: list[Event] = field(default_factory=list[Event])
    variables: dict[Sym, Variable] = field(default_factory=dict[Sym, Variable])
    named: dict[Buffer | Sym, Expr] = field(default_factory=dict["Buffer | Sym", Expr])
    together: list[Meeting] = field(default_factory=list[Meeting])
    strange: list[tuple[k.Stmt, Site, str]] = field(default_factory=list["tuple[k.Stmt, Site, str]"])
    needed: list[tuple[k.Stmt, Site, Formula]] = field(default_factory=list["tuple[k.Stmt, Site, Formula]"])
    steps: list[Step] = field(default_factory=list[Step])
    signals: list[Signal] = field(default_factory=list[Signal])
    launches: list[Launch] = field(default_factory=list[Launch])
    spaces: dict[Buffer, Space] = field(default_factory=dict[Buffer, Space])

    @property
    def touched(self) -> Iterator[tuple[Load, Site, Span]]:
        """Every element that the text accesses, with its site."""
        for event in self.events:
            if isinstance(event.target, Load):
                yield event.target, event.site, event.span
            for value, site in ((event.value, event.site), *event.site.tests):
                yield from ((load, at, event.span) for load, at in read_by(value, site))
        yield from ((each.barrier, each.site, getattr(each.stmt, "span", NOWHERE)) for each in self.signals)
        for variable in self.variables.values():  # read where it is declared, whatever uses it
            if variable.value is not None:
                yield from ((load, at, NOWHERE) for load, at in read_by(variable.value, variable.site))


def read_by(value: Value, site: Site) -> Iterator[tuple[Load, Site]]:
    """The elements that a value reads, with their sites: in a `select`, an arm is read only if it is selected."""
    fact = test(value.args[0]) if isinstance(value, Op) and value.name == "select" else None
    if isinstance(value, Load):
        yield value, site
    for at, operand in enumerate(operands(value)):
        taken = None if fact is None or not at else fact if at == 1 else negate(fact)
        yield from read_by(operand, site if taken is None else replace(site, domain=(*site.domain, taken)))


def index_names(values: Iterable[Value]) -> frozenset[Sym]:
    """The symbols of index expressions in values."""
    found: set[Sym] = set()
    rest = [*values]
    while rest:
        node = rest.pop()
        for e in node.index if isinstance(node, Load) else (node.expr,) if isinstance(node, Index) else ():
            found |= e.syms()
        rest += operands(node)
    return frozenset(found)
