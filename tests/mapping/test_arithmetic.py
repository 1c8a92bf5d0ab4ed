"""Index arithmetic is counted as it is emitted, and decides between mappings that cost memory the same, only there."""

from __future__ import annotations

import ast
import random
import re
from fractions import Fraction
from itertools import product
from math import prod

import pytest
from tests.mapping.brute import boxes, instructions
from tests.mapping.programs import PROGRAMS

from texpr.affine.expr import Sym, expr
from texpr.backends.cuda import print_kernels
from texpr.explain.sigma import sigma
from texpr.frontend import parse
from texpr.ir.steps.digits import share
from texpr.isa.registry import resolve
from texpr.lowering.lower import lower
from texpr.mapping.cost.arithmetic import least_of_warps, of_thread, of_warps
from texpr.mapping.cost.digits import Digits, of_lanes, of_loops
from texpr.mapping.cost.operations import operations
from texpr.mapping.cost.streams import Band, Stream
from texpr.mapping.cost.warps import Cost, Warps
from texpr.mapping.solve import solve

COUNTED = (
    "copy",
    "copy, rows of 3",
    "copy, rows of 7, f16",
    "copy, 33 × 37",
    "every third",
    "bias",
    "transpose f32",
    "transpose, 101 × 67",
    "planes of RGB, u8",
    "3-D permute, any size",
    "blocks of 8",
    "5-D permute f16",
    "reversal of 12 axes of 4",
    "im2col 3 × 3",
)
DECLARED = re.compile(r"int const (\w+) = (.*);")
GUARD = re.compile(r"if \((.*)\) \{")
ELEMENT = re.compile(r"[XYAxyb]+\[((?:[^][]|\[[^]]*\])*)\]")


def as_python(text: str) -> ast.expr:
    """An index of C as Python has it: no casts, and a floor of its own for each quotient."""
    text = re.sub(r"\((?:long long|int)\)|(?<=\d)LL", "", text).replace("tx_floordiv(", "floor(").replace("tx_mod(", "modulo(")
    return ast.parse(text.replace("/", "//"), mode="eval").body


def emitted(name: str) -> tuple[str, Band, Digits]:
    (function,) = parse(PROGRAMS[name]).functions
    plan, notes = lower(function, resolve("sm_90a"))
    (solved,) = notes[-1].solved
    return print_kernels(plan), solved.band, solved.solution.digits


@pytest.mark.parametrize("name", COUNTED)
def test_what_a_thread_does_once_is_what_is_emitted(name: str) -> None:
    text, band, digits = emitted(name)
    lines = [m for line in text.splitlines() if (m := DECLARED.search(line)) and "Idx" not in line.replace("thread =", "")]
    found = [as_python(m[2]) for m in lines]
    guards = [as_python(each) for m in GUARD.finditer(text) for each in m[1].split(" && ")]
    spent = instructions([*found, *(ast.Constant(0) for _ in guards)]) + len(guards)
    assert of_thread(band, digits).instructions == spent


@pytest.mark.parametrize("name", ["copy", "copy, rows of 3", "every third", "transpose f32", "blocks of 8", "5-D permute f16"])
def test_what_an_address_takes_is_what_is_emitted(name: str) -> None:
    text, band, _ = emitted(name)
    (line,) = (line for line in text.splitlines() if " = X[" in line and "TX_AT" not in line)
    assert sum(s.arithmetic for s in band.streams) == sum(instructions([as_python(m[1])]) for m in ELEMENT.finditer(line))


def test_what_is_known_of_digits_is_what_their_sums_take() -> None:
    """The closed form, and operations of the expressions that are emitted, for digits of all kinds."""
    chooser = random.Random(1)
    thread = expr(Sym("t"))
    for _ in range(300):
        loops = chooser.randint(1, 4)
        digits = tuple((chooser.randrange(loops), chooser.choice((2, 3, 4, 7, 8, 32))) for _ in range(chooser.randint(1, 4)))
        threads = prod(radix for _, radix in digits)
        band = Band(tuple(Sym(f"i{n}") for n in range(loops)), (64,) * loops, (64,) * loops, (), entered=1)
        shares = tuple(share(each, thread, threads) for each in of_loops(digits, loops))
        assert of_thread(band, digits) == operations(shares), digits


def tied(chooser: random.Random) -> Band:
    """Loops of which several cost memory the same: steps of far rows, and of one sector."""
    extents = tuple(chooser.choice((4, 8, 16, 32, 64)) for _ in range(chooser.randint(2, 4)))
    streams: list[Stream] = []
    for number in range(chooser.randint(1, 3)):
        far = iter((4096 * 4, 4096 * 64 * 4, 4096 * 4096 * 4, 1 << 34))
        steps = tuple(chooser.choice((0, 4, 32, next(far))) for _ in extents)
        streams.append(Stream(f"x{number}", 4, steps))
    return Band(tuple(Sym(f"i{n}") for n in range(len(extents))), extents, extents, tuple(streams))


def orders(band: Band) -> dict[Digits, tuple[Fraction, Fraction]]:
    """What every box of lanes costs: memory, and arithmetic."""
    found: dict[Digits, tuple[Fraction, Fraction]] = {}
    for box in boxes(32, len(band.extents)):
        if all(n <= extent for n, extent in zip(box, band.counted, strict=True)):
            digits = tuple((loop, n) for loop, n in enumerate(box) if n > 1)
            found[digits] = Warps(band).cost(digits).weighted, of_warps(band, digits)
    return found


def solved(band: Band, every: dict[Digits, tuple[Fraction, Fraction]]) -> tuple[Digits, Cost]:
    """The lanes taken, where the mapping by shape has as many digits as can be."""
    shape = max(every, key=lambda digits: (every[digits][0] == min(every.values())[0], len(digits)))
    found = solve(band, 32, shape, True)
    lanes = of_lanes(found.digits, 32)
    return lanes, Warps(band).cost(lanes)


def test_of_equals_the_cheapest_indices_are_taken_and_they_never_beat_memory() -> None:
    chooser, decided, dearer = random.Random(3), 0, 0
    for _ in range(60):
        band = tied(chooser)
        every = orders(band)
        if not every:
            continue
        lanes, cost = solved(band, every)
        least = min(every.values())
        assert (cost.weighted, of_warps(band, lanes)) == least
        decided += len({each for each in every.values() if each[0] == least[0]}) > 1
        dearer += any(each[1] < least[1] for each in every.values())
    assert decided >= 8 and dearer >= 8, "nothing was to be decided"


@pytest.mark.parametrize("wrong", ["first", "never"])
def test_arithmetic_that_comes_first_or_not_at_all_would_be_seen(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def order(cost: Cost) -> tuple[Fraction, Fraction]:
        return (cost.arithmetic, cost.weighted) if wrong == "first" else (cost.weighted, Fraction(0))

    monkeypatch.setattr(Cost, "order", property(order))
    chooser = random.Random(3)
    bands = [(band, every) for band in (tied(chooser) for _ in range(30)) if (every := orders(band))]
    taken = [(band, every, *solved(band, every)) for band, every in bands]
    assert any((cost.weighted, of_warps(band, lanes)) != min(every.values()) for band, every, lanes, cost in taken)


def test_no_mapping_is_below_the_least_arithmetic_of_its_digits() -> None:
    chooser = random.Random(5)
    for _ in range(40):
        band = tied(chooser)
        for digits, (_, arithmetic) in orders(band).items():
            for count in range(len(digits) + 1):
                assert least_of_warps(band, digits[:count]) <= arithmetic


def test_a_power_of_two_shifts() -> None:
    i, n = Sym("i"), Sym("n")
    cases = {
        expr(i) // 8 % 4: 2,
        expr(i) // 7: 4,
        expr(i) % 7: 5,
        expr(i) // 7 * 3 + expr(i) % 7: 4 + 2 + 2,
        expr(i) * 8 + 1: 2,
        expr(i) * expr(n): 1,
        expr(i) // expr(n): 24,
    }
    assert {value: operations((value,)).instructions for value in cases} == cases


def test_each_part_of_the_cost_is_explained() -> None:
    (function,) = parse(PROGRAMS["copy, rows of 3"]).functions
    said = sigma(lower(function, resolve("sm_90a"))[1][-1].solved[-1])
    assert said["operations"] == {"additions": 3, "multiplications": 1, "shifts": 1, "divisions": 1, "pairs": 1}
    assert said["arithmetic"] == 15 and all("arithmetic" in each for each in said["front"])
    parts = ("sectors", "lines", "requests", "conflicts", "arithmetic")
    for one, other in product(said["front"], repeat=2):
        assert one is other or any(one[part] > other[part] for part in parts)
