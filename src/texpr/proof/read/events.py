"""What the kernels do, statement by statement: on which threads, when, and reading and writing what.

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
from texpr.ir.operation import Agent, Arrives, Awaits, Brings, Closes, Fences, Group, Operation, Phased, Waits
from texpr.ir.value import Buffer, Index, Load, Op, Ref, Value, operands
from texpr.isa.levels import Level, Space
from texpr.presburger.formula import Formula, between, negate
from texpr.proof.read.conditions import test
from texpr.support.record import Mutable, Record, derive, field, replace
from texpr.support.span import NOWHERE, Span

Host: TypeAlias = tuple["int | k.HostLoop", ...]
Block: TypeAlias = tuple[k.Stmt, ...]


class Launch(Record, eq=False):
    """One launch: when, and over which coordinates. `domain` has those of the host's loops and of the axes."""

    kernel: k.Kernel
    time: Host
    domain: tuple[Formula, ...]
    blocks: tuple[Sym, ...]
    threads: tuple[Sym, ...]

    host: tuple[Sym, ...] = field(init=False)
    """Indices of the host's loops."""
    block: tuple[Expr, ...] = field(init=False)
    """The coordinates of a block."""
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
    """A place in a kernel: when it runs, in which loops, where, under which tests of data. `path`: the lists it stands in."""

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
        """The coordinates of the block that runs an instance: another one than `launch.blocks` where it sends that a box."""
        return self.sender or self.launch.block

    def at(self, number: int, block: Block, names: Mapping[Sym, Expr]) -> Site:
        """The place of a statement of a list that stands here."""
        time, path = (*self.time, 2 * number), (*self.path, (block, number))
        return Site(self.launch, time, self.loops, self.domain, self.tests, path, names, self.bounds, self.sender, self.joint)

    @property
    def dims(self) -> tuple[Sym, ...]:
        """The indices of an instance."""
        return _dims(self)

    @property
    def where(self) -> tuple[Formula, ...]:
        """Which instances there are."""
        return (*self.launch.domain, *self.domain)


def over(site: Site, loops: tuple[k.For, ...]) -> Site:
    """A site in further loops of an operation's own."""
    domain = tuple(between(loop.lo, loop.sym, loop.hi) for loop in loops)
    bounds = {**site.bounds, **{loop: (loop.lo, loop.hi) for loop in loops}}
    time = (*site.time, *(step for loop in loops for step in (loop, 0)))
    return replace(site, time=time, loops=(*site.loops, *loops), domain=(*site.domain, *domain), bounds=bounds)


def in_arms(a: Site, b: Site) -> bool:
    """Whether two places stand in two arms of one branch, of which one turn of the loops around it runs one."""
    parted = ((block is not other, at != to) for (block, at), (other, to) in zip(a.path, b.path, strict=False))
    return a.launch is b.launch and next((arms for arms, steps in parted if arms or steps), False)


@lru_cache(maxsize=1 << 12)
def _dims(site: Site) -> tuple[Sym, ...]:
    launch = site.launch
    return (*launch.host, *launch.blocks, *launch.threads, *[loop.sym for loop in site.loops])


@lru_cache(maxsize=1 << 12)
def ranged(site: Site) -> Simplifier:
    """What knows the ranges of the coordinates and loops of a site, as far as constants say them, and of sizes."""
    return _ranged(site.launch.kernel, tuple([(loop.sym, site.bounds[loop]) for loop in site.loops]))


@lru_cache(maxsize=1 << 10)
def _ranged(kernel: k.Kernel, loops: tuple[tuple[Sym, tuple[Expr, Expr]], ...]) -> Simplifier:
    """The same, of all sites in the same loops: what was found out of one is remembered for all."""
    ranges: dict[Sym, Range] = {size: (0, None) for size in kernel.sizes}
    ranges |= {a.sym: (0, a.extent.constant - 1) for a in kernel.axes if a.extent.is_constant}
    for sym, ends in loops:
        (low, _), (_, high) = (bounds(end, ranges) for end in ends)
        ranges[sym] = low, None if high is None else high - 1
    return Simplifier(Known(ranges))


def plainly(value: Expr, site: Site) -> Expr:
    """`value` as it is at all instances of a site."""
    return ranged(site)(value)


class Variable(Record, eq=False):
    """A register. `value`: what it always holds, None where it is assigned again."""

    sym: Sym
    site: Site
    value: Value | None
    name: Sym


class Event(Record, eq=False):
    """One element or variable that is given a value. `kind`: plain, atomic, async, or exchange; `stmt` is what does it.

    `let`: a register that never changes, which the program may have too, or not. Of a copy that goes on by itself, `signal`: it
    brings bytes to a barrier; `group`: it is of a group; `joins`: it combines with what is there, at once.
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

    @property
    def atomic(self) -> bool:
        """Whether nothing comes between what it reads of its target and what it writes."""
        return self.kind == "atomic" or self.joins

    @property
    def engine(self) -> bool:
        """Whether no thread moves it, but the engine of tensors does."""
        return isinstance(self.stmt, Operation) and self.stmt.AGENT is Agent.ENGINE

    @property
    def span(self) -> Span:
        """Where it stands in the text."""
        return getattr(self.stmt, "span", NOWHERE)


class Signal(Record, eq=False):
    """What makes a barrier, arrives at it, brings bytes to it, or waits for it: an element of an array of barriers."""

    stmt: Operation
    site: Site
    what: Phased

    @property
    def barrier(self) -> Load:
        """The barrier."""
        return self.what.at

    @property
    def parity(self) -> Expr:
        """The parity of the phase that a wait names, or that is as completed when a barrier is made."""
        return self.what.parity if isinstance(self.what, Waits) else ONE

    @property
    def bytes(self) -> Expr:
        """How many bytes an arrival expects, or a copy brings; none at a wait."""
        return self.what.bytes if isinstance(self.what, Arrives | Brings) else ZERO


class Step(Record, eq=False):
    """What ends a group of copies, waits for some, or makes writes known to engines."""

    stmt: Operation
    site: Site
    what: Closes | Awaits | Fences


class Reading(Mutable):
    """All of a plan. `together`: what threads must reach together; `strange`: what is not understood; `steps`: what ends groups
    of copies, waits for them, or makes writes known, in the order of the text. `named`: registers that index expressions name
    as a `let` of the program, each with the number that it is to be; what others hold is a function of where they are declared.
    `needed`: without which the machine does not move what is said here.
    """

    events: list[Event] = field(default_factory=list[Event])
    variables: dict[Sym, Variable] = field(default_factory=dict[Sym, Variable])
    named: dict[Buffer | Sym, Expr] = field(default_factory=dict["Buffer | Sym", Expr])
    together: list[tuple[k.Operation, Site]] = field(default_factory=list["tuple[k.Operation, Site]"])
    strange: list[tuple[k.Stmt, Site, str]] = field(default_factory=list["tuple[k.Stmt, Site, str]"])
    needed: list[tuple[k.Stmt, Site, Formula]] = field(default_factory=list["tuple[k.Stmt, Site, Formula]"])
    steps: list[Step] = field(default_factory=list[Step])
    signals: list[Signal] = field(default_factory=list[Signal])
    launches: list[Launch] = field(default_factory=list[Launch])
    spaces: dict[Buffer, Space] = field(default_factory=dict[Buffer, Space])

    @property
    def touched(self) -> Iterator[tuple[Load, Site, Span]]:
        """Every element that the text names, and where."""
        for event in self.events:
            if isinstance(event.target, Load):
                yield event.target, event.site, event.span
            for value, site in ((event.value, event.site), *event.site.tests):
                yield from ((load, at, event.span) for load, at in read_by(value, site))
        yield from ((each.barrier, each.site, getattr(each.stmt, "span", NOWHERE)) for each in self.signals)
        for variable in self.variables.values():  # read where it is declared, wherever that is wanted
            if variable.value is not None:
                yield from ((load, at, NOWHERE) for load, at in read_by(variable.value, variable.site))


def read_by(value: Value, site: Site) -> Iterator[tuple[Load, Site]]:
    """The elements that a value reads, and where: of a `select`, an arm only where it is taken."""
    fact = test(value.args[0]) if isinstance(value, Op) and value.name == "select" else None
    if isinstance(value, Load):
        yield value, site
    for at, operand in enumerate(operands(value)):
        taken = None if fact is None or not at else fact if at == 1 else negate(fact)
        yield from read_by(operand, site if taken is None else replace(site, domain=(*site.domain, taken)))


def index_names(values: Iterable[Value]) -> frozenset[Sym]:
    """What index expressions in values name."""
    found: set[Sym] = set()
    rest = [*values]
    while rest:
        node = rest.pop()
        for e in node.index if isinstance(node, Load) else (node.expr,) if isinstance(node, Index) else ():
            found |= e.syms()
        rest += operands(node)
    return frozenset(found)
