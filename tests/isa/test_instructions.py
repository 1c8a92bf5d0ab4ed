"""Shipped instructions: their text is the language's, their meaning is what NumPy says, their templates name operands."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import DTypeLike

from texpr.frontend import elaborate, parse_text
from texpr.interp import run
from texpr.interp.dtypes import Array
from texpr.isa.instruction import Instruction, capability
from texpr.isa.levels import Level
from texpr.isa.registry import INSTRUCTIONS, TARGETS, library, resolve


def execute(name: str, **arguments: Array | float) -> Array:
    """What the instruction leaves in its last operand, as the interpreter runs its meaning."""
    instruction = INSTRUCTIONS[name]
    params = ", ".join(operand.text for operand in instruction.operands)
    views = [o.name + (f"[{', '.join(f'0 : +{n}' for n in o.shape)}]" if o.shape else "") for o in instruction.operands]
    text = f"fn use({params}) {{ {name}({', '.join(views)}) }}"
    program = elaborate(parse_text(text), library=parse_text(library()))
    return run(program["use"], arguments)[instruction.operands[-1].name]


def words(seed: int) -> Array:
    return np.random.default_rng(seed).integers(0, 2**32, 32, dtype=np.uint32)


@pytest.mark.parametrize("mask", [1, 2, 4, 8, 16])
def test_butterflies(mask: int) -> None:
    x = words(mask)
    y = execute(f"shfl_xor_{mask}", x=x, y=np.zeros(32, np.uint32))
    assert [int(v) for v in y] == [int(x[lane ^ mask]) for lane in range(32)]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_fma_rounds_once(dtype: str) -> None:
    real = np.float32 if dtype == "f32" else np.float64
    tiny = float(np.finfo(real).eps)
    a = real(1 + tiny)
    d = execute(f"fma_rn_{dtype}", a=a, b=a, c=real(-1 - 2 * tiny), d=np.zeros(1, real))
    assert float(d[0]) == tiny**2  # a · a rounded first would give 0


NUMBERS = np.array([0.0, -0.0, 1.0, 1.0009765625, -3.14159, 65519.0, 65520.0, 1e-7, np.inf, -np.inf, np.nan, 448.0], np.float32)


@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_narrowing(name: str, dtype: DTypeLike) -> None:
    with np.errstate(over="ignore"):
        for number in NUMBERS:
            y = execute(f"cvt_rn_{name}_f32", x=number, y=np.zeros(1, dtype))
            np.testing.assert_array_equal(y.astype(np.float32), np.array([number]).astype(dtype).astype(np.float32))


@pytest.mark.parametrize(
    ("ptx", "dtype", "most"), [("e4m3", ml_dtypes.float8_e4m3fn, 448.0), ("e5m2", ml_dtypes.float8_e5m2, 57344.0)]
)
def test_saturating_pairs_and_back(ptx: str, dtype: DTypeLike, most: float) -> None:
    for pair in np.array([[1.0, -1.0], [most, most * 1.03], [1e9, -np.inf], [np.nan, 0.3], [-0.0, 1e-9]], np.float32):
        wanted = np.clip(pair, -most, most).astype(dtype)
        y = execute(f"cvt_rn_satfinite_{ptx}x2_f32", x=pair, y=np.zeros(2, dtype))
        np.testing.assert_array_equal(y.astype(np.float32), wanted.astype(np.float32))
        wide = execute(f"cvt_rn_f16x2_{ptx}x2", x=wanted, y=np.zeros(2, np.float16))
        np.testing.assert_array_equal(wide.astype(np.float32), wanted.astype(np.float32))


def test_widening_is_exact() -> None:
    for number in np.array([0.1, 65504.0, 6e-8, -2.5], np.float16):
        assert execute("cvt_f32_f16", x=number, y=np.zeros(1, np.float32))[0] == np.float32(number)


@pytest.mark.parametrize(
    ("name", "dtype", "count"), [("v2_f32", np.float32, 2), ("v4_f32", np.float32, 4), ("v2_f64", np.float64, 2)]
)
@pytest.mark.parametrize("access", ["ld_global", "ld_shared", "st_global", "st_shared"])
def test_vectors_move_elements(access: str, name: str, dtype: DTypeLike, count: int) -> None:
    x = np.arange(1, count + 1).astype(dtype)
    np.testing.assert_array_equal(execute(f"{access}_{name}", x=x, y=np.zeros(count, dtype)), x)


@pytest.mark.parametrize(("cache", "size"), [("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)])
def test_copies_move_bytes_and_fill_with_zeros(cache: str, size: int) -> None:
    x, y = np.arange(1, size + 1, dtype=np.uint8), np.full(size, 255, np.uint8)
    np.testing.assert_array_equal(execute(f"cp_async_{cache}_{size}", x=x, y=y.copy()), x)
    for part in (0, 1, size - 1, size):
        wanted = [*x[:part], *[0] * (size - part)]
        np.testing.assert_array_equal(execute(f"cp_async_{cache}_{size}_zfill", x=x, n=part, y=y.copy()), wanted)


LATER = {
    "cp_async": "cp.async.", "cp_reduce": "cp.reduce.", "mbarrier": "mbarrier.", "fence": "fence.", "red_": "red.",
    "atom_": "atom.", "st_async": "st.async.", "tcgen05": "tcgen05.",
}  # fmt: skip
"""How the names begin of what other threads, or copies, see the effect of; and how their templates do."""


@pytest.mark.parametrize("instruction", INSTRUCTIONS.values(), ids=lambda each: each.name)
def test_records_are_whole(instruction: Instruction) -> None:
    """Every operand has its place in every template, and operands of a warp, or of a core, say which lane holds what."""
    assert instruction.title and instruction.source and instruction.asm
    names = {operand.name for operand in instruction.operands}
    for first, template in instruction.asm:
        assert first in TARGETS and template.removesuffix(" }").endswith(";")
        assert {place.rstrip("0123456789") for place in re.findall(r"{(\w+)}", template)} == names
    assert all(bool(operand.fragment) == (instruction.level in (Level.WARP, Level.LANE)) for operand in instruction.operands)
    later = next((word for word in LATER if instruction.name.startswith(word)), None)
    assert bool(instruction.effect) == (instruction.level not in (Level.THREAD, Level.LANE) or later is not None)
    assert later is None or all(re.search(rf"(^|; ){re.escape(LATER[later])}", template) for _, template in instruction.asm)


def test_library_is_a_text_of_the_language() -> None:
    found = re.findall(r"^instr (\w+)", library(), re.MULTILINE)
    assert found == list(INSTRUCTIONS) and len(set(found)) == len(found)
    for instruction in INSTRUCTIONS.values():
        parse_text(instruction.text)


def test_templates_by_target() -> None:
    record = Instruction("i", "t", Level.THREAD, (), (("sm_80", "old;"), ("sm_90", "new;"), ("sm_90a", "own;")), "")
    wanted = {"cpu": None, "sm_80": "old;", "sm_89": "old;", "sm_90": "new;", "sm_90a": "own;", "sm_100a": "new;"}
    assert {name: record.template(resolve(name)) for name in wanted} == wanted
    late = Instruction("i", "t", Level.THREAD, (), (("sm_100a", "far;"),), "")
    assert late.template(resolve("sm_90a")) is None and late.template(resolve("sm_103a")) is None
    assert (capability("sm_100a"), capability("sm_80"), capability("cpu"), capability("sm_x")) == (100, 80, 0, 0)
    assert INSTRUCTIONS["cvt_rn_f16x2_e4m3x2"].template(resolve("sm_86")) is None
