"""A formula over named dimensions → an isl map."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from texpr.affine.expr import Expr, Sym
from texpr.presburger.formula import And, Eq, Formula, Ge, Or, conj, syms
from texpr.presburger.isl.raw import Row, Shape, basic, limited, nothing
from texpr.presburger.linear import linear, simple_extrema
from texpr.presburger.solve.swizzles import in_bits
from texpr.support.lazy import Module
from texpr.support.record import Record

if TYPE_CHECKING:
    import islpy as isl
else:  # imported on first use: many programs are decided without isl
    isl = Module("islpy")


class _Frame(Record):
    """The columns of a row: the position of each symbol, hidden ones last."""

    params: tuple[Sym, ...]
    visible: tuple[Sym, ...]
    ins: int
    exists: tuple[Sym, ...]

    def shape(self, unknowns: int = 0) -> Shape:
        names = tuple(p.name for p in self.params)
        return Shape(names, self.ins, len(self.visible) - self.ins, len(self.exists) + unknowns)


def build_map(
    ins: Sequence[Sym], outs: Sequence[Sym], formula: Formula, exists: Sequence[Sym] = (), params: Sequence[Sym] = ()
) -> isl.Map:
    """{ ins → outs : ∃ exists : formula }; every other symbol is a parameter, `params` first. Raises NotAffine, Undecided."""
    return _map(tuple(ins), tuple(outs), formula, tuple(exists), tuple(params))


@lru_cache(maxsize=1 << 9)
def _map(
    ins: tuple[Sym, ...], outs: tuple[Sym, ...], formula: Formula, exists: tuple[Sym, ...], params: tuple[Sym, ...]
) -> isl.Map:
    visible = (*ins, *outs)
    bound = {*visible, *exists}
    free = sorted((s for s in syms(formula) if s not in bound and s not in params), key=lambda s: s.name)
    frame = _Frame((*params, *free), visible, len(ins), tuple(exists))
    formula = simple_extrema(conj(in_bits((formula,))))

    def answer() -> isl.Map:
        built = _build(formula, frame)
        return built.project_out(isl.dim_type.out, len(outs), len(exists)) if exists else built

    return limited(answer)


def _build(formula: Formula, frame: _Frame) -> isl.Map:
    """The map of `formula` with `exists` still among the outs."""
    if isinstance(formula, Or):
        built = nothing(frame.shape())
        for part in formula.parts:
            built = built.union(_build(part, frame))
        return built
    leaves: list[Ge | Eq] = []
    choices: list[Or] = []
    _collect(formula, leaves, choices)
    built = _system(leaves, frame)
    for choice in choices:
        built = built.intersect(_build(choice, frame))
    return built


def _collect(formula: Formula, leaves: list[Ge | Eq], choices: list[Or]) -> None:
    match formula:
        case Ge() | Eq():
            leaves.append(formula)
        case Or():
            choices.append(formula)
        case And(parts):
            for part in parts:
                _collect(part, leaves, choices)


def _system(leaves: Sequence[Ge | Eq], frame: _Frame) -> isl.Map:
    """One conjunction. Unknowns for floors and extrema become hidden columns and are projected out here."""
    unknowns: dict[Sym, None] = {}
    choices: list[Or] = []
    flat: list[Ge | Eq] = []
    for leaf in leaves:
        found = linear(leaf.expr)
        flat.append(type(leaf)(found.value))
        unknowns.update(dict.fromkeys(found.unknowns))
        for definition in found.definitions:
            _collect(definition, flat, choices)
    columns = {s: at for at, s in enumerate((*frame.params, *frame.visible, *frame.exists, *unknowns))}
    equalities = [_row(leaf.expr, columns) for leaf in dict.fromkeys(flat) if isinstance(leaf, Eq)]
    inequalities = [_row(leaf.expr, columns) for leaf in dict.fromkeys(flat) if isinstance(leaf, Ge)]
    built = basic(frame.shape(len(unknowns)), equalities, inequalities)
    if choices:
        inner = _Frame(frame.params, frame.visible, frame.ins, (*frame.exists, *unknowns))
        for choice in dict.fromkeys(choices):
            built = built.intersect(_build(choice, inner))
    if unknowns:
        built = built.project_out(isl.dim_type.out, len(frame.visible) - frame.ins + len(frame.exists), len(unknowns))
    return built


def _row(value: Expr, columns: dict[Sym, int]) -> Row:
    row = [(columns[atom], c) for (atom,), c in value.terms if isinstance(atom, Sym)]
    if value.constant:
        row.append((len(columns), value.constant))
    return row
