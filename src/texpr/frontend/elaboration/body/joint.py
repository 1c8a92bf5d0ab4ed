"""Uses of an instruction that lanes do together: its operands are parts of arrays, or a lane's own registers."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import expr
from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.body.calls import check_writable, match_arguments
from texpr.frontend.elaboration.body.once import view_once
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.expressions import view
from texpr.frontend.elaboration.views import FORMALS
from texpr.frontend.tree import Asm, Call, Ident, Instr
from texpr.ir import instr as record
from texpr.ir.instr.registers import PLACE
from texpr.ir.value import Load
from texpr.support.diagnostic import Note, error


def joint_operands(ctx: Context, call: Call, text: Instr, joint: record.Instr) -> Iterator[Load]:
    """What is given for each operand: an element whose subscripts name, by `FORMALS`, which one of it, or which register."""
    given = match_arguments(call, text)
    for operand in joint.operands:
        exp = given[operand.name]
        found = view(ctx, exp)
        if found.dtype != operand.dtype:
            raise error("E0311", exp.span, f"`{operand.name}` is an array of {operand.dtype}, and this is one of {found.dtype}")
        registers = (expr(operand.fragment.registers),)
        shapes = (operand.memory.shape,) if operand.is_described else (operand.memory.shape, registers)
        if not any(len(found.shape) == len(s) and all(map(ctx.making.equal, found.shape, s)) for s in shapes):
            note = Note(f"`{text.name.name}` is declared here", text.name.span)
            parts = f"[{', '.join(map(str, operand.memory.shape))}]"
            told = f"`{operand.name}` is {parts}, or the {registers[0]} registers that a lane holds of it"
            shape = f"[{', '.join(map(str, found.shape))}]"
            raise error("E0311", exp.span, f"{told}, and this is {shape}", note)
        if operand.is_written:
            check_writable(found, exp)
        if found.paddings:
            raise error(
                "E0311", exp.span, "a padded view is in no memory that lanes could hold", help="copy it to a `new` first"
            )
        found = view_once(ctx, found, exp.span)
        yield views.element(found, tuple(map(expr, FORMALS[: found.rank])), (), exp.span)


def written_out(ctx: Context, name: str) -> record.Instr | None:
    """What a use that is written out is one of, if that is an instruction of lanes."""
    return (
        ctx.file.records.get(name)
        if name in ctx.file.instrs and ctx.file.is_made(ctx.file, name, ctx.file.instrs[name].name.span)
        else None
    )


def called_by(ctx: Context, statement: Asm) -> Call:
    """A use of the instruction that has a template, by which it is known, and not by a name. Raises TexprError E0331."""
    wanted, verb = _plain(statement.template), not PLACE.search(statement.template)
    found: list[Instr] = []
    for text in ctx.file.instrs.values():
        for _, template in text.asm:
            own = _plain(template)
            if own == wanted or (verb and own.split(" ")[0] == wanted):
                found.append(text)
                break
    fitting = [text for text in found if len(text.params) == len(statement.operands)]
    if len(fitting) != 1:
        several = len(fitting) > 1
        told = f"{len(fitting)} instructions have this template" if several else "no instruction has this template"
        help = (
            "use one by its name"
            if several
            else "write an `instr` with it, which says what it computes, and which lane holds what"
        )
        raise error("E0331", statement.span, f"assembler says nothing of what it computes, and {told}", help=help)
    keys, span = fitting[0].name, statement.span
    return Call(Ident(keys.name, span), statement.operands, (), span)


def _plain(template: str) -> str:
    """A template with one blank between its words, and none before a mark."""
    return " ".join(template.replace(",", ", ").rstrip("; ").split())
