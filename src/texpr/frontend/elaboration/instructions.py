"""What an `instr` of the text is, as a record (`texpr.ir.instr`): its fragments, templates and meaning are checked here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import product
from math import prod

from texpr.affine.expr import Sym
from texpr.frontend.tree import Instr as Text
from texpr.frontend.tree import Param
from texpr.ir import instr as record
from texpr.ir.instr import ADDRESS, COLUMNS, DESCRIBED, GROUPS, SHARED, STORED, Give, Operand, Step, Turn
from texpr.ir.instr.descriptor import ROWS
from texpr.ir.instr.fragment import Digit, Fragment, Misfit, core_matrix, fragment
from texpr.ir.instr.registers import WORD, packing, places, unnamed
from texpr.ir.program import Bind, Function, Par, Seq, Stmt
from texpr.ir.program.updates import EXACTLY_ONCE_FREE
from texpr.ir.value import Buffer
from texpr.ir.value.types import F8E8M0
from texpr.isa import rounding
from texpr.isa.cuda import WARPGROUP
from texpr.isa.engine import CHUNK
from texpr.isa.instruction import capability
from texpr.isa.instructions.tcgen05 import PAIR, PAIRED
from texpr.isa.instructions.tcgen05_scaled import QUARTER, QUARTERS
from texpr.isa.registry import TARGETS
from texpr.isa.rounding import Rounding
from texpr.support.diagnostic import error
from texpr.support.span import Span

ADDRESSED = (4, 8, 16)
"""Bytes of shared memory whose address a lane may give (PTX ISA, "ldmatrix": rows of 16; "ld": vectors)."""

_ADDRESSED = "4, 8 or 16"

MOST_STEPS = 1 << 16
"""Turns of the loops around what an instruction writes that are gone through to see what it writes."""


def recorded(text: Text, function: Function) -> record.Instr | None:
    """The record of an instruction whose meaning is `function`; None for one that a thread does alone, without fragments.

    Raises TexprError E0328 for a fragment, E0329 for a template and E0330 for a meaning that is none.
    """
    if not text.fragments:
        return None
    spans = {operand.name: operand.span for operand, _ in text.fragments}
    found = _fragments(text, function)
    places = {name.name: _place(layout) for name, layout in text.fragments}
    halves = {name.name: half for name, layout in text.fragments if (half := _halved(layout)) is not None}
    held = {name: each for name, each in found.items() if places[name] != DESCRIBED}
    lanes = {each.lanes for each in held.values()}
    if len(lanes) > 1:
        told = ", ".join(f"`{name}` of {each.lanes} lanes" for name, each in held.items())
        raise error("E0328", text.name.span, f"operands of `{text.name.name}` are of different numbers of lanes: {told}")
    meaning = _steps(function.body, text.name.span)
    operands = tuple(
        Operand(b, _access(b, meaning), found[b.name], columns=True)
        if places[b.name] == COLUMNS
        else Operand(b, _used(places[b.name], _access(b, meaning)), found[b.name], halved=halves.get(b.name))
        for b in function.params
    )
    made = record.Instr(text.name.name, operands, text.asm, meaning, " ".join(text.effects), _rounding(text))
    for operand in operands:
        if operand.is_written and operand.fragment.copies and not (operand.is_shared or operand.columns):
            raise error("E0328", spans[operand.name], f"several lanes hold one element of `{operand.name}`, which is written")
        if operand.is_address:
            _require_address(operand, _access(operand.memory, meaning), spans[operand.name])
        elif operand.is_described:
            _require_core_matrices(operand, _access(operand.memory, meaning), spans[operand.name])
        elif operand.columns:
            _require_columns(operand, spans[operand.name])
        else:
            _require_packing(operand, spans[operand.name])
    _require_group(made, text.name.span)
    if made.rounding is not None and not made.sums:
        told = f"`{text.name.name}` has no sum of floating-point numbers that is rounded otherwise than IEEE 754 says"
        raise error("E0333", text.roundings[0].span, told, help="leave `rounding` out")
    _require_read_first(made, text.name.span)
    _require_templates(made, text)
    return made


def _rounding(text: Text) -> Rounding | None:
    """What is said of how it rounds sums."""
    if len(text.roundings) > 1:
        raise error("E0112", text.roundings[1].span, "this instruction has a `rounding` already")
    for said in text.roundings:
        found = rounding.read(said.name)
        if found is None:
            help = "write `rounding aligned 24, products 8, truncated 23;`, or `nearest` for `truncated`"
            raise error("E0333", said.span, f"`{said.name}` does not say how a sum is rounded", help=help)
        return found
    return None


def _fragments(text: Text, function: Function) -> dict[str, Fragment]:
    said = {operand.name: (operand.span, layout) for operand, layout in text.fragments}
    found: dict[str, Fragment] = {}
    for param, memory in zip((p for p in text.params if isinstance(p, Param)), function.params, strict=True):
        if param.name.name not in said:
            help = f"add `fragment {param.name.name}: …;`, which says which lane holds which element"
            raise error("E0328", param.name.span, f"`{param.name.name}` has no fragment, and other operands have", help=help)
        span, layout = said[param.name.name]
        described = _place(layout) == DESCRIBED
        layout = next((layout[len(word) + 1 :] for word in _PLACES if layout.startswith(f"{word} ")), layout)
        layout = _HALVED.sub("", layout) if described else layout
        if not all(e.is_constant for e in memory.shape):
            raise error("E0328", span, f"the shape of `{param.name.name}` is not constant, so no lanes can hold it")
        try:
            extents = tuple(e.constant for e in memory.shape)
            found[memory.name] = core_matrix(layout, len(extents)) if described else fragment(layout, extents)
        except Misfit as wrong:
            help = "each element is held once, by a lane in a register; a mode of stride 0 makes copies"
            raise error("E0328", span, f"`{layout}` is no fragment of `{param.name.name}`: {wrong}", help=help) from None
    return found


def _place(layout: str) -> str | None:
    """How an operand in shared or tensor memory is used; None for one in registers."""
    return _PLACES.get(layout.split(" ")[0])


_PLACES = {SHARED: ADDRESS, DESCRIBED: DESCRIBED, COLUMNS: COLUMNS}


_HALVED = re.compile(rf"{PAIR}@(\d) ")
"""What a descriptor begins with in the text whose matrix blocks of a pair have in halves, along that dimension."""


def _halved(layout: str) -> int | None:
    """The dimension along which blocks of a pair have halves."""
    found = _HALVED.match(layout.removeprefix(f"{DESCRIBED} ")) if _place(layout) == DESCRIBED else None
    return None if found is None else int(found[1])


def _used(place: str | None, access: str) -> str:
    """How an operand at a place is used, of which the meaning reads or writes all or some elements."""
    return STORED if place == ADDRESS and access == "write" else place or access


def _steps(body: tuple[Stmt, ...], span: Span) -> tuple[Step, ...]:
    """A meaning as loops around what gets values."""
    found: list[Step] = []
    for stmt in body:
        match stmt:
            case Par() | Seq() if stmt.extent.is_constant:
                free = tuple(buffer.name for buffer in stmt.reduce)
                found.append(Turn(stmt.sym, stmt.extent.constant, _steps(stmt.body, span), free, stmt.ieee))
            case Bind((target,), (value,), None | str() as update):
                found.append(Give(target, value, update))
            case _:
                where = getattr(stmt, "span", span)
                help = "write one element of an operand a statement, in loops of constant extent"
                raise error("E0330", where, "what lanes do together is loops around binds, and this is neither", help=help)
    return tuple(found)


def _access(memory: Buffer, meaning: tuple[Step, ...]) -> str:
    instr = record.Instr("", (), (), meaning)
    gives = [give for give in instr.gives if give.target.buffer is memory]
    read = any(load.buffer is memory for give in instr.gives for load in record.loads_of(give))
    if not gives:
        return "read"
    written = {at for give in gives for at in _written(give, instr.loops)}
    whole = len(written) == prod(e.constant for e in memory.shape)
    return "write" if whole and not read and all(give.update is None for give in gives) else "update"


def _written(give: Give, loops: tuple[Turn, ...]) -> Iterator[tuple[int, ...]]:
    """The elements that a statement gives values to."""
    used = {sym for e in give.target.index for sym in e.syms()}
    around = [loop for loop in loops if loop.sym in used]
    if prod(loop.extent for loop in around) > MOST_STEPS:
        return
    plain = [e.as_sym for e in give.target.index]
    if len(plain) == len(around) and {*plain} == used:
        extents = {loop.sym: loop.extent for loop in around}
        yield from product(*(range(extents[sym]) for sym in plain if sym is not None))
        return
    for values in product(*(range(loop.extent) for loop in around)):
        at: dict[Sym, int] = {loop.sym: value for loop, value in zip(around, values, strict=True)}
        yield tuple(e.evaluate(at) for e in give.target.index)


def _require_address(operand: Operand, access: str, span: Span) -> None:
    """That lanes give addresses of rows that are only read, or all of which get values, 16 bytes or less."""
    name, size = operand.name, operand.fragment.registers * operand.dtype.bytes
    if access == "update":
        told = f"`{name}` is in shared memory, and is read and written, or a part of it is written"
        raise error("E0328", span, told, help="give each element a value by `=`, which is computed from other operands")
    if not operand.fragment.is_run or size not in ADDRESSED:
        told = f"what a lane says the address of is {size} bytes of `{name}`, and {_ADDRESSED} of one row are meant"
        raise error("E0328", span, told, help="the second mode is of consecutive elements along the last dimension")


def _require_core_matrices(operand: Operand, access: str, span: Span) -> None:
    """That an operand that is described is only read, and is made of core matrices of 8 rows of 16 bytes."""
    name, rows, size = operand.name, operand.fragment.lanes, operand.fragment.registers * operand.dtype.bytes
    if access != "read":
        raise error("E0328", span, f"`{name}` is in shared memory, and is written: what lanes do together writes registers")
    if (rows, size) != (ROWS, CHUNK):
        told = f"a core matrix of `{name}` is {rows} rows of {size} bytes, and {ROWS} of {CHUNK} are meant"
        raise error("E0328", span, told, help=f"write `{DESCRIBED} ({ROWS},{CHUNK // operand.dtype.bytes}) : …`")
    if operand.halved is not None and not (operand.halved < operand.memory.rank and _is_even(operand)):
        raise error("E0328", span, f"`{name}` has no two halves along a dimension {operand.halved}")
    shape, parts = operand.part, operand.fragment.shape
    if len(shape) != 2 or any(extent % part for extent, part in zip(shape, parts, strict=True)):
        raise error("E0328", span, f"`{name}` is no whole number of core matrices, of {parts[0]} by {parts[1]} elements")


def _is_even(operand: Operand) -> bool:
    """Whether the dimension that is halved is of an even extent."""
    return operand.halved is not None and operand.memory.shape[operand.halved].constant % PAIR == 0


def _require_group(instr: record.Instr, span: Span) -> None:
    """That what reads shared memory by itself is waited for, and lanes are a warpgroup then."""
    described = [operand.name for operand in instr.operands if operand.is_described]
    summed = [operand.name for operand in instr.operands if operand.columns and operand.is_written]
    if described and instr.group is None:
        told = f"`{described[0]}` is read by what goes on while lanes do, and no effect says how that is waited for"
        raise error("E0330", span, told, help=" or ".join(f"`effect {words};`" for words in GROUPS))
    if described and instr.is_alone != bool(summed):
        told = f"`{instr.name}` sums up in {'tensor memory' if summed else 'registers'}, and its effect is of what does not"
        raise error("E0330", span, told, help=" or ".join(f"`effect {words};`" for words in GROUPS))
    words = instr.effect
    if instr.group is not None and (not described or instr.lanes != WARPGROUP):
        told = f"`{words}` is the effect of what {WARPGROUP} lanes do of an operand that is described"
        raise error("E0330", span, told, help=f"leave it out, or write a fragment that begins with `{DESCRIBED}`")
    halved = [operand.name for operand in instr.operands if operand.halved is not None]
    if instr.is_pair != (len(halved) == 1):
        told = f"`{instr.name}` has {len(halved)} operands in halves, and what blocks of a pair do together has one"
        help = f"write `effect {PAIRED};`, and `{DESCRIBED} {PAIR}@1 …` of the operand whose columns both have in halves"
        raise error("E0330", span, told, help=help)
    stored = next((operand.name for operand in instr.operands if operand.access == STORED), None)
    if instr.group is not None and stored is not None:
        told = f"`{stored}` is stored to shared memory, and what goes on while lanes do gives values to registers"
        raise error("E0330", span, told, help="store results by an instruction of their own, behind the wait")


def _require_columns(operand: Operand, span: Span) -> None:
    """That an operand in tensor memory is of elements of 32 bits, or of 16 in whole words, in consecutive columns of each lane;
    or of scales, which all quarters of the lanes have."""
    words = operand.dtype.bits in (WORD, WORD // 2) and operand.fragment.registers * operand.dtype.bits % WORD == 0
    if not words and operand.dtype != F8E8M0:
        told = f"`{operand.name}` is of {operand.dtype}, and a column of tensor memory has {WORD} bits"
        raise error("E0328", span, told)
    quarters = [Digit(True, QUARTER, QUARTERS, None, 0)]
    if operand.fragment.copies and (operand.dtype != F8E8M0 or [*operand.fragment.copies] != quarters):
        raise error("E0328", span, f"several places of tensor memory hold one element of `{operand.name}`")
    if operand.dtype == F8E8M0 and not operand.fragment.copies:
        help = f"write `{COLUMNS} (({QUARTER},{QUARTERS}),…):((1@0,0),…)`"
        raise error("E0328", span, f"not all quarters of the lanes have the scales `{operand.name}`", help=help)


def _require_packing(operand: Operand, span: Span) -> None:
    try:
        packing(operand.dtype, operand.fragment.registers)
    except Misfit as wrong:
        raise error("E0329", span, f"`{operand.name}` cannot be given to assembler: {wrong}") from None


def _require_read_first(instr: record.Instr, span: Span) -> None:
    """That all may be read before anything is written, and a product rounded as the machine does it."""
    written = {give.target.buffer for give in instr.gives}
    for give in instr.gives:
        name = give.target.buffer.name
        for load in record.loads_of(give):
            if load.buffer in written and (load.buffer is not give.target.buffer or load.index != give.target.index):
                told = f"`{load.buffer.name}` is written, and another element of it is read: lanes read all before they write"
                raise error("E0330", give.target.span or span, told, help="write the result to another operand")
        if instr.copied > 1 and give.update is not None and give.update not in EXACTLY_ONCE_FREE:
            told = f"`{name}` is summed up, and lanes hold copies of an operand: which of them is added is not said"
            raise error("E0330", give.target.span or span, told, help="give each element one place, or write with `=`")
    _require_free(instr.meaning, (), span)


def _require_free(steps: tuple[Step, ...], around: tuple[Turn, ...], span: Span) -> None:
    """That a sum of floating-point numbers has no order that an instruction would have to keep."""
    for step in steps:
        if isinstance(step, Turn):
            _require_free(step.body, (*around, step), span)
            continue
        used = {sym for e in step.target.index for sym in e.syms()}
        name, sums = step.target.buffer.name, step.update in ("add", "sub", "mul") and step.target.dtype.is_float
        held = [turn for turn in around if turn.sym not in used and name not in turn.free]
        if sums and held:
            told = f"the loop over `{held[0].sym.base}` sums up `{name}` in order, and no instruction keeps to one"
            raise error("E0330", step.target.span or span, told, help=f"write `reduce({name})`, which frees the order")


def _require_templates(instr: record.Instr, text: Text) -> None:
    span = text.name.span
    for target, template in instr.asm:
        if target not in TARGETS and not capability(target):
            near = get_close_matches(target, TARGETS, n=1)
            help = f"did you mean `{near[0]}`?" if near else f"the targets are {', '.join(TARGETS)}"
            raise error("E0329", span, f'`asm "{target}"`: there is no such target', help=help)
        try:
            places(instr, template)
            missing = list(unnamed(instr, template))
        except Misfit as wrong:
            raise error("E0329", span, f"`{instr.name}` for {target}: {wrong}") from None
        if missing:
            told = f"`{instr.name}` for {target}: the template does not name {', '.join(f'`{{{name}}}`' for name in missing)}"
            raise error("E0329", span, told, help="`{a}` stands for all registers of operand `a`, `{a1}` for one")
