"""Index expressions in C: the value is that of the expression, and no step of it overflows."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest

from texpr.affine.expr import Expr, Sym, children, expr, maximum, minimum, term, xor
from texpr.backends.c.checks import bytes_text, count_text
from texpr.backends.c.headers import numeric_headers
from texpr.backends.c.index import _joined, flat_index, index, index_text  # pyright: ignore[reportPrivateUsage]
from texpr.backends.c.scope import LARGEST_SIZE, IntType, Scope, size_facts, size_ranges
from texpr.ir.program import Compare
from texpr.ir.types import F32
from texpr.ir.value import Buffer
from texpr.support.diagnostic import Limitation

from .compiled import load

i, j, N, M, K = (Sym(name) for name in "ijNMK")


def scope_of(**ranges: tuple[int, int]) -> Scope:
    """A scope of integer variables in these ranges."""
    scope = Scope.empty()
    for name, ends in ranges.items():
        scope, _ = scope.integer(Sym(name), ends)
    return scope


SMALL = scope_of(i=(0, 999), j=(-5, 20), N=(0, LARGEST_SIZE), M=(1, LARGEST_SIZE), K=(1, 64))


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (expr(i) * 32 + j, "32 * i + j", IntType.INT),
        (expr(j) - 1, "j - 1", IntType.INT),
        (expr(N) - i - 1, "N - i - 1", IntType.INT),
        (-expr(i), "-i", IntType.INT),
        (3 - expr(i), "3 - i", IntType.INT),
        (expr(i) * N + j, "(long long)N * i + j", IntType.LONG),
        (expr(N) + M, "(long long)M + N", IntType.LONG),
        ((expr(i) + 7) // 8, "(i + 7) / 8", IntType.INT),
        ((expr(N) + 255) // 256, "(N + 255) / 256", IntType.INT),
        (expr(j) // 4, "tx_floordiv(j, 4)", IntType.INT),
        (expr(j) % 4 * 2, "2 * tx_mod(j, 4)", IntType.INT),
        (expr(i) % 32, "i % 32", IntType.INT),
        (expr(i) // M, "i / M", IntType.INT),
        (expr(i) // N, "tx_floordiv(i, N)", IntType.INT),
        (minimum(expr(N), expr(i) * 8 + 8), "tx_min(8 * i + 8, N)", IntType.INT),
        (maximum(expr(N) + M, 0), "tx_max((long long)M + N, 0LL)", IntType.LONG),
        (expr(2**31), "2147483648LL", IntType.LONG),
        (expr(i) * 2**23, "8388608LL * i", IntType.LONG),
        (expr(0), "0", IntType.INT),
        (xor(i, j, 3), "i ^ (j & 7)", IntType.INT),
        (xor(i, expr(i) // 8, 3), "i ^ ((i / 8) & 7)", IntType.INT),
        (xor(i, 5, 3), "i ^ 5", IntType.INT),
        (xor(i, K, 7), "i ^ K", IntType.INT),
        (64 * expr(j) + 2 * xor(expr(i) % 8, j, 3) + 1, "64 * j + 2 * ((i % 8) ^ (j & 7)) + 1", IntType.INT),
        (-xor(expr(i) + j, N, 2), "-((i + j) ^ (N & 3))", IntType.INT),
        (xor(expr(N) * M, expr(N) + M, 3), "((long long)M * N) ^ (((long long)M + N) & 7)", IntType.LONG),
    ],
)
def test_texts(value: Expr, text: str, kind: IntType) -> None:
    found = index(value, SMALL)
    assert (str(found.text), found.type) == (text, kind)


def test_flat_addresses() -> None:
    dense = Buffer("A", F32, (expr(M), expr(N), expr(K)), "input")
    assert str(flat_index(dense, (expr(i), expr(j), expr(0)), SMALL).text) == "((long long)i * N + j) * K"
    fixed = Buffer("t", F32, (expr(8), expr(33)), "local")
    assert str(flat_index(fixed, (expr(i), expr(j)), SMALL).text) == "i * 33 + j"
    strided = Buffer("S", F32, (expr(M), expr(N)), "input", (expr(1), expr(K)))
    assert str(flat_index(strided, (expr(i), expr(j)), SMALL).text) == "i + j * K"
    assert str(flat_index(Buffer("s", F32, (), "local"), (), SMALL).text) == "0"


def test_quotient_and_remainder_of_one_expression_are_that_expression() -> None:
    table = Buffer("t", F32, (expr(16), expr(4), expr(8), expr(3)), "local")
    left = {
        (expr(i) // 4, expr(i) % 4, expr(j), expr(0)): 3,
        (expr(i) // 8 // 4, expr(i) // 8 % 4, expr(i) % 8, expr(2)): 2,
        (expr(j) + expr(i) // 4, expr(i) % 4, expr(0), expr(1)): 3,
        (expr(i) // 4, (expr(i) + 1) % 4, expr(j), expr(0)): 4,
        (expr(i) // 8, expr(j), expr(i) % 8, expr(0)): 4,
    }
    for at, count in left.items():
        joined = _joined(at, table.shape)
        assert len(joined) == count
        for values in ({i: a, j: b} for a in range(40) for b in range(3)):
            flat = own = 0
            for place, extent in joined:
                flat = flat * extent.constant + place.evaluate(values)
            for place, extent in zip(at, table.shape, strict=True):
                own = own * extent.constant + place.evaluate(values)
            assert flat == own


def test_being_in_bounds_makes_an_index_narrow() -> None:
    """A place read from data may be any number of its type, but where it is evaluated it is an index."""
    table = Buffer("table", F32, (expr(1000), expr(64)), "input")
    scope = scope_of(d=(-(2**31), 2**31 - 1), i=(0, 63))
    assert str(flat_index(table, (expr(Sym("d")), expr(i)), scope).text) == "d * 64 + i"


def test_requirements_narrow_sizes() -> None:
    facts = [Compare("<=", expr(N), expr(1000)), Compare(">", expr(M), expr(3)), Compare("==", expr(K), expr(5))]
    assert size_ranges((N, M, K), facts) == {N: (0, 1000), M: (4, LARGEST_SIZE), K: (5, 5)}
    assert size_ranges((N,), [Compare(">", expr(7), expr(N))]) == {N: (0, 6)}
    held = scope_of(i=(0, 9), N=(0, 100), M=(0, 100)).given(size_facts([Compare(">", expr(N), expr(M))]))
    assert str(index_text(expr(i) // (expr(N) - M), held)) == "i / (N - M)"


def test_host_arithmetic_is_exact_or_refused() -> None:
    scope = Scope.empty(IntType.WIDE)
    for name in "abcde":
        scope, _ = scope.integer(Sym(name), (0, LARGEST_SIZE))
    a, b, c, d, e = (expr(Sym(name)) for name in "abcde")
    assert str(index_text(a * b * c, scope)) == "(texpr_wide)((long long)a * b) * c"
    assert "texpr_floordiv(a, b)" in str(index_text(a // b, scope))
    with pytest.raises(Limitation) as found:
        index_text(a * b * c * d * e, scope)
    assert found.value.diagnostics[0].code == "E0551"


def test_elements_of_many_sizes_are_counted() -> None:
    """Sizes that were checked are a number of 63 bits together, but steps may be greater where one of them is 0."""
    scope = Scope.empty(IntType.WIDE)
    for name in "abcde":
        scope, _ = scope.integer(Sym(name), (0, LARGEST_SIZE))
    shape = [expr(Sym(name)) for name in "abcde"]
    assert str(bytes_text(Buffer("few", F32, tuple(shape[:2]), "local"), scope)) == "(texpr_wide)(4LL * a) * b"
    many = str(count_text(Buffer("many", F32, (*shape[:4], shape[4] * 3), "local"), scope))
    assert many == " * ".join(f"(uint64_t){factor}" for factor in ("1", *"abcd", "(3LL * e)"))


def _random(rng: random.Random, names: list[str], depth: int) -> Expr:
    if depth == 0 or rng.random() < 0.2:
        return expr(Sym(rng.choice(names))) if rng.random() < 0.75 else expr(rng.choice([-3, -1, 1, 2, 7, 31, 256, 65536]))
    a, b = _random(rng, names, depth - 1), _random(rng, names, depth - 1)
    match rng.randrange(9):
        case 0 | 1:
            return a + b
        case 2:
            return a - b
        case 3:
            return a * b if len(a.terms) * len(b.terms) < 6 else a + b
        case 4:
            return a // rng.choice([2, 3, 32]) if rng.random() < 0.5 or (b.is_constant and b.constant == 0) else a // b
        case 5:
            return a % rng.choice([2, 3, 32]) if rng.random() < 0.5 or (b.is_constant and b.constant == 0) else a % b
        case 6:
            return minimum(a, b)
        case 7:
            return xor(a, b, rng.choice([1, 3, 5]))
        case _:
            return maximum(a, b)


def _case(rng: random.Random) -> tuple[Scope, Expr, dict[Sym, int]]:
    """An expression, and a point of it that lies at the ends of ranges more often than not."""
    ranges: dict[str, tuple[int, int]] = {}
    for name in "abcd":
        lo = rng.choice([0, 0, 0, 1, -7, -(2**31)])
        ranges[name] = lo, max(lo, rng.choice([0, 5, 63, 1000, 2**20, LARGEST_SIZE, 2**31 - 1]))
    value = _random(rng, list(ranges), 4)
    point = {Sym(n): rng.choice([lo, hi, hi, rng.randint(lo, hi)]) for n, (lo, hi) in ranges.items()}
    return scope_of(**ranges), value, point


def _meaning(value: Expr, point: dict[Sym, int]) -> int | None:
    try:
        return value.evaluate(point)
    except ZeroDivisionError:
        return None


def _fits(value: Expr, scope: Scope) -> bool:
    """Whether 64 bits hold every part: what is promised of a kernel's arithmetic other than addresses in bounds."""
    for monomial, coefficient in value.terms:
        lo, hi = scope.bounds(term(monomial, coefficient))
        if lo is None or hi is None or max(-lo, hi) > 2**60:
            return False
        if not all(_fits(child, scope) for atom in monomial for child in children(atom)):
            return False
    return True


def _cases(count: int) -> list[tuple[Scope, Expr, dict[Sym, int], int]]:
    rng, found = random.Random(11), list[tuple[Scope, Expr, dict[Sym, int], int]]()
    while len(found) < count:
        scope, value, point = _case(rng)
        wanted = _meaning(value, point)
        if wanted is not None and _fits(value, scope):
            found.append((scope, value, point, wanted))
    return found


def test_random_expressions_neither_differ_nor_overflow(tmp_path: Path) -> None:
    cases, lines = _cases(400), ['#include "texpr_numeric.h"', "#pragma GCC visibility push(default)"]
    for number, (scope, value, point, _) in enumerate(cases):
        given = "; ".join(f"volatile {v.type.ctype} {s.name} = {point[s]}LL" for s, v in scope.variables.items())
        lines.append(f'extern "C" long long f{number}() {{ {given}; return {index_text(value, scope)}; }}')
    flags = ("-O0", "-fsanitize=signed-integer-overflow,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error")
    library = load(tmp_path / "index", {**numeric_headers(), "f.cpp": "\n".join(lines)}, flags=flags, warn=False)
    for number, (_, value, point, wanted) in enumerate(cases):
        function = getattr(library, f"f{number}")
        function.restype = ctypes.c_longlong
        assert function() == wanted, (str(value), point)


def test_the_test_above_can_fail(tmp_path: Path) -> None:
    """In `int` throughout, some of those expressions are wrong."""
    cases, lines = _cases(200), ['#include "texpr_numeric.h"', "#pragma GCC visibility push(default)"]
    for number, (scope, value, point, _) in enumerate(cases):
        given = "; ".join(f"int {s.name} = (int){point[s]}LL" for s in scope.variables)
        text = str(index_text(value, scope)).replace("(long long)", "").replace("LL", "")
        lines.append(f'extern "C" int f{number}() {{ {given}; return (int)({text}); }}')
    flags = ("-O0", "-fwrapv")
    library = load(tmp_path / "index", {**numeric_headers(), "f.cpp": "\n".join(lines)}, flags=flags, warn=False)
    assert any(getattr(library, f"f{number}")() != case[3] for number, case in enumerate(cases))
