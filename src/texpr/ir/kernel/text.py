"""The kernel form as text. `texpr.ir.kernel.parse` reads it back to an equal form.

    plan    = "plan" NAME {plan clause} "{" {step} "}" {kernel}
    plan clause = "param" buffer | "result" (buffer | NAME) | "workspace" buffer | "size" NAME, … | "fix" NAME "=" INT
            | "require" fact | "assume" NAME "in" index ".." index | "assume" ("injective" | "monotone") "(" NAME ")"
    step    = "launch" NAME ["dependent"] | "loop" NAME "<" index ["together" NAME "in" NAME] "{" {step} "}"
            | "if" fact {"and" fact} "{" {step} "}"
    fact    = index COMPARISON index

    kernel  = "kernel" NAME {clause} "{" {stmt} "}"
    clause  = "buffer" buffer | "scalar" buffer | "size" NAME, … | "writes" NAME, … | "blocks" INT | "warp" INT
            | "axis" LEVEL ["." DIM] NAME "<" index ["base" NAME]
            | "array" SPACE buffer ["at" INT] ["from" INT] ["barriers"] ["halved" INT] [STRING]
            | "map" NAME "of" (buffer | NAME) ["from" index] "sizes" "[" [index, …] "]" "strides" "[" [index, …] "]"
              "box" "[" [INT, …] "]" "steps" "[" [INT, …] "]" ["lower" "[" INT, … "]" "upper" "[" INT, … "]"]
              ["swizzle" INT] ["interleave" INT] ["fill" NAME] ["as" NAME]
            | "instr" NAME …                          texpr.ir.instr.text has the rest of it
    buffer  = NAME ":" TYPE "[" [index, …] "]" ["strides" "[" [index, …] "]"] ["align" INT] ["role" ROLE]

    stmt    = "for" NAME "in" index ".." index ["by" index] [KIND [INT]] ["reduce" "(" NAME OP, … ")"] ["apart" INT INT]
              ["uniform"] block
            | "if" value ["uniform"] ["role" NAME INT INT ["registers" INT]] block ["else" block]
            | "let" NAME ":" TYPE "=" value | NAME "=" value | element "=" value
            | "atomic" element OP "=" value ["at" LEVEL]
            | "barrier" LEVEL ["lanes" INT] ["part" INT] ["covers" covered, …]
            | "exchange" NAME "=" ref "^" INT ["shift" index] ["width" INT] | "shuffle" NAME "=" element "lane" index
            | "vector" NAME, … "=" element | "vector" element "=" value, …
            | "copy" element "=" element ["when" value] "count" INT
            | "commit" | "wait" INT ["covers" …]
            | "tensor" "load" element "=" NAME "[" [index, …] "]" ["offsets" "[" index, … "]"] ["rows" value, …]
              "arrives" element ["to" "[" INT, … "]" "from" index]
            | "tensor" ("store" | "reduce" OP) NAME "[" [index, …] "]" ["rows" value, …] "=" element
            | "bulk" ["reduce" OP] element "=" element "count" INT ["exactly" index] ["arrives" element]
            | "commit_bulk" | "wait_bulk" INT ["read"] ["covers" …]
            | "mbarrier" ("init" element "count" INT | "expect" element "bytes" INT ["exactly" index] | "arrive" element
              | "release" element ["covers" …])
            | "mbarrier" "wait" element "parity" index ["covers" …] | "fence" KIND | "prefetch" NAME
            | "await" "launches" ["of" NAME, …] | "admit" "launch"
            | "instr" NAME "[" [NAME, …] "]" element INT ("read" | "write" | "update"), …
    block   = "{" {stmt} "}"
    covered = KIND (NAME | STRING) ["from" INT] ["to" INT] ["carried" NAME]       INT: lines of what was written

    value   = NUMBER ":" TYPE | TYPE "(" index ")" | ref | element | "(" value INFIX value ")" | "(" value "as" TYPE ")"
            | OP [":" TYPE] "(" value, … ")"
    ref     = NAME [":" TYPE]                         its type where that is not the one declared last
    element = NAME "[" [index, …] {";" NAME "=" value} "]"    after ";", what data-dependent symbols of the indices mean
    index   = an index expression of the language, in which "xor" "(" index "," index "," INT ")" is allowed, too

A ROLE is left out where it is the default, a type of an OP where it is the natural one. `--` starts a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import assert_never

from texpr.affine.expr import ONE, ZERO, Sym
from texpr.ir import kernel as k
from texpr.ir.instr.text import instr_lines
from texpr.ir.kernel.operation_text import operation_text
from texpr.ir.kernel.shared import USUAL_ALIGNMENT
from texpr.ir.program import Compare
from texpr.ir.program.promises import assume_text
from texpr.ir.value import Buffer
from texpr.ir.value.text import Types, list_text, value_text
from texpr.isa.levels import WARP
from texpr.support.span import NOWHERE, Span

USUAL_ROLE = {
    "param": "input",
    "result": "result",
    "workspace": "local",
    "buffer": "input",
    "scalar": "input",
    "array": "local",
    "map": "input",
}
"""The default role of a buffer, by the clause that declares it."""


def plan_text(plan: k.Plan) -> str:
    """The text of a plan: its clauses, its steps, and each of its kernels once."""
    parts = ["\n".join(_plan_lines(plan))]
    parts.extend(kernel_text(kernel) for kernel in dict.fromkeys(k.kernels(plan.steps)))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def kernel_text(kernel: k.Kernel) -> str:
    """The text of one kernel."""
    return "\n".join(_kernel_lines(kernel)) + "\n"


def stmt_text(stmt: k.Stmt) -> str:
    """The text of one statement with its nested ones."""
    return "\n".join(_stmt_lines(stmt, {}, ""))


def _plan_lines(plan: k.Plan) -> Iterator[str]:
    yield f"plan {plan.name}"
    yield from (f"    param {buffer_text(b, 'param')}" for b in plan.params)
    yield from (f"    result {b.name if b in plan.params else buffer_text(b, 'result')}" for b in plan.results)
    yield from names_lines("size", plan.sizes)
    yield from (f"    fix {sym} = {value}" for sym, value in plan.fixed)
    yield from (f"    workspace {buffer_text(b, 'workspace')}" for b in plan.workspace)
    yield from (f"    require {fact_text(fact)}" for fact in plan.requires)
    yield from (f"    bound {fact_text(fact)}" for fact in plan.bounds)
    for assume in plan.assumes:
        yield f"    assume {assume_text(assume)}"
    yield "{"
    yield from _step_lines(plan.steps, "    ")
    yield "}"


def _step_lines(steps: tuple[k.HostStep, ...], pad: str) -> Iterator[str]:
    for step in steps:
        match step:
            case k.Launch():
                yield f"{pad}launch {step.kernel.name}{' dependent' if step.dependent else ''}"
                continue
            case k.HostLoop():
                together = "" if step.together is None else f" together {step.together.name} in {step.together.meeting.name}"
                yield f"{pad}loop {step.sym} < {step.extent}{together} {{"
            case k.HostIf():
                yield f"{pad}if {' and '.join(map(fact_text, step.conditions))} {{"
            case _:
                assert_never(step)
        yield from _step_lines(step.steps, pad + "    ")
        yield pad + "}"


def fact_text(fact: Compare) -> str:
    """The text of a fact about sizes."""
    return f"{fact.left} {fact.op} {fact.right}"


def _kernel_lines(kernel: k.Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name}{place_text(kernel.span)}"
    yield from (f"    buffer {buffer_text(b, 'buffer')}" for b in kernel.buffers)
    yield from (f"    scalar {buffer_text(b, 'scalar')}" for b in kernel.scalars)
    yield from names_lines("size", kernel.sizes)
    yield from names_lines("writes", sorted(kernel.written))
    if kernel.min_blocks:
        yield f"    blocks {kernel.min_blocks}"
    if kernel.warp != WARP:
        yield f"    warp {kernel.warp}"
    yield from machine_lines(kernel.axes, kernel.arrays, kernel.maps, kernel.buffers)
    for instr in kernel.instrs:
        yield from instr_lines(instr, "    ")
    yield "{"
    yield from block_lines(kernel.body, {}, "    ")
    yield "}"


def machine_lines(
    axes: tuple[k.Axis, ...], arrays: tuple[k.Array, ...], maps: tuple[k.TensorMap, ...], told: tuple[Buffer, ...]
) -> Iterator[str]:
    """The clauses for coordinates, arrays and maps. `told`: buffers that have clauses of their own."""
    for axis in axes:
        base = "" if axis.base is None else f" base {axis.base}"
        yield f"    axis {_level(axis)} {axis.sym} < {axis.extent}{base}"
    for array in arrays:
        yield f"    array {array.space.value} {_array(array)}"
    known = set(told)
    for map in maps:
        yield f"    map {map.name} of {map.buffer.name if map.buffer in known else buffer_text(map.buffer, 'map')}{_map(map)}"
        known.add(map.buffer)


def names_lines(clause: str, names: tuple[Sym, ...] | list[str]) -> Iterator[str]:
    """A clause that is a list of names; none if the list is empty."""
    if names:
        yield f"    {clause} {', '.join(map(str, names))}"


def _level(axis: k.Axis) -> str:
    named = axis.level in (k.Level.GRID, k.Level.BLOCK) or axis.dim != "x"
    return f"{axis.level.value}.{axis.dim}" if named else axis.level.value


def _array(array: k.Array) -> str:
    at = "" if array.align == USUAL_ALIGNMENT else f" at {array.align}"
    start = "" if array.at is None else f" from {array.at}"
    barriers = " barriers" if array.barrier else "" if array.halved is None else f" halved {array.halved}"
    reason = f" {json.dumps(array.reason)}" if array.reason else ""
    return f"{buffer_text(array.buffer, 'array')}{at}{start}{barriers}{reason}"


def _map(map: k.TensorMap) -> str:
    start = "" if map.offset is ZERO else f" from {map.offset}"
    tensor = f" sizes {list_text(map.sizes)} strides {list_text(map.strides)}"
    box = f" box {list_text(map.box)} steps {list_text(map.steps)}"
    if map.corners:
        lower, upper = zip(*map.corners, strict=True)
        box += f" lower {list_text(lower)} upper {list_text(upper)}"
    swizzle = f" swizzle {map.swizzle}" if map.swizzle else ""
    interleave = f" interleave {map.interleave}" if map.interleave else ""
    fill = "" if map.fill == "zero" else f" fill {map.fill}"
    kind = f" as {map.element}" if map.element else ""
    return f"{start}{tensor}{box}{swizzle}{interleave}{fill}{kind}"


def buffer_text(buffer: Buffer, clause: str) -> str:
    """The text of a buffer's declaration in a clause."""
    strides = "" if buffer.strides is None else f" strides {list_text(buffer.strides)}"
    align = "" if buffer.align is None else f" align {buffer.align}"
    role = "" if buffer.role == USUAL_ROLE[clause] else f" role {buffer.role}"
    return f"{buffer.name}: {buffer.dtype}{list_text(buffer.shape)}{strides}{align}{role}"


def block_lines(body: tuple[k.Stmt, ...], types: Types, pad: str) -> Iterator[str]:
    """The lines of statements with their nested ones. `types`: the types of variables declared so far."""
    for stmt in body:
        yield from _stmt_lines(stmt, types, pad)


def _stmt_lines(stmt: k.Stmt, types: Types, pad: str) -> Iterator[str]:
    match stmt:
        case k.For():
            yield f"{pad}{_for_head(stmt)} {{{line_text(stmt.span)}"
            yield from block_lines(stmt.body, types, pad + "    ")
            yield pad + "}"
        case k.If():
            uniform, role = " uniform" if stmt.uniform else "", stmt.role
            uniform += f" role {role}" if role else ""
            yield f"{pad}if {value_text(stmt.condition, types)}{uniform} {{{line_text(stmt.span)}"
            yield from block_lines(stmt.then, types, pad + "    ")
            if stmt.orelse:
                yield pad + "} else {"
                yield from block_lines(stmt.orelse, types, pad + "    ")
            yield pad + "}"
        case _:
            yield f"{pad}{operation_text(stmt, types)}{line_text(stmt.span)}"


def _for_head(loop: k.For) -> str:
    step = "" if loop.step is ONE else f" by {loop.step}"
    kind = "" if loop.kind == "serial" else f" {loop.kind}"
    factor = f" {loop.factor}" if loop.factor else ""
    reductions = ", ".join(f"{sym} {op}" for sym, op in loop.reductions)
    reduce = f" reduce({reductions})" if reductions else ""
    apart = f" apart {loop.first} {loop.last}" if loop.first or loop.last else ""
    uniform = " uniform" if loop.uniform else ""
    return f"for {loop.sym} in {loop.lo}..{loop.hi}{step}{kind}{factor}{reduce}{apart}{uniform}"


def line_text(span: Span) -> str:
    """The line of a position, as a comment."""
    return "" if span.source is NOWHERE.source else f"  -- line {span.line}"


def place_text(span: Span) -> str:
    """The line and the column of a position, as a comment."""
    return "" if span.source is NOWHERE.source else f"{line_text(span)}, column {span.source.position(span.start)[1]}"
