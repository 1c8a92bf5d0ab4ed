"""Elaboration: from the surface tree to the program form. Checks names and types, and desugars."""

from __future__ import annotations

from collections.abc import Mapping

from texpr.frontend.elaboration.body.calls import scalar_call
from texpr.frontend.elaboration.combiners import make_combiner
from texpr.frontend.elaboration.context import File
from texpr.frontend.elaboration.expressions import RESERVED
from texpr.frontend.elaboration.functions import check_name, make
from texpr.frontend.elaboration.instructions import recorded
from texpr.frontend.elaboration.schedules import gather_schedules
from texpr.frontend.tree import Combine, ConstParam, Fn, Instr, Tree
from texpr.ir.program import Program
from texpr.support.diagnostic import Diagnostic, Note, TexprError, error
from texpr.support.record import replace
from texpr.support.span import Span

__all__ = ["elaborate"]


def elaborate(tree: Tree, consts: Mapping[str, int] | None = None, library: Tree | None = None) -> Program:
    """The program that a tree means, `const`s replaced by `consts` or their defaults.

    A `const` with neither stays a symbol of its function. A function that needs its value is left out if others call it, and
    an error if not. Functions, combiners and instructions of `library` may be used, and are not part of the program. Raises
    `TexprError` with every diagnostic.
    """
    file = File({}, {}, {}, consts or {}, scalar_call, _is_made, tuple(sorted(RESERVED)))
    if library is not None:
        _gather(file, library)
    own = _gather(file, tree)
    gather_schedules(file, tree.items)
    _check_consts(file)
    for combine in list(file.combines.values()):
        try:
            file.combiners[combine.name.name] = make_combiner(file, combine)
        except TexprError as raised:
            file.combiners[combine.name.name] = None
            file.diagnostics += raised.diagnostics
    for item in own:
        _is_made(file, item.name.name, item.name.span)
    _report_unmade(file)
    if file.diagnostics:
        raise TexprError(file.diagnostics)
    instrs = tuple(file.records[item.name.name] for item in own if item.name.name in file.records)
    made = (file.functions.get(item.name.name) for item in own if isinstance(item, Fn))
    return Program(tuple(replace(function, instrs=instrs) for function in made if function is not None), instrs)


def _gather(file: File, tree: Tree) -> list[Fn | Instr]:
    """The items of a tree by name; a duplicate name is an error."""
    own: list[Fn | Instr] = []
    seen: dict[str, Span] = {}
    for item in tree.items:
        if not isinstance(item, Fn | Instr | Combine):
            continue
        name = item.name
        try:
            check_name(name)
            if name.name in seen:
                note = Note("it is first defined here", seen[name.name])
                raise error("E0205", name.span, f"`{name.name}` is defined twice", note)
        except TexprError as raised:
            file.diagnostics += raised.diagnostics
            continue
        seen[name.name] = name.span
        for kind in (file.fns, file.instrs, file.combines):
            # The file's own items come before those of a library.
            kind.pop(name.name, None)
        match item:
            case Fn():
                file.fns[name.name] = item
                own.append(item)
            case Instr():
                file.instrs[name.name] = item
                own.append(item)
            case Combine():
                file.combines[name.name] = item
    return own


def _check_consts(file: File) -> None:
    known = {p.name.name for fn in file.fns.values() for p in fn.params if isinstance(p, ConstParam)}
    for name in file.consts:
        if name not in known:
            help = f"there are {', '.join(sorted(known))}" if known else "no function of this file has a `const` parameter"
            file.diagnostics.append(Diagnostic("E0209", None, f"there is no `const` called `{name}`", (), help))


def _is_made(file: File, name: str, span: Span) -> bool:
    """Whether a function or instruction is without errors; elaborates it on first use. `span` is the use."""
    known = file.checked.get(name)
    if known is not None:
        return known
    if name in file.active:
        cycle = " → ".join(f"`{n}`" for n in (*file.active[file.active.index(name) :], name))
        message = f"`{name}` calls itself: {cycle}" if len(file.active) > 1 else f"`{name}` calls itself"
        raise error("E0206", span, message, help="a call is put in place, so it cannot recur; use `seq`")
    file.active.append(name)
    try:
        with file.deeper(12, span):
            file.checked[name] = _make(file, name)
    finally:
        file.active.pop()
    return file.checked[name]


def _make(file: File, name: str) -> bool:
    fn = file.fns.get(name)
    if fn is None:
        instr = file.instrs[name]
        return _make_instr(file, instr)
    function, found = make(file, fn)
    file.functions[name] = function
    if function is None and _open_consts(file, fn) and all(d.code == "E0316" for d in found):
        # It needs constants that its callers may give.
        file.unmade[name] = found
        return True
    file.diagnostics += found
    return function is not None


def _open_consts(file: File, fn: Fn) -> bool:
    consts = (p for p in fn.params if isinstance(p, ConstParam))
    return any(p.default is None and p.name.name not in file.consts for p in consts)


def _report_unmade(file: File) -> None:
    """A function that needs constants without a value is an error only if nothing calls it."""
    for name, found in file.unmade.items():
        if name not in file.called:
            file.diagnostics += found


def _make_instr(file: File, instr: Instr) -> bool:
    """Checks an instruction as the function that is its meaning."""
    names = {p.name.name for p in instr.params}
    found: list[Diagnostic] = []
    for operand, _ in instr.fragments:
        if operand.name not in names:
            message = f"`{instr.name.name}` has no operand `{operand.name}`"
            found.append(Diagnostic("E0212", operand.span, message))
    if not instr.meaning:
        help = "add `meaning { … }`, which says what it computes"
        found.append(Diagnostic("E0315", instr.name.span, "an instruction needs a meaning", (), help))
    function, wrong = make(file, Fn(instr.name, instr.params, (), instr.meaning, span=instr.span))
    found += wrong
    if function is not None and not found:
        try:
            made = recorded(instr, function)
        except TexprError as raised:
            found += raised.diagnostics
        else:
            file.records |= {} if made is None else {instr.name.name: made}
    file.diagnostics += found
    return not found
