"""Shuffles between lanes: each lane gets the value of the lane whose number differs in one bit (butterfly).

With m a power of two, lane ^ m = lane + m − 2 · m · (⌊lane / m⌋ mod 2), which is quasi-affine.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level


def _butterfly(mask: int) -> Instruction:
    return Instruction(
        f"shfl_xor_{mask}",
        f"each lane gets the word that lane ^ {mask} holds",
        Level.WARP,
        (Operand("x", "u32", (32,), fragment="32:1@0"), Operand("y", "u32", (32,), inout=True, fragment="32:1@0")),
        (("sm_80", f"shfl.sync.bfly.b32 {{y}}, {{x}}, {mask}, 0x1f, 0xffffffff;"),),
        f"par 32 |lane| {{ y[lane] = x[lane + {mask} - {2 * mask} * (lane / {mask} % 2)] }}",
        effect="joins warp",
        source='PTX ISA, "shfl.sync"',
    )


INSTRUCTIONS = tuple(_butterfly(mask) for mask in (1, 2, 4, 8, 16))
