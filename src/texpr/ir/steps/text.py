"""The steps form as text. `texpr.ir.steps.parse` reads it back to an equal form, from which the same kernel is emitted.

    steps    = "steps" NAME "of" NAME {clause} "{" {node} "iteration" "{" {node} "}" {node} "}"
    clause   = "buffer" buffer | "size" NAME, … | "host" NAME "<" index | "where" fact | "assume" … | "avoid" NAME, …
             | "let" NAME ":" TYPE "=" value | "combine" NAME "(" NAME, NAME ")" ":" TYPE "identity" value "=" value
             | "threads" INT | "team" INT | "warp" INT | "blocks" INT | "budget" INT
             | "vectors" INT "line" INT
             | "axis" … | "coordinates" "{" {operation} "}" | "array" … | "map" … | "instr" …
             | "along" loop "block" NAME ["tile" INT] ["by" digits] ["lane"] ["ragged"]
             | "dealt" NAME ["by" digits] ["meets"] | "digits" digits | "unroll" NAME, …
             | "local" buffer | "place" buffer ("register" NAME | "in" NAME {change}) [STRING]
             | "reduction" NAME "own" ref, … ["warps" NAME, …] ["blocks" NAME, …] {";" "own" …}
    digits   = RADIX ":" STRIDE ["*" WEIGHT], …                  thread / stride % radix, times the weight
    change   = "leading" "[" index, … "]" | "trailing" "[" index, … "]" | "slots" "[" INT, … "]"
             | "parts" ["dim" INT] "run" INT "of" INT "rank" NAME ["known" {"[" index, … "]" "is" "[" index, … "]"}]
             | "dealt" "[" NAME, … "]" "thread" index "slots" "[" index, … "]" "of" "[" INT, … "]"

    node     = THREADS ("run" | "points" | "spread" | "partial" ["each"]) {effect} "{" {stmt} "}"
             | THREADS ("middle" | "total") NAME ["each"] {effect}
             | THREADS "issue" "by" "engine" {effect} "{" {stmt} "}" "by" "{" {operation} "}"
             | THREADS ("order" | "together") "{" {operation} "}" | THREADS "end"
             | THREADS "decide" NAME ["alike"] {effect} "if" value
             | "repeat" loop "{" {node} "}" | "choose" NAME "{" {node} "}" ["else" "{" {node} "}"]
             | "role" NAME INT INT ["registers" INT] "{" {node} "}"
    THREADS  = "all" | "thread" INT | "threads" INT ".." [INT] ["by" INT]
    effect   = "reads" NAME, … ["through" PROXY] | "writes" NAME, … ["through" PROXY] | "completes" ("group" NAME | "at" NAME)

`buffer`, `fact`, `axis`, `array`, `map`, values and operations are as in a kernel (`texpr.ir.kernel.text`); statements and
loops are those of `texpr.ir.steps.statements`. If a local and memory of the kernel have one name, statements mean the local and
operations the memory. `-- line 4, column 5` at the end of a line is not a comment but the position in the source; every other
`--` starts a comment.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from texpr.ir import program as ir
from texpr.ir.instr.text import instr_lines
from texpr.ir.kernel.text import block_lines, buffer_text, fact_text, line_text, machine_lines, names_lines, place_text
from texpr.ir.operation import Agent
from texpr.ir.program.promises import assume_text
from texpr.ir.steps import (
    Along,
    AtBarrier,
    Branch,
    Completion,
    Dealt,
    InGroup,
    Loop,
    Node,
    Part,
    Proxy,
    Reduction,
    Step,
    Steps,
    program,
)
from texpr.ir.steps.digits import Digit
from texpr.ir.steps.place import Place
from texpr.ir.steps.statements import loop_text, statement_lines
from texpr.ir.steps.work import Decide, Does, End, Half, Issue, Partial
from texpr.ir.value import Buffer
from texpr.ir.value.text import Types, list_text, value_text
from texpr.isa.levels import WARP

_PAD = "    "


def steps_text(steps: Steps) -> str:
    """The text of the whole form."""
    return "\n".join(_lines(steps)) + "\n"


def _lines(steps: Steps) -> Iterator[str]:
    yield f"steps {steps.name} of {steps.function}{place_text(steps.span)}"
    yield from (f"{_PAD}{line}" for line in _head(steps))
    types: Types = {let.sym: let.value.dtype for let in steps.lets}
    yield "{"
    yield from _nodes(steps.begin, types, _PAD)
    yield f"{_PAD}iteration {{"
    yield from _nodes(steps.body, types, _PAD * 2)
    yield f"{_PAD}}}"
    yield from _nodes(steps.end, types, _PAD)
    yield "}"


def _head(steps: Steps) -> Iterator[str]:
    yield from _given(steps)
    yield f"threads {steps.threads}"
    if steps.team != steps.threads:
        yield f"team {steps.team}"
    if steps.warp != WARP:
        yield f"warp {steps.warp}"
    if steps.min_blocks:
        yield f"blocks {steps.min_blocks}"
    if steps.budget:
        yield f"budget {steps.budget}"
    if steps.vectors is not None:
        yield f"vectors {steps.vectors.lanes} line {steps.vectors.line}"
    yield from (line.strip() for line in machine_lines(steps.axes, steps.arrays, steps.maps, steps.buffers))
    yield from (line for instr in steps.instrs for line in instr_lines(instr, ""))
    if steps.coordinates:
        yield "coordinates {"
        yield from block_lines(steps.coordinates, {}, _PAD)
        yield "}"
    yield from map(_along, steps.grid)
    yield from map(_dealt, steps.loops)
    if steps.digits:
        yield f"digits {_digits(Digit(radix, stride) for radix, stride in steps.digits)}"
    if steps.unrolled:
        yield f"unroll {', '.join(map(str, steps.unrolled))}"
    yield from (_place(buffer, place) for buffer, place in steps.places)
    yield from (f"local {buffer_text(buffer, 'array')}" for buffer in _unplaced(steps))
    yield from map(_reduction, steps.reductions)


def _unplaced(steps: Steps) -> Iterator[Buffer]:
    """The locals without a place: none in a complete form."""
    placed = {buffer for buffer, _ in steps.places}
    made = dict.fromkeys(stmt.buffer for stmt in ir.walk(program(steps.nodes)) if isinstance(stmt, ir.New))
    yield from (buffer for buffer in made if buffer not in placed)


def _given(steps: Steps) -> Iterator[str]:
    yield from (f"buffer {buffer_text(b, 'buffer')}" for b in steps.buffers)
    yield from (line.strip() for line in names_lines("size", steps.sizes))
    yield from (line.strip() for line in names_lines("avoid", list(steps.avoid)))
    yield from (f"host {sym} < {extent}" for sym, extent in steps.hosts)
    yield from (f"where {fact_text(fact)}" for fact in steps.where)
    yield from (f"assume {assume_text(assume)}" for assume in steps.assumes)
    yield from statement_lines(steps.lets, {}, "")
    for each in combiners(steps):
        types = {each.a: each.dtype, each.b: each.dtype}
        values = f"identity {value_text(each.identity, types)} = {value_text(each.value, types)}"
        yield f"combine {each.name}({each.a}, {each.b}): {each.dtype} {values}"


def combiners(steps: Steps) -> tuple[ir.Combiner, ...]:
    """The user's updates of a form, each once."""
    every = (stmt.update for stmt in ir.walk(program(steps.nodes)) if isinstance(stmt, ir.Bind))
    return tuple(dict.fromkeys(update for update in every if isinstance(update, ir.Combiner)))


def _along(along: Along) -> str:
    tile = "" if along.tile == 1 else f" tile {along.tile}"
    digits = f" by {_digits(along.digits)}" if along.digits else ""
    flags = f"{' lane' if along.lane else ''}{' ragged' if along.ragged else ''}"
    return f"along {loop_text(along.loop)} block {along.block}{tile}{digits}{flags}{line_text(along.loop.span)}"


def _dealt(dealt: Dealt) -> str:
    digits = f" by {_digits(dealt.digits)}" if dealt.digits else ""
    return f"dealt {dealt.sym}{digits}{' meets' if dealt.meets else ''}"


def _digits(digits: Iterable[Digit]) -> str:
    return ", ".join(f"{d.radix}:{d.stride}" + ("" if d.weight == 1 else f" * {d.weight}") for d in digits)


def _place(buffer: Buffer, place: Place) -> str:
    where = f"in {place.buffer.name}{_changes(place)}" if place.register is None else f"register {place.register}"
    reason = f" {json.dumps(place.reason)}" if place.reason else ""
    return f"place {buffer_text(buffer, 'array')} {where}{reason}"


def _changes(place: Place) -> str:
    found: list[str] = []
    if place.leading:
        found.append(f"leading {list_text(place.leading)}")
    if place.trailing:
        found.append(f"trailing {list_text(place.trailing)}")
    if place.slots:
        found.append(f"slots {list_text(place.slots)}")
    if (parts := place.parts) is not None:
        dim = "" if parts.dim is None else f"dim {parts.dim} "
        known = " ".join(f"{list_text(own)} is {list_text(there)}" for own, there in parts.known.items())
        found.append(f"parts {dim}run {parts.run} of {parts.blocks} rank {parts.rank}" + (f" known {known}" if known else ""))
    if (dealt := place.dealt) is not None:
        names = f"[{', '.join(map(str, dealt.names))}]"
        found.append(f"dealt {names} thread {dealt.thread} slots {list_text(dealt.slots)} of {list_text(dealt.shape)}")
    return "".join(f" {each}" for each in found)


def _reduction(reduction: Reduction) -> str:
    def names(word: str, buffers: Sequence[tuple[Buffer, ...]], at: int) -> str:
        return f" {word} {', '.join(b.name for b in buffers[at])}" if buffers else ""

    parts = [
        f"own {', '.join(f'{ref.sym}: {ref.dtype}' for ref in own)}"
        + names("warps", reduction.warps, at)
        + names("blocks", reduction.blocks, at)
        for at, own in enumerate(reduction.own)
    ]
    return f"reduction {reduction.sym} {'; '.join(parts)}"


def _nodes(nodes: Sequence[Node], types: Types, pad: str) -> Iterator[str]:
    for node in nodes:
        match node:
            case Step():
                yield from _step(node, types, pad)
            case Loop(stmt, body):
                yield f"{pad}repeat {loop_text(stmt)} {{{line_text(stmt.span)}"
                yield from _nodes(body, types, pad + _PAD)
                yield f"{pad}}}"
            case Part(role, body):
                yield f"{pad}role {role} {{"
                yield from _nodes(body, types, pad + _PAD)
                yield f"{pad}}}"
            case Branch(_, decided, then, orelse):
                yield f"{pad}choose {decided} {{"
                yield from _nodes(then, types, pad + _PAD)
                if orelse:
                    yield f"{pad}}} else {{"
                    yield from _nodes(orelse, types, pad + _PAD)
                yield f"{pad}}}"
            case _:
                assert_never(node)


def _step(step: Step, types: Types, pad: str) -> Iterator[str]:
    head = f"{pad}{step.threads} {step.work.NAME}"
    effects = "".join(f" {each}" for each in _effects(step))
    match step.work:
        case Decide(symbol, alike):
            assert isinstance(step.stmt, ir.If)
            condition = value_text(step.stmt.condition, types)
            yield f"{head} {symbol}{' alike' if alike else ''}{effects} if {condition}{line_text(step.stmt.span)}"
        case Half() as half if not isinstance(half, Partial):
            assert isinstance(step.stmt, ir.Par)
            yield f"{head} {step.stmt.sym}{' each' if half.replicated else ''}{effects}"
        case End():
            yield head
        case Does() as work if not isinstance(work, Issue):
            yield f"{head} {{"
            yield from block_lines(work.does, {}, pad + _PAD)
            yield f"{pad}}}"
        case work:
            each = " each" if isinstance(work, Partial) and work.replicated else ""
            agent = "" if step.agent is Agent.THREAD else " by engine"
            yield f"{head}{each}{agent}{effects} {{"
            yield from statement_lines(step.stmts, types, pad + _PAD)
            if isinstance(work, Issue):
                yield f"{pad}}} by {{"
                yield from block_lines(work.does, {}, pad + _PAD)
            yield f"{pad}}}"


def _effects(step: Step) -> Iterator[str]:
    for word, touches in (("reads", step.reads), ("writes", step.writes)):
        for proxy in Proxy:
            names = [touch.buffer.name for touch in touches if touch.proxy is proxy]
            if names:
                yield f"{word} {', '.join(names)}" + ("" if proxy is Proxy.GENERIC else f" through {proxy.value}")
    if step.completion is not None:
        yield f"completes {_completion(step.completion)}"


def _completion(completion: Completion) -> str:
    match completion:
        case InGroup(group):
            return f"group {group.name.lower()}"
        case AtBarrier(barrier):
            return f"at {barrier.name}"
        case _:
            assert_never(completion)
