"""Instructions as clauses of a kernel's text: printing and parsing.

clause  = "instr" NAME {"operand" buffer ACCESS ["columns"] ["halved" INT] "fragment" STRING} {"asm" STRING STRING}
          ["rounding" STRING] ["effect" STRING] "means" steps
steps   = "{" {step} "}"
step    = "for" NAME "<" INT ["free" "(" NAME, … ")" ["ieee"]] steps | element [UPDATE] "=" value
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from texpr.affine.expr import expr
from texpr.ir.instr import ADDRESS, DESCRIBED, STORED, Give, Instr, Operand, Step, Turn
from texpr.ir.instr.fragment import Misfit, core_matrix, fragment
from texpr.ir.value import Buffer
from texpr.ir.value.parse import ValueParser, dtype, integer_list, named, separated
from texpr.ir.value.scanner import Scanner
from texpr.ir.value.text import list_text, value_text
from texpr.isa import rounding
from texpr.isa.rounding import Rounding

ACCESSES = ("read", "write", "update", ADDRESS, STORED, DESCRIBED)


def instr_lines(instr: Instr, pad: str) -> Iterator[str]:
    """The lines of an instruction."""
    yield f"{pad}instr {instr.name}"
    for operand in instr.operands:
        said = f"{operand.name}: {operand.dtype}{list_text(operand.memory.shape)}"
        where = " columns" if operand.columns else "" if operand.halved is None else f" halved {operand.halved}"
        yield f"{pad}    operand {said} {operand.access}{where} fragment {json.dumps(operand.fragment.layout)}"
    yield from (f"{pad}    asm {json.dumps(target)} {json.dumps(template)}" for target, template in instr.asm)
    if instr.rounding is not None:
        yield f"{pad}    rounding {json.dumps(instr.rounding.text)}"
    if instr.effect:
        yield f"{pad}    effect {json.dumps(instr.effect)}"
    yield f"{pad}    means {{"
    yield from _steps(instr.meaning, pad + "        ")
    yield f"{pad}    }}"


def _steps(steps: tuple[Step, ...], pad: str) -> Iterator[str]:
    for step in steps:
        if isinstance(step, Turn):
            free = f" free ({', '.join(step.free)})" + " ieee" * step.ieee if step.free else ""
            yield f"{pad}for {step.sym} < {step.extent}{free} {{"
            yield from _steps(step.body, pad + "    ")
            yield pad + "}"
        else:
            update = "" if step.update is None else f" {step.update}"
            yield f"{pad}{value_text(step.target, {})}{update} = {value_text(step.value, {})}"


def read_instr(scan: Scanner) -> Instr:
    """Parses an instruction after the first word of its clause."""
    name, operands, asm, effect = scan.name(), list[Operand](), list[tuple[str, str]](), ""
    while scan.accept("operand"):
        operands.append(_operand(scan))
    while scan.accept("asm"):
        asm.append((_string(scan), _string(scan)))
    made = _rounding(scan) if scan.accept("rounding") else None
    if scan.accept("effect"):
        effect = _string(scan)
    scan.expect("means")
    values = ValueParser(scan, {each.name: each.memory for each in operands}, {})
    return Instr(name, tuple(operands), tuple(asm), _read_steps(values), effect, made)


def _rounding(scan: Scanner) -> Rounding:
    said = _string(scan)
    return rounding.read(said) or scan.reject(f"`{said}` is no rounding")


def _operand(scan: Scanner) -> Operand:
    name = scan.name()
    scan.expect(":")
    of, shape = dtype(scan), integer_list(scan)
    access = scan.name("an access")
    if access not in ACCESSES:
        scan.reject(f"`{access}` is no access")
    columns = scan.accept("columns")
    halved = scan.integer() if scan.accept("halved") else None
    scan.expect("fragment")
    layout = _string(scan)
    try:
        found = core_matrix(layout, len(shape)) if access == DESCRIBED else fragment(layout, shape)
    except Misfit as wrong:
        scan.reject(str(wrong))
    memory = Buffer(name, of, tuple(map(expr, shape)), "inout" if access in ("write", "update", STORED) else "input")
    return Operand(memory, access, found, columns, halved)


def _string(scan: Scanner) -> str:
    if scan.next.kind != "string":
        scan.fail(f"expected a string, found `{scan.next.text}`")
    return str(json.loads(scan.take().text))


def _read_steps(by: ValueParser) -> tuple[Step, ...]:
    scan, found = by.scan, list[Step]()
    scan.expect("{")
    while not scan.accept("}"):
        if scan.sees("for") and scan.second.text != "[":
            found.append(_turn(by))
            continue
        target = by.element()
        update = None if scan.sees("=") else scan.name("an update")
        scan.expect("=")
        found.append(Give(target, by.value(), update))
    return tuple(found)


def _turn(by: ValueParser) -> Turn:
    scan = by.scan
    scan.expect("for")
    sym = named(scan)
    scan.expect("<")
    extent, free = scan.integer(), list[str]()
    if scan.accept("free"):
        scan.expect("(")
        free = separated(scan, Scanner.name)
        scan.expect(")")
    ieee = bool(free) and scan.accept("ieee")
    return Turn(sym, extent, _read_steps(by), tuple(free), ieee)
