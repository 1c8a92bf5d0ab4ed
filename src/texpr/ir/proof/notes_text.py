"""The instance notes of a scheduled program, as text; `noted` parses them.

    notes = "notes" NAME "statements" INT "{" {note} "}"
    note  = "statement" INT "does" INT list

A note maps a statement to one of the program as written, by number, with values for that statement's loop indices in terms of
its own. Statements are numbered in textual order; a statement may have no note. `list` is as in `texpr.ir.proof.tags_text`.
"""

from __future__ import annotations

from collections.abc import Mapping

from texpr.affine.expr import Expr, expr
from texpr.ir import program as ir
from texpr.ir.program.instances import statements, with_notes
from texpr.ir.proof.tags_parse import TagScanner
from texpr.ir.value.parse import index_list
from texpr.ir.value.text import list_text


def notes_text(function: ir.Function) -> str:
    """The notes of `function`, one on each line."""
    found = statements(function)
    lines = [f"notes {function.name} statements {len(found)}", "{"]
    for at, stmt in enumerate(found):
        if stmt.instance:
            number, *indices = stmt.instance
            lines.append(f"    statement {at} does {number} {list_text(tuple(indices))}")
    return "\n".join((*lines, "}")) + "\n"


def noted(function: ir.Function, text: str, name: str = "<notes>") -> ir.Function:
    """`function` with the notes of `text`. Raises E0581 if the text is not notes for that many statements."""
    scan, found = TagScanner(text, name), dict[int, tuple[Expr, ...]]()
    scan.expect("notes")
    if scan.name("the name of a function") != function.name:
        scan.reject(f"expected notes of `{function.name}`")
    there = statements(function)
    scan.expect("statements")
    if scan.integer() != len(there):
        scan.reject(f"the notes are of another program: this one has {len(there)} statements")
    scan.expect("{")
    while scan.accept("statement"):
        at = scan.integer()
        if at >= len(there) or at in found:
            scan.reject(f"there are {len(there)} statements only, from 0 on, each with one note")
        scan.expect("does")
        found[at] = (expr(scan.integer()), *index_list(scan))
    scan.expect("}")
    if scan.next.kind != "end":
        scan.fail(f"expected the end of the text, found `{scan.next.text}`")
    notes: Mapping[ir.Stmt, tuple[Expr, ...]] = {there[at]: note for at, note in found.items()}
    return with_notes(function, notes)
