"""The steps form: a mapped nest as steps that the threads of a kernel execute, between the program and the kernel.

    steps = a head, and nodes: before, in, and after an iteration of the grid
    node  = Step threads work {statement} | Loop seq {node} | Branch decided {node} {node} | Part role {node}

The head has the rest of a kernel: hardware coordinates and the indices of loops in terms of them; the place of each local;
promises about sizes and data; tensor maps. A step has the thread set that executes it (`threads`), the agent that does the work
(`agent`), the kind of work (`texpr.ir.steps.work`), its reads and writes with their proxies, and its completion.

Statements and values are those of the program (`ir.program`), without annotations that kernels do not depend on (`plain`);
operations are those of kernels (`ir.ops`). The text is `texpr.ir.steps.text`, the rules are `texpr.ir.steps.verify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.operation import Agent, Group
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Alternate
from texpr.ir.steps.digits import Digit, radix
from texpr.ir.steps.place import Place
from texpr.ir.steps.threads import Threads
from texpr.ir.steps.work import Middle, Total, Work
from texpr.ir.value import Buffer, Load, Ref, walk
from texpr.isa.levels import WARP
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span


class Proxy(Enum):
    """The path of a memory access: that of threads, or that of engines (PTX ISA, "Proxies")."""

    GENERIC = "generic"
    ASYNC = "async"


class Touch(Record):
    """A buffer that a step accesses, and the proxy."""

    buffer: Buffer
    proxy: Proxy = Proxy.GENERIC


class InGroup(Record):
    """The step is complete when its thread has waited for the group of copies."""

    group: Group


class AtBarrier(Record):
    """The step is complete with a phase of a barrier, an element of `barrier`."""

    barrier: Buffer


Completion: TypeAlias = InGroup | AtBarrier


class Step(Record, eq=False):
    """What `threads` execute between two program points: a kind of `work` on statements of the program.

    `agent`: who does the work; an engine's is only started by the threads. `completion`: when the work is complete, if that is
    later than the end of the step.
    """

    threads: Threads
    work: Work
    stmts: tuple[ir.Stmt, ...] = ()
    agent: Agent = Agent.THREAD
    reads: tuple[Touch, ...] = ()
    writes: tuple[Touch, ...] = ()
    completion: Completion | None = None

    @property
    def stmt(self) -> ir.Stmt:
        """The only statement of a step."""
        return self.stmts[0]


class Loop(Record, eq=False):
    """A `seq` that all threads of the team execute together. `stmt` has no body in a complete form."""

    stmt: ir.Seq
    body: tuple[Node, ...]


class Branch(Record, eq=False):
    """An `if` that is uniform in the team; the preceding step stores its condition in `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]

    @property
    def is_data(self) -> bool:
        """Whether the condition depends on data, loaded here or in a `let`."""
        return any(isinstance(part, Load | Ref) for part in walk(self.stmt.condition))


class Part(Record, eq=False):
    """What the warps of a role execute; `all` in it are all of theirs."""

    role: k.Role
    body: tuple[Node, ...]


Node: TypeAlias = Step | Loop | Branch | Part


class Along(Record, eq=False):
    """A loop of the grid, without its body: index = block · tile + point · radix + share of the thread's number.

    `block`: the coordinate of the block along it. `lane`: its points are the innermost loop, over vector lanes. `ragged`: the
    grid is rounded up to whole clusters, and surplus blocks execute no iteration.
    """

    loop: ir.Par
    block: Sym
    tile: int = 1
    digits: tuple[Digit, ...] = ()
    lane: bool = False
    ragged: bool = False

    @property
    def points(self) -> int:
        """The number of points of a tile that one thread executes in sequence."""
        return self.tile // radix(self.digits)


class Dealt(Record):
    """A loop whose iterations are distributed over a team: index = step · radix + share of the thread's number.

    `meets`: its iterations reduce into accumulators.
    """

    sym: Sym
    digits: tuple[Digit, ...] = ()
    meets: bool = False


class Reduction(Record):
    """The storage of a reduction over `sym`, for each accumulator: registers `own` of a thread; arrays for the partial sums of
    the warps of a block, and of the blocks of a cluster."""

    sym: Sym
    own: tuple[tuple[Ref, ...], ...]
    warps: tuple[tuple[Buffer, ...], ...] = ()
    blocks: tuple[tuple[Buffer, ...], ...] = ()


class Vectors(Record):
    """Vector lanes for partial sums of one thread, on a machine with vector instructions; `line`: bytes of a cache line."""

    lanes: int
    line: int


class Steps(Record, eq=False):
    """A kernel before emission.

    `function`: the function that it is a part of. `buffers`: global memory, in argument order. `sizes`: size arguments;
    `hosts`: indices and extents of host loops around it; `where`, `assumes`: promises about sizes and data. `lets`: values that
    earlier kernels stored; `avoid`: names that other kernels of the function use.

    `threads` of a block, threads of a `team` that share an iteration of the grid, lanes of a `warp`; `min_blocks` as in a
    kernel. `vectors`: None where threads have no vector lanes.

    `axes` and `coordinates`: hardware coordinates, and variables computed from them. `grid`, `loops`: indices in terms of
    these. `digits`: radix and stride of the digits of a thread's number that a schedule names.

    `places`: the place of each local; `arrays`: memory of the kernel, with offsets; `unrolled`: loops that are unrolled because
    register subscripts depend on them. `maps`: tensor maps. `instrs`: instructions of lanes. `reductions`: their storage.
    `budget`: bytes of a block's shared memory for arrays that have no offsets yet; 0 in a complete form.
    """

    name: str
    function: str
    buffers: tuple[Buffer, ...]
    sizes: tuple[Sym, ...]
    hosts: tuple[tuple[Sym, Expr], ...]
    where: tuple[ir.Compare, ...]
    assumes: tuple[ir.Assume, ...]
    lets: tuple[ir.Let, ...]
    threads: int
    team: int
    axes: tuple[k.Axis, ...]
    coordinates: tuple[k.Stmt, ...]
    grid: tuple[Along, ...]
    loops: tuple[Dealt, ...]
    digits: tuple[tuple[int, int], ...]
    places: tuple[tuple[Buffer, Place], ...]
    arrays: tuple[k.Array, ...]
    unrolled: tuple[Sym, ...]
    maps: tuple[k.TensorMap, ...]
    reductions: tuple[Reduction, ...]
    begin: tuple[Node, ...]
    body: tuple[Node, ...]
    end: tuple[Node, ...]
    warp: int = WARP
    min_blocks: int = 0
    avoid: tuple[str, ...] = ()
    vectors: Vectors | None = None
    span: Span = NOWHERE
    instrs: tuple[Instr, ...] = ()
    budget: int = 0

    @property
    def blocks(self) -> int:
        """The number of blocks of a cluster that share an iteration of the grid."""
        return max(1, self.team // self.threads)

    @property
    def extra(self) -> int:
        """The threads of a block behind the team, which have a role of their own."""
        ends = [(node.role.first + node.role.warps) * self.warp for node in _parts(self.nodes)]
        return max(0, max(ends, default=0) - self.threads)

    @property
    def groups(self) -> int:
        """The number of groups of a block that take iterations of a loop in turn, each a team of its own."""
        found = (mark(node.stmt, Alternate) for node in _loops(self.nodes))
        return next((each.groups for each in found if each), 1)

    @property
    def thread(self) -> Expr:
        """The number of a thread in its block."""
        return next((expr(axis.sym) for axis in self.axes if axis.level is k.Level.BLOCK), ZERO)

    @property
    def rank(self) -> Sym | None:
        """The rank of a block among those that share an iteration, None if it has one alone."""
        if self.blocks == 1:
            return None
        return next(axis.sym for axis in self.axes if axis.level is k.Level.CLUSTER)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order."""
        return (*self.begin, *self.body, *self.end)

    @property
    def dealt(self) -> dict[Sym, Dealt]:
        """The loops that are distributed over a team, by index."""
        return {each.sym: each for each in self.loops}


def below(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The lists of nodes directly in a node."""
    match node:
        case Step():
            return ()
        case Loop() | Part():
            return (node.body,)
        case Branch():
            return (node.then, node.orelse)


def _loops(nodes: tuple[Node, ...]) -> Iterator[Loop]:
    for node in nodes:
        if isinstance(node, Loop):
            yield node
        for inner in below(node):
            yield from _loops(inner)


def _parts(nodes: tuple[Node, ...]) -> Iterator[Part]:
    for node in nodes:
        if isinstance(node, Part):
            yield node
        for inner in below(node):
            yield from _parts(inner)


def leaves(nodes: tuple[Node, ...]) -> Iterator[Step]:
    """Every step of a tree, in textual order."""
    for node in nodes:
        if isinstance(node, Step):
            yield node
        for inner in below(node):
            yield from leaves(inner)


def program(nodes: tuple[Node, ...]) -> tuple[ir.Stmt, ...]:
    """The nodes as statements of a program: their meaning if one thread executes all of it in order.

    The condition of a branch also comes before it, as an `if` with an empty body.
    """
    found: list[ir.Stmt] = []
    for node in nodes:
        match node:
            case Step(work=Middle() | Total()):
                pass
            case Step():
                found += node.stmts
            case Loop(stmt, body):
                found.append(replace(stmt, body=program(body)))
            case Part():
                found += program(node.body)
            case Branch(stmt, _, then, orelse):
                found.append(replace(stmt, then=program(then), orelse=program(orelse)))
    return tuple(found)
