"""Random kernel forms, not all of them sensible: text must carry whatever can be built."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr, maximum, minimum
from texpr.ir import kernel as k
from texpr.ir.program import Assume, Compare, Injective, InRange, Monotone
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import DTYPES, DType
from texpr.support.span import NOWHERE

NAMES = [
    "i",
    "n",
    "t",
    "acc",
    "i'1",
    "for",
    "let",
    "if",
    "barrier",
    "add",
    "uniform",
    "f32",
    "élan",
    "base",
    "in",
    "as",
    "role",
    "exactly",
    "reduce",
    "vector",
    "copy",
    "when",
    "commit",
    "wait",
    "covers",
    "at",
    "tensor",
    "bulk",
    "commit_bulk",
    "wait_bulk",
    "read",
    "mbarrier",
    "fence",
    "prefetch",
    "arrives",
    "sizes",
    "from",
    "barriers",
    "shuffle",
    "lane",
]
"""Ordinary names, and every kind of word of the grammar: a user may call things so."""

_T = TypeVar("_T")


class Forms:
    """A stream of forms, the same for the same seed. `memory` are the buffers that values may use."""

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.memory: list[Buffer] = []

    def some(self, make: Callable[[], _T], most: int, least: int = 0) -> tuple[_T, ...]:
        return tuple(make() for _ in range(self.random.randint(least, most)))

    def maybe(self, make: Callable[[], _T]) -> _T | None:
        return make() if self.random.random() < 0.3 else None

    def sym(self) -> Sym:
        return Sym(self.random.choice(NAMES))

    def dtype(self) -> DType:
        return self.random.choice(list(DTYPES.values()))

    def level(self) -> k.Level:
        return self.random.choice(list(k.Level))

    def index(self, depth: int = 3) -> Expr:
        """An index expression with every kind of node."""
        if depth == 0 or self.random.random() < 0.3:
            return self.random.choice([expr(self.random.randint(-20, 2**40)), expr(self.sym()), expr(self.sym())])
        a, b = self.index(depth - 1), self.index(depth - 1)
        match self.random.randrange(8):
            case 0:
                return a + b
            case 1:
                return a - b
            case 2:
                return a * b
            case 3:
                return a // self.random.randint(1, 9) - b
            case 4:
                return a % self.random.randint(1, 9) + b
            case 5:
                return a if b is ZERO else self.random.choice([a // b, a % b])
            case 6:
                return minimum(a, b)
            case _:
                return maximum(a, b)

    def indices(self) -> tuple[Expr, ...]:
        return self.some(self.index, 2)

    def buffer(self, name: str) -> Buffer:
        role = self.random.choice(["input", "inout", "result", "local"])
        align = self.maybe(lambda: 16)
        return Buffer(name, self.dtype(), self.indices(), role, self.maybe(self.indices), align)

    def number(self) -> int | float:
        special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 1.7e308, -(2**63), 2**64, 0, 1]
        return self.random.choice([*special, self.random.gauss(0, 1e6)])

    def value(self, depth: int = 2) -> Value:
        """A value, well typed or not."""
        if depth == 0 or self.random.random() < 0.3:
            leaves = [Literal(self.number(), self.dtype()), Index(self.index(), self.dtype()), Ref(self.sym(), self.dtype())]
            return self.random.choice(leaves)
        kind = self.random.randrange(4)
        if kind == 0 and self.memory:
            return self.load(depth - 1)
        if kind == 1:
            return Cast(self.value(depth - 1), self.dtype())
        name = self.random.choice(sorted(OPS))
        args = tuple(self.value(depth - 1) for _ in range(OPS[name].arity))
        natural = OPS[name].result([a.dtype for a in args])
        return Op(name, args, natural if self.random.random() < 0.7 else self.dtype())

    def load(self, depth: int = 0) -> Load:
        data = self.some(lambda: (self.sym(), self.value(depth)), 2) if depth else ()
        return Load(self.random.choice(self.memory), self.indices(), data)

    def covered(self) -> k.Covered:
        kind = self.random.choice(["RAW", "WAR", "WAW"])
        return k.Covered(kind, self.random.choice([*NAMES, "partial values"]), NOWHERE, NOWHERE, self.maybe(self.sym))

    def stmt(self, depth: int) -> k.Stmt:
        match self.random.randrange(-5, 13 if depth else 11):
            case -1 | -2 if self.memory:
                return self.tile_stmt()
            case -3 if self.memory:
                return self.barrier_stmt()
            case -4:
                return k.WaitBulk(self.random.randrange(3), self.flag(), self.some(self.covered, 2))
            case -5:
                plain = [
                    k.CommitBulk(),
                    k.Fence(self.random.choice(["async", "init"])),
                    k.PrefetchMap(self.random.choice(NAMES)),
                ]
                return self.random.choice(plain)
            case 0:
                return k.Declare(self.sym(), self.dtype(), self.value())
            case 1:
                return k.Assign(self.sym(), self.value())
            case 2:
                return k.Barrier(self.level(), self.some(self.covered, 2), self.random.choice([32, 16, 1]))
            case 3:
                return k.Exchange(
                    self.sym(),
                    Ref(self.sym(), self.dtype()),
                    self.random.randrange(32),
                    self.random.choice([32, 8]),
                    shift=self.index() if self.flag() else ZERO,
                )
            case 4 if self.memory and self.flag():
                return k.Shuffle(self.sym(), self.load(1), self.index())
            case 4 if self.memory:
                return k.Store(self.load(1), self.value())
            case 5 if self.memory:
                return k.Atomic(self.load(1), self.random.choice(["add", "min", "and"]), self.value(), self.level())
            case 6:
                return k.CommitAsync()
            case 7:
                return k.WaitAsync(self.random.randrange(3), self.some(self.covered, 2))
            case 8 if self.memory:
                return k.LoadVector(self.some(self.sym, 4, 1), self.load(1))
            case 9 if self.memory and self.flag():
                return k.AtomicVector(self.load(1), "add", self.some(self.value, 4, 1), self.level())
            case 9 if self.memory:
                return k.StoreVector(self.load(1), self.some(self.value, 4, 1))
            case 10 if self.memory:
                return k.CopyAsync(self.load(1), self.load(1), self.random.choice([1, 4]), self.maybe(self.value))
            case 11:
                kind = self.random.choice(["serial", "unroll", "simd"])
                reductions = self.some(lambda: (self.sym(), "add"), 2)
                step = self.random.choice([ONE, self.index()])
                factor = self.random.choice([0, 2]) if kind == "unroll" else 0
                return k.For(
                    self.sym(), self.index(), self.index(), self.body(depth - 1), step, kind, reductions, self.flag(),
                    factor=factor,
                )  # fmt: skip
            case _:
                return k.If(self.value(), *((self.body(depth - 1), self.body(depth - 1)) if depth else ((), ())), self.flag())

    def tile_stmt(self) -> k.Stmt:
        name, at, element = self.random.choice(NAMES), self.indices(), self.load(1)
        return self.random.choice([
            k.CopyTensor(
                element, name, at, self.load(), offsets=self.indices(), rows=self.some(lambda: self.value(1), 4),
            ),
            k.StoreTensor(
                name, at, element, self.maybe(lambda: self.random.choice(["add", "xor"])),
                rows=self.some(lambda: self.value(1), 4),
            ),
            k.CopyBulk(
                element, self.load(1), self.random.randrange(99), self.maybe(self.load),
                reduce=self.maybe(lambda: self.random.choice(["add", "inc"])), exactly=self.maybe(self.index),
            ),
        ])  # fmt: skip

    def barrier_stmt(self) -> k.Stmt:
        barrier, number = self.load(1), self.random.randrange(9999)
        return self.random.choice([
            k.BarrierInit(barrier, number), k.BarrierArrive(barrier),
            k.BarrierExpect(barrier, number, exactly=self.maybe(self.index)),
            k.BarrierWait(barrier, self.index(), self.some(self.covered, 2)),
        ])  # fmt: skip

    def numbers(self) -> tuple[int, ...]:
        return self.some(lambda: self.random.randint(1, 256), 5)

    def tensor_map(self, name: str, buffer: Buffer) -> k.TensorMap:
        return k.TensorMap(
            name, buffer, self.indices(), self.indices(), self.numbers(), self.numbers(), self.random.choice([0, 32, 64, 128]),
            self.random.choice([0, 16, 32]), self.random.choice(["zero", "nan"]), self.random.choice([ZERO, self.index()]),
            self.random.choice(["", "uint64"]), self.some(lambda: (self.random.randint(-9, 9), self.random.randint(-9, 9)), 3),
        )  # fmt: skip

    def axis(self) -> k.Axis:
        return k.Axis(self.sym(), self.level(), self.index(), self.random.choice("xyz"), self.maybe(self.sym))

    def flag(self) -> bool:
        return self.random.random() < 0.5

    def body(self, depth: int = 2) -> tuple[k.Stmt, ...]:
        return self.some(lambda: self.stmt(depth), 4)

    def kernel(self, name: str, outside: tuple[Buffer, ...] = ()) -> k.Kernel:
        """A kernel that uses the buffers `outside` and makes its own."""
        free = [n for n in NAMES if n not in {b.name for b in outside}]
        own = [self.buffer(n) for n in self.random.sample(free, self.random.randint(0, 3))]
        cut = self.random.randint(0, len(own))
        spaces = list(k.Space)
        arrays = tuple(
            k.Array(
                b,
                self.random.choice(spaces),
                self.random.choice(["", 'a "b" }']),
                self.random.choice([16, 1024]),
                self.flag(),
                self.random.choice([None, 0, 4096]),
            )
            for b in own[cut:]
        )
        self.memory = [*outside, *own]
        unused = next(n for n in free if n not in {b.name for b in own})
        mapped = [*outside, self.buffer(unused)]
        maps = tuple(self.tensor_map(name, self.random.choice(mapped)) for name in self.random.sample(NAMES, 3))
        return k.Kernel(
            name,
            self.some(
                lambda: k.Axis(self.sym(), self.level(), self.index(), self.random.choice("xyz"), self.maybe(self.sym)), 2
            ),
            outside,
            tuple(own[:cut]),
            self.some(self.sym, 2),
            arrays,
            self.body(),
            frozenset(self.some(lambda: self.random.choice(NAMES), 2)),
            min_blocks=self.random.choice([0, 2]),
            maps=self.random.choice([maps, ()]),
        )

    def compare(self) -> Compare:
        return Compare(self.random.choice(["==", "!=", "<", "<=", ">", ">="]), self.index(), self.index())

    def plan(self) -> k.Plan:
        """A plan with two kernels, launched any number of times."""
        memory = [self.buffer(n) for n in self.random.sample(NAMES, self.random.randint(1, 4))]
        cut = self.random.randint(0, len(memory))
        made = [self.kernel(f"k{at}", tuple(self.random.sample(memory, self.random.randint(0, len(memory))))) for at in (0, 1)]
        results = (*self.random.sample(memory[:cut], self.random.randint(0, cut)), self.buffer("z"))

        def assume() -> Assume:
            buffer = self.random.choice(memory)
            return self.random.choice([InRange(buffer, self.index(), self.index()), Injective(buffer), Monotone(buffer)])

        def step(depth: int) -> k.HostStep:
            match self.random.randrange(4 if depth else 2):
                case 0 | 1:
                    return k.Launch(self.random.choice(made))
                case 2:
                    return k.HostLoop(self.sym(), self.index(), self.some(lambda: step(depth - 1), 2))
                case _:
                    return k.HostIf(self.some(self.compare, 2, 1), self.some(lambda: step(depth - 1), 2))

        return k.Plan(
            self.random.choice(NAMES),
            tuple(memory[:cut]),
            results,
            self.some(self.sym, 3),
            self.some(lambda: (self.sym(), self.random.randint(-9, 9)), 2),
            tuple(memory[cut:]),
            self.some(self.compare, 2),
            self.some(assume, 2),
            self.some(lambda: step(2), 3),
        )
