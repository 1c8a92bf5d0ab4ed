"""Products in tensor memory of 8-bit floats with a scale, a power of two, for each block of 32 along the sum; and what brings
scales there from shared memory.

    d[i, j] += f32(a[i, k]) * f32(sa[i]) * f32(b[k, j]) * f32(sb[j])

A column of tensor memory has a word of four scales in each lane, of four consecutive blocks; the instruction's descriptor
says which of the four a product takes. Row i of the product has its scales in lane i % 32 of column i / 32, and each quarter
of the lanes has them all. An array of scales, of which C columns are brought at once, numbers its slots so that slot s of 4 C
is byte s / C of column s % C, and 4 C more are C columns on: those of a product are consecutive. In shared memory a row of 16
bytes is what a lane has of four columns.
"""

from collections.abc import Iterator

from texpr.isa.engine import CHUNK
from texpr.isa.instruction import Instruction, Operand
from texpr.isa.instructions.tcgen05 import ROWS, part
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

SCALE = "f8e8m0"
"""The type of scales (PTX ISA, "Valid combinations of scale_vectorsize with types and MMA-Kind")."""

BLOCK = 32
"""Elements along the sum that have one scale."""

QUARTER, QUARTERS = 32, 4
"""Lanes that have scales of their own, and how often all lanes have them: a warp's, each of four."""

WORD = 4
"""Scales in a word: blocks along the sum whose scales come at once."""

WIDTHS = (128, 256)
"""Columns of the products of which there are records: whole groups of rows that are brought at once."""

_FORMAT = {"f8e4m3": 0, "f8e5m2": 1}
_VECTOR = {"sm_100a": "scale_vec::1X", "sm_103a": "block32"}
_LANES = f"({QUARTER},{QUARTERS})"


def descriptor(rows: int, columns: int, of: str) -> int:
    """The instruction descriptor without the numbers of scales: PTX ISA 9.0, 9.7.16.4.2 "Instruction descriptor", the table of
    .kind::mxf8f6f4. Type of a from bit 7 on, of b from 10, columns in eights from 17, 1 in 23 for scales of ue8m0, rows in
    units of 128 from 27; which byte of a word scales b from bit 4, a from 29."""
    return _FORMAT[of] << 7 | _FORMAT[of] << 10 | columns // 8 << 17 | 1 << 23 | rows // 128 << 27


def _template(columns: int, of: str, vector: str) -> str:
    """An address of scales says the byte in its two highest bits, and these go to the descriptor."""
    bits = descriptor(ROWS, columns, of)
    return (
        "{ .reg .b32 at, bt, id, jd; "
        "and.b32 at, {sa}, 0x3fffffff; and.b32 bt, {sb}, 0x3fffffff; "
        "and.b32 id, {sa}, 0xc0000000; shr.u32 id, id, 1; shr.u32 jd, {sb}, 30; shl.b32 jd, jd, 4; "
        f"or.b32 id, id, jd; or.b32 id, id, {bits:#x}; "
        f"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.{vector} [{{d}}], {{a}}, {{b}}, id, [at], [bt], 1; }}"
    )


def scaled(columns: int, of: str) -> Instruction:
    """128 rows by `columns`, of one type, of one block, along whose sum both operands have consecutive elements.

    PTX ISA, "tcgen05.mma": "Block Scaling".
    """
    moved = part(columns)
    each = f"(8,{CHUNK}):(1@0,1@1)"
    return Instruction(
        f"tcgen05_m{ROWS}n{columns}k{BLOCK}_f32_mx_{of}",
        f"d += a · sa · b · sb, of {ROWS} × {BLOCK} and {BLOCK} × {columns} elements, in tensor memory, later",
        Level.WARP,
        (
            Operand("a", of, (ROWS, BLOCK), fragment=f"descriptor {each}"),
            Operand("sa", SCALE, (ROWS,), fragment=f"tensor ({_LANES},{ROWS // QUARTER}):((1@0,0),{QUARTER}@0)"),
            Operand("b", of, (BLOCK, columns), fragment=f"descriptor (8,{CHUNK}):(1@1,1@0)"),
            Operand("sb", SCALE, (columns,), fragment=f"tensor ({_LANES},{columns // QUARTER}):((1@0,0),{QUARTER}@0)"),
            Operand("d", "f32", (ROWS, columns), True, f"tensor (128,({moved},{columns // moved})):(1@0,(1@1,{moved}@1))"),
        ),
        tuple((target, _template(columns, of, vector)) for target, vector in _VECTOR.items()),
        f"par {ROWS} |i| {{ par {columns} |j| {{ seq {BLOCK} |k| reduce(d) {{ "
        "d[i, j] += f32(a[i, k]) * f32(sa[i]) * f32(b[k, j]) * f32(sb[j]) } } }",
        effect="joins tcgen05 commit",
        source='PTX ISA 9.0, 9.7.16.10.7 "Block Scaling"; 9.7.16.10.9.1 "tcgen05.mma"; 9.7.16.10.5.1: layout D',
        rounding=Rounding(BLOCK, 25, 23, source="as that of products of the same types without scales"),
    )


def brought(rows: int) -> Instruction:
    """Scales of `rows` rows, 128 of them at once, of four blocks of each.

    PTX ISA, "tcgen05.cp": .32x128b, .warpx4: 32 rows of 16 bytes to all quarters of the lanes.
    """
    groups = rows // (QUARTER * QUARTERS)
    copy = "tcgen05.cp.cta_group::1.32x128b.warpx4 [{}], {};"
    first = copy.format("{t}", "{s}")
    moved = (f"add.u32 tt, {{t}}, {WORD * at}; add.u64 ss, {{s}}, {QUARTER * at}; " for at in range(1, groups))
    more = "".join(f"{each}{copy.format('tt', 'ss')} " for each in moved)
    text = f"{{ .reg .b32 tt; .reg .b64 ss; {first} {more}}}" if more else first
    slots = f"({WORD},{groups},{WORD})", f"({WORD}@1,{QUARTER}@0,1@1)"
    shape = (groups * QUARTER, CHUNK)
    return Instruction(
        f"tcgen05_cp_{SCALE}_x{rows}",
        f"scales of {rows} rows and {WORD} blocks from shared memory to each quarter of tensor memory's lanes, later",
        Level.WARP,
        (
            Operand("s", SCALE, shape, fragment=f"descriptor (8,{CHUNK}):(1@0,1@1)"),
            Operand("t", SCALE, shape, True, f"tensor ({_LANES},{slots[0]}):((1@0,0),{slots[1]})"),
        ),
        tuple((target, text) for target in _VECTOR),
        f"par {shape[0]} |i| {{ par {CHUNK} |j| {{ t[i, j] = s[i, j] }} }}",
        effect="joins tcgen05 commit",
        source='PTX ISA 9.0, 9.7.16.9.2 "tcgen05.cp"; 9.7.16.10.7.2.1: layout of scales for scale_vec::1X',
    )


def _every() -> Iterator[Instruction]:
    for columns in WIDTHS:
        yield brought(columns)
        yield from (scaled(columns, of) for of in _FORMAT)


INSTRUCTIONS = tuple(_every())
