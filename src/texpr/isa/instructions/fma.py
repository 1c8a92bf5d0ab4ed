"""Multiply and add, rounded once."""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level


def _fma(dtype: str) -> Instruction:
    operands = (Operand("a", dtype), Operand("b", dtype), Operand("c", dtype), Operand("d", dtype, (1,), inout=True))
    return Instruction(
        f"fma_rn_{dtype}",
        "a · b + c, rounded once to nearest even",
        Level.THREAD,
        operands,
        (("sm_80", f"fma.rn.{dtype} {{d}}, {{a}}, {{b}}, {{c}};"),),
        "d[0] = fma(a, b, c)",
        source='PTX ISA, "fma" (floating point)',
    )


INSTRUCTIONS = (_fma("f32"), _fma("f64"))
