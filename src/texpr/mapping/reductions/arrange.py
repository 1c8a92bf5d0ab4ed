"""Parallel reductions made explicit in the program, before mapping.

`par N |i| reduce(s) { s += e }` is, by what the text permits,

- a *team reduction*, kept as it is: partial values in registers, combined over the threads of a block;
- at the top of a program, two of them: blocks reduce chunks into a buffer of partial values, then one block reduces those;
- a `seq` loop of the thread that owns the element, where other `par`s give enough parallelism, the order is not free, or
  at most half as many iterations as a warp has threads;
- a plain `par` with atomic updates (`#atomic`): where the element depends on the reduced index, for integer updates and
  for maximum and minimum, or where the text requests it.

Each way is a record, in a file of `ways`. The first applicable one by rank that can be built is taken.

Before: a function as checked. After: every `par … reduce` left is a team reduction or is marked `#atomic`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import bound
from texpr.isa.gather import gather
from texpr.isa.target import Reductions
from texpr.mapping.reductions import ways
from texpr.mapping.reductions.reached import Around, outermost
from texpr.mapping.reductions.way import Case, Limits, Way
from texpr.schedule.tree import Body
from texpr.support.record import replace

WAYS: tuple[Way, ...] = tuple(sorted(gather(ways.__name__, ways.__path__, "WAY", Way), key=lambda way: way.rank))
"""By rank; ways of one rank exclude each other."""


def arrange(function: ir.Function, machine: Reductions) -> ir.Function:
    """`function` with every parallel reduction in one of the forms above, for a `machine`.

    A reduction with at most `few` iterations, which would leave most threads of a team idle, is run by one thread, if
    iterations around it occupy the others.
    """
    names = {b.name for b in ir.buffers(function)} | {s.name for s in bound(function.body)} | {s.name for s in function.sizes}
    made = _Arranger(Limits(machine.chunk, machine.few, machine.part), names, frozenset(function.sizes)).host(
        function.body, outermost(function)
    )
    return replace(function, body=made)


class _Arranger:
    def __init__(self, limits: Limits, names: set[str], sizes: frozenset[Sym]):
        self.limits = limits
        self.names = names
        self.sizes = sizes

    def fresh(self, base: str) -> str:
        for number in count():
            name = base if number == 0 else f"{base}_{number}"
            if name not in self.names:
                self.names.add(name)
                return name
        raise AssertionError

    def host(self, body: Body, around: Around) -> Body:
        """Statements outside every `par`."""
        return tuple(self._each(body, around, self.host, self._top))

    def team(self, body: Body, around: Around) -> Body:
        """Statements that a team of threads runs."""
        return tuple(self._each(body, around, self.team, self._inner))

    def _each(
        self,
        body: Body,
        around: Around,
        below: Callable[[Body, Around], Body],
        par: Callable[[ir.Par, Around], Body],
    ) -> Iterator[ir.Stmt]:
        for stmt in body:
            match stmt:
                case ir.Par():
                    yield from par(stmt, around)
                case ir.Seq():
                    yield replace(stmt, body=below(stmt.body, around.inside(stmt)))
                case ir.If():
                    then, orelse = below(stmt.then, around.inside(stmt)), below(stmt.orelse, around.inside(stmt, taken=False))
                    yield replace(stmt, then=then, orelse=orelse)
                case ir.Instruction():
                    yield replace(stmt, body=below(stmt.body, around))
                case _:
                    yield stmt
            around = around.after(stmt)

    def _top(self, par: ir.Par, around: Around) -> Body:
        return self._made(par, around, at_top=True)

    def _inner(self, par: ir.Par, around: Around) -> Body:
        return self._made(par, around, at_top=False)

    def _made(self, par: ir.Par, around: Around, *, at_top: bool) -> Body:
        """`par` rewritten by the first applicable way."""
        case = Case(
            par,
            around,
            at_top,
            self.limits,
            self.sizes,
            self.fresh,
            team=self.team,
            below=self.host if at_top else self.team,
            again=lambda other: self._made(other, around, at_top=at_top),
        )
        for way in WAYS:
            if way.applies(case) and (made := way.make(case)) is not None:
                return made
        raise AssertionError("in order is always a way")
