"""Statements of a program without annotations that kernels do not depend on, and the accesses of a step.

    par 64 |j| 'inner #bind(block.x) #unroll { t[j] = x[j] }    →    par 64 |j| #unroll { t[j] = x[j] }

Labels, pragmas of earlier passes and instance notes are removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from texpr.ir import program as ir
from texpr.ir.operation import Agent
from texpr.ir.program.marked import ATOMIC
from texpr.ir.program.marks import Alternate, Apart, Async, Multicast, Saves, Tensor, Unroll, Vector
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.uses import loads
from texpr.ir.steps import Proxy, Step, Touch
from texpr.ir.steps.work import Does, End, Half, Partial, Total
from texpr.ir.value import Buffer, Load, Value, walk
from texpr.support.diagnostic import limitation
from texpr.support.record import replace

MARKS = (Alternate, Apart, Unroll, Vector, Async, Tensor, Saves, Multicast)
"""The marks of a loop that lowering or a reader of the form uses."""


def plain(body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
    """The statements `body`, without annotations. Raises Limitation E0541 for an instruction without fragments."""
    return tuple(map(_stmt, body))


def head(loop: ir.Par | ir.Seq) -> ir.Par | ir.Seq:
    """A loop without its body."""
    return _loop(replace(loop, body=()))


def _stmt(stmt: ir.Stmt) -> ir.Stmt:
    made = with_blocks(stmt, tuple(map(plain, ir.blocks(stmt))))
    match made:
        case ir.Par() | ir.Seq():
            return _loop(made)
        case ir.New():
            return replace(made, space=None)
        case ir.Let() | ir.Bind():
            return replace(made, instance=())
        case ir.Instruction() if made.signal is not None or made.instr is not None:
            return made
        case ir.Instruction():
            told = f"`{made.name}` has no fragments, so nothing says which lane holds what, and that is not lowered yet"
            raise limitation(
                "E0541", stmt.span, told, help="a `fragment` of each operand gives lane and register of its elements"
            )
        case ir.If() | ir.Anchor():
            return made


def _pragma(found: ir.Directive) -> ir.Directive:
    return ir.Directive(found.name, tuple(ir.Argument(each.value) for each in found.args))


def _loop(loop: ir.Par | ir.Seq) -> ir.Par | ir.Seq:
    kept = (d for d in loop.directives if isinstance(d, MARKS) or d.name == ATOMIC)
    pragmas = tuple(_pragma(d) if isinstance(d, ir.Directive) else d for d in kept)
    made = replace(loop, label=None, directives=pragmas)
    return replace(made, fully=False) if isinstance(made, ir.Par) else made


def touches(step: Step) -> tuple[tuple[Touch, ...], tuple[Touch, ...]]:
    """The buffers that a step reads and those that it writes, in textual order, without locals of its own statements.

    A partial step of a reduction reads; its total updates the accumulators.
    """
    proxy = Proxy.ASYNC if step.agent is Agent.ENGINE else Proxy.GENERIC
    read, written = list[Buffer](), list[Buffer]()
    match step.work:
        case Total(accumulators):
            written += (t.buffer for a in accumulators for t in a.targets)
            read += written
        case Half() as half if not isinstance(half, Partial):
            pass
        case Does() | End() if not step.stmts:
            pass
        case work:
            met = {t.buffer for a in work.accumulators for t in a.targets} if isinstance(work, Partial) else set[Buffer]()
            own = {s.buffer for s in ir.walk(step.stmts) if isinstance(s, ir.New)}
            read += (b for b in _read(step.stmts) if b not in own and b not in met)
            written += (b for b in _written(step.stmts) if b not in own and b not in met)
    return tuple(_touch(read, proxy)), tuple(_touch(written, proxy))


def _touch(buffers: Iterable[Buffer], proxy: Proxy) -> Iterator[Touch]:
    yield from (Touch(buffer, proxy) for buffer in dict.fromkeys(buffers))


def _read(body: tuple[ir.Stmt, ...]) -> Iterator[Buffer]:
    for stmt in ir.walk(body):
        if not isinstance(stmt, ir.Bind):
            yield from (load.buffer for load in loads(stmt))
            continue
        places = (meaning for target in stmt.targets for _, meaning in target.data)
        yield from (load.buffer for value in (*ir.values(stmt), *places) for load in _loads(value))


def _written(body: tuple[ir.Stmt, ...]) -> Iterator[Buffer]:
    yield from (target.buffer for stmt in ir.walk(body) if isinstance(stmt, ir.Bind) for target in stmt.targets)


def _loads(value: Value) -> Iterator[Load]:
    yield from (node for node in walk(value) if isinstance(node, Load))
