"""Rewriting of programs and values: substitution of symbols, of loads and references, of sizes by numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import is_

from texpr.affine.expr import Expr, IntoExpr, Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.support.record import Record, replace

Symbols = Mapping[Sym, IntoExpr]


def map_value(value: Value, leaf: Callable[[Value], Value | None]) -> Value:
    """`value` with every node for which `leaf` gives a value replaced by it (outermost first; not visited again)."""
    found = leaf(value)
    if found is not None:
        return found
    match value:
        case Literal() | Index() | Ref():
            return value
        case Load(data=data):
            if not data:
                return value
            return replace(value, data=tuple((sym, map_value(meaning, leaf)) for sym, meaning in data))
        case Op(args=args):
            mapped = tuple([map_value(arg, leaf) for arg in args])
            same = all(map(is_, args, mapped))
            return value if same else Op(value.name, mapped, value.dtype, value.span)
        case Cast(arg, dtype):
            mapped_arg = map_value(arg, leaf)
            return value if mapped_arg is arg else Cast(mapped_arg, dtype)


def substitute_value(value: Value, symbols: Symbols) -> Value:
    """`value` with index symbols replaced in every index expression. References to `let`s keep their names."""

    def leaf(node: Value) -> Value | None:
        match node:
            case Index(expr, dtype, span):
                return Index(expr.substitute(symbols), dtype, span)
            case Load():
                return substitute_load(node, symbols)
            case _:
                return None

    return map_value(value, leaf) if symbols else value


def substitute_load(load: Load, symbols: Symbols) -> Load:
    """A load with index symbols replaced, those of its data included."""
    index = tuple([e.substitute(symbols) for e in load.index])
    if not load.data and index == load.index:
        return load
    return replace(load, index=index, data=tuple((sym, substitute_value(meaning, symbols)) for sym, meaning in load.data))


class Rewriter(Record):
    """A rewrite of statements by functions on index expressions, values, targets and buffers. All statements are new
    objects."""

    index: Callable[[Expr], Expr] = lambda e: e
    value: Callable[[Value], Value] = lambda v: v
    target: Callable[[Load], Load] = lambda t: t
    buffer: Callable[[Buffer], Buffer] = lambda b: b

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """The statements of `body`, rewritten."""
        return tuple(self.stmt(stmt) for stmt in body)

    def stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        """`stmt` with its nested statements, rewritten."""
        match stmt:
            case ir.Par() | ir.Seq():
                reduce = tuple(dict.fromkeys(self.buffer(b) for b in stmt.reduce))
                made = replace(stmt, extent=self.index(stmt.extent), body=self.block(stmt.body), reduce=reduce)
                return (
                    replace(made, scan=tuple(map(self.buffer, made.scan))) if isinstance(made, ir.Seq) and made.scan else made
                )
            case ir.New():
                return replace(stmt, buffer=self.buffer(stmt.buffer))
            case ir.Let():
                return replace(stmt, value=self.value(stmt.value), instance=tuple(map(self.index, stmt.instance)))
            case ir.Anchor():
                return replace(stmt, value=self.value(stmt.value))
            case ir.Bind():
                targets, instance = tuple(map(self.target, stmt.targets)), tuple(map(self.index, stmt.instance))
                return replace(stmt, targets=targets, values=tuple(map(self.value, stmt.values)), instance=instance)
            case ir.If():
                condition = self.value(stmt.condition)
                return replace(stmt, condition=condition, then=self.block(stmt.then), orelse=self.block(stmt.orelse))
            case ir.Instruction():
                operands = tuple(self.target(t) for t in stmt.operands)
                made = replace(stmt, body=self.block(stmt.body), operands=operands)
                if stmt.signal is None or stmt.signal.phase is None:
                    return made
                return replace(made, signal=ir.Signal(self.index(stmt.signal.phase)))


def substitute_block(body: tuple[ir.Stmt, ...], symbols: Symbols) -> tuple[ir.Stmt, ...]:
    """`body` with index symbols replaced everywhere."""
    return Rewriter(
        index=lambda e: e.substitute(symbols),
        value=lambda v: substitute_value(v, symbols),
        target=lambda t: substitute_load(t, symbols),
    ).block(body)


def replace_loads(value: Value, change: Callable[[Load], Value | None]) -> Value:
    """`value` with each load for which `change` gives a value replaced, those inside other loads' indices included."""

    def leaf(node: Value) -> Value | None:
        if not isinstance(node, Load):
            return None
        data = tuple((sym, replace_loads(meaning, change)) for sym, meaning in node.data)
        if any(new is not old for (_, new), (_, old) in zip(data, node.data, strict=True)):
            node = replace(node, data=data)
        changed = change(node)
        return node if changed is None else changed

    return map_value(value, leaf)


def over(function: ir.Function, buffer: Callable[[Buffer], Buffer]) -> ir.Function:
    """`function` with what `buffer` gives in place of each buffer, schedules aside."""

    def load(old: Load) -> Load:
        return replace(old, buffer=buffer(old.buffer))

    def value(old: Value) -> Value:
        return replace_loads(old, load)

    def target(old: Load) -> Load:
        return replace(load(old), data=tuple((sym, value(meaning)) for sym, meaning in old.data))

    return replace(
        function,
        params=tuple(map(buffer, function.params)),
        results=tuple(map(buffer, function.results)),
        body=Rewriter(value=value, target=target, buffer=buffer).block(function.body),
        assumes=tuple(replace(each, buffer=buffer(each.buffer)) for each in function.assumes),
    )


def specialize(function: ir.Function, sizes: Mapping[Sym, int]) -> ir.Function:
    """`function` with some sizes (or consts) fixed to numbers; a fixed size is no longer a parameter.

    Its schedules use the sizes and are dropped; `specialize_schedule` fixes the sizes in one of them.
    """
    fixed: Symbols = {s: v for s, v in sizes.items() if s in function.sizes or s in dict(function.consts)}
    if not fixed:
        return function
    made: dict[Buffer, Buffer] = {}

    def buffer(old: Buffer) -> Buffer:
        if old not in made:
            strides = None if old.strides is None else tuple(e.substitute(fixed) for e in old.strides)
            made[old] = replace(old, shape=tuple(e.substitute(fixed) for e in old.shape), strides=strides)
        return made[old]

    def load(old: Load) -> Load:
        return replace(substitute_load(old, fixed), buffer=buffer(old.buffer))

    def value(old: Value) -> Value:
        moved = substitute_value(old, fixed)
        return replace_loads(moved, lambda found: replace(found, buffer=buffer(found.buffer)))

    def target(old: Load) -> Load:
        moved = load(old)
        return replace(moved, data=tuple((sym, value(meaning)) for sym, meaning in old.data))

    def assume(old: ir.Assume) -> ir.Assume:
        match old:
            case ir.InRange():
                lo, hi = old.lo.substitute(fixed), old.hi.substitute(fixed)
                return replace(old, buffer=buffer(old.buffer), lo=lo, hi=hi)
            case ir.Injective() | ir.Monotone():
                return replace(old, buffer=buffer(old.buffer))

    rewriter = Rewriter(index=lambda e: e.substitute(fixed), value=value, target=target, buffer=buffer)
    return replace(
        function,
        params=tuple(buffer(b) for b in function.params),
        body=rewriter.block(function.body),
        results=tuple(buffer(b) for b in function.results),
        sizes=tuple(s for s in function.sizes if s not in fixed),
        consts=tuple((s, default) for s, default in function.consts if s not in fixed),
        where=tuple(replace(c, left=c.left.substitute(fixed), right=c.right.substitute(fixed)) for c in function.where),
        assumes=tuple(assume(a) for a in function.assumes),
        schedules=(),
    )


def specialize_schedule(schedule: ir.Schedule, sizes: Mapping[Sym, int]) -> ir.Schedule:
    """`schedule` with some sizes (or consts) fixed to numbers. Raises ZeroDivisionError for a division by zero."""

    def arguments(args: tuple[ir.Argument, ...]) -> tuple[ir.Argument, ...]:
        return tuple(replace(a, value=value(a.value)) for a in args)

    def value(old: ir.ArgumentValue) -> ir.ArgumentValue:
        match old:
            case Expr():
                found = old.substitute(sizes)
                return found.constant if found.is_constant else found
            case ir.Group(args):
                return ir.Group(arguments(args))
            case str() | int() | float():
                return old

    return replace(schedule, directives=tuple(replace(d, args=arguments(d.args)) for d in schedule.directives))


def with_blocks(stmt: ir.Stmt, blocks: tuple[tuple[ir.Stmt, ...], ...]) -> ir.Stmt:
    """`stmt` with other nested statement lists; the same object if they are the same."""
    if all(_same(a, b) for a, b in zip(ir.blocks(stmt), blocks, strict=True)):
        return stmt
    match stmt:
        case ir.Par() | ir.Seq() | ir.Instruction():
            return replace(stmt, body=blocks[0])
        case ir.If():
            return replace(stmt, then=blocks[0], orelse=blocks[1])
        case _:
            raise AssertionError("a statement without blocks has none to replace")


def _same(one: tuple[ir.Stmt, ...], other: tuple[ir.Stmt, ...]) -> bool:
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
