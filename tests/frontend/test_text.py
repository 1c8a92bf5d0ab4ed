"""The program form as text: it elaborates back to an equal program, whatever the program is."""

from __future__ import annotations

from random import Random

import pytest
from tests.frontend.corpus import right
from tests.frontend.same import form, same

from texpr.affine.expr import ONE, Expr, Sym, expr, maximum, minimum, sym, xor
from texpr.frontend import parse
from texpr.ir.program import Anchor, Bind, Function, If, Let, Par, Program, Seq, Stmt
from texpr.ir.program.text import print_function, print_program, print_value
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BF16, BOOL, F8E5M2, F16, F32, F64, I8, I32, I64, U16, U64, DType

PROGRAMS = {name: text for name, text in right().items() if "fn " in text and not name.startswith("language")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    program = parse(PROGRAMS[name])
    text = print_program(program)
    again = parse(text)
    assert same(again, program)
    assert print_program(again) == text


class Values:
    """Random values of every type in a function with memory of every type, a loop `i`, and lets `k: i32`, `h: f16`."""

    TYPES = (F64, F32, F16, BF16, F8E5M2, I8, I32, I64, U16, U64, BOOL)

    def __init__(self, seed: int):
        self.random = Random(seed)
        self.memory = {t: Buffer(f"x_{t}", t, (sym("n"), sym("m")), "input") for t in self.TYPES}
        self.count = 0

    def index(self, depth: int) -> Expr:
        """An index expression; every operation occurs, and the `let` of an integer."""
        r = self.random
        if depth == 0:
            return r.choice([sym("i"), sym("n"), sym("k"), expr(r.randint(-9, 9))])
        a, b = self.index(depth - 1), self.index(depth - 1)
        match r.randrange(9):
            case 0:
                return a + b
            case 1:
                return a - b * 2
            case 2:
                return a * b
            case 3:
                return a // r.choice([expr(3), sym("n")])
            case 4:
                return a % r.choice([expr(3), sym("m")])
            case 5:
                return minimum(a, b)
            case 8:
                return xor(a, b, r.randrange(5))
            case 6:
                return -a * (b // 2)
            case _:
                return maximum(a, b, 3)

    def load(self, dtype: DType, depth: int) -> Load:
        """An element, sometimes at an index that is itself read."""
        place = [self.index(1), self.index(1)]
        data: list[tuple[Sym, Value]] = []
        if depth > 0 and self.random.random() < 0.5:
            symbol = Sym(f"at'd{self.count}")
            self.count += 1
            place[0] = place[0] + expr(symbol) * self.random.choice([1, 2])
            data.append((symbol, self.read(depth)))
        return Load(self.memory[dtype], tuple(place), tuple(data))

    def read(self, depth: int) -> Value:
        """What an index may read: a value that is not an index expression."""
        dtype = self.random.choice([I32, U16, I64])
        match self.random.randrange(3):
            case 0:
                return self.load(dtype, depth - 1)
            case 1:
                return Cast(self.load(F32, 0), dtype)
            case _:
                name = self.random.choice(["add", "mul", "min", "select"])
                test = (self.load(BOOL, 0),) if name == "select" else ()
                return Op(name, (*test, self.load(dtype, 0), self.load(dtype, 0)), dtype)

    def value(self, dtype: DType, depth: int) -> Value:
        """A value as the frontend makes them: constants are literals, comparisons of indices are affine."""
        r = self.random
        if depth == 0:
            return self.leaf(dtype)
        if r.random() < 0.2:
            source = r.choice([t for t in self.TYPES if t != dtype])
            return Cast(self.value(source, depth - 1), dtype)
        if dtype == BOOL:
            return self.test(depth)
        name = r.choice([n for n, o in OPS.items() if o.gives == "same" and self.takes(o.takes, dtype)])
        if r.random() < 0.4:
            name = r.choice(["add", "sub", "mul", "div", "mod", "neg"])
        if name == "select":
            return Op(name, (self.test(depth), self.value(dtype, depth - 1), self.value(dtype, depth - 1)), dtype)
        return Op(name, tuple(self.value(dtype, depth - 1) for _ in range(OPS[name].arity)), dtype)

    def test(self, depth: int) -> Value:
        """A condition that is not known."""
        r = self.random
        name = r.choice([n for n, o in OPS.items() if o.gives == "bool"])
        if OPS[name].takes == "bool":
            return Op(name, tuple(self.load(BOOL, depth - 1) for _ in range(OPS[name].arity)), BOOL)
        if OPS[name].arity == 2 and r.random() < 0.3:
            return Op(name, (Index(self.index(2) + sym("i"), I64), Index(self.index(1), I64)), BOOL)
        inside = r.choice([t for t in self.TYPES if self.takes(OPS[name].takes, t)])
        operands = [self.value(inside, depth - 1) for _ in range(OPS[name].arity - 1)]
        return Op(name, (self.load(inside, depth - 1), *operands), BOOL)

    @staticmethod
    def takes(what: str, dtype: DType) -> bool:
        """Whether an operation on `what` takes `dtype`."""
        return {
            "any": True, "number": dtype != BOOL, "integer": dtype.is_integer, "float": dtype.is_float, "bool": dtype == BOOL,
        }[what]  # fmt: skip

    def leaf(self, dtype: DType) -> Value:
        """A number, an element, an index or the value of a `let`."""
        r = self.random
        if r.random() < 0.4:
            return self.load(dtype, 1)
        if dtype == BOOL:
            return Literal(r.randint(0, 1), BOOL)
        if dtype.is_float:
            if dtype == F16 and r.random() < 0.3:
                return Ref(Sym("h"), F16)
            return Literal(r.choice([0.0, -0.0, 1.5, -2.25, 1e-7, 448.0, float("inf"), float("-inf"), float("nan")]), dtype)
        if dtype == I32 and r.random() < 0.3:
            return Ref(Sym("k"), I32)
        place = self.index(2)
        return Index(place, dtype) if not place.is_constant else Literal(r.randint(0, 127), dtype)

    def function(self) -> Function:
        """A function that binds, names, tests and anchors random values."""
        depth = self.random.randint(1, 3)
        out = Buffer("y", dtype := self.random.choice(self.TYPES), (sym("n"),), "inout")
        body: tuple[Stmt, ...] = (
            Bind((Load(out, (sym("i"),)),), (self.value(dtype, depth),)),
            If(self.test(depth), (Anchor(Op("sqrt", (self.load(F32, depth),), F32)),)),
            Let(Sym("t"), Op("add", (self.load(BF16, 1), self.value(BF16, depth)), BF16)),
        )
        lets = (Let(Sym("k"), Load(self.memory[I32], (ONE, ONE))), Let(Sym("h"), Load(self.memory[F16], (ONE, ONE))))
        whole = (*lets, Par(Sym("i"), sym("n"), body))
        return Function("f", (*self.memory.values(), out), (), (Sym("n"), Sym("m")), whole)


def round_trip(seed: int) -> None:
    """A random function comes back the same."""
    function = Values(seed).function()
    text = print_function(function)
    assert form(parse(text)) == form(Program((function,))), text


def test_random_values() -> None:
    for seed in range(60):
        round_trip(seed)


@pytest.mark.long
def test_many_random_values() -> None:
    for seed in range(60, 1500):
        round_trip(seed)


def test_random_indices() -> None:
    values = Values(1)
    for depth in (1, 2, 3):
        for _ in range(100):
            place = values.index(depth)
            y = Buffer("y", F32, (sym("n"), sym("m")), "inout")
            p = Buffer("p", I32, (sym("n"),), "input")
            store = Bind((Load(y, (place, place // 2)),), (Literal(1.0, F32),))
            body = (Let(Sym("k"), Load(p, (ONE,))), Par(Sym("i"), sym("n"), (Seq(Sym("j"), place, (store,)),)))
            function = Function("f", (y, p), (), (Sym("n"), Sym("m")), body)
            assert form(parse(print_function(function))) == form(Program((function,)))


def test_sizes_keep_their_order() -> None:
    program = parse("fn f(x: f32[b * a + c, c / d], inout y: f32[a] stride(e)) { }")
    assert [s.name for s in program["f"].sizes] == ["b", "a", "c", "d", "e"]
    assert parse(print_program(program))["f"].sizes == program["f"].sizes


def test_values_stand_alone() -> None:
    x = Buffer("x", F32, (sym("n"),), "input")
    assert print_value(Literal(2, I32)) == "i32(2)"
    assert print_value(Op("add", (Load(x, (sym("i"),)), Literal(-2.5, F32)), F32)) == "x[i] + -2.5"
    assert print_value(Op("neg", (Op("neg", (Load(x, (sym("i"),)),), F32),), F32)) == "- -x[i]"


def test_same_tells_programs_apart() -> None:
    """The comparison that the other tests rest on sees every kind of difference."""
    base = "fn f(x: f32[n], inout y: f32[n]) { par n |i| { y[i] = x[i] + 1.0 } }"
    others = [
        base.replace("x[i] +", "x[i] -"),
        base.replace("1.0", "2.0"),
        base.replace("par n", "seq n"),
        base.replace("par n", "par n - 1"),
        base.replace("|i|", "|i| reduce(y)"),
        base.replace("|i|", "|i| #block"),
        base.replace("|i|", "|i| 'rows"),
        base.replace("|i|", "|k|").replace("[i]", "[k]"),
        base.replace("y[i] =", "y[i] +="),
        base.replace("f32", "f64"),
        base.replace("x: f32[n]", "x: f32[n] align(16)"),
        base.replace("inout y", "z: f32[n], inout y"),
        base.replace(") {", ") where n > 1 {"),
    ]
    assert same(parse(base), parse(base.replace("1.0", "1.00 ")))
    for other in others:
        assert not same(parse(base), parse(other)), other
