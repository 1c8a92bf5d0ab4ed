"""Loops split into digits at the radices that accesses use.

Before: `par M * N |x| { y[x] = a[x % N, x / N] }`. After:

    par M |x_1| { par N |x_0| { y[N * x_1 + x_0] = a[x_0, x_1] } }

So the lanes of a warp can be a box of digits, where along `x` alone they could only be a run. A loop is split where the
memory cost of a warp is then lower than for any mapping of the whole loop, or equal with less arithmetic. Where the last
radix does not divide the extent, a guard excludes the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from itertools import count, pairwise
from math import prod

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, term, without
from texpr.affine.facts import Fact, Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, substitute_load
from texpr.ir.program.uses import bound, loads
from texpr.ir.value import Index, Load, Op, Value
from texpr.ir.value.types import BOOL, I32
from texpr.isa.memories import Coalescing
from texpr.mapping.bands import band, rebuild
from texpr.mapping.cost.digits import Digits
from texpr.mapping.cost.radices import chain, divisors
from texpr.mapping.cost.streams import band_of
from texpr.mapping.solve import solve
from texpr.support.record import Mutable, replace

WORTH = 9, 10
"""A loop is split where the memory cost falls below this fraction: digits cost arithmetic."""


def split_at_radices(
    function: ir.Function, known: Collection[Sym], values: Mapping[Sym, int], threads: int, request: Coalescing
) -> ir.Function:
    """`function` with the outermost `par`s split where that is cheaper.

    `known`: symbols whose values the host has; `values`: numbers for open sizes; `threads`: of a block; `request`: the
    machine's model of a request.
    """
    names = {b.name for b in ir.buffers(function)} | {s.name for s in bound(function.body)} | {s.name for s in function.sizes}
    cutter = _Cutter(frozenset(known), values, threads, names, request)
    return replace(function, body=cutter.block(function.body))


class _Cutter(Mutable):
    known: frozenset[Sym]
    values: Mapping[Sym, int]
    threads: int
    names: set[str]
    request: Coalescing

    def block(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """The statements outside every `par`."""
        return tuple(self._stmt(stmt) for stmt in body)

    def _stmt(self, stmt: ir.Stmt) -> ir.Stmt:
        match stmt:
            case ir.Par() if not stmt.directives and not stmt.fully:
                return self._par(stmt)
            case ir.Seq():
                return replace(stmt, body=self.block(stmt.body))
            case ir.If():
                return replace(stmt, then=self.block(stmt.then), orelse=self.block(stmt.orelse))
            case _:
                return stmt

    def _par(self, par: ir.Par) -> ir.Par:
        loops, body = band(par)
        if any(p.directives or p.reduce or not p.extent.syms() <= self.known for p in loops):
            return par
        if any(isinstance(s, ir.Par) for s in ir.walk(body)):
            return par
        chosen = {p: found for p in loops if (found := _radices(p, body))}
        if not chosen:
            return par
        made = self._cut(loops, body, chosen)
        return par if made is None or not self._is_better(made, par) else made

    def _is_better(self, made: ir.Par, par: ir.Par) -> bool:
        """Whether `made` has a much lower memory cost than `par`, or no higher one and less arithmetic."""
        (memory, arithmetic), (whole, of_whole) = self._cost(made), self._cost(par)
        return memory * WORTH[1] < whole * WORTH[0] or (memory <= whole and arithmetic < of_whole)

    def _cost(self, par: ir.Par) -> tuple[Fraction, Fraction]:
        """The cost of an iteration: memory, and arithmetic."""
        loops, body = band(par)
        if len(body) == 1 and isinstance(body[0], ir.If) and not body[0].orelse:
            body = body[0].then
        found = band_of(loops, body, self.values, request=self.request)
        last = len(loops) - 1
        shape: Digits = ((last, self.threads),)
        memory, arithmetic = solve(found, self.threads, shape, True).cost.order
        return memory / max(1, prod(found.counted)), arithmetic / max(1, prod(found.counted))

    def _cut(
        self, loops: tuple[ir.Par, ...], body: tuple[ir.Stmt, ...], chosen: Mapping[ir.Par, tuple[Expr, ...]]
    ) -> ir.Par | None:
        """The band with the loops of `chosen` split into digits."""
        meaning: dict[Sym, Expr] = {}
        facts: list[Fact] = []
        made: list[ir.Par] = []
        tests: list[Value] = []
        for loop in loops:
            radices = chosen.get(loop, ())
            if not radices:
                made.append(loop)
                facts.append(Fact(0, loop.sym, loop.extent))
                continue
            extents = _extents(loop.extent, radices)
            digits = [Sym(self._fresh(f"{loop.sym.base}_{n}")) for n in range(len(extents))]
            weights = (ONE, *radices)
            meaning[loop.sym] = sum((expr(d) * w for d, w in zip(digits, weights, strict=True)), start=ZERO)
            facts += [Fact(0, d, e) for d, e in zip(digits, extents, strict=True)]
            facts += [Fact(1, r, None) for r in radices if not r.is_constant]
            outer = tuple(reversed([replace(loop, sym=d, extent=e, label=None) for d, e in zip(digits, extents, strict=True)]))
            made += [replace(outer[0], label=loop.label), *outer[1:]]
            if _rest(loop.extent, radices[-1]) is None:
                tests.append(Op("lt", (Index(meaning[loop.sym], I32), Index(loop.extent, I32)), BOOL))
        inside = _written(body, meaning, Simplifier(Known({}, facts)))
        for test in tests:
            inside = (ir.If(test, inside, span=loops[0].span),)
        (par,) = rebuild(tuple(made), inside)
        return par if isinstance(par, ir.Par) else None

    def _fresh(self, base: str) -> str:
        name = next(n for n in (base if k == 0 else f"{base}'{k}" for k in count()) if n not in self.names)
        self.names.add(name)
        return name


def _written(body: tuple[ir.Stmt, ...], meaning: Mapping[Sym, Expr], simplify: Simplifier) -> tuple[ir.Stmt, ...]:
    """`body` with split indices replaced by their digits, and simplified."""

    def index(old: Expr) -> Expr:
        return old if old.syms().isdisjoint(meaning) else simplify(old.substitute(meaning))

    def load(old: Load) -> Load:
        moved = substitute_load(old, meaning)
        data = tuple((sym, value(held)) for sym, held in old.data)
        return replace(moved, index=tuple(index(e) for e in old.index), data=data)

    def value(old: Value) -> Value:
        def leaf(node: Value) -> Value | None:
            match node:
                case Index(inner, dtype, span):
                    return Index(index(inner), dtype, span)
                case Load():
                    return load(node)
                case _:
                    return None

        return map_value(old, leaf)

    return Rewriter(index=index, value=value, target=load).block(body)


def _radices(par: ir.Par, body: tuple[ir.Stmt, ...]) -> tuple[Expr, ...]:
    """The radices at which accesses of `body` split the index of `par`, each a divisor of the next; at most one is a size."""
    found = dict.fromkeys(
        den for stmt in ir.walk(body) for each in loads(stmt) for e in each.index for den in divisors(e, par.sym)
    )
    numbers = {d.constant for d in found if d.is_constant}
    if any(number > 1 for number in numbers):
        return tuple(map(expr, chain(numbers, par.extent.constant if par.extent.is_constant else None)))
    sizes = [d for d in found if not d.is_constant and _rest(par.extent, d) is not None]
    return (sizes[0],) if sizes else ()


def _extents(extent: Expr, radices: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Extents of the digits, the fastest first."""
    inner = [radices[0]]
    for one, other in pairwise(radices):
        inner.append(expr(other.constant // one.constant))
    rest = _rest(extent, radices[-1])
    return (*inner, (extent + (radices[-1] - 1)) // radices[-1] if rest is None else rest)


def _rest(extent: Expr, radix: Expr) -> Expr | None:
    """`extent / radix`, where it is syntactically a multiple."""
    if radix.is_constant:
        found = extent // radix
        return found if found * radix is extent else None
    if len(radix.terms) != 1 or radix.constant or extent.constant:
        return None
    ((factor, size),) = radix.terms
    total = ZERO
    for monomial, coefficient in extent.terms:
        left = without(monomial, factor)
        if left is None or coefficient % size:
            return None
        total = total + term(left, coefficient // size)
    return total
