"""Typed values in C: the texts, and random values whose meaning a host compiler and Python's integers agree on."""

from __future__ import annotations

import ctypes
import math
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from texpr.affine.expr import Sym, expr
from texpr.backends.c.headers import numeric_headers
from texpr.backends.c.literal import literal_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.types import C_NAMES
from texpr.backends.c.value import addend, value_text
from texpr.ir.value import Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BF16, BOOL, DTYPES, F16, F32, F64, I32, DType, Kind

from . import plans
from .compiled import load

i, j, k = plans.syms("i j k")
X, Y, P = plans.array("x", F32, 100), plans.array("y", F32, 100), plans.array("p", BOOL, 100)
S, D = plans.array("s", F32), plans.array("d", I32, 100)


def _scope() -> Scope:
    scope = Scope.empty()
    for name in (i, j):
        scope, _ = scope.integer(name, (0, 99))
    for buffer in (X, Y, P, D):
        scope, _ = scope.name(buffer)
    return scope.scalar(S)[0].name(Sym("v"))[0]


SCOPE = _scope()
x, y, s, v = plans.at(X, i), plans.at(Y, j), plans.at(S), Ref(Sym("v"), F32)
less = plans.below(i, 7)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (plans.op("sub", x, plans.op("sub", y, s)), "x[i] - (y[j] - s)"),
        (plans.op("add", plans.op("mul", x, y), s), "x[i] * y[j] + s"),
        (plans.op("mul", x, plans.op("add", y, s)), "x[i] * (y[j] + s)"),
        (plans.op("neg", plans.op("mul", x, v)), "-(x[i] * v)"),
        (plans.op("neg", plans.op("neg", v)), "-(-v)"),
        (plans.op("sub", v, Literal(-1, F32)), "v - -1.0f"),
        (Op("select", (less, x, plans.op("max", y, s)), F32), "i < 7 ? x[i] : tx_max(y[j], s)"),
        (plans.op("add", Op("select", (less, x, y), F32), s), "(i < 7 ? x[i] : y[j]) + s"),
        (Op("select", (less, x, Op("select", (less, y, s), F32)), F32), "i < 7 ? x[i] : i < 7 ? y[j] : s"),
        (plans.op("and", less, plans.op("or", less, plans.op("not", less))), "i < 7 && (i < 7 || !(i < 7))"),
        (plans.op("and", plans.op("and", less, less), less), "i < 7 && i < 7 && i < 7"),
        (plans.op("and", less, plans.op("lt", x, y)), "tx_and(i < 7, x[i] < y[j])"),
        (plans.op("and", plans.op("lt", x, y), less), "x[i] < y[j] && i < 7"),
        (plans.op("eq", less, less), "(i < 7) == (i < 7)"),
        (Cast(x, F64), "(double)x[i]"),
        (Cast(plans.op("add", x, y), F64), "(double)(x[i] + y[j])"),
        (Cast(x, I32), "tx_to<int32_t>(x[i])"),
        (Cast(x, BF16), "tx_to<tx_bf16>(x[i])"),
        (Cast(x, BOOL), "x[i] != 0.0f"),
        (Cast(x, F32), "x[i]"),
        (Index(expr(i) + 1, I32), "i + 1"),
        (Index(expr(i) + 1, F32), "(float)(i + 1)"),
        (Index(expr(i), DTYPES["i64"]), "(int64_t)i"),
        (Index(expr(i), F16), "tx_to<tx_f16>(i)"),
        (plans.op("add", plans.at(D, i), Literal(1, I32)), "tx_add(d[i], 1)"),
        (plans.op("div", plans.at(D, i), Literal(2, I32)), "tx_floordiv(d[i], 2)"),
        (plans.op("bitand", plans.at(D, i), Literal(3, I32)), "d[i] & 3"),
        (Load(X, (expr(k),), ((k, plans.at(D, i)),)), "x[d[i]]"),
        (Load(X, (expr(k) + 1,), ((Sym("h"), plans.at(D, i)), (k, Load(D, (expr(Sym("h")),))))), "x[(long long)d[d[i]] + 1]"),
    ],
)  # fmt: skip
def test_texts(value: Value, text: str) -> None:
    assert str(value_text(value, SCOPE)) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "f32", "0.1f"),
        (0.1, "f64", "0.1"),
        (1, "f32", "1.0f"),
        (1e30, "f32", "1e+30f"),
        (2**24 + 1, "f32", "16777216.0f"),
        (-0.0, "f32", "-0.0f"),
        (math.inf, "f32", "INFINITY"),
        (-math.inf, "f64", "-double(INFINITY)"),
        (math.nan, "f32", "NAN"),
        (1e39, "f32", "INFINITY"),
        (1e-50, "f32", "0.0f"),
        (0.5, "f16", "tx_to<tx_f16>(0.5f)"),
        (0.1, "bf16", "tx_to<tx_bf16>(0.1)"),
        (math.inf, "f8e5m2", "tx_to<tx_f8e5m2>(INFINITY)"),
        (10**400, "f64", "double(INFINITY)"),
        (-(2**31), "i32", "-2147483647 - 1"),
        (5, "i32", "5"),
        (5, "u32", "5u"),
        (5, "i8", "int8_t(5)"),
        (-5, "i16", "int16_t(-5)"),
        (-(2**63), "i64", "int64_t(-9223372036854775807 - 1)"),
        (2**64 - 1, "u64", "uint64_t(18446744073709551615u)"),
        (1, "bool", "true"),
        (0, "bool", "false"),
    ],
)  # fmt: skip
def test_literals(value: float, dtype: str, text: str) -> None:
    assert str(literal_text(value, DTYPES[dtype])) == text


def test_f32_literals_read_back_exactly() -> None:
    rng = random.Random(7)
    for _ in range(3000):
        number = struct.unpack("<f", struct.pack("<I", rng.getrandbits(32)))[0]
        if math.isfinite(number):
            text = str(literal_text(number, F32))
            assert np.float32(text.removesuffix("f")).tobytes() == np.float32(number).tobytes()


def test_updates() -> None:
    assert addend(Sym("v"), plans.op("add", v, x)) is x
    assert addend(Sym("v"), plans.op("add", x, v)) is None  # which of two nans comes out would change
    assert addend(Sym("w"), plans.op("add", v, x)) is None
    assert addend(x, plans.op("add", plans.at(X, i), y)) is y
    assert addend(x, plans.op("add", plans.at(X, j), y)) is None
    d = plans.at(D, i)
    assert addend(d, plans.op("add", d, Literal(1, I32))) is None  # i32 wraps, which C's += would not


def _leaf(rng: random.Random, dtype: DType, names: dict[str, Value]) -> Value:
    if rng.random() < 0.6:
        return rng.choice([value for value in names.values() if value.dtype == dtype])
    low = 0 if dtype.kind is Kind.UINT else -(1 << dtype.bits - 1)
    high = (1 << dtype.bits - (dtype.kind is Kind.INT)) - 1
    return Literal(rng.choice([low, high, 0, 1, 2, 3, min(high, 31), rng.randint(low, high)]), dtype)


def _tree(rng: random.Random, dtype: DType, names: dict[str, Value], depth: int) -> Value:
    if depth == 0:
        return _leaf(rng, dtype, names)

    def below(kind: DType = dtype) -> Value:
        return _tree(rng, kind, names, depth - 1)

    if rng.random() < 0.2:
        return Cast(below(rng.choice(_TYPES)), dtype)
    if rng.random() < 0.2:
        of = rng.choice(_TYPES)
        test = plans.op(rng.choice(["lt", "le", "gt", "ge", "eq", "ne"]), below(of), below(of))
        other = plans.op("not", plans.op("lt", below(), below()))
        return Op("select", (plans.op(rng.choice(["and", "or"]), test, other), below(), below()), dtype)
    name = rng.choice([n for n, op in OPS.items() if op.takes in ("number", "integer") and op.gives == "same"])
    return plans.op(name, *(below() for _ in range(OPS[name].arity)))


_TYPES = tuple(DTYPES[name] for name in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"))


def _wrapped(value: int, dtype: DType) -> int:
    value %= 1 << dtype.bits
    return value - (1 << dtype.bits) if dtype.kind is Kind.INT and value >> (dtype.bits - 1) else value


def _meaning(value: Value, point: dict[Sym, int]) -> int:
    """What a value of integers is, as the language says."""
    match value:
        case Literal():
            return int(value.value)
        case Ref():
            return point[value.sym]
        case Cast():
            return _wrapped(_meaning(value.arg, point), value.dtype)
        case Op("select", (condition, yes, no)):
            return _meaning(yes if _meaning(condition, point) else no, point)
        case Op():
            return _wrapped(_apply(value, [_meaning(arg, point) for arg in value.args]), value.dtype)
        case _:
            raise AssertionError(value)


def _apply(op: Op, args: list[int]) -> int:
    a, b = (*args, 0)[:2]
    bits = op.dtype.bits
    count = b % (1 << bits)
    return {
        "add": a + b, "sub": a - b, "mul": a * b, "div": a // b if b else 0, "mod": a % b if b else 0, "neg": -a, "abs": abs(a),
        "max": max(a, b), "min": min(a, b), "bitand": a & b, "bitor": a | b, "bitxor": a ^ b,
        "shl": a << count if count < bits else 0, "shr": a >> min(count, bits),
        "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b, "eq": a == b, "ne": a != b,
        "and": a and b, "or": a or b, "not": not a,
    }[op.name]  # fmt: skip


EXACT = 'template <class T, class U> T same(U x) { static_assert(tx_is_same<T, U>, "the dtype\'s own C type"); return x; }'


def test_random_integer_values(tmp_path: Path) -> None:
    rng, scope = random.Random(3), Scope.empty()
    names: dict[str, Value] = {}
    for dtype in _TYPES:
        scope, name = scope.name(Sym(f"v_{dtype}"))
        names[name] = Ref(Sym(f"v_{dtype}"), dtype)
    lines, cases = ['#include "texpr_numeric.h"', EXACT, "#pragma GCC visibility push(default)"], []
    for number in range(300):
        dtype = rng.choice(_TYPES)
        value = _tree(rng, dtype, names, 3)
        text = value_text(value, scope)
        point = {Sym(f"v_{t}"): _edge(rng, t) for t in _TYPES}
        given = " ".join(f"{C_NAMES[t]} volatile v_{t} = {literal_text(point[Sym(f'v_{t}')], t)};" for t in _TYPES)
        lines.append(f'extern "C" long long f{number}() {{ {given} return (long long)same<{C_NAMES[dtype]}>({text}); }}')
        cases.append((value, point, dtype))
    flags = ("-O0", "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift", "-fsanitize-undefined-trap-on-error")
    library = load(tmp_path / "f", {**numeric_headers(), "f.cpp": "\n".join(lines)}, flags=flags, warn=False)
    for number, (value, point, dtype) in enumerate(cases):
        function = getattr(library, f"f{number}")
        function.restype = ctypes.c_longlong
        assert _wrapped(function(), dtype) == _meaning(value, point), (value_text(value, scope), point)


def _edge(rng: random.Random, dtype: DType) -> int:
    low = 0 if dtype.kind is Kind.UINT else -(1 << dtype.bits - 1)
    high = (1 << dtype.bits - (dtype.kind is Kind.INT)) - 1
    return rng.choice([low, high, 0, 1, rng.randint(low, high)])
