"""Index arithmetic at sizes near 2²¹, 2³¹ and 2³²: the numbers of the interpreter, or a status, and never an overflow.

Arrays are small: what brings huge sizes is an array with an extent of 0. The code is built so that an overflow traps.
"""

from __future__ import annotations

import ctypes
import itertools
import random
from pathlib import Path

import numpy as np
import pytest
from tests.backends.compiled import load
from tests.lowering.emulated import results, run_plan

from texpr.affine.expr import Sym
from texpr.backends.c.headers import check_headers
from texpr.backends.cpu import headers, print_cpu
from texpr.driver import check_function, parse
from texpr.interp import run
from texpr.ir.kernel import Plan
from texpr.ir.program import Function
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.proof.plan.overflow import overflows
from texpr.support.diagnostic import TexprError
from texpr.support.limits import LARGEST_SIZE

FUNCTIONS = 40
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


def program(rng: random.Random, name: str) -> Function:
    """A function with such a subscript, brought into bounds by a remainder or by an extremum."""
    value = number(rng, 3)
    inside = f"({value}) % k" if rng.random() < 0.6 else f"min(max({value}, 0), k - 1)"
    head = f"fn {name}(x: i8[k], w: i8[n, z], v: i8[m, z]): i8[k]"
    return parse(f"{head} {{ new y: i8[k]\npar k |i| {{ y[i] = x[{inside}] }}\nreturn y }}").functions[0]


def programs(seed: int, count: int, target: str = "cpu") -> list[tuple[Function, Plan]]:
    """So many random functions that are legal, lowered for a target."""
    rng, found = random.Random(seed), list[tuple[Function, Plan]]()
    while len(found) < count:
        try:
            function = program(rng, f"at{len(found)}")
            if not check_function(function):  # refused is no wrong number
                found.append((function, lower(function, resolve(target))[0]))
        except TexprError:
            continue
    return found


def called(library: ctypes.CDLL, plan: Plan, x: np.ndarray, n: int, m: int) -> tuple[int, np.ndarray]:
    """The status of a call, and its result."""
    out = np.full_like(x, 99)
    sizes = {"k": len(x), "n": n, "m": m, "z": 0}
    empty = np.zeros(1, np.int8)
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, empty, empty, out)]
    numbers = [ctypes.c_int64(sizes[size.name]) for size in plan.sizes]
    return getattr(library, f"texpr_{plan.name}")(None, None, *pointers, *numbers), out


def given(x: np.ndarray, n: int, m: int) -> dict[str, np.ndarray]:
    """What the interpreter is given for the same call."""
    return {"x": x, "w": np.zeros((n, 0), np.int8), "v": np.zeros((m, 0), np.int8)}


def unproved(plan: Plan) -> list[str]:
    """What the verifier does not show of a plan's integers."""
    return [f"{o.about}: {o.how}" for o in overflows(plan) if o.verdict is not Verdict.PROVED]


def differences(seed: int, folder: Path) -> tuple[int, int, list[str]]:
    """How many results were compared, how many calls were refused, and what differs."""
    compared = refused = 0
    found: list[str] = []
    both = programs(seed, FUNCTIONS)
    sources = {**headers(), **check_headers(), "f.cpp": "\n".join(print_cpu(plan) for _, plan in both)}
    flags = ("-O0", "-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error")
    library = load(folder / str(seed), sources, flags=flags, warn=False)
    rng = random.Random(seed)
    for function, plan in both:
        found += [f"{function.body}: {why}" for why in unproved(plan)]
        for _ in range(4):
            n, m = rng.choice(SIZES), rng.choice(SIZES)
            x = np.arange(rng.choice([1, 5, 8]), dtype=np.int8)
            status, out = called(library, plan, x, n, m)
            if status != 0:
                refused += 1
                found += [] if status == BAD_SIZE else [f"status {status} of {function.body} at n = {n}, m = {m}"]
                continue
            compared += 1
            wanted = run(function, given(x, n, m))["y"]
            if not np.array_equal(out, wanted):
                found.append(f"{function.body} at n = {n}, m = {m}: {out} for {wanted}")
    return compared, refused, found


def test_numbers_or_a_status(tmp_path: Path) -> None:
    compared, refused, found = differences(0, tmp_path)
    assert not found, found[:5]
    assert compared > 60 and refused > 10


@pytest.mark.parametrize("seed", range(3))
def test_emulated_numbers(seed: int) -> None:
    ((function, plan),) = programs(seed, 1, "sm_90a")
    assert not unproved(plan)
    compared = 0
    for n, m in itertools.product([1, 3, 2**21, LARGEST_SIZE], repeat=2):
        sizes = {Sym("k"): 8, Sym("n"): n, Sym("m"): m, Sym("z"): 0}
        if all(bound.left.evaluate(sizes) <= bound.right.constant for bound in plan.bounds):  # as a launcher asks
            data = given(np.arange(8, dtype=np.int8), n, m)
            compared += 1
            found, wanted = results(function, run_plan(function, plan, data)), run(function, data)
            assert np.array_equal(found["y"], wanted["y"]), (n, m)
    assert compared


LOOPS = {
    "par": ("par C * H * W |i| { if i < 8 { t[i] += 1.0 } }", 3),
    "seq": ("par 8 |c| { seq C * H * W |i| { if i < 3 { t[c] += 1.0 } } }", 3),
    "inside": ("par 8 |c| { par C * H * W |i| { if i < 1 { t[c] += 1.0 } } }", 3),
    "reduce": ("par C * H * W |i| reduce(t) { if i < 8 { t[0] += 1.0 } }", 3),
    "of the host": ("seq C * H * W |k| { par 8 |i| { if k < 2 { t[i] += 1.0 } } }", 3),
    "both": ("par 8 |c| { seq c * C * H * W |i| { if i < 3 { t[c] += 1.0 } } }", 3),
    "a power": ("par C * C * C * H * H * W * W |i| { if i < 8 { t[i] += 1.0 } }", 7),
    "a sum": ("par C * H * W + C * C * H + 5 |i| { if i < 8 { t[i] += 1.0 } }", 3),
    "less": ("par C * H * W - W * C * H * C |i| { if i < 8 { t[i] += 1.0 } }", 4),
}
"""Loops over products of sizes, which overflow 64 bits where they are of so many large ones."""


def looped(name: str, target: str) -> tuple[Function, Plan]:
    text = f"fn f(x: f32[C, z], y: f32[H, z], w: f32[W, z], inout t: f32[8]) {{ {LOOPS[name][0]} }}"
    function = parse(text).functions[0]
    assert check_function(function) == ()
    return function, lower(function, resolve(target))[0]


@pytest.mark.unproved("loops over products of sizes")
@pytest.mark.parametrize("name", LOOPS)
def test_extents_beyond_64_bits_are_a_status(name: str, tmp_path: Path) -> None:
    """Sizes whose product is too large are refused by the launcher; small ones run, a 0 among large ones, too."""
    function, plan = looped(name, "cpu")
    assert not unproved(plan) and not unproved(looped(name, "sm_90a")[1])
    sources = {**headers(), **check_headers(), "f.cpp": print_cpu(plan)}
    flags = ("-O0", "-fsanitize=signed-integer-overflow", "-fsanitize-undefined-trap-on-error")
    library = load(tmp_path, sources, flags=flags, warn=False)
    nothing, memory = np.zeros(1, np.float32), np.zeros(1024, np.uint8)
    large, empty = LARGEST_SIZE, ctypes.c_void_p(nothing.ctypes.data)
    room = ctypes.c_void_p((memory.ctypes.data + 255) // 256 * 256)
    statuses: list[int] = []
    for numbers in ((large, large, large), (2**21, 2**21, 2**21), (2**31, 1, 1), (2, 3, 1), (0, large, 1), (1, 1, 0)):
        t = np.arange(8, dtype=np.float32)
        sizes = {**dict(zip("CHW", numbers, strict=True)), "z": 0}
        pointers = (empty, empty, empty, ctypes.c_void_p(t.ctypes.data))
        statuses.append(library.texpr_f(None, room, *pointers, *(ctypes.c_int64(sizes[size.name]) for size in plan.sizes)))
        if statuses[-1] == 0:
            given = {"x": np.zeros((numbers[0], 0), np.float32), "t": np.arange(8, dtype=np.float32)}
            given |= {"y": np.zeros((numbers[1], 0), np.float32), "w": np.zeros((numbers[2], 0), np.float32)}
            np.testing.assert_array_equal(t, run(function, given)["t"])
    assert statuses[:3] == [BAD_SIZE] * 3 and statuses[3] == 0


def test_a_loop_over_what_data_multiply_is_refused() -> None:
    text = "fn f(x: f32[C], p: i32[C], inout t: f32[C]) { par C |c| { let k = p[c]  seq C * C * k |i| { t[c] += 1.0 } } }"
    for target in ("cpu", "sm_90a"):
        with pytest.raises(TexprError, match="E0506"):
            lower(parse(text).functions[0], resolve(target))


@pytest.mark.long
@pytest.mark.parametrize("part", range(20))
def test_numbers_or_a_status_at_length(part: int, tmp_path: Path) -> None:
    each = LONG // FUNCTIONS // 20
    for seed in range(100 + part * each, 100 + (part + 1) * each):
        _, _, found = differences(seed, tmp_path)
        assert not found, found[:5]
