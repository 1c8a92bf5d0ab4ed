"""Plain loops that a schedule gives to the tensor core of a warpgroup: emulated, proved; what does not fit, and what helps."""

from __future__ import annotations

from functools import cache
from itertools import chain

import numpy as np
import pytest
from tests.lowering.emulated import run_plan
from tests.planted import open_of
from tests.planted import plain as plain_lines
from tests.proofs import undecided
from tests.schedule.test_mma import arguments

from texpr.driver import Compiled, lower, parse
from texpr.emulator import LOCKSTEP
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.proof import Verdict
from texpr.proof.schedule import faithful
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record

PLAIN = "wgmma_m64n64k16_f32_bf16"


def plain(into: str = "f32", value: str = "C[i, j] += A[i, k] * B[j, k]", a: str = "M, K", b: str = "N, K") -> str:
    """A product in the plainest words, of rows that begin at multiples of 16 bytes."""
    return f"""\
fn f(A: bf16[{a}] align(16), B: bf16[{b}] align(16)): {into}[M, N]
    where M % 8 == 0, N % 8 == 0, K % 8 == 0
{{
    new C: {into}[M, N]
    par M |i| {{ par N |j| {{
        C[i, j] = 0.0
        seq K |k| reduce(C) {{ {value} }}
    }} }}
    return C
}}
"""


def tiled(rows: str = "64, 64", columns: str = "64, 64", mma: str = PLAIN, more: str = "", a: str = "", b: str = "") -> str:
    """A schedule: a block's rows and a warpgroup's of them, columns likewise."""
    (block, team), (across, along) = (each.split(", ") for each in (rows, columns))
    return f"""\
schedule f for sm_90a {{
    split(i, {block}) -> (bi, i1)  split(i1, {team}) -> (wi, ii)
    split(j, {across}) -> (bj, j1)  split(j1, {along}) -> (wj, jj)
    split(k, 64) -> (ko, ki)
    reorder(bi, bj, ko, wi, wj, ii, jj, ki)
    bind(wi, block.z)  bind(wj, block.y)
    stage(C, at=bj, in=registers) -> sums
    {a or "stage(A, at=ko, in=shared, via=tma, swizzle=128B) -> As"}
    {b or "stage(B, at=ko, in=shared, via=tma, swizzle=128B) -> Bs"}
    mma(ii, jj, ki, {mma})
    {more}
}}
"""


BY_THREADS = "stage(A, at=ko, in=shared) -> As  split(As.d1, 8) -> (c, e)  swizzle(As.d0, As.c, xor=8) -> (line, chunk)"


A_BOX = "stage(A, at=ko, in=shared, via=tma, swizzle=128B, box=(64, 64)) -> As"
B_BOX = A_BOX.replace("A, at", "B, at").replace("As", "Bs")


class Case(Record):
    """A program with a schedule, and sizes M, N, K."""

    text: str
    sizes: tuple[tuple[int, int, int], ...] = ((64, 64, 64), (72, 8, 72), (0, 8, 16), (8, 8, 0))


EVEN = plain().replace("M % 8 == 0", "M % 128 == 0")
CLUSTERED = (
    tiled(more="pipeline(ko, stages=3, lag=1)")
    .replace("stage(C", "bind(bi, grid.x)  bind(bj, grid.y)  cluster(bi, 2)\n    stage(C", 1)
    .replace(
        "stage(B, at=ko, in=shared, via=tma, swizzle=128B)", "stage(B, at=ko, in=shared, via=tma, swizzle=128B, multicast=bi)"
    )
)
TURNED = plain(value="C[i, j] += A[k, i] * B[k, j]", a="K, M", b="K, N")
CASES = {
    "one tile": Case(plain() + tiled()),
    "a ring": Case(plain() + tiled(more="pipeline(ko, stages=3)"), ((64, 64, 256), (8, 8, 0))),
    "lagging": Case(plain() + tiled(more="pipeline(ko, stages=4, lag=1)"), ((8, 64, 328), (8, 8, 64), (8, 8, 0))),
    "lagging, few slots": Case(plain() + tiled(more="pipeline(ko, stages=3, lag=1)"), ((8, 64, 200), (8, 8, 128), (8, 8, 0))),
    "lagging much": Case(plain() + tiled(more="pipeline(ko, stages=5, lag=2)"), ((8, 64, 328), (8, 8, 0))),
    "tiles of a warpgroup": Case(plain() + tiled("128, 128", "128, 128"), ((128, 72, 136),)),
    "warpgroups": Case(plain() + tiled("128, 64", "128, 64", more="pipeline(ko, stages=2)"), ((136, 72, 72),)),
    "turned": Case(TURNED + tiled(mma="wgmma_m64n64k16_f32_bf16_am_bn")),
    "turned and wide": Case(
        TURNED + tiled("128, 64", "128, 128", "wgmma_m64n128k16_f32_bf16_am_bn", a=A_BOX, b=B_BOX), ((136, 72, 72),)
    ),
    "a cluster": Case(EVEN + CLUSTERED, ((128, 64, 200), (256, 8, 64), (0, 8, 8), (128, 8, 0))),
    "surplus blocks": Case(plain() + CLUSTERED, ((72, 8, 200), (8, 8, 8), (136, 64, 64))),
    "by threads": Case(plain() + tiled(a=BY_THREADS)),
}  # fmt: skip


@cache
def compiled(name: str) -> Compiled:
    function = parse(CASES[name].text)["f"]
    return lower(function, "sm_90a", schedule=function.schedules[0])


@pytest.mark.parametrize("name", CASES)
def test_emulated(name: str) -> None:
    made = compiled(name)
    for rows, columns, depth in CASES[name].sizes:
        sizes = {"M": rows, "N": columns, "K": depth}
        given = arguments(made, sizes)
        left, right = (given[name].astype(np.float32) for name in "AB")
        wanted = left.T @ right if "K, M" in CASES[name].text else left @ right.T
        for seed in (None, LOCKSTEP, 1):
            found = run_plan(made.function, made.plan, given, sizes, seed=seed)
            assert not found.reports, (sizes, found.reports[0])
            np.testing.assert_array_equal(found.arrays["C"], wanted, str(sizes))


@pytest.mark.parametrize("name", CASES)
def test_proved(name: str) -> None:
    made = compiled(name)
    assert made.written is not None
    proof = faithful(made.written, made.function)
    assert [*chain(*(proof.of(verdict) for verdict in (Verdict.REFUSED, Verdict.UNDECIDED)))] == []
    assert list(undecided(made.function, made.plan)) == []


def counted(name: str, kind: type[k.Operation]) -> int:
    return sum(isinstance(stmt, kind) for kernel in k.kernels(compiled(name).plan.steps) for stmt in k.walk(kernel.body))


@pytest.mark.parametrize("name", CASES)
def test_no_more_is_done_for_order_than_is_asked_for(name: str) -> None:
    """A fence and a group a turn, a wait before what is read is written again, and one before the sum is used."""
    assert counted(name, k.FenceWarpgroup) == counted(name, k.CommitWarpgroup) == counted(name, k.CollectiveAsync) == 1
    assert counted(name, k.WaitWarpgroup) == 2
    proxies = [s.kind for kernel in k.kernels(compiled(name).plan.steps) for s in k.walk(kernel.body) if isinstance(s, k.Fence)]
    assert proxies.count("async") == (name == "by threads")


WHOLE = plain().replace("M % 8 == 0, N % 8 == 0, K % 8 == 0", "M % 64 == 0, N % 64 == 0, K % 64 == 0")
STAGED = "stage(B, at=ko, in=shared, via=tma, swizzle=128B)"
PLACED = f"{STAGED} -> Bs"
REFUSED = {
    "rows without a swizzle": (plain(), ", swizzle=128B) -> Bs", ") -> Bs", "no descriptor", f"stage it so: `{PLACED}`"),
    "rows that threads copy": (
        plain(),
        ", via=tma, swizzle=128B) -> Bs",
        ") -> Bs",
        "no descriptor",
        f"stage it so: `{PLACED}`",
    ),
    "along rows": (plain(), "_bf16)", "_bf16_am)", "no descriptor says where elements of `a`", f"`{PLAIN}`"),
    "along columns": (plain(), "_bf16)", "_bf16_bn)", "no descriptor says where elements of `b`", f"`{PLAIN}`"),
    "the other way": (TURNED, "_bf16_am_bn)", "_bf16_bn)", "elements of `a`", f"`{PLAIN}_am_bn`"),
    "global memory": (WHOLE, PLACED, "", "and `B` is not there", f"stage it first: `{STAGED}`"),
    "other columns": (plain(), "n64k16", "n96k16", "are not what `wgmma_m64n96k16_f32_bf16` means", "extents those of the"),
    "other types": (plain(), PLAIN, "wgmma_m64n64k16_f32_f16", "are not what", "a product of elements"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_said(name: str) -> None:
    """With a help, which is given only where the schedule is accepted with it."""
    head, old, new, message, help = REFUSED[name]
    text = head + tiled(mma=f"{PLAIN}_am_bn" if head is TURNED else PLAIN)
    assert old in text
    function = parse(text.replace(old, new))["f"]
    with pytest.raises(TexprError) as caught:
        lower(function, "sm_90a", schedule=function.schedules[0])
    (found,) = caught.value.diagnostics
    assert found.code == "E0919" and message in found.message and found.help and help in found.help, found


def test_a_target_without_it() -> None:
    text = plain() + tiled().replace("sm_90a", "cuda").replace(", via=tma, swizzle=128B", "")
    function = parse(text)["f"]
    with pytest.raises(TexprError) as caught:
        lower(function, "sm_90", schedule=function.schedules[0])
    assert caught.value.diagnostics[0].code == "E0908" and "has no instruction `wgmma" in str(caught.value)


BUGS = {
    "a barrier of the block alone": ("a cluster", "            barrier cluster relaxed\n", "            barrier block\n"),
    "begun behind a relaxed barrier": ("a cluster", "\n    barrier cluster\n", "\n    barrier cluster relaxed\n"),
    "released early": ("a cluster", "wait_warpgroup 1", "wait_warpgroup 2"),
    "bytes of its own boxes alone": ("a cluster", "bytes 16384", "bytes 12288"),
    "products of surplus blocks": ("surplus blocks", "< i32(((M + 63) / 64))) uniform {", "< i32(((M + 127) / 64))) uniform {"),
    "no fence between proxies": ("by threads", "        fence async\n", ""),
    "rows written without a swizzle": ("by threads", "xor((As_1 / 8), As_0, 3)", "(As_1 / 8)"),
    "registers of the next tile": (
        "tiles of a warpgroup",
        "sums[64 * ii_o_1 + 32 * jj_o_1] 32",
        "sums[32 * ii_o_1 + 64 * jj_o_1] 32",
    ),
    "a fence of one tile": ("tiles of a warpgroup", "fence_warpgroup sums[0] 128", "fence_warpgroup sums[0] 32"),
    "results of one tile": ("tiles of a warpgroup", "holds sums[0] 128", "holds sums[0] 96"),
    "released at once where two may be left": ("lagging much", "wait_warpgroup 2", "wait_warpgroup 3"),
    "a row of boxes late": ("turned and wide", "B_map[128 * bj, ", "B_map[128 * bj + 64, "),
    "the other box": ("turned and wide", "Bs[1, 0, 0, 0] =", "Bs[0, 0, 0, 0] ="),
}


@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_no_bug_is_proved(name: str) -> None:
    case, old, new = BUGS[name]
    made = compiled(case)
    text = plain_lines(made.plan)
    assert old in text, text
    assert open_of(made, parse_plan(text.replace(old, new)))
