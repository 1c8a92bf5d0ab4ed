"""What the threads of a kernel do, step by step, before it is said how: the form between a mapped program and a kernel.

    steps = a head, and nodes: what is done first, in an iteration of the grid, and last
    node  = Step threads work {statement} | Loop seq {node} | Branch decided {node} {node}

The head says whatever a kernel is made of besides: hardware coordinates and what the indices of loops are in them; where each
local lives; what is promised of sizes and data; maps of tensors. A step says *who* takes it (`threads`), *whose* work it
is (`agent`), *what kind* (`texpr.ir.steps.work`), what it reads and writes through which proxy, and what it completes with.

Statements and values are those of the program (`ir.program`), with nothing in them that no kernel depends on (`plain`);
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
from texpr.ir.steps.digits import Digit, radix
from texpr.ir.steps.place import Place
from texpr.ir.steps.threads import Threads
from texpr.ir.steps.work import Middle, Total, Work
from texpr.ir.value import Buffer, Load, Ref, walk
from texpr.isa.levels import WARP
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span


class Proxy(Enum):
    """By which way memory is accessed: that of threads, or that of engines."""

    GENERIC = "generic"
    ASYNC = "async"


class Touch(Record):
    """Memory that a step accesses, through a proxy."""

    buffer: Buffer
    proxy: Proxy = Proxy.GENERIC


class InGroup(Record):
    """Complete when the thread has waited for its group of copies."""

    group: Group


class AtBarrier(Record):
    """Complete with a phase of a barrier, of which `barrier` has one or more."""

    barrier: Buffer


Completion: TypeAlias = InGroup | AtBarrier


class Step(Record, eq=False):
    """What `threads` do between two gaps in which they may be ordered: a kind of `work` with statements of the program.

    `agent`: whose work it is, where threads only start it. `completion`: when it is done, where that is later than when the
    threads go on.
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
        """The statement of a step that has one."""
        return self.stmts[0]


class Loop(Record, eq=False):
    """A `seq` that all threads of the team run together. The statement's own body is left out in a whole form."""

    stmt: ir.Seq
    body: tuple[Node, ...]


class Branch(Record, eq=False):
    """An `if` that all threads decide alike; its condition was evaluated by the step before it, into `decided`."""

    stmt: ir.If
    decided: Sym
    then: tuple[Node, ...]
    orelse: tuple[Node, ...]

    @property
    def is_data(self) -> bool:
        """Whether data decide, read here or kept by a `let`."""
        return any(isinstance(part, Load | Ref) for part in walk(self.stmt.condition))


Node: TypeAlias = Step | Loop | Branch


class Along(Record, eq=False):
    """A loop of the grid, without its body: index = block · tile + point · radix + share of the thread's number.

    `block`: the coordinate of a block along it. `lane`: its points go innermost, side by side in vector lanes. `ragged`: blocks
    fill up a cluster beyond its end, and run no iteration.
    """

    loop: ir.Par
    block: Sym
    tile: int = 1
    digits: tuple[Digit, ...] = ()
    lane: bool = False
    ragged: bool = False

    @property
    def points(self) -> int:
        """Sequential points of a tile that one thread runs."""
        return self.tile // radix(self.digits)


class Dealt(Record):
    """A loop that a team shares: index = step · radix + share of the thread's number.

    `meets`: its iterations meet in accumulators.
    """

    sym: Sym
    digits: tuple[Digit, ...] = ()
    meets: bool = False


class Reduction(Record):
    """What threads have of a reduction over `sym`, for each accumulator: registers of their `own`; arrays in which the warps of
    a block, and the blocks of a cluster, leave what they have."""

    sym: Sym
    own: tuple[tuple[Ref, ...], ...]
    warps: tuple[tuple[Buffer, ...], ...] = ()
    blocks: tuple[tuple[Buffer, ...], ...] = ()


class Vectors(Record):
    """Lanes in which one thread adds up, on a machine whose threads have vectors; bytes of a line of its caches."""

    lanes: int
    line: int


class Steps(Record, eq=False):
    """A kernel before emission.

    `function`: of which it is a part. `buffers`: global memory, in the order of arguments. `sizes`: those that are given, then
    `hosts`, loops of the host around it; what is promised of them and of data: `where`, `assumes`. `lets`: values that earlier
    kernels kept; `avoid`: names that other kernels of the function have.

    `threads` of a block, `team` of those that share an iteration of the grid, lanes of a `warp`; `min_blocks` as a kernel has
    them. `vectors`: None where threads have none.

    `axes` and `coordinates`: hardware coordinates, and what is made of them first. `grid`, `loops`: what indices are in them.
    `digits`: radix and stride of those digits of a thread's number that a schedule names.

    `places`: where each local lives; `arrays`: memory of the kernel, with its bytes; `unrolled`: loops that say in which
    register an element is. `maps` of tensors. `instrs`: what lanes do together. `reductions`: what threads have of each.
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

    @property
    def blocks(self) -> int:
        """How many blocks of a cluster share an iteration of the grid."""
        return max(1, self.team // self.threads)

    @property
    def thread(self) -> Expr:
        """The number of a thread in its block."""
        return next((expr(axis.sym) for axis in self.axes if axis.level is k.Level.BLOCK), ZERO)

    @property
    def rank(self) -> Sym | None:
        """Which of the blocks that share an iteration a block is."""
        if self.blocks == 1:
            return None
        return next(axis.sym for axis in self.axes if axis.level is k.Level.CLUSTER)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, in order."""
        return (*self.begin, *self.body, *self.end)

    @property
    def dealt(self) -> dict[Sym, Dealt]:
        """The loops that a team shares, by their indices."""
        return {each.sym: each for each in self.loops}


def below(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The lists of steps directly below a node."""
    match node:
        case Step():
            return ()
        case Loop():
            return (node.body,)
        case Branch():
            return (node.then, node.orelse)


def leaves(nodes: tuple[Node, ...]) -> Iterator[Step]:
    """Every step of a tree, in textual order."""
    for node in nodes:
        if isinstance(node, Step):
            yield node
        for inner in below(node):
            yield from leaves(inner)


def program(nodes: tuple[Node, ...]) -> tuple[ir.Stmt, ...]:
    """The statements of nodes as those of a program: what they mean if one thread does all of it in order.

    What a branch is decided by stands ahead of it, too, as an `if` around nothing.
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
            case Branch(stmt, _, then, orelse):
                found.append(replace(stmt, then=program(then), orelse=program(orelse)))
    return tuple(found)
