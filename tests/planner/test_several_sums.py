"""Loops that sum up several products: all go to tensor cores, on operands that are staged once, and numbers are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import chain

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering.emulated import run_plan
from tests.planted import open_of, plain
from tests.proofs import undecided

from texpr.driver import Compiled, lower, parse
from texpr.emulator import LOCKSTEP
from texpr.explain import explain
from texpr.ir import program as ir
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.record import Record
from texpr.toolchain.machine import this_machine

Array = NDArray[np.generic]
Floats = NDArray[np.float64]

NUMPY: Mapping[str, type[np.generic]] = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "i8": np.int8}

GIVEN = "X: bf16[M, K] align(16), A: bf16[N, K] align(16), B: bf16[N, K] align(16)"

RUNS = (((67, 13, 328), True, (None, LOCKSTEP, 1)), ((1, 1, 8), False, (None,)), ((5, 7, 0), False, (None,)))
"""Sizes, whether they are fixed when it is built, and orders of threads."""


class Case(Record):
    """A program of sums. `given`: the types and shapes of operands; `sums`: what each sums up, in `C`; `wanted`: the result, in
    NumPy; `used`: the instructions of a warpgroup, and of a warp."""

    given: Mapping[str, tuple[str, str]]
    sums: tuple[str, ...]
    wanted: Callable[[Mapping[str, Floats]], Floats]
    used: tuple[str, str] = ("wgmma_m64n128k16_f32_bf16", "mma_m16n8k16_f32_bf16")
    result: str = "s0 + 2.0 * s1"
    into: str = "f32"
    multiples: tuple[int, int, int] = (1, 1, 8)
    columns: str = "N"

    @property
    def text(self) -> str:
        """The program."""
        names = [f"s{number}" for number in range(len(self.sums))]
        promise = ", ".join(f"{size} % {by} == 0" for size, by in zip("MNK", self.multiples, strict=True) if by > 1)
        zero = "0" if self.into == "i32" else "0.0"
        params = ", ".join(f"{name}: {of}[{shape}] align(16)" for name, (of, shape) in self.given.items())
        return f"""
fn f({params}): {self.into}[M, {self.columns}]
    where {promise}
{{
    new C: {self.into}[M, {self.columns}]
    par M |i| {{ par {self.columns} |j| {{
        {" ".join(f"new {name}: {self.into} = {zero}" for name in names)}
        seq K |k| reduce({", ".join(names)}) {{
            {" ".join(f"{name} += {each}" for name, each in zip(names, self.sums, strict=True))}
        }}
        C[i, j] = {self.result}
    }} }}
    return C
}}
"""

    def rounded(self, at: tuple[int, int, int]) -> dict[str, int]:
        """Such sizes as are promised, of those that it has."""
        whole = (-(-size // by) * by for size, by in zip(at, self.multiples, strict=True))
        return {
            name: size for name, size in zip("MNK", whole, strict=True) if f"{name}]" in self.text or f"{name}," in self.text
        }

    def arguments(self, sizes: Mapping[str, int]) -> dict[str, Array]:
        """Small whole numbers."""
        rng = np.random.default_rng(7)
        shapes = {name: [sizes[each] for each in shape.split(", ")] for name, (_, shape) in self.given.items()}
        return {name: rng.integers(-3, 4, shape).astype(NUMPY[self.given[name][0]]) for name, shape in shapes.items()}


ROWS, COLUMNS, ACROSS = ("bf16", "M, K"), ("bf16", "N, K"), ("bf16", "K, N")
GATED = {"X": ROWS, "A": COLUMNS, "B": COLUMNS}
CASES = {
    "two of one": Case(
        GATED, ("X[i, k] * A[j, k]", "X[i, k] * B[j, k]"), lambda of: of["X"] @ of["A"].T + 2 * of["X"] @ of["B"].T
    ),
    "three of one": Case(
        {**GATED, "D": COLUMNS}, ("X[i, k] * A[j, k]", "X[i, k] * B[j, k]", "X[i, k] * D[j, k]"),
        lambda of: of["X"] @ of["A"].T + 2 * of["X"] @ of["B"].T - of["X"] @ of["D"].T,
        ("wgmma_m64n96k16_f32_bf16", "mma_m16n8k16_f32_bf16"), result="s0 + 2.0 * s1 - s2",
    ),
    "two of two": Case(
        {**GATED, "Z": ROWS}, ("X[i, k] * A[j, k]", "Z[i, k] * B[j, k]"),
        lambda of: of["X"] @ of["A"].T + 2 * of["Z"] @ of["B"].T,
        ("wgmma_m64n96k16_f32_bf16", "mma_m16n8k16_f32_bf16"),
    ),
    "one that lies otherwise": Case(
        {**GATED, "B": ACROSS}, ("X[i, k] * A[j, k]", "X[i, k] * B[k, j]"),
        lambda of: of["X"] @ of["A"].T + 2 * of["X"] @ of["B"],
        ("wgmma_m64n128k16_f32_bf16, wgmma_m64n128k16_f32_bf16_bn", "mma_m16n8k16_f32_bf16"),
        multiples=(1, 8, 8),
    ),
    "two types": Case(
        {"X": ROWS, "A": COLUMNS, "Z": ("f16", "M, K"), "B": ("f16", "N, K")}, ("X[i, k] * A[j, k]", "Z[i, k] * B[j, k]"),
        lambda of: of["X"] @ of["A"].T + 2 * of["Z"] @ of["B"].T,
        ("wgmma_m64n96k16_f32_bf16, wgmma_m64n96k16_f32_f16", "mma_m16n8k16_f32_bf16, mma_m16n8k16_f32_f16"),
    ),
    "i8": Case(
        {"X": ("i8", "M, K"), "A": ("i8", "N, K"), "B": ("i8", "N, K")},
        ("i32(X[i, k]) * i32(A[j, k])", "i32(X[i, k]) * i32(B[j, k])"),
        lambda of: of["X"] @ of["A"].T + 2 * of["X"] @ of["B"].T,
        ("wgmma_m64n128k32_i32_i8", "mma_m16n8k32_i32_i8"), result="s0 + 2 * s1", into="i32", multiples=(1, 1, 16),
    ),
    "with itself": Case(
        {"X": ROWS, "B": ROWS}, ("X[i, k] * X[j, k]", "X[i, k] * B[j, k]"),
        lambda of: of["X"] @ of["X"].T + 2 * of["X"] @ of["B"].T, columns="M",
    ),
}  # fmt: skip
TARGETS = ("sm_90a", "sm_80")


@cache
def compiled(name: str, target: str, at: tuple[int, int, int] | None = None) -> Compiled:
    sizes = None if at is None else CASES[name].rounded(at)
    return lower(parse(CASES[name].text)["f"], target, sizes, schedule="auto")


def instructions(made: Compiled) -> list[str]:
    """What does the products, of each nest."""
    assert made.planned is not None
    tiles = (each.candidate.data() if each.candidate is not None else {} for each in made.planned.nests)
    return [str(tile.get("instruction", "")) for tile in tiles]


def rings(function: ir.Function) -> list[str]:
    """What is staged in shared memory."""
    return sorted(s.buffer.name for s in ir.walk(function.body) if isinstance(s, ir.New) and s.space == "shared")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_taken_and_proved(name: str, target: str) -> None:
    made, case = compiled(name, target), CASES[name]
    assert instructions(made) == [case.used[TARGETS.index(target)]]
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("at", "fix", "seeds"), RUNS)
def test_numbers(name: str, target: str, at: tuple[int, int, int], fix: bool, seeds: tuple[int | None, ...]) -> None:
    """Those of NumPy, and no detector finds a fault."""
    case = CASES[name]
    sizes, made = case.rounded(at), compiled(name, target, at if fix else None)
    given = case.arguments(sizes)
    right = case.wanted({each: array.astype(np.float64) for each, array in given.items()})
    for seed in seeds:
        found = run_plan(made.function, made.plan, given, None if fix else sizes, seed=seed)
        assert not found.reports, found.reports[0]
        np.testing.assert_array_equal(found.arrays["C"], right, str(sizes))


def test_what_several_sums_read_is_staged_once() -> None:
    assert rings(compiled("two of one", "sm_90a").function) == ["A_s", "B_s", "X_s"]


def planned(body: str, given: str = GIVEN, target: str = "sm_90a", sizes: Mapping[str, int] | None = None) -> Compiled:
    return lower(parse(f"fn f({given}) : f32[M, N] where K % 8 == 0 {{ {body} }}")["f"], target, sizes, schedule="auto")


SUMS = """
    new C: f32[M, N]
    par M |i| { par N |j| {
        new s: f32 = 0.0  new t: f32 = 0.0
        seq K |k| reduce(s, t) { s += X[i, k] * A[j, k]  t += X[i, k] * B[j, k] }
        C[i, j] = s * t
    } }
    return C
"""


LEFT = {
    "a sum of what another one is so far": SUMS.replace("(s, t)", "(t)").replace("X[i, k] * B[j, k]", "s * f32(B[j, k])"),
    "no product of matrices": SUMS.replace("X[i, k] * B[j, k]", "X[i, k] * X[i, k]"),
    "one in order": SUMS.replace("reduce(s, t)", "reduce(s)"),
    "rows of one instruction are columns of the other": SUMS.replace("X[i, k] * B[j, k]", "B[j, k] * X[i, k]"),
    "two into one": SUMS.replace("t += X", "s += X").replace("reduce(s, t)", "reduce(s)"),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("why", LEFT)
def test_left(why: str, target: str) -> None:
    assert "mma" in "".join(instructions(planned(SUMS, target=target)))
    assert "mma" not in "".join(instructions(planned(LEFT[why], target=target)))


def test_a_gated_layer_comes_near_what_any_program_needs() -> None:
    """Tiles of both sums fit the registers of two warpgroups."""
    made = planned(SUMS, sizes={"M": 4096, "N": 11008, "K": 4096})
    assert instructions(made) == ["wgmma_m64n128k16_f32_bf16"]
    assert explain(made, this_machine())["speed"]["ratio"] < 1.1


ENDS = "s0[4 * r_3 + 2 * r_4 + r_5] + (2.0:f32 * s1["
FEW = (67, 13, 200)
"""Sizes of as few turns as show a wrong element; a ring is used again where there are more."""

BUGS = {
    # the target, what the plan says, and what it is made to say
    "the accumulator of the other sum": ("sm_90a", "(128, 16, 16), s1[0] 4 update", "(128, 16, 16), s0[0] 4 update"),
    "the operand of the other sum": ("sm_90a", "B_s[((k_o + 2) % 4), 0, 2 * k_i_1_o", "A_s[((k_o + 2) % 4), 0, 2 * k_i_1_o"),
    "rows for columns": ("sm_90a", ", B_s[((k_o + 2) % 4), 0, 2 * k_i_1_o", ", X_s[((k_o + 2) % 4), 0, 2 * k_i_1_o"),
    "the strip of another operand": ("sm_90a", "B_map[64 * k_o, 8 * j_b]", "A_map[64 * k_o, 8 * j_b]"),
    "read before it is there": ("sm_90a", "            mbarrier wait B_s_full", "-"),
    "rows of both read before they are there": ("sm_90a", "            mbarrier wait X_s_full", "-"),
    "no barrier behind a turn": ("sm_90a", "        wait_warpgroup 1\n        barrier block\n", "        wait_warpgroup 1\n"),
    "released early": ("sm_90a", "        wait_warpgroup 1\n", "        wait_warpgroup 4\n"),
    "no fence of the second": ("sm_90a", "            fence_warpgroup s1", "-"),
    "the first alone is waited for": ("sm_90a", "holds s0[0] 4 read, s1[0] 4 read", "holds s0[0] 4 read"),
    "a group under way in the end": ("sm_90a", "    wait_warpgroup 0 holds", "    wait_warpgroup 1 holds"),
    "one sum not begun": ("sm_90a", "            s1[2 * r + r_1] = ", "-"),
    "sums in each other's place": ("sm_90a", "(s0[2 * r_2 + r_3] + (2.0:f32 * s1[", "(s1[2 * r_2 + r_3] + (2.0:f32 * s0["),
    "the accumulator of the other sum, by warps": ("sm_80", "b_1[4 * j_m_3_o_1] 4 read, s1[", "b_1[4 * j_m_3_o_1] 4 read, s0["),
    "the operand of the other sum, by warps": ("sm_80", "b_1[4 * j_m_3_o_1] 4 read", "b[4 * j_m_3_o_1] 4 read"),
    "the barrier left out, by warps": ("sm_80", "        barrier block\n", "-"),
    "a wait too short, by warps": ("sm_80", "        wait 6\n", "        wait 7\n"),
    "sums in each other's place, by warps": ("sm_80", ENDS, ENDS.replace("s0", "s2").replace("s1", "s0").replace("s2", "s1")),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    target, old, new = BUGS[name]
    made = compiled("two of one", target, FEW if "sum" in name or "rows for" in name or "strip" in name else RUNS[0][0])
    text = plain(made.plan)
    if new == "-":  # the line goes
        old, new = next(line for line in text.splitlines(keepends=True) if line.startswith(old)), ""
    assert old in text, text
    assert open_of(made, parse_plan(text.replace(old, new, 1)))


@pytest.mark.planted
@pytest.mark.parametrize("target", TARGETS)
def test_what_is_right_is_proved(target: str) -> None:
    made = compiled("two of one", target, RUNS[0][0])
    assert not open_of(made, parse_plan(plain(made.plan)))
