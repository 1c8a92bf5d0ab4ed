"""Products whose rows several loops count: convolutions on tensor cores. They are proved, and their numbers are right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain, product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.machine_code import built, code_of, spills_nothing
from tests.planted import open_of, plain
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.emulator import LOCKSTEP
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof import Verdict
from texpr.planner.nest import Forbidden
from texpr.planner.strategies import products, warpgroups
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record

Array = NDArray[np.generic]

PLAIN = """
fn f(X: bf16[B, H, W, C] align(16), K: bf16[3, 3, C, F] align(16)): bf16[B, H, W, F]
    where C % 8 == 0, F % 8 == 0
{
    let Z = pad(X, (0, 1, 1, 0), (0, 1, 1, 0), 0.0)
    new Y: bf16[B, H, W, F]
    par B |b| { par H |p| { par W |q| { par F |f| {
        new s: f32 = 0.0
        seq 3 |r| reduce(s) { seq 3 |t| reduce(s) { seq C |c| reduce(s) { s += Z[b, p + r, q + t, c] * K[r, t, c, f] } } }
        Y[b, p, q, f] = bf16(max(s, 0.0))
    } } } }
    return Y
}
"""
STRIDED = """
fn f(X: bf16[B, 2 * H + 1, 2 * W + 1, C] align(16), K: bf16[3, 3, C, F] align(16)): f32[B, H, W, F]
    where C % 8 == 0, F % 8 == 0
{
    new Y: f32[B, H, W, F]
    par B |b| { par H |p| { par W |q| { par F |f| {
        Y[b, p, q, f] = 0.0
        seq 3 |r| reduce(Y) { seq 3 |t| reduce(Y) { seq C |c| reduce(Y) {
            Y[b, p, q, f] += X[b, 2 * p + r, 2 * q + t, c] * K[r, t, c, f]
        } } }
    } } } }
    return Y
}
"""
DATA = """
fn f(X: bf16[B, H, W, C] align(16), K: bf16[3, 3, F, C] align(16)): bf16[B, H, W, F]
    where C % 8 == 0, F % 8 == 0
{
    let Z = pad(X, (0, 1, 1, 0), (0, 1, 1, 0), 0.0)
    new Y: bf16[B, H, W, F]
    par B |b| { par H |p| { par W |q| { par F |f| {
        new s: f32 = 0.0
        seq 3 |r| reduce(s) { seq 3 |t| reduce(s) { seq C |c| reduce(s) {
            s += Z[b, p + 2 - r, q + 2 - t, c] * K[r, t, f, c]
        } } }
        Y[b, p, q, f] = bf16(s)
    } } } }
    return Y
}
"""
"""The gradient of what a convolution has read: taps go the other way."""
DEEP = """
fn f(X: bf16[B, D, H, W, C] align(16), K: bf16[3, 3, 3, C, F] align(16)): bf16[B, D, H, W, F]
    where C % 8 == 0, F % 8 == 0
{
    let Z = pad(X, (0, 1, 1, 1, 0), (0, 1, 1, 1, 0), 0.0)
    new Y: bf16[B, D, H, W, F]
    par B |b| { par D |d| { par H |p| { par W |q| { par F |f| {
        new s: f32 = 0.0
        seq 3 |u| reduce(s) { seq 3 |r| reduce(s) { seq 3 |t| reduce(s) { seq C |c| reduce(s) {
            s += Z[b, d + u, p + r, q + t, c] * K[u, r, t, c, f]
        } } } }
        Y[b, d, p, q, f] = bf16(s)
    } } } } }
    return Y
}
"""
TURNED = """
fn f(X: bf16[B, H, W, C] align(16), K: bf16[2, 2, C, F] align(16)): bf16[B, H, 2, W, 2, F]
    where C % 8 == 0, F % 8 == 0
{
    new Y: bf16[B, H, 2, W, 2, F]
    par B |b| { par H |p| { par 2 |r| { par W |q| { par 2 |t| { par F |f| {
        new s: f32 = 0.0
        seq C |c| reduce(s) { s += X[b, p, q, c] * K[r, t, c, f] }
        Y[b, p, r, q, t, f] = bf16(s)
    } } } } } }
    return Y
}
"""


class Case(Record):
    """A convolution along the `axes` of an image, at every so many pixels (`step`), with a border of so many zeros."""

    text: str
    sizes: tuple[dict[str, int], ...]
    axes: str = "HW"
    step: int = 1
    border: int = 0

    def arguments(self, sizes: Mapping[str, int]) -> dict[str, Array]:
        """Small whole numbers."""
        rng, taps = np.random.default_rng(7), 2 if self.text is TURNED else 3
        space = [self.step * sizes[axis] + (self.step > 1) for axis in self.axes]
        deep = (sizes["F"], sizes["C"]) if self.text is DATA else (sizes["C"], sizes["F"])
        shapes = {"X": (sizes["B"], *space, sizes["C"]), "K": (*[taps] * len(space), *deep)}
        return {name: rng.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}

    def wanted(self, given: Mapping[str, Array], sizes: Mapping[str, int]) -> NDArray[np.float64]:
        """The sums, tap by tap."""
        x, w = (given[name].astype(np.float64) for name in "XK")
        w = w[::-1, ::-1] if self.text is DATA else w
        if self.text is TURNED:
            return np.einsum("bpqc,rtcf->bprqtf", x, w)
        x = np.pad(x, ((0, 0), *[(self.border, self.border)] * len(self.axes), (0, 0)))
        made = np.zeros((sizes["B"], *(sizes[axis] for axis in self.axes), sizes["F"]))
        for taps in product(range(3), repeat=len(self.axes)):
            ends = [(tap, self.step * (sizes[axis] - 1) + tap + 1) for tap, axis in zip(taps, self.axes, strict=True)]
            made += x[:, *(slice(*end, self.step) for end in ends)] @ (w[taps].T if self.text is DATA else w[taps])
        return np.maximum(made, 0.0) if self.text is PLAIN else made

    def rounded(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums as they are stored."""
        return sums if self.text is STRIDED else sums.astype(ml_dtypes.bfloat16).astype(np.float64)


def sizes(**of: int) -> dict[str, int]:
    return of


CASES = {
    "plain": Case(PLAIN, (sizes(B=3, H=5, W=7, C=72, F=40), sizes(B=2, H=2, W=3, C=8, F=8)), border=1),
    "strided": Case(STRIDED, (sizes(B=3, H=5, W=3, C=72, F=24), sizes(B=2, H=2, W=3, C=8, F=8)), step=2),
    "data": Case(DATA, (sizes(B=3, H=5, W=7, C=72, F=40), sizes(B=2, H=2, W=3, C=8, F=8)), border=1),
    "deep": Case(DEEP, (sizes(B=2, D=3, H=2, W=5, C=8, F=24), sizes(B=2, D=1, H=2, W=2, C=72, F=8)), axes="DHW", border=1),
    "transposed": Case(TURNED, (sizes(B=3, H=5, W=7, C=72, F=40), sizes(B=2, H=2, W=3, C=8, F=8))),
}
REAL = {
    "plain": sizes(B=32, H=14, W=14, C=256, F=256),
    "strided": sizes(B=32, H=28, W=28, C=128, F=128),
    "data": sizes(B=32, H=56, W=56, C=64, F=64),
    "deep": sizes(B=4, D=16, H=28, W=28, C=128, F=128),
    "transposed": sizes(B=16, H=56, W=56, C=256, F=128),
}


@cache
def compiled(name: str, at: tuple[tuple[str, int], ...] | None = None) -> Compiled:
    return lower(parse(CASES[name].text)["f"], "sm_90a", None if at is None else dict(at), schedule="auto")


def agrees(name: str, made: Compiled, at: Mapping[str, int], seeds: Iterable[int | None]) -> None:
    """Numbers are those of NumPy, and no detector finds a fault."""
    given = CASES[name].arguments(at)
    right = CASES[name].rounded(CASES[name].wanted(given, at))
    for seed in seeds:
        found = run_plan(made.function, made.plan, given, at if made.function.sizes else None, seed=seed)
        assert not found.reports, found.reports[0]
        np.testing.assert_array_equal(found.arrays["Y"].astype(np.float64), right)


def tile(made: Compiled) -> Mapping[str, Any]:
    assert made.planned is not None
    (chosen,) = made.planned.nests
    assert chosen.candidate is not None, chosen
    return chosen.candidate.data()


def opened(made: Compiled) -> list[object]:
    """What is not proved of a schedule and its plan."""
    assert made.written is not None
    proof = faithful(made.written, made.function)
    left = chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))
    return [*left, *undecided(made.function, made.plan)]


def nothing(*_: object) -> None:
    return None


def forbid(*_: object) -> None:
    raise Forbidden("instructions of warps are wanted")


@cache
def by(team: str, name: str, number: int = 0) -> tuple[Compiled, dict[str, int]]:
    """A small convolution by instructions of warps or of warpgroups, though threads would be done as soon, and its sizes."""
    at = CASES[name].sizes[number]
    with pytest.MonkeyPatch.context() as patch:
        for strategy in (products, warpgroups):
            patch.setattr(strategy, "require_filled", nothing)
        if team == "warpgroup":
            patch.setattr(products, "product_of", nothing)
        else:
            patch.setattr(warpgroups, "require_filled", forbid)
        made = lower(parse(CASES[name].text)["f"], "sm_90a", at, schedule="auto")
    assert tile(made).get("team", "warp") == team and (number or "rows" in tile(made)["warp"])
    return made, at


@pytest.mark.parametrize("team", ["warp", "warpgroup"])
@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str, team: str) -> None:
    """Of sizes that no tile divides."""
    agrees(name, *by(team, name), (None, LOCKSTEP, 1))


@pytest.mark.long
@pytest.mark.parametrize("team", ["warp", "warpgroup"])
@pytest.mark.parametrize("name", CASES)
def test_emulated_of_few_pixels(name: str, team: str) -> None:
    agrees(name, *by(team, name, 1), (None, LOCKSTEP, 1))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_emulated_at_every_size(name: str) -> None:
    for at in CASES[name].sizes:
        agrees(name, compiled(name), at, (None, 1))


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    assert opened(compiled(name, tuple(REAL[name].items()))) == []


@pytest.mark.parametrize("team", ["warp", "warpgroup"])
@pytest.mark.parametrize("name", CASES)
def test_proved_of_parts_of_tiles(name: str, team: str) -> None:
    assert opened(by(team, name)[0]) == []


@pytest.mark.parametrize("name", CASES)
def test_proved_at_every_size(name: str) -> None:
    assert opened(compiled(name)) == []


@pytest.mark.parametrize(("name", "of"), [
    ("plain", {"b": 32, "p": 2, "q": 2, "f": 128, "c": 64}),
    ("strided", {"b": 16, "p": 4, "q": 4, "f": 128, "c": 64}),
    ("deep", {"b": 1, "d": 16, "p": 4, "q": 4, "f": 128, "c": 64}),
    ("transposed", {"b": 2, "p": 8, "q": 8, "f": 128, "c": 64}),
])  # fmt: skip
def test_nothing_of_a_tile_is_empty(name: str, of: dict[str, int]) -> None:
    """Where extents allow it; the bound is a few times what any program needs, and loops of the sum are one."""
    found = tile(compiled(name, tuple(REAL[name].items())))
    assert found["tile"] == of and found["stages"] == (3 if name == "transposed" else 4)


def test_rows_that_one_loop_counts_are_left_to_it() -> None:
    text = PLAIN.replace("3, 3, C, F", "1, 1, C, F").replace("seq 3", "seq 1").replace("(0, 1, 1, 0)", "(0, 0, 0, 0)")
    found = tile(lower(parse(text)["f"], "sm_90a", sizes(B=8, H=32, W=256, C=64, F=64), schedule="auto"))
    assert found["tile"] == {"q": 128, "f": 64, "c": 64}


@pytest.mark.parametrize(("name", "copies"), [("plain", "UTMALDG.4D"), ("deep", "UTMALDG.5D")])
def test_machine_code(name: str, copies: str) -> None:
    """Products are as planned, the engine copies boxes of images, and nothing is spilled."""
    made = compiled(name, tuple(REAL[name].items()))
    code = code_of(found := built(made.source))
    assert spills_nothing(found)
    assert "HGMMA.64x128x16.F32.BF16" in code and copies in code


COPY = "X_map[64 * (r_m % 2), ((r_m / 2) % 3) - 1, (r_m / 6) - 1, b]"
FILTER = "K_map[0, 64 * (r_m % 2), ((r_m / 2) % 3) + 3 * (r_m / 6)]"
BUGS = {
    "another image": (COPY, COPY.replace("b]", "0]")),
    "rows for columns": (COPY, COPY.replace("(r_m / 6) - 1", "((r_m / 2) % 3) - 1")),
    "the first channels each time": (COPY, COPY.replace("64 * (r_m % 2)", "0")),
    "channels of another turn": (COPY, COPY.replace("(r_m % 2)", "(r_m / 9)")),
    "another tap": (FILTER, FILTER.replace("3 * (r_m / 6)", "3 * (r_m / 9)")),
    "a tap too few": ("for r_m in 0..20", "for r_m in 0..19"),
    "taps turned round": (FILTER, FILTER.replace("((r_m / 2) % 3) + 3 * (r_m / 6)", "3 * ((r_m / 2) % 3) + r_m / 6")),
    "every other pixel": ("box [64, 8, 8, 1] steps [1, 1, 1, 1]", "box [64, 16, 8, 1] steps [1, 2, 1, 1]"),
    "rows half as long": ("box [64, 8, 8, 1]", "box [64, 4, 16, 1]"),
    "an image that is narrower": ("sizes [72, 7, 5, 3]", "sizes [72, 6, 5, 3]"),
    "rows that are there alone": ("bytes 16384", "bytes 15360"),
    "results of other rows": ("Y[b, r_4 + 2 * (lane_1 / 32), ", "Y[b, r_4 + 2 * (lane_1 / 64), "),
    "no border": (COPY, COPY.replace("3) - 1", "3)")),
    "a column that is not there": ("< i64(7)", "< i64(8)"),
    "a row too few": ("< i64(5)", "< i64(4)"),
}  # fmt: skip


def planted(name: str) -> tuple[Compiled, k.Plan, dict[str, int]]:
    (made, at), (old, new) = by("warpgroup", "plain"), BUGS[name]
    text = plain(made.plan)
    assert old in text, (old, text)
    return made, parse_plan(text.replace(old, new)), at


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    made, plan, _ = planted(name)
    assert open_of(made, plan)


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_the_emulator_shows_it(name: str) -> None:
    made, plan, at = planted(name)
    given = CASES["plain"].arguments(at)
    right = CASES["plain"].rounded(CASES["plain"].wanted(given, at))
    try:
        run = run_plan(made.function, plan, given)
        assert not run.reports
    except (CompilerBug, AssertionError):
        return  # it cannot even be launched, or a detector finds it
    assert not np.array_equal(run.arrays["Y"].astype(np.float64), right)


def test_what_is_right_is_proved() -> None:
    made, _ = by("warpgroup", "plain")
    assert not open_of(made, parse_plan(plain(made.plan)))
