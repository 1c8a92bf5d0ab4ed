"""Bugs put into the kernel form of a plan, one at a time, each with a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import ZERO, Expr, expr
from texpr.ir import kernel as k
from texpr.ir.program.rewrite import map_value
from texpr.ir.value import Index, Literal, Load, Op, Value
from texpr.support.record import Record, replace

Body = tuple[k.Stmt, ...]


class Mutant(Record, dict=True):
    """A plan with one bug."""

    name: str
    plan: k.Plan


def mutants(plan: k.Plan) -> Iterator[Mutant]:
    """Every bug of every kind, one by one."""
    for kernel in dict.fromkeys(k.kernels(plan.steps)):
        for name, made in _of_kernel(kernel):
            yield Mutant(f"{kernel.name}: {name}", replace(plan, steps=tuple(_steps(plan.steps, kernel, made))))


def _steps(steps: tuple[k.HostStep, ...], old: k.Kernel, new: k.Kernel) -> Iterator[k.HostStep]:
    for step in steps:
        if isinstance(step, k.Launch):
            yield k.Launch(new) if step.kernel is old else step
        else:
            yield replace(step, steps=tuple(_steps(step.steps, old, new)))


def _of_kernel(kernel: k.Kernel) -> Iterator[tuple[str, k.Kernel]]:
    for name, body in _of_body(kernel.body):
        yield name, replace(kernel, body=body)
    for at, axis in enumerate(kernel.axes):
        if axis.level in (k.Level.GRID, k.Level.CORE):
            axes = list(kernel.axes)
            axes[at] = replace(axis, extent=axis.extent - 1)
            yield f"one block less along {axis.sym}", replace(kernel, axes=tuple(axes))
    for at, array in enumerate(kernel.arrays):
        if array.barrier or not array.buffer.rank:
            continue
        arrays = list(kernel.arrays)
        shape = (*array.buffer.shape[:-1], array.buffer.shape[-1] - 1)
        if shape[-1].constant > 0:
            small = replace(array.buffer, shape=shape)
            arrays[at] = replace(array, buffer=small)
            body = tuple(_rebuffered(kernel.body, array.buffer, small))
            yield f"{array.buffer.name} one element too narrow", replace(kernel, arrays=tuple(arrays), body=body)


def _rebuffered(body: Body, old: object, new: object) -> Iterator[k.Stmt]:
    def load(node: Value) -> Value | None:
        if isinstance(node, Load) and node.buffer is old:
            return replace(node, buffer=new)  # type: ignore[arg-type]
        return None

    for stmt in body:
        yield _mapped(stmt, load)


def _mapped(stmt: k.Stmt, leaf: Callable[[Value], Value | None]) -> k.Stmt:
    match stmt:
        case k.For():
            return replace(stmt, body=tuple(_mapped(s, leaf) for s in stmt.body))
        case k.If():
            then, orelse = (tuple(_mapped(s, leaf) for s in b) for b in (stmt.then, stmt.orelse))
            return replace(stmt, condition=map_value(stmt.condition, leaf), then=then, orelse=orelse)
        case k.Declare() | k.Assign():
            return replace(stmt, value=map_value(stmt.value, leaf))
        case k.Store() | k.Atomic():
            return replace(stmt, target=map_value(stmt.target, leaf), value=map_value(stmt.value, leaf))
        case k.LoadVector() | k.Shuffle():
            return replace(stmt, source=map_value(stmt.source, leaf))
        case k.StoreVector():
            return replace(stmt, target=map_value(stmt.target, leaf), stored=tuple(map_value(v, leaf) for v in stmt.stored))
        case k.CopyAsync():
            return replace(stmt, target=map_value(stmt.target, leaf), source=map_value(stmt.source, leaf))
        case _:
            return stmt


def _of_body(body: Body) -> Iterator[tuple[str, Body]]:
    for at, stmt in enumerate(body):
        before, after = body[:at], body[at + 1 :]
        for name, made in _of_stmt(stmt):
            yield name, (*before, *made, *after)
        if isinstance(stmt, k.Barrier | k.WaitAsync) and after:
            yield f"{_word(stmt)} one statement later", (*before, after[0], stmt, *after[1:])
        if isinstance(stmt, k.Barrier | k.WaitAsync) and before:
            yield f"{_word(stmt)} one statement earlier", (*before[:-1], stmt, before[-1], *after)


def _word(stmt: k.Stmt) -> str:
    return type(stmt).__name__.lower()


def _of_exchange(stmt: k.Exchange) -> Iterator[tuple[str, Body]]:
    by = f"lanes exchanged by {stmt.mask}"
    if stmt.shift is not ZERO:
        yield f"{by} in each turn", (replace(stmt, shift=ZERO),)
    yield f"{by} / 2", (replace(stmt, mask=stmt.mask // 2 or 2),)
    yield f"{by} in halves of a warp", (replace(stmt, width=16),)
    yield f"{by} - 1", (replace(stmt, mask=stmt.mask - 1),)


def _of_stmt(stmt: k.Stmt) -> Iterator[tuple[str, Body]]:
    match stmt:
        case k.For():
            yield from ((name, (made,)) for name, made in _of_loop(stmt))
        case k.If():
            for name, body in _of_body(stmt.then):
                yield name, (replace(stmt, then=body),)
            for name, body in _of_body(stmt.orelse):
                yield name, (replace(stmt, orelse=body),)
            yield f"no guard {_short(stmt.condition)}", stmt.then
            for name, value in _of_value(stmt.condition):
                yield f"guard: {name}", (replace(stmt, condition=value),)
        case k.Declare() | k.Assign():
            for name, value in _of_value(stmt.value):
                yield f"{stmt.sym}: {name}", (replace(stmt, value=value),)
            if isinstance(stmt, k.Assign):
                yield f"no {stmt.sym} = …", ()
        case k.Store() | k.Atomic():
            yield f"no {stmt.target.buffer.name}[…] = …", ()
            for name, value in _of_value(stmt.value):
                yield f"{stmt.target.buffer.name}: {name}", (replace(stmt, value=value),)
            for name, value in _of_value(stmt.target):
                yield f"to {name}", (replace(stmt, target=value),)
        case k.Barrier():
            yield f"no barrier {stmt.level.value}", ()
            if stmt.level is k.Level.CLUSTER:
                yield "barrier of a block alone", (replace(stmt, level=k.Level.BLOCK),)
            if stmt.level is k.Level.BLOCK:
                yield "barrier of a warp alone", (replace(stmt, level=k.Level.WARP),)
        case k.Exchange():
            yield from _of_exchange(stmt)
        case k.Shuffle():
            yield f"{stmt.source.buffer.name} of the next lane", (replace(stmt, lane=stmt.lane + 1),)
            yield f"{stmt.source.buffer.name} of the lane before", (replace(stmt, lane=stmt.lane - 1),)
            yield f"{stmt.source.buffer.name} of lane 0", (replace(stmt, lane=expr(0)),)
            yield f"{stmt.source.buffer.name} of its own", (k.Declare(stmt.target, stmt.source.dtype, stmt.source),)
            for name, value in _of_value(stmt.source):
                yield f"of another slot, {name}", (replace(stmt, source=value),)
        case k.WaitAsync():
            yield "no wait", ()
            yield "a wait for one group less", (replace(stmt, pending=stmt.pending + 1),)
        case k.CommitAsync():
            yield "no commit", ()
        case k.CopyAsync():
            yield "no copy", ()
            yield "a copy of one element less", (replace(stmt, count=stmt.count - 1),) if stmt.count > 1 else ()
            for name, value in _of_value(stmt.source):
                yield f"copy: {name}", (replace(stmt, source=value),)
        case k.LoadVector():
            for name, value in _of_value(stmt.source):
                yield f"vector: {name}", (replace(stmt, source=value),)
            yield "lanes of a vector turned round", (replace(stmt, targets=stmt.targets[::-1]),)
        case k.StoreVector():
            yield "lanes of a vector turned round", (replace(stmt, stored=stmt.stored[::-1]),)
            for name, value in _of_value(stmt.target):
                yield f"to {name}", (replace(stmt, target=value),)
        case _:
            return


def _of_loop(loop: k.For) -> Iterator[tuple[str, k.For]]:
    for name, body in _of_body(loop.body):
        yield name, replace(loop, body=body)
    yield f"{loop.sym} from one more", replace(loop, lo=loop.lo + 1)
    yield f"{loop.sym} to one less", replace(loop, hi=loop.hi - 1)
    yield f"{loop.sym} to one more", replace(loop, hi=loop.hi + 1)
    yield f"{loop.sym} in double steps", replace(loop, step=loop.step * 2)


def _short(value: Value) -> str:
    from_op = f"{value.name}(…)" if isinstance(value, Op) else type(value).__name__
    return from_op


OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max", "lt": "le", "le": "lt",
         "ge": "gt", "gt": "ge", "eq": "ne", "and": "or", "exp": "exp2", "sqrt": "rsqrt"}  # fmt: skip


def _of_value(value: Value) -> Iterator[tuple[str, Value]]:
    """`value` with one thing in it changed."""
    match value:
        case Literal():
            yield f"{value.value} + 1", replace(value, value=value.value + 1 if abs(value.value) < 1e9 else 0)
        case Index():
            yield f"{value.expr} + 1", replace(value, expr=value.expr + 1)
            yield from ((f"{value.expr} as {e}", replace(value, expr=e)) for e in _other(value.expr))
        case Load():
            for at, index in enumerate(value.index):
                moved = (*value.index[:at], index + 1, *value.index[at + 1 :])
                yield f"{value.buffer.name}[…, {index} + 1]", replace(value, index=moved)
            if value.buffer.rank == 2 and value.index[0] is not value.index[1]:
                yield f"{value.buffer.name} transposed", replace(value, index=value.index[::-1])
        case Op():
            if value.name in OTHER:
                yield f"{OTHER[value.name]} for {value.name}", replace(value, name=OTHER[value.name])
            if value.name in ("sub", "div", "lt", "le", "gt", "ge") and len(value.args) == 2:
                yield f"operands of {value.name} swapped", replace(value, args=value.args[::-1])
            for at, arg in enumerate(value.args):
                for name, made in _of_value(arg):
                    yield name, replace(value, args=(*value.args[:at], made, *value.args[at + 1 :]))
        case _:
            return


def _other(value: Expr) -> Iterator[Expr]:
    """Quotients for remainders."""
    for sym in sorted(value.syms(), key=lambda s: s.name):
        for base in (16, 32):
            a, b = expr(sym) // base, expr(sym) % base
            if value is a:
                yield b
            if value is b:
                yield a
