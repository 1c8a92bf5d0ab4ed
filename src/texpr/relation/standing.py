"""Where the statements of a program stand: the loops around each, and what is known there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from texpr.affine.expr import Expr, Sym
from texpr.affine.facts import Known
from texpr.ir import program as ir
from texpr.relation.conditions import condition
from texpr.relation.facts import facts_of, in_loop, known, unfloored
from texpr.relation.model import Ancestor, Branch, Computing
from texpr.support.record import Mutable, field


class Site(Protocol):
    """A statement that computes: what is around it, outermost first, and what is not negative there."""

    @property
    def stmt(self) -> Computing: ...
    @property
    def path(self) -> tuple[Ancestor, ...]: ...
    @property
    def facts(self) -> tuple[Expr, ...]: ...
    @property
    def said(self) -> tuple[tuple[Sym, Expr], ...]: ...


class Standing(Mutable):
    """Answers for the statements at `sites`. `given`: what is not negative anywhere."""

    given: tuple[Expr, ...]
    sites: Sequence[Site]
    _known: dict[ir.Stmt, Known] = field(default_factory=dict[ir.Stmt, Known])
    _sites: dict[ir.Stmt, Site] = field(default_factory=dict[ir.Stmt, Site])

    def known(self, stmt: ir.Stmt) -> Known:
        """What is known where `stmt` runs; of an `if` that mapping made anew, where something inside of it does."""
        if stmt not in self._known:
            self._known[stmt] = known(self._first(stmt).facts)
        return self._known[stmt]

    def loops(self, stmt: ir.Stmt) -> tuple[ir.Loop, ...]:
        """The loops around `stmt`."""
        within = frozenset(ir.walk((stmt,)))
        return tuple(loop for loop in self._first(stmt).path if isinstance(loop, ir.Par | ir.Seq) and loop not in within)

    def around(self, stmt: ir.Stmt) -> tuple[Expr, ...]:
        """What is not negative where `stmt` begins: nothing of its loops, nor what is tested, or read, inside of them."""
        within = frozenset(ir.walk((stmt,)))
        # mapping makes loops and tests anew around those that it runs in order: their indices and conditions stay
        loops = {s.sym for s in within if isinstance(s, ir.Par | ir.Seq)}
        tests = {id(s.condition) for s in within if isinstance(s, ir.If)}
        read = {s.sym for s in within if isinstance(s, ir.Let)}
        facts = [*self.given, *(fact for let, fact in self._first(stmt).said if let not in read)]
        for ancestor in self._first(stmt).path:
            match ancestor:
                case ir.Par() | ir.Seq() if ancestor.sym not in loops:
                    facts += in_loop(ancestor.sym, ancestor.extent)
                case Branch() if id(ancestor.stmt.condition) not in tests:
                    facts += unfloored(facts_of([condition(ancestor.stmt.condition, holds=ancestor.taken).formula]))
                case _:
                    break  # what is inside of `stmt`, and all that follows
        return tuple(facts)

    def _first(self, stmt: ir.Stmt) -> Site:
        """The first that does something, of `stmt` and what is in it."""
        if not self._sites:
            self._sites = {site.stmt: site for site in self.sites}
        return next(self._sites[each] for each in ir.walk((stmt,)) if each in self._sites)
