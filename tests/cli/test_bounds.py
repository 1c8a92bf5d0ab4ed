"""`--against interp` of results that a tensor core sums up: within the bound of its instruction, and an error outside of it."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.cli.conftest import Call
from tests.isa.tensor_cores import product as simulated
from tests.schedule.test_mma import product

from texpr.cli.bounds import Bound, bounds_of
from texpr.cli.compare import ALLOWED, compare, judge
from texpr.driver import lower, parse
from texpr.interp import run
from texpr.ir.kernel import kernels
from texpr.ir.value.types import F32
from texpr.isa.registry import INSTRUCTIONS

PRODUCT = product(where="K % 16 == 0, N % 16 == 0")
BYTES = product("f8e4m3", where="K % 16 == 0, N % 16 == 0").replace("B: f8e4m3[K, N]", "B: f8e4m3[N, K] align(16)").replace(
    "A: f8e4m3[M, K]", "A: f8e4m3[M, K] align(16)"
).replace("B[k, j]", "B[j, k]")  # fmt: skip
SCALED = PRODUCT.replace(
    "    return C", "    par M |i| { par N |j| { C[i, j] = max(C[i, j] * 2.0 + 1.0, 0.0) } }\n    return C"
)
RAISED = PRODUCT.replace("    return C", "    par M |i| { par N |j| { C[i, j] = exp(C[i, j]) } }\n    return C")
SIZES = {"M": 32, "N": 32, "K": 128}


def arrays(of: str, seed: int = 0) -> dict[str, np.ndarray]:
    """Operands."""
    kind = {"bf16": ml_dtypes.bfloat16, "f8e4m3": ml_dtypes.float8_e4m3fn}[of]
    rng = np.random.default_rng(seed)
    shapes = {"A": (32, 128), "B": (32, 128) if of == "f8e4m3" else (128, 32)}
    return {name: rng.standard_normal(shape).astype(kind) for name, shape in shapes.items()}


def bound(text: str, of: str, target: str = "sm_90a") -> tuple[dict[str, Bound], dict[str, np.ndarray], dict[str, np.ndarray]]:
    """The bounds of the automatic plan on random operands; these, and what the interpreter gives."""
    function = parse(text).functions[0]
    plan = lower(function, target, schedule="auto").plan
    given = arrays(of)
    return bounds_of(function, plan, given, SIZES), given, run(function, given, SIZES)


@pytest.mark.parametrize(
    ("text", "of", "target"), [(PRODUCT, "bf16", "sm_80"), (BYTES, "f8e4m3", "sm_90a")], ids=["bf16", "bytes"]
)
def test_a_simulated_unit_is_within_and_a_worse_one_is_not(text: str, of: str, target: str) -> None:
    found, given, expected = bound(text, of, target)
    function = parse(text).functions[0]
    allowed = found["C"].allowed
    assert allowed is not None and 0 < found["C"].relative < 0.1
    rounds = INSTRUCTIONS[found["C"].instrs[0]].rounding
    assert rounds is not None
    a, b = given["A"].astype(float), given["B"].astype(float)
    columns = b if of == "f8e4m3" else b.T
    for aligned, kept, wrong in ((rounds.aligned, rounds.kept, False), (rounds.aligned - 8, rounds.kept - 8, True)):
        steps = {"products": rounds.products, "aligned": aligned, "kept": kept}
        got = np.array(
            [
                [
                    float(simulated(row, column, 0.0, of, "f32", **steps, nearest=False))
                    for column in columns[:8]
                ]
                for row in a[:8]
            ]
        )  # fmt: skip
        result = expected["C"].copy()
        result[:8, :8] = got
        lines, said = judge(function, {"C": result}, expected, found)
        assert bool(said) == wrong
        if wrong:
            assert said[0].code == "E0858" and f"the bound of {found['C'].instrs[0]} allows" in said[0].message
        else:
            assert f"within the bound of {found['C'].instrs[0]}" in lines[0]


def test_what_is_done_with_a_sum_is_followed() -> None:
    found, given, expected = bound(SCALED, "bf16", "sm_80")
    plain, *_ = bound(PRODUCT, "bf16", "sm_80")
    allowed, before = found["C"].allowed, plain["C"].allowed
    assert allowed is not None and before is not None
    assert np.all(allowed > 2 * before) and np.all(allowed < 3 * before + 1e-4)
    exact = np.maximum(given["A"].astype(float) @ given["B"].astype(float) * 2 + 1, 0)
    assert np.all(np.abs(expected["C"] - exact) <= allowed)


def test_what_is_not_followed_is_compared_as_it_was() -> None:
    found, _, expected = bound(RAISED, "bf16", "sm_80")
    assert (found["C"].allowed, found["C"].reason) == (None, "`exp`")
    function = parse(RAISED).functions[0]
    lines, said = judge(function, expected, expected, found)
    assert not said and "is not followed through `exp`: compared like any other sum" in lines[0]
    far = expected["C"] * np.float32(1 + 2 * ALLOWED * 2.0**-23)
    assert judge(function, {"C": far}, expected, found)[1]


def test_of_other_plans_nothing_is_said() -> None:
    for text in (product("f32"), PRODUCT.replace("reduce(C)", "reduce(C) #ieee")):
        function = parse(text).functions[0]
        plan = lower(function, "sm_80", schedule="auto").plan
        assert [*kernels(plan.steps)] and bounds_of(function, plan, {}, SIZES) == {}


def test_one_beyond_what_is_allowed() -> None:
    expected = np.array([1.0, 2.0, -3.0], np.float32)
    allowed = np.array([0.0, 0.5, 0.25])
    assert compare(F32, expected, expected, allowed).equal
    near = compare(F32, expected + np.array([0, 0.5, -0.125], np.float32), expected, allowed)
    assert (near.fits, near.used) == (True, 1.0)
    assert compare(F32, expected + np.array([0, 0.6, 0.3], np.float32), expected, allowed).at == (1,)
    assert compare(F32, expected + np.array([1e-6, 0, 0], np.float32), expected, allowed).at == (0,)


def test_it_is_printed(texpr: Call, tmp_path: Path) -> None:
    path = tmp_path / "product.te"
    path.write_text(PRODUCT, encoding="utf-8")
    words = [
        "--arg",
        "A=random",
        "--arg",
        "B=random",
        *(word for name, size in SIZES.items() for word in ("--size", f"{name}={size}")),
    ]
    code, out, err = texpr("run", path, "--on", "emulator", *words, "--against", "interp")
    assert (code, err) == (0, "")
    assert "; within the bound of mma_m16n8k16_f32_bf16, " in out and " of Σ |terms|, " in out
    code, out, _ = texpr("run", path, "--on", "cpu", *words, "--against", "interp")
    assert code == 0 and ("bound of vdpbf16ps" in out or "bound" not in out)  # as the processor has it or not
