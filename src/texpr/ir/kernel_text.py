"""The kernel form as text. `texpr.ir.kernel_parse` reads it back to an equal form.

    plan    = "plan" NAME {plan clause} "{" {step} "}" {kernel}
    plan clause = "param" buffer | "result" (buffer | NAME) | "workspace" buffer | "size" NAME, … | "fix" NAME "=" INT
            | "require" fact | "assume" NAME "in" index ".." index | "assume" "injective" "(" NAME ")"
    step    = "launch" NAME | "loop" NAME "<" index "{" {step} "}" | "if" fact {"and" fact} "{" {step} "}"
    fact    = index COMPARISON index

    kernel  = "kernel" NAME {clause} "{" {stmt} "}"
    clause  = "buffer" buffer | "scalar" buffer | "size" NAME, … | "writes" NAME, … | "blocks" INT
            | "axis" LEVEL ["." DIM] NAME "<" index ["base" NAME] | "array" SPACE buffer [STRING]
    buffer  = NAME ":" TYPE "[" [index, …] "]" ["strides" "[" [index, …] "]"] ["align" INT] ["role" ROLE]

    stmt    = "for" NAME "in" index ".." index ["by" index] [KIND [INT]] ["reduce" "(" NAME OP, … ")"] ["uniform"] block
            | "if" value ["uniform"] block ["else" block]
            | "let" NAME ":" TYPE "=" value | NAME "=" value | element "=" value
            | "atomic" element OP "=" value ["at" LEVEL]
            | "barrier" LEVEL ["lanes" INT] ["covers" KIND (NAME | STRING) ["carried" NAME], …]
            | "exchange" NAME "=" ref "^" INT ["width" INT]
            | "vector" NAME, … "=" element | "vector" element "=" value, …
            | "copy" element "=" element ["when" value] "count" INT
            | "commit" | "wait" INT ["covers" …]
    block   = "{" {stmt} "}"

    value   = NUMBER ":" TYPE | TYPE "(" index ")" | ref | element | "(" value INFIX value ")" | "(" value "as" TYPE ")"
            | OP [":" TYPE] "(" value, … ")"
    ref     = NAME [":" TYPE]                         its type where that is not the one declared last
    element = NAME "[" [index, …] {";" NAME "=" value} "]"    after ";", what data-dependent symbols of the indices mean
    index   = an index expression of the language, in which "xor" "(" index "," index "," INT ")" may stand too

A ROLE is left out where it is the usual one, a type of an OP where it is the natural one. `--` starts a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isinf, isnan
from typing import TypeAlias, assert_never

from texpr.affine.expr import ONE, Expr, Sym
from texpr.ir import kernel as k
from texpr.ir.ops import OPS
from texpr.ir.program import Compare, InRange
from texpr.ir.scanner import is_name
from texpr.ir.types import DType
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.support.span import NOWHERE, Span

INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==",
    "ne": "!=", "and": "and", "or": "or",
}  # fmt: skip
"""Operations that are written between their operands."""

USUAL_ROLE = {
    "param": "input",
    "result": "result",
    "workspace": "local",
    "buffer": "input",
    "scalar": "input",
    "array": "local",
}
"""The role of a buffer that goes without saying, by the clause it stands in."""

Types: TypeAlias = dict[Sym, DType]
"""The types of the variables declared so far, in the order of the text."""


def plan_text(plan: k.Plan) -> str:
    """A whole plan: its clauses, its steps, and each of its kernels once."""
    parts = ["\n".join(_plan_lines(plan))]
    parts.extend(kernel_text(kernel) for kernel in dict.fromkeys(k.kernels(plan.steps)))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def kernel_text(kernel: k.Kernel) -> str:
    """One kernel."""
    return "\n".join(_kernel_lines(kernel)) + "\n"


def stmt_text(stmt: k.Stmt) -> str:
    """One statement, those below it included."""
    return "\n".join(_stmt_lines(stmt, {}, ""))


def _plan_lines(plan: k.Plan) -> Iterator[str]:
    yield f"plan {plan.name}"
    yield from (f"    param {_buffer(b, 'param')}" for b in plan.params)
    yield from (f"    result {b.name if b in plan.params else _buffer(b, 'result')}" for b in plan.results)
    yield from _names("size", plan.sizes)
    yield from (f"    fix {sym} = {value}" for sym, value in plan.fixed)
    yield from (f"    workspace {_buffer(b, 'workspace')}" for b in plan.workspace)
    yield from (f"    require {_fact(fact)}" for fact in plan.requires)
    for assume in plan.assumes:
        name = assume.buffer.name
        said = f"{name} in {assume.lo}..{assume.hi}" if isinstance(assume, InRange) else f"injective({name})"
        yield f"    assume {said}"
    yield "{"
    yield from _step_lines(plan.steps, "    ")
    yield "}"


def _step_lines(steps: tuple[k.HostStep, ...], pad: str) -> Iterator[str]:
    for step in steps:
        match step:
            case k.Launch():
                yield f"{pad}launch {step.kernel.name}"
                continue
            case k.HostLoop():
                yield f"{pad}loop {step.sym} < {step.extent} {{"
            case k.HostIf():
                yield f"{pad}if {' and '.join(map(_fact, step.conditions))} {{"
            case _:
                assert_never(step)
        yield from _step_lines(step.steps, pad + "    ")
        yield pad + "}"


def _fact(fact: Compare) -> str:
    return f"{fact.left} {fact.op} {fact.right}"


def _kernel_lines(kernel: k.Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name}{_line(kernel.span)}"
    yield from (f"    buffer {_buffer(b, 'buffer')}" for b in kernel.buffers)
    yield from (f"    scalar {_buffer(b, 'scalar')}" for b in kernel.scalars)
    yield from _names("size", kernel.sizes)
    yield from _names("writes", sorted(kernel.written))
    if kernel.min_blocks:
        yield f"    blocks {kernel.min_blocks}"
    for axis in kernel.axes:
        base = "" if axis.base is None else f" base {axis.base}"
        yield f"    axis {_level(axis)} {axis.sym} < {axis.extent}{base}"
    for array in kernel.arrays:
        reason = f" {json.dumps(array.reason)}" if array.reason else ""
        yield f"    array {array.space.value} {_buffer(array.buffer, 'array')}{reason}"
    yield "{"
    yield from _block_lines(kernel.body, {}, "    ")
    yield "}"


def _names(clause: str, names: tuple[Sym, ...] | list[str]) -> Iterator[str]:
    if names:
        yield f"    {clause} {', '.join(map(str, names))}"


def _level(axis: k.Axis) -> str:
    named = axis.level in (k.Level.GRID, k.Level.BLOCK) or axis.dim != "x"
    return f"{axis.level.value}.{axis.dim}" if named else axis.level.value


def _buffer(buffer: Buffer, clause: str) -> str:
    strides = "" if buffer.strides is None else f" strides {_list(buffer.strides)}"
    align = "" if buffer.align is None else f" align {buffer.align}"
    role = "" if buffer.role == USUAL_ROLE[clause] else f" role {buffer.role}"
    return f"{buffer.name}: {buffer.dtype}{_list(buffer.shape)}{strides}{align}{role}"


def _list(values: tuple[Expr, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _block_lines(body: tuple[k.Stmt, ...], types: Types, pad: str) -> Iterator[str]:
    for stmt in body:
        yield from _stmt_lines(stmt, types, pad)


def _stmt_lines(stmt: k.Stmt, types: Types, pad: str) -> Iterator[str]:
    match stmt:
        case k.For():
            yield f"{pad}{_for_head(stmt)} {{{_line(stmt.span)}"
            yield from _block_lines(stmt.body, types, pad + "    ")
            yield pad + "}"
        case k.If():
            uniform = " uniform" if stmt.uniform else ""
            yield f"{pad}if {value_text(stmt.condition, types)}{uniform} {{{_line(stmt.span)}"
            yield from _block_lines(stmt.then, types, pad + "    ")
            if stmt.orelse:
                yield pad + "} else {"
                yield from _block_lines(stmt.orelse, types, pad + "    ")
            yield pad + "}"
        case _:
            yield f"{pad}{_simple(stmt, types)}{_line(stmt.span)}"


def _for_head(loop: k.For) -> str:
    step = "" if loop.step is ONE else f" by {loop.step}"
    kind = "" if loop.kind == "serial" else f" {loop.kind}"
    factor = f" {loop.factor}" if loop.factor else ""
    reductions = ", ".join(f"{sym} {op}" for sym, op in loop.reductions)
    reduce = f" reduce({reductions})" if reductions else ""
    uniform = " uniform" if loop.uniform else ""
    return f"for {loop.sym} in {loop.lo}..{loop.hi}{step}{kind}{factor}{reduce}{uniform}"


def _simple(stmt: k.Leaf, types: Types) -> str:
    match stmt:
        case k.Declare():
            text = f"let {stmt.sym}: {stmt.dtype} = {value_text(stmt.value, types)}"
            types[stmt.sym] = stmt.dtype
            return text
        case k.Assign():
            return f"{stmt.sym} = {value_text(stmt.value, types)}"
        case k.Store():
            return f"{value_text(stmt.target, types)} = {value_text(stmt.value, types)}"
        case k.Atomic():
            scope = "" if stmt.scope is k.Level.GRID else f" at {stmt.scope.value}"
            return f"atomic {value_text(stmt.target, types)} {stmt.op}= {value_text(stmt.value, types)}{scope}"
        case k.Barrier():
            lanes = "" if stmt.lanes == 32 else f" lanes {stmt.lanes}"
            return f"barrier {stmt.level.value}{lanes}{_covers(stmt.covers)}"
        case k.Exchange():
            width = "" if stmt.width == 32 else f" width {stmt.width}"
            text = f"exchange {stmt.target} = {value_text(stmt.source, types)} ^ {stmt.mask}{width}"
            types[stmt.target] = stmt.source.dtype
            return text
        case k.LoadVector() | k.StoreVector() | k.CopyAsync():
            return _transfer(stmt, types)
        case k.CommitAsync():
            return "commit"
        case k.WaitAsync():
            return f"wait {stmt.pending}{_covers(stmt.covers)}"
        case _:
            assert_never(stmt)


def _transfer(stmt: k.LoadVector | k.StoreVector | k.CopyAsync, types: Types) -> str:
    """What moves several elements at once."""
    match stmt:
        case k.LoadVector():
            text = f"vector {', '.join(map(str, stmt.targets))} = {value_text(stmt.source, types)}"
            types.update(dict.fromkeys(stmt.targets, stmt.source.dtype))
            return text
        case k.StoreVector():
            given = ", ".join(value_text(value, types) for value in stmt.values)
            return f"vector {value_text(stmt.target, types)} = {given}"
        case k.CopyAsync():
            when = "" if stmt.when is None else f" when {value_text(stmt.when, types)}"
            return f"copy {value_text(stmt.target, types)} = {value_text(stmt.source, types)}{when} count {stmt.count}"
        case _:
            assert_never(stmt)


def _covers(covers: tuple[k.Covered, ...]) -> str:
    return f" covers {', '.join(map(_covered, covers))}" if covers else ""


def _covered(covered: k.Covered) -> str:
    carried = "" if covered.carried is None else f" carried {covered.carried}"
    name = covered.buffer if is_name(covered.buffer) else json.dumps(covered.buffer)
    return f"{covered.kind} {name}{carried}"


def value_text(value: Value, types: Types) -> str:
    """A value. A `Ref` of another type than its variable's says so."""
    match value:
        case Literal():
            return f"{_number(value.value)}:{value.dtype}"
        case Index():
            return f"{value.dtype}({value.expr})"
        case Ref():
            return f"{value.sym}" if types.get(value.sym) == value.dtype else f"{value.sym}:{value.dtype}"
        case Load():
            data = "".join(f"; {sym} = {value_text(meaning, types)}" for sym, meaning in value.data)
            return f"{value.buffer.name}[{', '.join(map(str, value.index))}{data}]"
        case Cast():
            return f"({value_text(value.arg, types)} as {value.dtype})"
        case Op():
            return _op(value, types)
        case _:
            assert_never(value)


def _op(value: Op, types: Types) -> str:
    args = [value_text(arg, types) for arg in value.args]
    natural = value.name in OPS and value.dtype == OPS[value.name].result([arg.dtype for arg in value.args])
    if natural and value.name in INFIX:
        return f"({args[0]} {INFIX[value.name]} {args[1]})"
    return f"{value.name}{'' if natural else f':{value.dtype}'}({', '.join(args)})"


def _number(value: int | float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if isnan(value):
        return "+nan"
    if isinf(value):
        return "+inf" if value > 0 else "-inf"
    return float.__repr__(value)


def _line(span: Span) -> str:
    """Where it comes from, as a comment."""
    return "" if span.source is NOWHERE.source else f"  -- line {span.line}"
