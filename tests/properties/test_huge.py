"""Index arithmetic at sizes near 2²¹, 2³¹ and 2³²: the numbers of the interpreter, or a status, and never an overflow.

Arrays are small: what brings huge sizes is an array with an extent of 0. The code is built so that an overflow traps.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.backends.compiled import load

from texpr.backends.c.headers import check_headers
from texpr.backends.cpu import headers, print_cpu
from texpr.driver import check_function, parse
from texpr.interp import run
from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.support.diagnostic import TexprError
from texpr.verifier.overflow import overflows

STATEMENTS = 20
SIZES = [1, 2, 3, 1000, 2**21 - 1, 2**21, 2**21 + 1, 2**31 - 2**16, 2**31 - 2**16 + 1, 2**31 - 1, 2**31, 2**32, 2**32 + 1]
LONG = 20_000
BAD_SIZE = -5


def number(rng: random.Random, depth: int) -> str:
    """An index expression of a loop and of sizes; what it divides by is never 0."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["i", "i", "n", "n", "m", "7", "1", "2147483647"])
    a, b = number(rng, depth - 1), number(rng, depth - 1)
    match rng.randrange(9):
        case 0 | 1 | 2:
            return f"({a} * {b})"
        case 3:
            return f"({a} + {b})"
        case 4:
            return f"({a} - {b})"
        case 5:
            return f"min({a}, {b})"
        case 6:
            return f"max({a}, {b})"
        case 7:
            return f"({a} / (max({b}, 0) + 1))"
        case _:
            return f"({a} % (max({b}, 0) + 1))"


def statement(rng: random.Random, out: str) -> str:
    """One with such a subscript, brought into bounds by a remainder or by an extremum."""
    value = number(rng, 3)
    inside = f"({value}) % k" if rng.random() < 0.6 else f"min(max({value}, 0), k - 1)"
    return f"{out}[i] = x[{inside}]"


def program(lines: dict[str, str]) -> Function:
    """A function of statements by what they write."""
    news = "\n".join(f"new {out}: i8[k]" for out in lines)
    head = f"fn f(x: i8[k], w: i8[n, z], v: i8[m, z]): ({', '.join('i8[k]' for _ in lines)})"
    body = "\n".join(lines.values())
    return parse(f"{head} {{ {news}\npar k |i| {{ {body} }}\nreturn ({', '.join(lines)}) }}").functions[0]


def programs(seeds: range) -> Iterator[tuple[int, Function, Plan]]:
    """Functions of what is legal among random statements, lowered for the CPU."""
    for seed in seeds:
        rng, legal = random.Random(seed), dict[str, str]()
        while len(legal) < STATEMENTS:
            out = f"y{len(legal)}"
            line = statement(rng, out)
            try:
                if not check_function(program({out: line})):  # refused is no wrong number
                    legal[out] = line
            except TexprError:
                continue
        function = program(legal)
        yield seed, function, lower(function, resolve("cpu"))[0]


def called(library: ctypes.CDLL, plan: Plan, x: np.ndarray, n: int, m: int) -> tuple[int, list[np.ndarray]]:
    """The status of a call, and its results."""
    outs = [np.full_like(x, 99) for _ in plan.results]
    sizes = {"k": len(x), "n": n, "m": m, "z": 0}
    empty = np.zeros(1, np.int8)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, empty, empty, *outs)]
    numbers = [ctypes.c_int64(sizes[size.name]) for size in plan.sizes]
    return library.texpr_f(None, None, *pointers, *numbers), outs


def differences(seeds: range, folder: Path) -> tuple[int, int, list[str]]:
    """How many subscripts were compared, how many calls were refused, and what differs."""
    compared = refused = 0
    found: list[str] = []
    for seed, function, plan in programs(seeds):
        found += [f"{seed}: {o.about}: {o.how}" for o in overflows(plan) if o.verdict is not Verdict.PROVED]
        sources = {**headers(), **check_headers(), "f.cpp": print_cpu(plan)}
        flags = ("-O0", "-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error")
        library = load(folder / str(seed), sources, flags=flags, warn=False)
        rng = random.Random(seed)
        for _ in range(4):
            n, m = rng.choice(SIZES), rng.choice(SIZES)
            x = np.arange(rng.choice([1, 5, 8]), dtype=np.int8)
            status, outs = called(library, plan, x, n, m)
            if status != 0:
                refused += 1
                found += [] if status == BAD_SIZE else [f"{seed}: status {status} at n = {n}, m = {m}"]
                continue
            given = {"x": x, "w": np.zeros((n, 0), np.int8), "v": np.zeros((m, 0), np.int8)}
            wanted = run(function, given)
            compared += len(outs)
            for result, out in zip(function.results, outs, strict=True):
                if not np.array_equal(out, wanted[result.name]):
                    found.append(f"{seed}: {result.name} at n = {n}, m = {m}: {out} for {wanted[result.name]}")
    return compared, refused, found


def test_numbers_or_a_status(tmp_path: Path) -> None:
    compared, refused, found = differences(range(6), tmp_path)
    assert not found, found[:5]
    assert compared > 100 and refused > 0


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_numbers_or_a_status_at_length(part: int, tmp_path: Path) -> None:
    each = LONG // STATEMENTS // 20
    _, _, found = differences(range(100 + part * each, 100 + (part + 1) * each), tmp_path)
    assert not found, found[:5]
