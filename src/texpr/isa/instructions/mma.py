"""Products of small matrices by the lanes of a warp, and loads of their operands from rows of shared memory.

Fragments are (lane, register) → (row, column), as the figures of the PTX ISA have them: four lanes have a row, eight such
groups are eight rows. Sums of floating-point numbers are in an order, and with a rounding, of the machine's own.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level

_C = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"
_HALVES = "((4,8),(2,2,2)):((2@1,1@0),(1@1,8@0,8@1))", "((4,8),(2,2)):((2@0,1@1),(1@0,8@0))", _C
_HALVES_8 = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((4,8),2):((2@0,1@1),1@0)", _C
_WORDS_8 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", _C
_BYTES = "((4,8),(4,2,2)):((4@1,1@0),(1@1,8@0,16@1))", "((4,8),(4,2)):((4@0,1@1),(1@0,16@0))", _C
_DOUBLES = "((4,8),1):((1@1,1@0),0)", "((4,8),1):((1@0,1@1),0)", "((4,8),2):((2@1,1@0),1@1)"

_SECTIONS = {
    (16, 8, 16): "9.7.14.5.8: fragments of m16n8k16",
    (16, 8, 8): "9.7.14.5.7: fragments of m16n8k8",
    (16, 8, 32): "9.7.14.5.10: fragments of m16n8k32",
    (8, 8, 4): "9.7.14.5.2: fragments of m8n8k4 with .f64",
}


def _mma(shape: tuple[int, int, int], of: str, into: str, types: str, fragments: tuple[str, str, str]) -> Instruction:
    """`types`: of d, a, b and c, as PTX calls them. An operand in one register is in braces, too."""
    m, n, k = shape
    a, b, c = (
        Operand(name, dtype, size, inout, fragment)
        for name, dtype, size, inout, fragment in (
            ("a", of, (m, k), False, fragments[0]),
            ("b", of, (k, n), False, fragments[1]),
            ("c", into, (m, n), True, fragments[2]),
        )
    )
    one, other = ("{{a}}", "{{b}}") if of == "f64" else ("{a}", "{{b}}" if shape == (16, 8, 8) and of != "tf32" else "{b}")
    left, right = (f"i32({each})" if into == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    verb = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}"
    return Instruction(
        f"mma_m{m}n{n}k{k}_{into}_{of}",
        f"c += a · b, of {m} × {k} and {k} × {n} elements",
        Level.WARP,
        (a, b, c),
        (("sm_80", f"{verb} {{c}}, {one}, {other}, {{c}};"),),
        f"par {m} |i| {{ par {n} |j| {{ seq {k} |k| reduce(c) {{ c[i, j] += {left} * {right} }} }} }}",
        effect="joins warp",
        source=f"PTX ISA 8.5, {_SECTIONS[shape]}",
    )


def _ldmatrix(dtype: str) -> Instruction:
    return Instruction(
        f"ldmatrix_x4_{dtype}",
        "the fragment of `a` of a 16-bit product, from rows of 16 bytes that lanes say the addresses of",
        Level.WARP,
        (
            Operand("p", dtype, (16, 16), fragment="shared ((8,2,2),8):((1@0,8@0,8@1),1@1)"),
            Operand("d", dtype, (16, 16), inout=True, fragment=_HALVES[0]),
        ),
        (("sm_80", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {d}, [{p}];"),),
        "par 16 |i| { par 16 |j| { d[i, j] = p[i, j] } }",
        effect="joins warp",
        source='PTX ISA 8.5, "ldmatrix"',
    )


INSTRUCTIONS = (
    _mma((16, 8, 16), "f16", "f32", "f32.f16.f16.f32", _HALVES),
    _mma((16, 8, 16), "bf16", "f32", "f32.bf16.bf16.f32", _HALVES),
    _mma((16, 8, 16), "f16", "f16", "f16.f16.f16.f16", _HALVES),
    _mma((16, 8, 8), "f16", "f32", "f32.f16.f16.f32", _HALVES_8),
    _mma((16, 8, 8), "bf16", "f32", "f32.bf16.bf16.f32", _HALVES_8),
    _mma((16, 8, 8), "tf32", "f32", "f32.tf32.tf32.f32", _WORDS_8),
    _mma((16, 8, 32), "i8", "i32", "s32.s8.s8.s32", _BYTES),
    _mma((16, 8, 32), "u8", "i32", "s32.u8.u8.s32", _BYTES),
    _mma((8, 8, 4), "f64", "f64", "f64.f64.f64.f64", _DOUBLES),
    _ldmatrix("f16"),
    _ldmatrix("bf16"),
)
