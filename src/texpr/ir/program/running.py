"""Running values: what a `seq` updates in each iteration, and reads beside that.

    seq N |j| scan(total) { total += X[i, j]  Y[i, j] = total }

`total` is one element for all iterations, changed by updates of one operation alone, with values that do not depend on what the
loop writes. So what it has in an iteration is its value before the loop, combined with the terms of the iterations before.
Where the operation may be done in any order, as integers allow and `scan` says of others, these may be combined in parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.updates import EXACTLY_ONCE_FREE, SUMS
from texpr.ir.program.uses import bound, loads, symbols, touched, used, written
from texpr.ir.value import Buffer, Load, walk
from texpr.support.record import Record

Body = tuple[ir.Stmt, ...]


class Running(Record):
    """`target`: the element. `update`: how partial values of it are combined. `stmt`: its first update."""

    target: Load
    update: ir.Update
    stmt: ir.Bind


class Fault(Record):
    """Why a buffer has no running value in a loop: at `stmt`, and what would help."""

    reason: str
    stmt: ir.Stmt
    help: str


def running(loop: ir.Seq, buffer: Buffer) -> Running | Fault:
    """The running value of `buffer` in `loop`."""
    name, inside = buffer.name, tuple(ir.walk(loop.body))
    binds = [s for s in inside if isinstance(s, ir.Bind) and any(t.buffer is buffer for t in s.targets)]
    if any(isinstance(s, ir.New) and s.buffer is buffer for s in inside):
        return Fault(f"`{name}` is new in each iteration", loop, "declare it before the loop")
    if not binds:
        return Fault(f"this loop does not update `{name}`", loop, f"drop `{name}` from the clause")
    first = binds[0]
    for stmt in binds:
        if stmt.update is None or len(stmt.targets) > 1:
            how = "written" if stmt.update is None else "part of a tuple"
            return Fault(f"`{name}` is {how} here, and not updated alone", stmt, _UPDATED)
        if _combined(stmt.update) != _combined(first.update):
            return Fault(f"`{name}` is updated in another way before", stmt, "all updates must be of one operation")
    return _fault(loop, buffer, binds) or Running(first.targets[0], _combined(first.update), first)


_UPDATED = "a running value is changed by `+=`, `*=`, `max=`, `min=` or a combiner: each iteration adds a term to it"


def _combined(update: ir.Update | None) -> ir.Update:
    """How partial values of updates are combined: what was subtracted is added up."""
    assert update is not None
    return "add" if update in SUMS else update


def _fault(loop: ir.Seq, buffer: Buffer, binds: list[ir.Bind]) -> Fault | None:
    """What keeps the one element from being updated with terms that do not depend on the loop."""
    name, own = buffer.name, frozenset((loop.sym, *bound(loop.body)))
    element = binds[0].targets[0].index
    for stmt in ir.walk(loop.body):
        if isinstance(stmt, ir.Instruction | ir.Anchor) or (isinstance(stmt, ir.Par) and stmt.fully):
            return Fault("what lanes do together stays in its place", stmt, "do it in a loop of its own")
        for load in (load for load in loads(stmt) if load.buffer is buffer):
            if load.data or load.index != element or used(load) & own:
                help = "a running value is one element: keep it in a `new`, and store it where each iteration has its own"
                return Fault(f"`{name}` is another element in other iterations", stmt, help)
    made = written(loop.body)
    for stmt in ir.walk(terms(loop.body, frozenset((buffer,)))):
        values = stmt.values if isinstance(stmt, ir.Bind) else ir.values(stmt)
        read = [node for value in values for node in walk(value) if isinstance(node, Load) and node.buffer in made]
        if read:
            help = "the terms must be there before the loop: compute them in a loop of their own"
            return Fault(f"what is added to `{name}` depends on `{read[0].buffer.name}`, which the loop writes", stmt, help)
    return None


def terms(body: Body, buffers: frozenset[Buffer]) -> Body:
    """`body` without all that does not update `buffers`, or name what these updates need."""
    needed: frozenset[Sym] = frozenset()
    while True:
        found = tuple(_kept(body, buffers, needed))
        more = symbols(found)
        if more <= needed:
            return found
        needed |= more


def _kept(body: Body, buffers: frozenset[Buffer], needed: frozenset[Sym]) -> Iterator[ir.Stmt]:
    for stmt in body:
        match stmt:
            case ir.Bind():
                if any(target.buffer in buffers for target in stmt.targets):
                    yield stmt
            case ir.Let():
                if stmt.sym in needed:
                    yield stmt
            case ir.New() | ir.Anchor() | ir.Instruction():
                pass
            case _:
                made = with_blocks(stmt, tuple(tuple(_kept(block, buffers, needed)) for block in ir.blocks(stmt)))
                if any(ir.blocks(made)):
                    yield made


def is_free(loop: ir.Seq, found: Running) -> bool:
    """Whether the terms of a running value may be combined in any order: the text says so, or it cannot be seen."""
    if found.target.buffer in loop.scan or not isinstance(found.update, str):
        return found.target.buffer in loop.scan
    return found.update in EXACTLY_ONCE_FREE or not found.target.dtype.is_float


def runnings(loop: ir.Seq) -> tuple[Running, ...]:
    """The running values of `loop` whose terms may be combined in any order, in the order of the text."""
    outside = {target.buffer: None for s in ir.walk(loop.body) if isinstance(s, ir.Bind) for target in s.targets}
    found = (running(loop, buffer) for buffer in outside)
    return tuple(each for each in found if isinstance(each, Running) and is_free(loop, each))


def is_read(loop: ir.Seq, found: Running) -> bool:
    """Whether an iteration does more with a running value than to add its term: or else it is a sum."""
    mine = found.target.buffer
    own = (s for s in ir.walk(loop.body) if not (isinstance(s, ir.Bind) and any(t.buffer is mine for t in s.targets)))
    return any(load.buffer is mine for stmt in own for load in loads(stmt))


def is_dead(body: Body, loop: ir.Loop, buffer: Buffer) -> bool:
    """Whether nothing reads a local after `loop`: it is declared in the list of statements in which the loop is, and later ones
    in that do not touch it."""
    for stmts in _lists(body):
        if any(stmt is loop for stmt in stmts):
            at = next(n for n, stmt in enumerate(stmts) if stmt is loop)
            declared = any(isinstance(s, ir.New) and s.buffer is buffer for s in stmts[:at])
            return declared and buffer.role == "local" and buffer not in touched(stmts[at + 1 :])
    return False


def _lists(body: Body) -> Iterator[Body]:
    yield body
    for stmt in ir.walk(body):
        yield from ir.blocks(stmt)
