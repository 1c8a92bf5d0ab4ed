"""Fuses adjacent `par`s of equal extents, unless a dependence connects different iterations of them.

Before:                                      After:
    new t: f32[n]
    par n |i| { t[i] = x[i] * x[i] }             par n |i| { new t: f32; t = x[i] * x[i]; z[i] = t + 1.0 }
    par n |i| { z[i] = t[i] + 1.0 }

A local that is then used within one iteration only moves into it, without the dimensions that the iterations index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.marked import is_atomic
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load
from texpr.mapping.bands import band, rebuild
from texpr.presburger.formula import Formula, compare, conj, disj, equal, rename
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.points import Points
from texpr.relation.model import Access, Model
from texpr.support.record import Mutable, Record, field, replace


def fuse(function: ir.Function, model: Model) -> ir.Function:
    """`function` with adjacent outermost `par`s fused where that is legal; `model` is its model."""
    accesses: dict[ir.Stmt, tuple[Access, ...]] = {instance.stmt: instance.accesses for instance in model.instances}
    fuser = _Fuser(model, function, accesses)
    return replace(function, body=fuser.block(function.body))


class _Form(Record):
    """An access with canonical loop indices (by depth), so that equal accesses of different statements are equal."""

    buffer: Buffer
    writes: bool
    shape: tuple[Expr, ...]
    formula: Formula
    index: tuple[Expr, ...]
    own: tuple[Sym, ...]
    """Symbols that have a value for each instance."""

    def renamed(self, side: Callable[[Sym], Sym]) -> tuple[Formula, tuple[Expr, ...]]:
        """`formula` and `index` of one end of a pair."""
        names = {sym: expr(side(sym)) for sym in self.own}
        return rename(self.formula, names), tuple(e.substitute(names) for e in self.index)


class _Group(Mutable):
    """Adjacent loops to be fused, and the distinct accesses of the first `known` of them."""

    pars: list[ir.Par] = field(default_factory=list[ir.Par])
    known: int = 0
    forms: dict[Buffer, dict[_Form, None]] = field(default_factory=dict[Buffer, dict[_Form, None]])


class _Fuser(Mutable):
    model: Model
    function: ir.Function
    accesses: Mapping[ir.Stmt, tuple[Access, ...]]

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements outside every `par`, fused. A `new` between two loops does not prevent their fusion."""
        found: list[ir.Stmt] = []
        group = _Group()
        for stmt in body:
            if isinstance(stmt, ir.Par) and self._joins(group, stmt):
                group.pars.append(stmt)
                continue
            if isinstance(stmt, ir.New) and group.pars:
                found.append(stmt)
                continue
            found.extend(_fused(group.pars))
            group = _Group()
            match stmt:
                case ir.Par():
                    group.pars.append(stmt)
                case ir.Seq():
                    found.append(replace(stmt, body=self.block(stmt.body)))
                case ir.If():
                    found.append(replace(stmt, then=self.block(stmt.then), orelse=self.block(stmt.orelse)))
                case _:
                    found.append(stmt)
        found.extend(_fused(group.pars))
        return _contracted(tuple(found), frozenset(self.function.results))

    def _joins(self, group: _Group, par: ir.Par) -> bool:
        """Whether no dependence connects an iteration of `par` with a different iteration of one in `group`."""
        if not group.pars:
            return False
        first, body = band(group.pars[0])
        loops, other = band(par)
        if not all(_plain(p) for p in (*first, *loops)):
            return False
        if [p.extent for p in first] != [p.extent for p in loops] or _has_par(body) != _has_par(other):
            return False
        for earlier in group.pars[group.known :]:
            for form in self._forms(earlier):
                group.forms.setdefault(form.buffer, {})[form] = None
        group.known = len(group.pars)
        pairs = ((source, sink) for sink in self._forms(par) for source in group.forms.get(sink.buffer, ()))
        return not any(self._meet(a, b, len(loops)) for a, b in pairs if a.writes or b.writes)

    def _forms(self, par: ir.Par) -> tuple[_Form, ...]:
        """The accesses in `par`; the indices of its band are named 0, 1, … from the outermost."""
        found: dict[_Form, None] = {}
        for access in (a for stmt in ir.walk((par,)) for a in self.accesses.get(stmt, ())):
            syms = access.instance.syms
            outside = syms.index(par.sym)
            names = {sym: expr(_depth(at - outside)) for at, sym in enumerate(syms)}
            own = (*(_depth(at - outside) for at in range(len(syms))), *(h.sym for h in access.hidden))
            index = tuple(e.substitute(names) for e in access.index)
            found[_Form(access.buffer, access.writes, access.shape, rename(access.formula, names), index, own)] = None
        return tuple(found)

    def _meet(self, one: _Form, other: _Form, depth: int) -> bool:
        if one.shape != other.shape:
            return True
        (first, at), (second, to) = one.renamed(left), other.renamed(right)
        pairs = [(expr(left(_depth(k))), expr(right(_depth(k)))) for k in range(depth)]
        apart = disj(part for a, b in pairs for part in (compare("<", a, b), compare(">", a, b)))
        try:
            return not Points(conj((self.model.facts, first, second, equal(at, to))), self.model.params).is_empty(apart)
        except Undecided:
            return True


def _depth(level: int) -> Sym:
    return Sym(f"⟨depth {level}⟩")


def _plain(par: ir.Par) -> bool:
    return not par.fully and (not par.reduce or is_atomic(par))


def _has_par(body: tuple[ir.Stmt, ...]) -> bool:
    return any(isinstance(s, ir.Par) for s in ir.walk(body))


def _fused(group: list[ir.Par]) -> tuple[ir.Stmt, ...]:
    if len(group) < 2:
        return tuple(group)
    loops, first = band(group[0])
    bodies = [first]
    for par in group[1:]:
        own, body = band(par)
        bodies.append(substitute_block(body, {a.sym: expr(b.sym) for a, b in zip(own, loops, strict=True)}))
    levels = zip(*(band(par)[0] for par in group), strict=True)
    return rebuild(tuple(_merged(same) for same in levels), tuple(stmt for body in bodies for stmt in body))


def _merged(same: tuple[ir.Par, ...]) -> ir.Par:
    """One loop for loops of one level, with the reduce buffers and directives of all."""
    reduce = tuple(dict.fromkeys(b for par in same for b in par.reduce))
    return replace(same[0], reduce=reduce, directives=tuple(dict.fromkeys(d for par in same for d in par.directives)))


def _contracted(body: tuple[ir.Stmt, ...], results: frozenset[Buffer]) -> tuple[ir.Stmt, ...]:
    """Moves locals of `body` that one `par` alone uses, always at its own iteration, into it."""
    users: dict[Buffer, dict[int, None]] = {}
    for at, stmt in enumerate(body):
        for load in (load for inner in ir.walk((stmt,)) for load in loads(inner)):
            users.setdefault(load.buffer, {})[at] = None
    alone: dict[int, list[ir.New]] = {}
    for new in body:
        if isinstance(new, ir.New) and new.buffer not in results and new.buffer.rank and len(users.get(new.buffer, ())) == 1:
            (user,) = users[new.buffer]
            alone.setdefault(user, []).append(new)
    found = list(body)
    gone: set[ir.Stmt] = set()
    for user, news in alone.items():
        par = found[user]
        if isinstance(par, ir.Par) and _plain(par):
            found[user], moved = _moved(par, news)
            gone.update(moved)
    return tuple(stmt for stmt in found if stmt not in gone)


def _moved(par: ir.Par, news: list[ir.New]) -> tuple[ir.Stmt, list[ir.New]]:
    """`par` with those of `news` inside that it uses at its own iteration; and these."""
    loops, inside = band(par)
    own = [expr(p.sym) for p in loops]
    touched: dict[Buffer, list[Load]] = {new.buffer: [] for new in news}
    for load in (load for s in ir.walk(inside) for load in loads(s) if load.buffer in touched):
        touched[load.buffer].append(load)
    kept: dict[Buffer, tuple[int, ...]] = {}
    for new in news:
        dims = [_dimension(touched[new.buffer], index) for index in own]
        if None not in dims and len(set(dims)) == len(dims):
            kept[new.buffer] = tuple(d for d in range(new.buffer.rank) if d not in dims)
    small = {b: replace(b, shape=tuple(b.shape[d] for d in dims)) for b, dims in kept.items()}

    def change(old: Load) -> Load | None:
        dims = kept.get(old.buffer)
        return None if dims is None else replace(old, buffer=small[old.buffer], index=tuple(old.index[d] for d in dims))

    def target(old: Load) -> Load:
        moved = replace_loads(old, change)
        assert isinstance(moved, Load)
        return moved

    body = Rewriter(value=lambda v: replace_loads(v, change), target=target, buffer=lambda b: small.get(b, b)).block(inside)
    moved = [new for new in news if new.buffer in kept]
    (made,) = rebuild(loops, (*(replace(new, buffer=small[new.buffer]) for new in reversed(moved)), *body))
    return made, moved


def _dimension(touched: list[Load], index: Expr) -> int | None:
    """The dimension that is `index` in every access, if any."""
    return next((d for d in range(touched[0].buffer.rank) if all(t.index[d] is index for t in touched)), None)
