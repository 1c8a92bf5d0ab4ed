"""Neighbouring `par`s of one shape become one kernel, unless a dependence joins different iterations of them.

Before:                                      After:
    new t: f32[n]
    par n |i| { t[i] = x[i] * x[i] }             par n |i| { new t: f32; t = x[i] * x[i]; z[i] = t + 1.0 }
    par n |i| { z[i] = t[i] + 1.0 }

A local that then lives within one iteration is kept there, without the dimensions that number the iterations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.rewrite import Rewriter, replace_loads, substitute_block
from texpr.ir.uses import loads
from texpr.ir.value import Buffer, Load
from texpr.mapping.bands import band, rebuild
from texpr.mapping.reductions import is_atomic
from texpr.presburger.formula import compare, conj, disj, equal, syms
from texpr.presburger.maps import left, right
from texpr.presburger.raw import Undecided
from texpr.presburger.sets import Set
from texpr.relation.model import Access, Model


def fuse(function: ir.Function, model: Model) -> ir.Function:
    """`function` with neighbouring `par`s outside every other fused where that is legal; `model` is its model."""
    fuser = _Fuser(model, function)
    return replace(function, body=fuser.block(function.body))


@dataclass(slots=True)
class _Fuser:
    model: Model
    function: ir.Function

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements outside every `par`, fused. A `new` does not stand between neighbours."""
        found: list[ir.Stmt] = []
        group: list[ir.Par] = []
        for stmt in body:
            if isinstance(stmt, ir.Par) and self._joins(group, stmt):
                group.append(stmt)
                continue
            if isinstance(stmt, ir.New) and group:
                found.append(stmt)
                continue
            found.extend(_fused(group))
            group = []
            match stmt:
                case ir.Par():
                    group = [stmt]
                case ir.Seq():
                    found.append(replace(stmt, body=self.block(stmt.body)))
                case ir.If():
                    found.append(replace(stmt, then=self.block(stmt.then), orelse=self.block(stmt.orelse)))
                case _:
                    found.append(stmt)
        found.extend(_fused(group))
        return _contracted(tuple(found), frozenset(self.function.results))

    def _joins(self, group: list[ir.Par], par: ir.Par) -> bool:
        if not group:
            return False
        first, body = band(group[0])
        loops, other = band(par)
        if not all(_plain(p) for p in (*first, *loops)):
            return False
        if [p.extent for p in first] != [p.extent for p in loops] or _has_par(body) != _has_par(other):
            return False
        return all(self._independent(earlier, par) for earlier in group)

    def _independent(self, one: ir.Par, other: ir.Par) -> bool:
        """Whether no dependence joins an iteration of `one` with a different iteration of `other`."""
        lefts, rights = (tuple(p.sym for p in band(par)[0]) for par in (one, other))
        sources, sinks = self._accesses(one), self._accesses(other)
        return not any(
            self._meet(a, b, lefts, rights) for a in sources for b in sinks if a.buffer is b.buffer and (a.writes or b.writes)
        )

    def _accesses(self, par: ir.Par) -> list[Access]:
        inside = set(ir.walk((par,)))
        return [a for i in self.model.instances if i.stmt in inside for a in i.accesses]

    def _meet(self, one: Access, other: Access, lefts: tuple[Sym, ...], rights: tuple[Sym, ...]) -> bool:
        if one.shape != other.shape:
            return True
        first, at = one.as_source
        second, to = other.as_sink
        pairs = [(expr(left(a)), expr(right(b))) for a, b in zip(lefts, rights, strict=True)]
        apart = disj(part for a, b in pairs for part in (compare("<", a, b), compare(">", a, b)))
        formula = conj((self.model.facts, first, second, equal(at, to), apart))
        dims = tuple(sorted(syms(formula) - frozenset(self.model.params), key=str))
        try:
            return not Set.of(dims, formula, params=self.model.params).is_empty()
        except Undecided:
            return True


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
    """One loop for loops of one level: what any of them may meet in, and every directive."""
    reduce = tuple(dict.fromkeys(b for par in same for b in par.reduce))
    return replace(same[0], reduce=reduce, directives=tuple(dict.fromkeys(d for par in same for d in par.directives)))


def _contracted(body: tuple[ir.Stmt, ...], results: frozenset[Buffer]) -> tuple[ir.Stmt, ...]:
    """Locals of `body` that one `par` alone uses, always at its own iteration, moved into it."""
    for new in [s for s in body if isinstance(s, ir.New) and s.buffer not in results and s.buffer.rank]:
        users = [s for s in body if any(load.buffer is new.buffer for i in ir.walk((s,)) for load in loads(i))]
        if len(users) != 1 or not isinstance(users[0], ir.Par) or not _plain(users[0]):
            continue
        moved = _moved(users[0], new)
        if moved is not None:
            body = tuple(moved if s is users[0] else s for s in body if s is not new)
    return body


def _moved(par: ir.Par, new: ir.New) -> ir.Par | None:
    loops, inside = band(par)
    own = [expr(p.sym) for p in loops]
    touched = [load for s in ir.walk(inside) for load in loads(s) if load.buffer is new.buffer]
    dims = [_dimension(touched, index) for index in own]
    if None in dims or len(set(dims)) != len(dims):
        return None
    kept = tuple(d for d in range(new.buffer.rank) if d not in dims)
    small = replace(new.buffer, shape=tuple(new.buffer.shape[d] for d in kept))

    def load(old: Load) -> Load | None:
        return replace(old, buffer=small, index=tuple(old.index[d] for d in kept)) if old.buffer is new.buffer else None

    def target(old: Load) -> Load:
        moved = replace_loads(old, load)
        assert isinstance(moved, Load)
        return moved

    body = Rewriter(
        value=lambda v: replace_loads(v, load),
        target=target,
        buffer=lambda b: small if b is new.buffer else b,
    ).block(inside)
    (moved,) = rebuild(loops, (replace(new, buffer=small), *body))
    assert isinstance(moved, ir.Par)
    return moved


def _dimension(touched: list[Load], index: Expr) -> int | None:
    """The dimension that is `index` in every access, if there is one."""
    return next((d for d in range(touched[0].buffer.rank) if all(t.index[d] is index for t in touched)), None)
