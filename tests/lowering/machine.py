"""Plans run by hand: every thread of every kernel, statement by statement, between barriers. Nothing here prints or compiles.

Memory is a dictionary of elements that starts undefined; every access is checked for its bounds, for reads of what nothing
wrote, and for races: two threads touch an element, one of them writes, and no barrier of both lies between. To write one is to
write, and to lose, what lies in the same bytes. An asynchronous copy may move its elements at any time until it is waited for.
Blocks of a cluster run side by side; one that others read from may end as soon as it meets nobody any more. Iterations of a
`simd` loop count as threads that nothing orders. Integers wrap as their types do; floats are Python's, so they must be small
integers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any, assert_never

import numpy as np
from tests.lowering.arithmetic import OPERATIONS, Number, wrapped
from tests.lowering.engine import Engine, Outgoing
from tests.lowering.memory import UNDEFINED, Element, Fault, Memory, Touch, made, overlay

from texpr.affine.expr import Expr, Sym, expr
from texpr.interp.arguments import bind, shape_of
from texpr.interp.dtypes import numpy_dtype
from texpr.ir import kernel as k
from texpr.ir.program import Compare, Function
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.isa.levels import Level, Space
from texpr.support.record import Mutable, Record, field, replace

Stop = k.Operation
"""What a thread waits at: for others, or at a wait for a phase."""

Place = tuple[Memory, Element]


class Copy(Record):
    """What a thread has yet to copy, as one of which group; from nowhere where zeros are written. `found`: what was there
    when it started."""

    group: int
    targets: tuple[Place, ...]
    sources: tuple[Place, ...] | None
    found: tuple[Any, ...] = ()


class Thread(Mutable):
    """One thread: its variables, and how far it has come."""

    machine: Machine
    block: Element
    number: int
    shared: dict[Buffer, Memory]
    variables: dict[Sym, Any]
    base: int = 0
    cluster: Element | None = None
    cluster_epoch: int = 0
    own: dict[Buffer, Memory] = field(default_factory=dict[Buffer, Memory])
    block_epoch: int = 0
    part_epochs: dict[int, int] = field(default_factory=dict[int, int])
    lanes: int = 0
    lane: int = 0
    groups: int = 0
    copies: list[Copy] = field(default_factory=list["Copy"])
    bulk_groups: int = 0
    stores: list[Outgoing] = field(default_factory=list[Outgoing])

    def index(self, e: Expr, data: Mapping[Sym, int] | None = None) -> int:
        """An index expression, here and now."""
        if e.is_constant:
            return e.constant
        values = {**self.variables, **data} if data else self.variables
        for sym in e.syms():
            if values.get(sym) is UNDEFINED:
                raise Fault(f"{e} is an index, of what nothing wrote")
        number = e.evaluate(values)
        assert isinstance(number, int)
        return number

    def value(self, value: Value) -> Any:
        """A value; memory that nothing wrote may only be passed on."""
        match value:  # attributes: patterns of them take half as long again
            case Load():
                return self.load(value)
            case Index():
                return self.index(value.expr)
            case Ref():
                return self.variables[value.sym]
            case Op() if value.name == "select":
                condition, one, other = value.args
                return self.value(one if self.defined(condition) else other)
            case Op():
                return wrapped(OPERATIONS[value.name](*[self.defined(a) for a in value.args]), value.dtype)
            case Literal():
                return value.value
            case Cast():
                number, dtype = self.defined(value.arg), value.dtype
                return float(number) if dtype.is_float else bool(number) if dtype.name == "bool" else int(number)

    def defined(self, value: Value) -> Any:
        """A value that is used."""
        found = self.value(value)
        if found is UNDEFINED:
            raise Fault(f"{value} is used before anything is written there")
        return found

    def place(self, load: Load) -> tuple[Memory, Element]:
        """Where an element lives."""
        data: dict[Sym, int] = {}
        for sym, meaning in load.data:
            data[sym] = int(self.defined(_bound(meaning, data)))
        memory = self.machine.memory(load.buffer, self)
        return memory, memory.at(tuple([self.index(e, data) for e in load.index]))

    def at_once(self, first: Load, count: int) -> tuple[Load, ...]:
        """Elements that are moved at once: the width divides the address."""
        _, element = self.place(first)
        if replace(first, index=tuple(map(expr, element))).offset.evaluate(self.machine.sizes) % count:
            raise Fault(f"{first.buffer.name}{list(element)} is no multiple of {count} elements")
        return k.consecutive(first, count)

    def load(self, load: Load) -> Any:
        memory, element = self.place(load)
        self.machine.engine.check(self, memory, element, writes=False)
        memory.touch(element, self.touch(), writes=False)
        if load.buffer in self.machine.parts and element[0] != self.base // self.machine.wide:
            self.machine.wanted.append((element[0], self.cluster_epoch, memory))
        return memory.values.get(element, UNDEFINED)

    def store(self, load: Load, value: Number) -> None:
        memory, element = self.place(load)
        self.machine.engine.check(self, memory, element)
        self.machine.engine.wrote(self, memory, element, shared=load.buffer not in self.machine.globals)
        memory.touch(element, self.touch(), writes=True)
        if load.buffer in self.machine.parts and element[0] != self.base // self.machine.wide:
            raise Fault(f"{memory.name}{list(element)} is written by another block")
        memory.put(element, value)

    def atomic(self, stmt: k.Atomic) -> None:
        memory, element = self.place(stmt.target)
        value = self.defined(stmt.value)
        self.machine.engine.check(self, memory, element)
        if stmt.target.buffer not in self.machine.globals:
            self.machine.engine.wrote(self, memory, element, shared=True)
        alone = stmt.scope is not Level.GRID and stmt.target.buffer in self.machine.globals  # others know nothing of it
        memory.touch(element, self.touch(atomic=not alone), writes=True)
        if element not in memory.values:
            raise Fault(f"{memory.name}{list(element)} is updated before anything is written there")
        memory.put(element, wrapped(OPERATIONS[stmt.op](memory.values[element], value), stmt.target.dtype))

    def touch(self, *, atomic: bool = False) -> Touch:
        parts = tuple(self.part_epochs.items())
        own = self.block, self.number, self.block_epoch, self.lanes, self.lane
        return Touch(*own, atomic, parts, self.cluster, self.cluster_epoch)

    def run(self, body: Sequence[k.Stmt]) -> Generator[Stop, Any, None]:
        """Runs `body`; stops at every barrier and exchange."""
        for stmt in body:
            match stmt:
                case k.For():
                    yield from self.loop(stmt)
                case k.If():
                    yield from self.run(stmt.then if self.defined(stmt.condition) else stmt.orelse)
                case k.Declare():
                    self.variables[stmt.sym] = self.value(stmt.value)
                case k.Assign():
                    self.variables[stmt.sym] = self.defined(stmt.value)
                case k.Store():
                    self.store(stmt.target, self.defined(stmt.value))
                case k.Atomic():
                    self.atomic(stmt)
                case k.Barrier():
                    yield stmt
                case k.Exchange() | k.Shuffle():
                    self.variables[stmt.target] = yield stmt
                case k.LoadVector():
                    for sym, element in zip(stmt.targets, self.at_once(stmt.source, len(stmt.targets)), strict=True):
                        self.variables[sym] = self.load(element)
                case k.StoreVector():
                    numbers = [self.defined(value) for value in stmt.stored]
                    for element, number in zip(self.at_once(stmt.target, len(numbers)), numbers, strict=True):
                        self.store(element, number)
                case k.CopyAsync():
                    self.start(stmt)
                case k.CommitAsync():
                    self.groups += 1
                case k.WaitAsync():
                    self.wait(stmt.pending)
                case k.PrefetchMap() | k.AwaitLaunches() | k.AdmitLaunch():
                    pass
                case (
                    k.BarrierInit() | k.BarrierExpect() | k.BarrierArrive() | k.BarrierWait() | k.CopyTensor() | k.StoreTensor()
                    | k.CopyBulk() | k.CommitBulk() | k.WaitBulk() | k.Fence()
                ):  # fmt: skip
                    while not self.machine.engine.step(self, stmt):
                        yield stmt
                case _:
                    assert_never(stmt)

    def whole(self, body: Sequence[k.Stmt]) -> Generator[Stop, Any, None]:
        """Runs all of a kernel."""
        yield from self.run(body)
        self.end()

    def end(self) -> None:
        """Nothing is left on its way."""
        if self.copies or self.stores:
            raise Fault("copies are never waited for")

    def start(self, stmt: k.CopyAsync) -> None:
        """What is to be written is undefined until the thread has waited."""
        targets = tuple(self.place(element) for element in self.at_once(stmt.target, stmt.count))
        sources = tuple(self.place(element) for element in self.at_once(stmt.source, stmt.count)) if self.copied(stmt) else None
        found = tuple(memory.values.get(element, UNDEFINED) for memory, element in sources or ())
        copy = Copy(self.groups, targets, sources, found)
        self.copy_touches(copy)
        for memory, element in targets:
            memory.lose(element)
        self.copies.append(copy)

    def copied(self, stmt: k.CopyAsync) -> bool:
        """Whether anything is read."""
        return stmt.when is None or bool(self.defined(stmt.when))

    def copy_touches(self, copy: Copy) -> None:
        """A copy touches memory when it starts and when it is waited for."""
        for memory, element in copy.sources or ():
            self.machine.engine.check(self, memory, element, writes=False)
            memory.touch(element, self.touch(), writes=False)
        for memory, element in copy.targets:
            self.machine.engine.check(self, memory, element)
            self.machine.engine.wrote(self, memory, element, shared=True)
            memory.touch(element, self.touch(), writes=True)

    def wait(self, pending: int) -> None:
        """Groups but the last `pending` are done. Elements that are written meanwhile are no more as they were left."""
        done = [copy for copy in self.copies if copy.group < self.groups - pending]
        for copy in done:
            self.copies.remove(copy)
            self.copy_touches(copy)
            numbers: list[Any] = [0] * len(copy.targets)
            if copy.sources is not None:
                numbers = [memory.values.get(element, UNDEFINED) for memory, element in copy.sources]
                for (memory, element), now, then in zip(copy.sources, numbers, copy.found, strict=True):
                    if now is not then and now != then:
                        raise Fault(f"{memory.name}{list(element)} is written while it is copied from")
            for (memory, element), number in zip(copy.targets, numbers, strict=True):
                if memory.is_held(element):
                    raise Fault(f"{memory.name}{list(element)} is written while it is copied into")
                memory.put(element, number)

    def loop(self, loop: k.For) -> Generator[Stop, Any, None]:
        lo, hi, step = (self.index(e) for e in (loop.lo, loop.hi, loop.step))
        outer = self.lanes, self.lane
        if loop.kind == "simd":
            self.machine.lanes += 1
            self.lanes = self.machine.lanes
        for at in range(lo, hi, step):
            self.variables[loop.sym] = at
            if loop.kind == "simd":
                self.lane = at
            yield from self.run(loop.body)
        self.lanes, self.lane = outer


def _bound(meaning: Value, data: Mapping[Sym, int]) -> Value:
    """The meaning of a data-dependent symbol, with those before it."""
    match meaning:
        case Load() if data:
            index = tuple(e.substitute(data) for e in meaning.index)
            return Load(meaning.buffer, index, tuple((s, _bound(v, data)) for s, v in meaning.data))
        case Op(name, args, dtype):
            return Op(name, tuple(_bound(a, data) for a in args), dtype)
        case Cast(arg, dtype):
            return Cast(_bound(arg, data), dtype)
        case Index(e, dtype):
            return Index(e.substitute(data), dtype)
        case _:
            return meaning


class Machine:
    """The memory of one run of a plan, and the launches in it."""

    def __init__(self, function: Function, arguments: Mapping[str, Any], sizes: Mapping[str, int] | None, order: int = 0):
        bound = bind(function, arguments, sizes)
        self.function = function
        self.random = Random(order)
        self.sizes: dict[Sym, int] = dict(bound.sizes)
        self.globals: dict[Buffer, Memory] = {}
        self.lanes = 0
        self.parts = frozenset[Buffer]()
        self.wanted: list[tuple[int, int, Memory]] = []
        self.wide = 1
        self.written = set[tuple[int, Element]]()
        self.engine = Engine(self, self.random, {})
        for param in function.params:
            array = np.asarray(bound.arrays[param.name])
            values = {at: array[at].item() for at in np.ndindex(array.shape)}
            self.globals[param] = Memory(param.name, array.shape, values)

    def memory(self, buffer: Buffer, thread: Thread) -> Memory:
        """Where `buffer` lives for `thread`."""
        for held in (self.globals, thread.shared, thread.own):
            found = held.get(buffer)
            if found is not None:
                return found
        raise Fault(f"{buffer.name} is nowhere")

    def run(self, plan: k.Plan) -> dict[str, np.ndarray[Any, Any]]:
        """The results and inouts of `plan`."""
        self.sizes.update(dict(plan.fixed))
        for buffer in (*(b for b in plan.results if b not in plan.params), *plan.workspace):
            self.globals[buffer] = Memory(buffer.name, tuple(max(0, e) for e in shape_of(buffer, self.sizes)))
        for step in plan.steps:
            self.step(step)
        wanted = (*plan.results, *(p for p in plan.params if p.role == "inout" and p not in plan.results))
        return {b.name: self.array(b) for b in wanted}

    def array(self, buffer: Buffer) -> np.ndarray[Any, Any]:
        memory = self.globals[buffer]
        found = np.zeros(memory.shape, numpy_dtype(buffer.dtype))
        for at in np.ndindex(memory.shape):
            if at not in memory.values:
                raise Fault(f"{buffer.name}{list(at)} is never written")
            found[at] = memory.values[at]
        return found

    def step(self, step: k.HostStep) -> None:
        match step:
            case k.Launch(kernel):
                self.launch(kernel)
            case k.HostLoop(sym, extent, steps):
                for at in range(extent.evaluate(self.sizes)):
                    self.sizes[sym] = at
                    for inner in steps:
                        self.step(inner)
                self.sizes.pop(sym, None)
            case k.HostIf(conditions, steps):
                if all(_holds(c, self.sizes) for c in conditions):
                    for inner in steps:
                        self.step(inner)

    def launch(self, kernel: k.Kernel) -> None:
        """Every cluster of a launch, in a shuffled order, where a block alone is one."""
        for memory in self.globals.values():
            memory.reads.clear()
            memory.writes.clear()
        self.written.clear()
        bases = {a.base: 0 for a in kernel.axes if a.base is not None}
        outer = [a for a in kernel.axes if a.level not in (Level.BLOCK, Level.CLUSTER)]
        ranks = {a.dim: a for a in kernel.axes if a.level is Level.CLUSTER}
        clusters: dict[Element, list[tuple[Element, dict[Sym, int]]]] = {}
        for point in product(*(range(a.extent.evaluate(self.sizes)) for a in outer)):
            given = {**self.sizes, **bases, **{a.sym: at for a, at in zip(outer, point, strict=True)}}
            cluster = list(point)
            for number, axis in enumerate(outer):
                rank = ranks.get(axis.dim) if axis.level is Level.GRID else None
                if rank is not None:
                    cluster[number], given[rank.sym] = divmod(point[number], rank.extent.constant)
            clusters.setdefault(tuple(cluster), []).append((point, given))
        every = list(clusters.items())
        self.random.shuffle(every)
        inner = [ranks[dim].sym for dim in "zyx" if dim in ranks]
        for cluster, blocks in every:
            blocks.sort(key=lambda block: [block[1][sym] for sym in inner])
            if len(blocks) != math.prod(kernel.cluster):
                raise Fault(f"{kernel.name}: no whole number of clusters")
            self.cluster(kernel, cluster if ranks else None, blocks)

    def cluster(self, kernel: k.Kernel, cluster: Element | None, blocks: list[tuple[Element, dict[Sym, int]]]) -> None:
        """The blocks of a cluster, side by side."""
        common = {a.buffer: made(a.buffer) for a in kernel.arrays if a.space is Space.CLUSTER}
        self.wide, self.parts = kernel.threads, frozenset(common)
        self.wanted.clear()
        threads, every = list[Thread](), list[dict[Buffer, Memory]]()
        for rank, (point, given) in enumerate(blocks):
            shared = {**common, **{a.buffer: made(a.buffer) for a in kernel.arrays if a.space is Space.SHARED}}
            every.append(shared)
            overlay(kernel, shared, rank)
            for number in range(kernel.threads):
                own = {a.buffer: made(a.buffer) for a in kernel.arrays if a.space in (Space.LOCAL, Space.LANES)}
                names = {**given, **dict(_coordinates(kernel, number))}
                base = rank * kernel.threads
                threads.append(Thread(self, point, number, shared, names, base, cluster, own=own))
        self.engine = Engine(self, self.random, {map.name: map for map in kernel.maps}, every)
        self.together(threads, kernel)
        for rank, epoch, memory in self.wanted:
            if threads[rank * kernel.threads].cluster_epoch <= epoch:
                raise Fault(f"{memory.name} is read from a block that may have ended")

    def together(self, threads: list[Thread], kernel: k.Kernel) -> None:
        """Threads in a shuffled order, each to its next stop, or some later; then those go on that have all come to one.

        Copies of tiles land between, now and then, and surely where nothing else can happen.
        """
        running = {number: thread.whole(kernel.body) for number, thread in enumerate(threads)}
        stopped: dict[int, Stop] = {}
        answers: dict[int, Any] = {}
        completed = 0
        while running:
            ready = [n for n in running if n not in stopped]
            self.random.shuffle(ready)
            late = self.random.randrange(len(ready)) if len(ready) > 1 and self.random.random() < 0.5 else 0
            for number in ready[late:]:
                try:
                    stopped[number] = running[number].send(answers.pop(number, None))
                except StopIteration:
                    del running[number]
                    if all(other // kernel.threads != number // kernel.threads for other in running):
                        self.engine.end(number // kernel.threads)
            if not running:
                break
            moved = [self.pass_on(group, stopped, answers, threads) for group in _groups(stopped, len(threads), kernel.threads)]
            landed = (self.random.random() < 0.5 or not (late or any(moved))) and self.engine.land()
            before, completed = completed, sum(phases.completed for phases in self.engine.barriers.values())
            if completed > before:
                for number in [n for n, stop in stopped.items() if isinstance(stop, k.BarrierWait)]:
                    del stopped[number]
            elif not (late or landed or any(moved)):
                raise Fault(f"{kernel.name}: threads wait for ever")
        if self.engine.flights:
            raise Fault("copies land after the end of a kernel")

    def pass_on(self, group: list[int], stopped: dict[int, Stop], answers: dict[int, Any], threads: list[Thread]) -> bool:
        """Lets `group` go on where all of it stands at one place."""
        stops = {id(stopped[n]): stopped[n] for n in group if n in stopped}
        if len(stops) != 1 or any(n not in stopped for n in group):
            return False
        (stop,) = stops.values()
        if isinstance(stop, k.Exchange):
            for n in group:
                other = threads[n].base + (threads[n].number ^ stop.mask >> threads[n].index(stop.shift))
                answers[n] = threads[other].variables[stop.source.sym] if other in group else UNDEFINED
        if isinstance(stop, k.Shuffle):
            for n in group:
                lane = group[0] + threads[n].index(stop.lane) % 32
                answers[n] = threads[lane].load(stop.source) if lane in group else UNDEFINED
        for n in group:
            del stopped[n]
            if isinstance(stop, k.Barrier):
                threads[n].block_epoch += stop.whole
                threads[n].cluster_epoch += stop.level is Level.CLUSTER
                if not stop.whole:
                    part = stop.part or stop.lanes
                    threads[n].part_epochs[part] = threads[n].part_epochs.get(part, 0) + 1
        return True


def _groups(stopped: Mapping[int, Stop], threads: int, block: int) -> Iterator[list[int]]:
    """The threads that must come together at the stops of some: the cluster, the block, or lanes of a warp."""
    seen: set[tuple[int, int]] = set()
    for number, stop in list(stopped.items()):
        if stop.meets is None:
            continue
        lanes = stop.lanes if isinstance(stop, k.Barrier) else 32
        width, base, most = lanes, number // block * block, block
        if isinstance(stop, k.Barrier) and stop.level is Level.BLOCK:
            width = stop.part or block
        elif isinstance(stop, k.Barrier) and stop.level is Level.CLUSTER:
            width, base, most = threads, 0, threads
        first = base + (number - base) // width * width
        if (first, width) not in seen:
            seen.add((first, width))
            yield list(range(first, min(base + most, first + width)))


def _coordinates(kernel: k.Kernel, number: int) -> Iterator[tuple[Sym, int]]:
    """The coordinates of a thread of a block, x first."""
    for axis in sorted((a for a in kernel.axes if a.level is Level.BLOCK), key=lambda axis: axis.dim):
        number, at = divmod(number, axis.extent.constant)
        yield axis.sym, at


def _holds(fact: Compare, sizes: Mapping[Sym, int]) -> bool:
    compare = {
        "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge
    }[fact.op]  # fmt: skip
    return compare(fact.left.evaluate(sizes), fact.right.evaluate(sizes))


def run(
    function: Function,
    plan: k.Plan,
    arguments: Mapping[str, Any],
    sizes: Mapping[str, int] | None = None,
    order: int = 0,
) -> dict[str, np.ndarray[Any, Any]]:
    """The plan on `arguments`, threads and blocks in the order that `order` picks. Raises Fault."""
    return Machine(function, arguments, sizes, order).run(plan)
