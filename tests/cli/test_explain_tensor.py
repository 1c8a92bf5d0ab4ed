"""What `texpr explain` says of products on tensor cores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.schedule.test_mma import product, tiled

from texpr.cli.tensor import tensor_lines
from texpr.driver import Compiled, fix_schedule, lower, parse
from texpr.explain.speed import speed
from texpr.explain.tensor import tensor
from texpr.ir.kernel import kernels

Data = dict[str, Any]
SIZES = {"M": 4096, "N": 4096, "K": 4096}
WIDE = product(where="N % 8 == 0, K % 8 == 0").replace("[M, K],", "[M, K] align(16),").replace("[K, N])", "[K, N] align(16))")
HOPPER = Path(__file__).parents[2] / "examples" / "hopper" / "matmul.te"


def told(made: Compiled) -> list[Data]:
    *_, kernel = kernels(made.plan.steps)  # behind copies of what begins anywhere
    return list(tensor(kernel, made))


def source(data: Data, operand: str) -> Data:
    return next(each["source"] for each in data["operands"] if each["name"] == operand)


def test_a_product_by_warps() -> None:
    (found,) = told(lower(parse(product())["f"], "sm_80", schedule="auto"))
    assert (found["instruction"], found["lanes"], found["of"]) == ("mma_m16n8k16_f32_bf16", 32, "bf16")
    assert found["extents"] == {"i": 16, "j": 8, "k": 16}
    assert found["tile"] == {"i": 128, "j": 128, "k": 32} and found["sums"] == 128 * 128 and found["cluster"] == []
    assert [(o["name"], o["registers"]) for o in found["operands"]] == [("a", 8), ("b", 4), ("c", 4)]
    assert found["operands"][2]["fragment"] == "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))" and source(found, "c") is None
    rows = {"buffer": "A_g_s", "pitch": 2 * (32 + 8), "bytes": 128 * 2 * (32 + 8), "stages": 3, "swizzle": 0}
    assert source(found, "a") == rows
    assert source(found, "b")["pitch"] == 2 * (128 + 8)


def test_a_product_by_warpgroups_in_a_cluster() -> None:
    """CuTe: K-major, swizzled by 128 bytes: 8 rows are 1024; MN-major: boxes of 64 columns are 64 rows of 128 bytes apart."""
    (found,) = told(lower(parse(WIDE)["f"], "sm_90a", SIZES, schedule="auto"))
    assert found["instruction"] == "wgmma_m64n256k16_f32_bf16_bn" and found["lanes"] == 128
    assert found["tile"] == {"i": 128, "j": 256, "k": 64} and found["sums"] == 128 * 256
    assert sorted(found["cluster"]) in ([2], [1, 2])
    a, b = source(found, "a"), source(found, "b")
    assert (a["swizzle"], a["leading"], a["stride"], a["stages"], a["bytes"]) == (128, 16, 1024, 4, 128 * 128)
    assert (b["swizzle"], b["leading"], b["stride"], b["stages"], b["bytes"]) == (128, 64 * 128, 1024, 4, 256 * 128)


def test_the_share_of_the_peak() -> None:
    """Multiply-adds of the product over those that 132 multiprocessors do in that time, 2048 a clock of 1830 MHz each. What a
    ring does in which of its 66 turns is known of three of them, so one turn of 64 may be counted too much."""
    made = lower(parse(WIDE)["f"], "sm_90a", SIZES, schedule="auto")
    data, (kernel,) = speed(made, None, {}), kernels(made.plan.steps)
    assert data is not None
    found = data["kernels"][kernel.name]
    alone = 4096**3 / (132 * 2048 * 1830)
    assert alone <= found["peak_share"] * found["bound_us"] <= alone * 65 / 64 * (1 + 1e-9) and 0.5 < found["peak_share"] < 1
    lines = list(tensor_lines(told(made), data, kernel.name))
    assert lines[0].startswith(
        "wgmma_m64n256k16_f32_bf16_bn: 64 i × 256 j × 16 k by 128 lanes; a block has 128 i × 256 j × 64 k"
    )
    assert "a: 64 × 16 of bf16, core matrices (8,8):(1@0,1@1) in A_s in shared memory: swizzle of 128 bytes" in lines[1]
    assert lines[-1].startswith(f"at most {100 * found['peak_share']:.0f} % of their peak on H100 SXM5: ")


def test_instructions_of_warps_share_less_of_the_peak() -> None:
    """On Hopper they get a part of the rate: what is left of the peak is told of all of it."""
    made = lower(
        parse(product(where="N % 4 == 0, K % 4 == 0").replace("K],", "K] align(8),").replace("N])", "N] align(8))"))["f"],
        "sm_90a",
        schedule="auto",
    )
    data, (kernel,) = speed(made, None, SIZES), kernels(made.plan.steps)
    assert data is not None
    found = data["kernels"][kernel.name]
    assert found["peak_share"] < found["units_us"]["matrix"] / found["bound_us"]


def test_tiles_that_a_schedule_swizzles() -> None:
    """Chunks of 8 elements are moved within 8 of them: as many bytes as a swizzle of 128 moves them in."""
    more = "split(As.d1, 8) -> (c, e)  swizzle(As.d0, As.c, xor=4)"
    function = parse(product() + tiled(more=more, depth=32))["f"]
    (found,) = told(lower(function, "sm_80", schedule=function.schedules[0]))
    assert source(found, "a")["swizzle"] == 4 * 16 and source(found, "b")["swizzle"] == 0
    assert found["tile"] is None


def test_a_product_by_hand() -> None:
    (function,) = parse(HOPPER.read_text(encoding="utf-8")).functions
    (found,) = told(lower(function, "sm_90a", schedule=fix_schedule(function.schedules[0], {})))
    assert found["instruction"] == "wgmma_m64n128k16" and found["tile"] is None and found["sums"] == 128 * 128
    assert [source(found, name)["stages"] for name in "ab"] == [4, 4]


def test_nothing_is_said_of_other_kernels() -> None:
    made = lower(parse("fn f(x: f32[n]): f32[n] { new y: f32[n]\n par n |i| { y[i] = x[i] }\n return y }")["f"], "sm_80")
    assert told(made) == [] and list(tensor_lines([], None, "f_y")) == []


def test_a_border_of_zeros_is_no_work() -> None:
    """What any program needs for a product of padded rows is what it needs for one of rows."""
    padded = product(value="pad(A, (0, 1), (0, 1), 0.0)[i, k] * B[k, j]")
    needed = [speed(lower(parse(text)["f"], "sm_90a", SIZES, schedule=None), None, {}) for text in (product(), padded)]
    assert needed[0] and needed[1] and needed[0]["least"]["operations_us"] == needed[1]["least"]["operations_us"]
