"""Random small affine programs: nests of `par` and `seq`, guards, locals, several statements, symbolic sizes."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from tests.relation.build import array, at, function, put

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.program import Function, If, New, Par, Seq, Stmt
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.ir.value.types import BOOL, F32, I64
from texpr.support.record import Mutable

N, M = Sym("n"), Sym("m")


class _Maker(Mutable, dict=True):
    draw: DrawFn
    counter: int = 0
    tame: bool = False  # subscripts that are mostly right, so that mistakes come singly

    def pick(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def index(self, syms: tuple[Sym, ...]) -> Expr:
        """An affine subscript over at most two symbols, sometimes with a floor or a remainder."""
        if self.tame and syms and self.pick(0, 7):
            return expr(self.draw(st.sampled_from(syms))) + self.draw(st.sampled_from((0, 0, 0, 0, 1)))
        total = expr(self.pick(-1, 2) if self.pick(0, 2) == 0 else 0)
        for sym in syms:
            total = total + expr(sym) * self.draw(st.sampled_from((0, 0, 1, 1, 1, 2, -1)))
        match self.pick(0, 9):
            case 0:
                return total // self.pick(2, 3)
            case 1:
                return total % self.pick(2, 3)
            case 2:
                return expr(N) - 1 - total
            case _:
                return total

    def extent(self, syms: tuple[Sym, ...]) -> Expr:
        options = [expr(N), expr(N), expr(M), expr(2), expr(N) - 1]
        options += [expr(syms[-1]) + 1, expr(N) - syms[-1]] if syms else []
        return self.draw(st.sampled_from(options))

    def load(self, syms: tuple[Sym, ...], buffers: list[Buffer]) -> Load:
        buffer = self.draw(st.sampled_from(buffers))
        return at(buffer, *(self.index(syms) for _ in buffer.shape))

    def stmt(self, syms: tuple[Sym, ...], buffers: list[Buffer], depth: int) -> list[Stmt]:
        choice = self.pick(0, 9)
        if depth < 3 and (choice < 5 or not syms):
            return [self.loop(syms, buffers, depth)]
        if choice == 5 and syms:
            return [self.guard(syms, buffers, depth)]
        if choice == 6 and depth > 0:
            self.counter += 1
            local = array(f"t{self.counter}", expr(N) + M + 4 if self.tame else 3, role="local")
            return [New(local), *self.stmt(syms, [*buffers, local, local], depth), *self.stmt(syms, [*buffers, local], depth)]
        return [self.bind(syms, buffers)]

    def bind(self, syms: tuple[Sym, ...], buffers: list[Buffer]) -> Stmt:
        target = self.load(syms, buffers)
        values: list[Value] = [self.load(syms, buffers) for _ in range(self.pick(0, 2))]
        if values and self.pick(0, 4) == 0:
            values[0] = Op("select", (self.test(syms), values[0], self.load(syms, buffers)), F32)
        return put(target, *values, update="add" if self.pick(0, 3) == 0 else None)

    def test(self, syms: tuple[Sym, ...]) -> Value:
        def side() -> Value:
            return Index(self.index(syms), I64)

        name = self.draw(st.sampled_from(("lt", "le", "gt", "ge", "eq", "ne")))
        test = Op(name, (side(), side()), BOOL)
        match self.pick(0, 5):
            case 0:
                return Op("not", (test,), BOOL)
            case 1:
                return Op(self.draw(st.sampled_from(("and", "or"))), (test, Op("lt", (side(), side()), BOOL)), BOOL)
            case _:
                return test

    def guard(self, syms: tuple[Sym, ...], buffers: list[Buffer], depth: int) -> Stmt:
        orelse = tuple(self.stmt(syms, buffers, depth + 1)) if self.pick(0, 1) else ()
        return If(self.test(syms), tuple(self.stmt(syms, buffers, depth + 1)), orelse)

    def loop(self, syms: tuple[Sym, ...], buffers: list[Buffer], depth: int) -> Stmt:
        self.counter += 1
        sym = Sym(f"i{self.counter}")
        inner = (*syms, sym)[-2:]
        body = [s for _ in range(self.pick(1, 2)) for s in self.stmt(inner, buffers, depth + 1)]
        if self.pick(0, 1):
            return Seq(sym, self.extent(syms), tuple(body))
        reduce = tuple({b: None for b in buffers if b.role == "inout" and self.pick(0, 5) == 0})
        return Par(sym, self.extent(syms), tuple(body), reduce)


@st.composite
def programs(draw: DrawFn, results: bool = False) -> Function:
    """A function over the arrays A (rank 1, inout), B (rank 2, inout), and with `results` a result R of rank 1."""
    maker = _Maker(draw)
    maker.tame = draw(st.booleans())
    spare = expr(N) + M + 4 if maker.tame else expr(0)
    a, b = array("A", spare + N, role="inout"), array("B", spare + N + 1, spare + M, role="inout")
    r = array("R", expr(N) + 1, role="result")
    buffers = [a, b, r, r] if results else [a, b]
    body: list[Stmt] = [New(r)] if results else []
    if results and maker.pick(0, 1):
        fill = Sym("f")
        body.append(Par(fill, expr(N) + (1 if maker.tame else maker.pick(0, 1)), (put(at(r, fill)),)))
    for _ in range(maker.pick(1, 3)):
        body.extend(maker.stmt((), buffers, 0))
    return function(*body, params=(a, b), results=(r,) if results else (), sizes=(N, M))
