"""Index expressions in C: the value is that of the expression, and no step of it overflows."""

from __future__ import annotations

import ctypes
import random
from pathlib import Path

import pytest

from texpr.affine.expr import Expr, Sym, expr, maximum, minimum, xor
from texpr.affine.typed import Knowledge, joined, place, typed
from texpr.backends.c.checks import bytes_text
from texpr.backends.c.headers import numeric_headers
from texpr.backends.c.index import index_text, integer_text
from texpr.backends.c.scope import CTYPES, Scope
from texpr.ir.kernel.knowledge import size_facts, size_ranges
from texpr.ir.program import Compare
from texpr.ir.value import Buffer
from texpr.ir.value.types import F32
from texpr.support.diagnostic import Limitation
from texpr.support.limits import LARGEST_SIZE, MOST_BYTES, Width
from texpr.support.record import replace

from .compiled import load

i, j, N, M, K = (Sym(name) for name in "ijNMK")


def scope_of(**ranges: tuple[int, int]) -> Scope:
    """A scope of integer variables in these ranges."""
    scope = Scope.empty()
    for name, ends in ranges.items():
        scope, _ = scope.integer(Sym(name), ends)
    return scope


def place_of(buffer: Buffer, at: tuple[Expr, ...], scope: Scope) -> str:
    """The place of an element in bounds."""
    return str(integer_text(place(buffer.shape, buffer.strides, at, scope.here), scope))


SMALL = scope_of(i=(0, 999), j=(-5, 20), N=(0, LARGEST_SIZE), M=(1, LARGEST_SIZE), K=(1, 64))


@pytest.mark.parametrize(
    ("value", "text", "kind"),
    [
        (expr(i) * 32 + j, "32 * i + j", Width.INT),
        (expr(j) - 1, "j - 1", Width.INT),
        (expr(N) - i - 1, "N - i - 1", Width.INT),
        (-expr(i), "-i", Width.INT),
        (3 - expr(i), "3 - i", Width.INT),
        (expr(i) * N + j, "(long long)N * i + j", Width.LONG),
        (expr(N) + M, "(long long)M + N", Width.LONG),
        ((expr(i) + 7) // 8, "(i + 7) / 8", Width.INT),
        ((expr(N) + 255) // 256, "(N + 255) / 256", Width.INT),
        (expr(j) // 4, "tx_floordiv(j, 4)", Width.INT),
        (expr(j) % 4 * 2, "2 * tx_mod(j, 4)", Width.INT),
        (expr(i) % 32, "i % 32", Width.INT),
        (expr(i) // M, "i / M", Width.INT),
        (expr(i) // N, "tx_floordiv(i, N)", Width.INT),
        (minimum(expr(N), expr(i) * 8 + 8), "tx_min(8 * i + 8, N)", Width.INT),
        (maximum(expr(N) + M, 0), "tx_max((long long)M + N, 0LL)", Width.LONG),
        (expr(2**31), "2147483648LL", Width.LONG),
        (expr(i) * 2**23, "8388608LL * i", Width.LONG),
        (expr(0), "0", Width.INT),
        (xor(i, j, 3), "i ^ (j & 7)", Width.INT),
        (xor(i, expr(i) // 8, 3), "i ^ ((i / 8) & 7)", Width.INT),
        (xor(i, 5, 3), "i ^ 5", Width.INT),
        (xor(i, K, 7), "i ^ K", Width.INT),
        (64 * expr(j) + 2 * xor(expr(i) % 8, j, 3) + 1, "64 * j + 2 * ((i % 8) ^ (j & 7)) + 1", Width.INT),
        (-xor(expr(i) + j, N, 2), "-((i + j) ^ (N & 3))", Width.INT),
        (xor(expr(N) * M, expr(N) + M, 3), "((long long)M * N) ^ (((long long)M + N) & 7)", Width.LONG),
    ],
)
def test_texts(value: Expr, text: str, kind: Width) -> None:
    found = typed(value, SMALL.here)
    assert (str(integer_text(found, SMALL)), found.width) == (text, kind)


def test_flat_addresses() -> None:
    dense = Buffer("A", F32, (expr(M), expr(N), expr(K)), "input")
    assert place_of(dense, (expr(i), expr(j), expr(0)), SMALL) == "((long long)i * N + j) * K"
    fixed = Buffer("t", F32, (expr(8), expr(33)), "local")
    assert place_of(fixed, (expr(i), expr(j)), SMALL) == "i * 33 + j"
    strided = Buffer("S", F32, (expr(M), expr(N)), "input", (expr(1), expr(K)))
    assert place_of(strided, (expr(i), expr(j)), SMALL) == "i + j * K"
    assert place_of(Buffer("s", F32, (), "local"), (), SMALL) == "0"


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
        found = joined(at, table.shape)
        assert len(found) == count
        for values in ({i: a, j: b} for a in range(40) for b in range(3)):
            flat = own = 0
            for index, extent in found:
                flat = flat * extent.constant + index.evaluate(values)
            for index, extent in zip(at, table.shape, strict=True):
                own = own * extent.constant + index.evaluate(values)
            assert flat == own


def test_being_in_bounds_makes_an_index_narrow() -> None:
    """A place read from data may be any number of its type, but where it is evaluated it is an index."""
    table = Buffer("table", F32, (expr(1000), expr(64)), "input")
    scope = scope_of(d=(-(2**31), 2**31 - 1), i=(0, 63))
    assert place_of(table, (expr(Sym("d")), expr(i)), scope) == "d * 64 + i"


def test_requirements_narrow_sizes() -> None:
    facts = [Compare("<=", expr(N), expr(1000)), Compare(">", expr(M), expr(3)), Compare("==", expr(K), expr(5))]
    assert size_ranges((N, M, K), facts) == {N: (0, 1000), M: (4, LARGEST_SIZE), K: (5, 5)}
    assert size_ranges((N,), [Compare(">", expr(7), expr(N))]) == {N: (0, 6)}
    held = scope_of(i=(0, 9), N=(0, 100), M=(0, 100)).given(size_facts([Compare(">", expr(N), expr(M))]))
    assert str(index_text(expr(i) // (expr(N) - M), held)) == "i / (N - M)"


HOST = Scope.empty(Knowledge(narrows=False))
for _name in "abcde":
    HOST, _ = HOST.integer(Sym(_name), (0, LARGEST_SIZE))


def test_host_arithmetic_is_exact_or_refused() -> None:
    a, b, c, d, e = (expr(Sym(name)) for name in "abcde")
    assert str(index_text(a * b * c, HOST)) == "(texpr_wide)((long long)a * b) * c"
    assert "texpr_floordiv(a, b)" in str(index_text(a // b, HOST))
    with pytest.raises(Limitation) as found:
        index_text(a * b * c * d * e, HOST)
    assert found.value.diagnostics[0].code == "E0551"


def test_what_a_launcher_has_checked_is_known() -> None:
    """Bytes that were counted before are a number of 63 bits; products of some factors of them need not be."""
    a, b, c, d, e = (expr(Sym(name)) for name in "abcde")
    shape = (a, b, c, d, e * 3)
    checked = HOST.knowing(
        replace(HOST.here, products=((a * b * c * d * e * 12, MOST_BYTES),), tops={n: (expr(n), 1) for n in HOST.names})
    )
    assert str(bytes_text(Buffer("few", F32, shape[:2], "local"), checked)) == "(texpr_wide)(4LL * a) * b"
    tree = typed(a * b * c * d * e * 3, checked.here)
    assert tree.ends == (0, MOST_BYTES)
    with pytest.raises(Limitation):
        bytes_text(Buffer("many", F32, shape, "local"), HOST)


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
    """Whether 128 bits hold every part, and 64 the whole."""
    tree = typed(value, scope.here)
    return all(node.fits for node in tree.nodes()) and Width.LONG.holds(tree.ends)


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
        given = "; ".join(f"volatile {CTYPES[scope.here.widths[s]]} {s.name} = {point[s]}LL" for s in scope.names)
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
        given = "; ".join(f"int {s.name} = (int){point[s]}LL" for s in scope.names)
        text = str(index_text(value, scope)).replace("(long long)", "").replace("(tx_int128)", "").replace("LL", "")
        lines.append(f'extern "C" int f{number}() {{ {given}; return (int)({text}); }}')
    flags = ("-O0", "-fwrapv")
    library = load(tmp_path / "index", {**numeric_headers(), "f.cpp": "\n".join(lines)}, flags=flags, warn=False)
    assert any(getattr(library, f"f{number}")() != case[3] for number, case in enumerate(cases))
