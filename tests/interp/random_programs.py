"""Random programs, many of them legal: nests of every kind of statement over a few small buffers."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from tests.interp.build import at, buffer, cast, function, index, let, lit, op, par, put, ref, seq, when

from texpr.affine.expr import Expr, Sym, minimum, sym
from texpr.interp.dtypes import Array
from texpr.ir.program import Bind, Combiner, Function, New, Par, Stmt, walk
from texpr.ir.value import Buffer, Load, Ref, Value
from texpr.ir.value.types import F32, I32, I64
from texpr.support.record import Mutable, field

N, M = sym("n"), sym("m")
X = buffer("x", F32, "n", "m")
P = buffer("p", I32, "n")  # in 0..n
Y = buffer("y", F32, "n", "m", role="inout")
V = buffer("v", F32, "n", role="inout")
S = buffer("s", F32, role="inout")
C = buffer("c", I32, "n", role="inout")
AT = buffer("at", I32, role="inout")

_A, _B = Ref(Sym("a"), F32), Ref(Sym("b"), F32)
SHIFT = Combiner("shift", _A.sym, _B.sym, F32, lit(0, F32), op("add", op("mul", _A, lit(0.5, F32)), _B))


class Generator(Mutable):
    """Draws statements; keeps the loops and locals in scope."""

    random: Random
    loops: list[tuple[Expr, str, Expr]] = field(default_factory=list[tuple[Expr, str, Expr]])
    locals: list[Buffer] = field(default_factory=list[Buffer])
    names: Counter[str] = field(default_factory=Counter[str])

    def fresh(self, base: str) -> str:
        self.names[base] += 1
        return f"{base}{self.names[base]}"

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    def position(self, extent: Expr) -> Expr:
        """An index, mostly inside of 0..extent."""
        fits = [s for s, _, most in self.loops if most is extent]
        if fits and self.chance(90):
            return self.random.choice(fits)
        if self.loops and self.chance(80):
            where = self.random.choice(self.loops)[0] + self.random.randrange(-1, 2)
            return minimum(where * where % (extent + 1), extent - 1) if self.chance(30) else where % (extent + self.chance(3))
        return self.random.choice([extent - 1, extent // 2]) if self.chance(90) else extent

    def element(self, memory: Buffer) -> Load:
        if memory in (V, Y, X, C) and self.chance(15):
            data = self.fresh("q")
            meaning = ((Sym(data), at(P, self.position(N))),)
            return at(memory, data, *(self.position(e) for e in memory.shape[1:]), data=meaning)
        return at(memory, *(self.position(extent) for extent in memory.shape))

    def value(self, depth: int = 2) -> Value:
        kind = self.random.randrange(8 if depth else 4)
        if kind < 3:
            source = self.random.choice([X, X, X, Y, V, *self.locals, *self.locals])
            return self.element(source)
        if kind == 3:
            where = self.random.choice(self.loops)[0] if self.loops else N
            return index(where * 3 - 1, F32) if self.chance(50) else lit(self.random.randrange(-3, 4) / 2, F32)
        if kind == 4:
            return op("select", self.condition(depth - 1), self.value(depth - 1), self.value(depth - 1))
        name = self.random.choice(["add", "sub", "mul", "max", "min"])
        return op(name, self.value(depth - 1), self.value(depth - 1))

    def condition(self, depth: int = 1) -> Value:
        name = self.random.choice(["lt", "le", "eq", "ne", "gt"])
        if self.loops and self.chance(60):
            left = self.random.choice(self.loops)[0]
            return op(name, index(left % 2 if self.chance(50) else left, I64), lit(self.random.randrange(3), I64))
        return op(name, self.value(depth - 1 if depth else 0), lit(0.5, F32))

    def bind(self) -> Stmt:
        target = self.element(self.random.choice([Y, Y, V, V, S, *self.locals, *self.locals, *self.locals]))
        kind = self.random.randrange(10)
        if kind < 4:
            return put(target, self.value())
        if kind < 8:
            return put(target, self.value(), self.random.choice(["add", "add", "sub", "mul", "max", "min"]))
        if kind == 8:
            return put(target, self.value(), SHIFT)
        if self.chance(50):
            return put(self.element(C), cast(self.value(), I32), self.random.choice(["add", "mul", "max"]))
        number = index(self.random.choice(self.loops)[0] if self.loops else N, I32)
        return Bind((at(S), at(AT)), (self.value(), number), self.random.choice(["max", "min"]))

    def loop(self, depth: int) -> Stmt:
        kind = "par" if self.chance(65) else "seq"
        extent = self.random.choice([N, N, M, M, *(s + 1 for s, _, _ in self.loops[-1:])])
        name = self.fresh("i")
        self.loops.append((sym(name), kind, extent))
        body = self.block(depth - 1)
        self.loops.pop()
        if kind == "seq":
            return seq(name, extent, *body)
        known = (*self.locals, Y, V, S, C, AT)
        binds = [s for s in walk(body) if isinstance(s, Bind) and s.update]
        updated = {target.buffer for bind in binds for target in bind.targets if target.buffer in known}
        chosen = tuple(sorted((b for b in updated if self.chance(85)), key=lambda b: b.name))
        return par(name, extent, *body, reduce=chosen)

    def block(self, depth: int) -> tuple[Stmt, ...]:
        body: list[Stmt] = []
        outer = len(self.locals)
        for _ in range(self.random.choice([1, 1, 2, 3])):
            if depth and self.chance(60):
                body.append(self.loop(depth))
            elif depth and self.chance(20):
                then, orelse = self.block(depth - 1), self.block(depth - 1) if self.chance(40) else ()
                body.append(when(self.condition(), *then, orelse=orelse))
            elif depth and self.chance(50):
                body += self.local()
            elif self.chance(10):
                name = self.fresh("d")
                body.append(let(name, at(P, self.position(N))))
                body.append(seq(self.fresh("i"), name, put(self.element(V), cast(ref(name, I32), F32), "add")))
            else:
                body.append(self.bind())
        del self.locals[outer:]
        return tuple(body)

    def local(self) -> list[Stmt]:
        """A new local, mostly filled."""
        shape = self.random.choice([(), (), (N,), (M,)])
        memory = buffer(self.fresh("t"), F32, *shape, role="local")
        name, value = self.fresh("i"), self.value(1)
        self.locals.append(memory)
        if shape and self.chance(90):
            return [New(memory), par(name, shape[0], put(at(memory, name), value))]
        return [New(memory), put(at(memory, *(self.position(extent) for extent in shape)), value)]


def draw(random: Random) -> Function:
    """A program over the buffers above."""
    body = Generator(random).block(4)
    return function((X, P, Y, V, S, C, AT), (), *body, sizes="n m")


def data(random: Random, n: int, m: int) -> dict[str, Array]:
    """Arguments whose sums depend on their order."""
    rng = np.random.default_rng(random.randrange(2**32))
    floats = (rng.integers(-9, 10, shape).astype(np.float32) / np.float32(7) for shape in ((n, m), (n, m), (n,), ()))
    x, y, v, s = (np.asarray(f, np.float32) for f in floats)
    p = rng.integers(0, max(n, 1), n).astype(np.int32)
    c = rng.integers(-9, 9, n).astype(np.int32)
    return {"x": x, "p": p, "y": y, "v": v, "s": s, "c": c, "at": np.asarray(50, np.int32)}


def features(f: Function) -> set[str]:
    """What a program has that may go wrong."""
    has: set[str] = set()
    for stmt in walk(f.body):
        has.add(type(stmt).__name__)
        if isinstance(stmt, Par):
            inner = list(walk(stmt.body))
            met = [s.update for s in inner if isinstance(s, Bind) and s.targets[0].buffer in stmt.reduce]
            if any(isinstance(s, Par) for s in inner):
                has.add("par in par")
            if any(isinstance(update, Combiner) for update in met):
                has.add("combiner meets")
            if stmt.reduce and len(inner) > 2:
                has.add("reduce over several statements")
            if any(isinstance(s, New) for s in inner):
                has.add("local of an iteration")
    return has
