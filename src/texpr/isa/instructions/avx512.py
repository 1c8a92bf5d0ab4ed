"""Products of AVX-512 that sum up along neighbouring elements: of pairs of bfloat16, and of four bytes.

A core does one by itself. Its vectors are rows of memory: a fragment has one lane, and its registers are consecutive elements.
Of the right operand the elements that one sum takes are neighbours, so its rows are interleaved by two, or by four. Of the left
one all sums take the same, which the instruction repeats in all lanes.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

COLUMNS = 16
"""Sums of 32 bits in a vector of 64 bytes."""

_SDM = "Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2"

_BF16 = Rounding(1, 48, 23, True, f"{_SDM}, VDPBF16PS: two fused multiply-adds, rounded to nearest even", flushed=True)
"""Of a pair the odd element's product is added first. A fused addition rounds once, and so loses less than this says. Subnormal
numbers are taken, and given, as 0, whatever MXCSR says (docs/theory/rounding.md)."""


def _products(
    name: str, title: str, types: tuple[str, str, str], per: int, text: str, rounding: Rounding | None
) -> Instruction:
    """`types`: of a, b and c; `per`: the elements along the sum; `text`: C++, of pointers to the first elements."""
    a, b, c = types
    cast = "i32" if c == "i32" else "f32"
    return Instruction(
        name,
        title,
        Level.LANE,
        (
            Operand("a", a, (1, per), fragment=f"(1,{per}):(0,1@1)"),
            Operand("b", b, (per, COLUMNS), fragment=f"(1,({per},{COLUMNS})):(0,(1@0,1@1))"),
            Operand("c", c, (1, COLUMNS), True, f"(1,{COLUMNS}):(0,1@1)"),
        ),
        (("cpu_avx512_bf16", text),),
        f"par 1 |i| {{ par {COLUMNS} |j| {{ seq {per} |k| reduce(c) {{ c[i, j] += {cast}(a[i, k]) * {cast}(b[k, j]) }} }} }}",
        source=_SDM,
        rounding=rounding,
    )


INSTRUCTIONS = (
    _products(
        "vdpbf16ps",
        "c += a · b, of 16 sums of two products of bfloat16 each",
        ("bf16", "bf16", "f32"),
        2,
        "tx_row(*{c}) = (tx_floats)_mm512_dpbf16_ps((__m512)tx_row(*{c}), (__m512bh)_mm512_set1_epi32(tx_bytes4({a})), "
        "(__m512bh)_mm512_loadu_si512({b}));",
        _BF16,
    ),
    _products(
        "vpdpbusd",
        "c += a · b, of 16 sums of four products each, of a byte without and one with a sign; sums wrap",
        ("u8", "i8", "i32"),
        4,
        "_mm512_storeu_si512({c}, _mm512_dpbusd_epi32(_mm512_loadu_si512({c}), _mm512_set1_epi32(tx_bytes4({a})), "
        "_mm512_loadu_si512({b})));",
        None,
    ),
    _products(
        "vpdpwssd",
        "c += a · b, of 16 sums of two products of 16 bits each; sums wrap",
        ("i16", "i16", "i32"),
        2,
        "_mm512_storeu_si512({c}, _mm512_dpwssd_epi32(_mm512_loadu_si512({c}), _mm512_set1_epi32(tx_bytes4({a})), "
        "_mm512_loadu_si512({b})));",
        None,
    ),
)
