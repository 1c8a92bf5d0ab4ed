"""Conversions between f32 and the small types.

Those to f8 come in pairs and saturate; a `Cast` of the language gives nan (f8e4m3) or infinity (f8e5m2) beyond the greatest
finite value, so the code emitted for a cast tests the operand as well.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level


def _narrow(dtype: str) -> Instruction:
    return Instruction(
        f"cvt_rn_{dtype}_f32",
        f"x as {dtype}, to nearest even",
        Level.THREAD,
        (Operand("x", "f32"), Operand("y", dtype, (1,), inout=True)),
        (("sm_80", f"cvt.rn.{dtype}.f32 {{y}}, {{x}};"),),
        f"y[0] = {dtype}(x)",
        source='PTX ISA, "cvt"',
    )


def _saturate(ptx: str, dtype: str, most: float) -> Instruction:
    low, high = (f"{dtype}(max(min(x[{at}], {most}), -{most}))" for at in (0, 1))
    return Instruction(
        f"cvt_rn_satfinite_{ptx}x2_f32",
        f"two numbers as {dtype}, to nearest even, no greater than ±{most:g}; nan stays nan",
        Level.THREAD,
        (Operand("x", "f32", (2,)), Operand("y", dtype, (2,), inout=True)),
        (("sm_89", f"cvt.rn.satfinite.{ptx}x2.f32 {{y}}, {{x1}}, {{x0}};"),),
        f"y[0] = {low}\ny[1] = {high}",
        source='PTX ISA, "cvt"; the second source goes to the lower half',
    )


def _widen(ptx: str, dtype: str) -> Instruction:
    return Instruction(
        f"cvt_rn_f16x2_{ptx}x2",
        f"two {dtype} as f16, exactly",
        Level.THREAD,
        (Operand("x", dtype, (2,)), Operand("y", "f16", (2,), inout=True)),
        (("sm_89", f"cvt.rn.f16x2.{ptx}x2 {{y}}, {{x}};"),),
        "y[0] = f16(x[0])\ny[1] = f16(x[1])",
        source='PTX ISA, "cvt"',
    )


_WIDEN_F16 = Instruction(
    "cvt_f32_f16",
    "x as f32, exactly",
    Level.THREAD,
    (Operand("x", "f16"), Operand("y", "f32", (1,), inout=True)),
    (("sm_80", "cvt.f32.f16 {y}, {x};"),),
    "y[0] = f32(x)",
    source='PTX ISA, "cvt"',
)

INSTRUCTIONS = (
    _narrow("f16"),
    _narrow("bf16"),
    _WIDEN_F16,
    _saturate("e4m3", "f8e4m3", 448.0),
    _saturate("e5m2", "f8e5m2", 57344.0),
    _widen("e4m3", "f8e4m3"),
    _widen("e5m2", "f8e5m2"),
)
