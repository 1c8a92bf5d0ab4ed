"""Instructions with fragments as operations on the registers of each lane.

Before: `instr mma(a[0, 0], b[0, 0], c[0, 0]) {…}`, locals by lane and register. After: `instr mma [i, j, k] a[0] 8 read, …`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Instr, Operand, loads_of
from texpr.ir.ops.collective import Held
from texpr.ir.steps.place import Place
from texpr.ir.value import Buffer, Index, Load, Op, Ref, walk
from texpr.ir.value.types import BOOL, I32
from texpr.isa.levels import WARP
from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.record import replace


def instructed(
    stmt: ir.Instruction,
    instr: Instr,
    places: Mapping[Buffer, Place],
    thread: Expr,
    threads: int,
    described: Mapping[Operand, Held],
) -> k.Collective:
    """The use of an instruction, by each lane on its own registers: by the first warps, where a block has more `threads`.

    `thread`: the number of the running one; `described`: what lies in shared memory as a descriptor says. Raises Limitation
    E0541 where that would be some lanes of a warp.
    """
    held: list[Held] = []
    lanes = threads
    loops = tuple(inner.sym for inner in ir.walk(stmt.body) if isinstance(inner, ir.Seq))
    for operand, load in zip(instr.operands, stmt.operands, strict=True):
        place = places.get(load.buffer)
        if operand.is_shared:
            continue
        if place is None or place.dealt is None:
            raise CompilerBug(f"{load.buffer.name} of {instr.name} is in no lanes")
        lanes = load.buffer.shape[0].constant
    for operand, load in zip(instr.operands, stmt.operands, strict=True):
        place = places.get(load.buffer)
        if operand.is_described:
            held.append(_described(described[operand], loops[0] if lanes > instr.lanes else None, thread // instr.lanes))
        elif operand.is_address:
            held.append(_addressed(stmt, operand, _said(stmt, instr, operand, lanes, thread), place))
        else:
            assert place is not None
            first = Load(place.buffer, load.index[1:], span=load.span)
            held.append(Held(first, operand.fragment.registers, operand.access))
    kind = k.Collective if instr.group is None else k.CollectiveAlone if instr.is_alone else k.CollectiveAsync
    if lanes == threads:
        return kind(instr.name, loops, tuple(held), span=stmt.span)
    if lanes % WARP:
        told = f"`{instr.name}` is done by {lanes} lanes, and other loops have {threads} threads in the same block"
        raise limitation("E0541", stmt.span, told, help="a `fully par` of whole warps has all lanes of each")
    return kind(instr.name, loops, tuple(held), lanes, span=stmt.span)


def alone(stmt: ir.Instruction, instr: Instr, given: Sequence[Load | Ref]) -> k.Alone:
    """The use of an instruction by a core of a CPU, on rows of memory. `given`: their first elements."""
    loops = tuple(inner.sym for inner in ir.walk(stmt.body) if isinstance(inner, ir.Seq))
    held: list[Held] = []
    for operand, first in zip(instr.operands, given, strict=True):
        if isinstance(first, Ref):
            raise CompilerBug(f"`{operand.name}` of {instr.name} is a variable, and no row")
        held.append(Held(first, operand.fragment.registers, operand.access))
    return k.Alone(instr.name, loops, tuple(held), span=stmt.span)


def _described(held: Held, group: Sym | None, number: Expr) -> Held:
    """A matrix of the running thread's `group`, which has a `number`."""
    if group is None:
        return held
    index = tuple(e.substitute({group: number}) for e in held.first.index)
    return replace(held, first=replace(held.first, index=index))


def by_first_warps(op: k.Stmt, thread: Expr) -> k.Stmt:
    """The operation under a guard, if only the first warps of a block execute it."""
    if not isinstance(op, k.Collective) or not op.threads:
        return op
    some = Op("lt", (Index(thread // WARP, I32), Index(expr(op.threads // WARP), I32)), BOOL)
    return k.If(some, (op,), span=op.span)


def _said(stmt: ir.Instruction, instr: Instr, operand: Operand, lanes: int, thread: Expr) -> Load:
    """The element at the address of a lane: the first of those that the body uses and the fragment assigns to the lane."""
    lane = thread if lanes == instr.lanes else thread % instr.lanes
    loops = [inner.sym for inner in ir.walk(stmt.body) if isinstance(inner, ir.Seq)]
    values: dict[Sym, Expr] = {loops.pop(0): thread // instr.lanes} if lanes > instr.lanes else {}
    own = dict(zip((turn.sym for turn in instr.loops), loops[-len(instr.loops) :], strict=True))
    binds = (inner for inner in ir.walk(stmt.body) if isinstance(inner, ir.Bind))
    used = (
        (meant, load)
        for give, bind in zip(instr.gives, binds, strict=True)
        for meant, load in (
            *zip(loads_of(give), (node for node in walk(bind.values[0]) if isinstance(node, Load)), strict=True),
            (give.target, bind.targets[0]),
        )
    )
    meant, load = next(pair for pair in used if pair[0].buffer is operand.memory)
    for e, at in zip(meant.index, operand.fragment.element(lane, ZERO), strict=True):
        sym = e.as_sym
        if sym is None:
            told = (
                f"`{instr.name}` uses `{operand.name}`, whose addresses lanes give, at places that are no loops of its meaning"
            )
            raise limitation("E0541", stmt.span, told)
        values[own[sym]] = at
    return replace(load, index=tuple(e.substitute(values) for e in load.index))


def _addressed(stmt: ir.Instruction, operand: Operand, load: Load, place: Place | None) -> Held:
    """The address operand of a lane. Raises Limitation E0541 if it is not in shared memory."""
    if place is None or place.space is not k.Space.SHARED:
        told = f"lanes give addresses of `{load.buffer.name}` in shared memory to `{stmt.name}`, and it is not there"
        help = "a `new` that threads of a block share is in shared memory, and so is what a schedule stages there"
        raise limitation("E0541", load.span, told, help=help)
    return Held(Load(place.buffer, place.index(load.index), span=load.span), operand.fragment.registers, operand.access)
