"""Products of small matrices by the lanes of a warp, and loads of their operands from rows of shared memory.

Fragments are (lane, register) → (row, column), as the figures of the PTX ISA have them: four lanes have a row, eight such
groups are eight rows. Sums of floating-point numbers are in an order, and with a rounding, of the machine's own, but for those
of f64, which are rounded as IEEE 754 says.
"""

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

_C = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"
_HALVES = "((4,8),(2,2,2)):((2@1,1@0),(1@1,8@0,8@1))", "((4,8),(2,2)):((2@0,1@1),(1@0,8@0))", _C
_HALVES_8 = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((4,8),2):((2@0,1@1),1@0)", _C
_WORDS_8 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", _C
_BYTES = "((4,8),(4,2,2)):((4@1,1@0),(1@1,8@0,16@1))", "((4,8),(4,2)):((4@0,1@1),(1@0,16@0))", _C
_DOUBLES = "((4,8),1):((1@1,1@0),0)", "((4,8),1):((1@0,1@1),0)", "((4,8),2):((2@1,1@0),1@1)"
_DOUBLES_4 = "((4,8),2):((1@1,1@0),8@0)", "((4,8),1):((1@0,1@1),0)", _C
_DOUBLES_8 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", _C
_DOUBLES_16 = "((4,8),(2,4)):((1@1,1@0),(8@0,4@1))", "((4,8),4):((1@0,1@1),4@0)", _C

_SECTIONS = {
    (16, 8, 16): "9.7.14.5.8: fragments of m16n8k16",
    (16, 8, 8): "9.7.14.5.7: fragments of m16n8k8",
    (16, 8, 32): "9.7.14.5.10: fragments of m16n8k32",
    (8, 8, 4): "9.7.14.5.2: fragments of m8n8k4 with .f64",
    (16, 8, 4): "9.7.14.5.6: fragments of m16n8k4 with .f64",
}

FOUND = (
    "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330 (2021); "
    "Xie et al., MMA-Sim, arXiv 2511.10909 (2025); Khattak, Mikaitis, arXiv 2512.07004 (2025)"
)
"""Who measured what tensor cores round."""

_STEPS = {"f16": 8, "bf16": 8, "tf32": 4, "f8e4m3": 16, "f8e5m2": 16}
"""Products that one step adds up, on those targets from sm_80 on that add up the fewest: later ones add up twice as many, and
keep a bit more of each."""

_ALIGNED, _FEW = 24, 13
"""Bits that are kept of a term, and of sums of 8-bit floats, of which sm_89 and sm_90 keep fewer."""


def _rounding(of: str, into: str) -> Rounding | None:
    """None of integers and of f64."""
    if of not in _STEPS:
        return None
    if of.startswith("f8"):
        return Rounding(_STEPS[of], _FEW, _FEW, source=FOUND)
    nearest = into == "f16"
    return Rounding(_STEPS[of], _ALIGNED, 10 if nearest else 23, nearest, FOUND)


def _mma(
    shape: tuple[int, int, int], of: str, into: str, types: str, fragments: tuple[str, str, str], since: str = "sm_80"
) -> Instruction:
    """`types`: of d, a, b and c, as PTX calls them; `since`: the first target that has it. An operand in one register is in
    braces, too."""
    m, n, k = shape
    a, b, c = (
        Operand(name, dtype, size, inout, fragment)
        for name, dtype, size, inout, fragment in (
            ("a", of, (m, k), False, fragments[0]),
            ("b", of, (k, n), False, fragments[1]),
            ("c", into, (m, n), True, fragments[2]),
        )
    )
    one = "{{a}}" if shape == (8, 8, 4) else "{a}"
    other = "{{b}}" if (shape == (16, 8, 8) and of.endswith("f16")) or shape[2] == 4 else "{b}"
    left, right = (f"i32({each})" if into == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    freed = " #ieee" if of == "f64" else ""
    verb = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}"
    return Instruction(
        f"mma_m{m}n{n}k{k}_{into}_{of}",
        f"c += a · b, of {m} × {k} and {k} × {n} elements",
        Level.WARP,
        (a, b, c),
        ((since, f"{verb} {{c}}, {one}, {other}, {{c}};"),),
        f"par {m} |i| {{ par {n} |j| {{ seq {k} |k| reduce(c){freed} {{ c[i, j] += {left} * {right} }} }} }}",
        effect="joins warp",
        source=f"PTX ISA 8.5, {_SECTIONS[shape]}",
        rounding=_rounding(of, into),
    )


def _ldmatrix(
    name: str, of: str, title: str, shape: tuple[int, int], fragments: tuple[str, str], turned: bool = False
) -> Instruction:
    """Four matrices of 8 rows of 16 bytes: lanes 8 · n to 8 · n + 7 say where the rows of the n-th are. `turned`: a lane gets
    what is in a column."""
    rows, columns = shape
    return Instruction(
        f"ldmatrix_x4{name}_{of}",
        title,
        Level.WARP,
        (
            Operand("p", of, shape, fragment=f"shared {fragments[0]}"),
            Operand("d", of, shape, inout=True, fragment=fragments[1]),
        ),
        (("sm_80", f"ldmatrix.sync.aligned.m8n8.x4{'.trans' if turned else ''}.shared.b16 {{d}}, [{{p}}];"),),
        f"par {rows} |i| {{ par {columns} |j| {{ d[i, j] = p[i, j] }} }}",
        effect="joins warp",
        source='PTX ISA 8.5, "ldmatrix"',
    )


def _loads(of: str) -> tuple[Instruction, ...]:
    """Of elements of 16 bits, matrices down the rows first, or along them; of which lanes get rows, or columns."""
    down, along = "((8,2,2),8):((1@0,8@0,8@1),1@1)", "((8,2,2),8):((1@0,8@1,8@0),1@1)"
    title = "four matrices of 8 × 8 elements, {} first, from rows that lanes say the addresses of, {}"
    rows, columns = "by rows", "by columns"
    return (
        _ldmatrix("", of, title.format("down", rows), (16, 16), (down, _HALVES[0])),
        _ldmatrix("_along", of, title.format("along", rows), (16, 16), (along, "((4,8),(2,2,2)):((2@1,1@0),(1@1,8@1,8@0))")),
        _ldmatrix(
            "_trans", of, title.format("down", columns), (16, 16), (down, "((4,8),(2,2,2)):((2@0,1@1),(1@0,8@0,8@1))"), True
        ),
        _ldmatrix(
            "_trans_along",
            of,
            title.format("along", columns),
            (16, 16),
            (along, "((4,8),(2,2,2)):((2@0,1@1),(1@0,8@1,8@0))"),
            True,
        ),
    )


def _rows(of: str, width: int, fragments: tuple[str, str]) -> tuple[Instruction, ...]:
    """Of wider or narrower elements, by rows: 16 bytes of one are `width` of them."""
    down, along = (f"((8,2,2),{width}):((1@0,{order}),1@1)" for order in (f"8@0,{width}@1", f"{width}@1,8@0"))
    title = "four matrices of 8 rows of 16 bytes, {} first, from rows that lanes say the addresses of"
    return (
        _ldmatrix("", of, title.format("down"), (16, 2 * width), (down, fragments[0])),
        _ldmatrix("_along", of, title.format("along"), (16, 2 * width), (along, fragments[1])),
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
    _mma((16, 8, 4), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_4, "sm_90"),
    _mma((16, 8, 8), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_8, "sm_90"),
    _mma((16, 8, 16), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_16, "sm_90"),
    _mma((16, 8, 32), "f8e4m3", "f32", "f32.e4m3.e4m3.f32", _BYTES, "sm_89"),
    _mma((16, 8, 32), "f8e5m2", "f32", "f32.e5m2.e5m2.f32", _BYTES, "sm_89"),
    *_loads("f16"),
    *_loads("bf16"),
    *_rows("tf32", 4, (_WORDS_8[0], "((4,8),(2,2)):((1@1,1@0),(4@1,8@0))")),
    *_rows("i8", 16, (_BYTES[0], "((4,8),(4,2,2)):((4@1,1@0),(1@1,16@1,8@0))")),
    *_rows("u8", 16, (_BYTES[0], "((4,8),(4,2,2)):((4@1,1@0),(1@1,16@1,8@0))")),
)
