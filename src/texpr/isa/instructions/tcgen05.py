"""Products by the tensor core of a multiprocessor, which sums up in tensor memory, and moves between that and registers.

One thread starts a product for all lanes. Its operands are matrices in shared memory, made of core matrices as those of a
warpgroup's product are (`isa.instructions.wgmma`). Tensor memory is 128 lanes of 512 columns of 32 bits; a warp of a block
reaches the 32 lanes of its number modulo 4. With 128 rows, a row is a lane, and a column a column.

Two blocks of a cluster may be a pair, for which a thread of the first one starts a product of 256 rows: each block has 128 of
them, and half of the columns of the right operand. A record is of what such a product is for each of both.
"""

from collections.abc import Iterator

from texpr.isa.engine import CHUNK
from texpr.isa.instruction import Instruction, Operand
from texpr.isa.instructions.mma import FOUND
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

LANES, COLUMNS = 128, 512
"""The extents of tensor memory (PTX ISA, "Tensor Memory Addressing")."""

LEAST = 32
"""The fewest columns that are given at once: a power of two of them (PTX ISA, "tcgen05.alloc")."""

ROWS = 128
"""Rows of a product of one block; one of 64 leaves out half of the lanes."""

PAIR = 2
"""Blocks of a pair: those of a cluster whose ranks differ in the lowest bit (PTX ISA, "CTA Pair")."""

PAIRED = "joins tcgen05 commit of a pair"
"""The effect of what a thread of the first block of a pair starts for both."""

PAIR_WIDTHS = (64, 128, 256)
"""Columns of the products of pairs of which there are records. A text may have others, multiples of 16 up to 256."""

WIDTHS = (16, 32, 64, 96, 128, 192, 256)
"""Columns of the products of which there are records. A text may have others, multiples of 16 up to 256."""

PART = 32
"""Columns that are moved at once, for which a lane needs as many registers; of products of fewer columns, or of others than a
multiple of them, 16."""

WORD = 4
"""Bytes of a column of a lane."""

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}
_KIND = {2: "f16", 4: "tf32", 1: "f8f6f4"}
_FORMAT = {"f16": 0, "bf16": 1, "tf32": 2, "f8e4m3": 0, "f8e5m2": 1, "u8": 0, "i8": 1}
_SUM = {"f16": 0, "f32": 1, "i32": 2}

_TARGETS = ("sm_100a", "sm_103a")


def descriptor(rows: int, columns: int, of: str, into: str, by_m: bool = False, by_n: bool = False) -> int:
    """The instruction descriptor: PTX ISA 9.0, 9.7.16.4.2 "Instruction descriptor", the table of .kind::tf32, .kind::f16,
    .kind::f8f6f4 and .kind::i8. Type of the sum from bit 4 on, of a from 7, of b from 10, whether a and b are transposed in 15
    and 16, columns in eights from 17, rows in sixteens from 24."""
    types = _SUM[into] << 4 | _FORMAT[of] << 7 | _FORMAT[of] << 10
    return types | int(by_m) << 15 | int(by_n) << 16 | columns // 8 << 17 | rows // 16 << 24


def _rounding(of: str, into: str, depth: int) -> Rounding | None:
    """Nobody has said of this generation that it keeps fewer bits than the one before does of 16-bit types: as that."""
    if into == "i32":
        return None
    return Rounding(depth, 25, 23, source=FOUND)


def part(columns: int) -> int:
    """Columns of a sum of so many that are moved at once."""
    return PART if columns % PART == 0 else PART // 2


def product(
    columns: int,
    of: str,
    into: str = "f32",
    *,
    by_m: bool = False,
    by_n: bool = False,
    there: bool = False,
    pair: bool = False,
) -> Instruction:
    """128 rows by `columns`, of one type, of one block, or of each of a `pair`. `by_m`, `by_n`: whether consecutive elements of
    a go along rows of the product, and of b along its columns, as 16-bit types may; else they go along the sum. `there`: a is
    in tensor memory, too: a lane has a row, in words of consecutive elements.

    PTX ISA, "tcgen05.mma": the sum is always added to (enable-input-d).
    """
    size = _BYTES[of]
    depth, each = 2 * CHUNK // size, CHUNK // size
    kind = "i8" if into == "i32" else _KIND[size]
    across, along = f"descriptor (8,{each}):(1@0,1@1)", f"descriptor (8,{each}):(1@1,1@0)"
    halved = f"descriptor {PAIR}@1 {(across if by_n else along).removeprefix('descriptor ')}"
    left, right = (f"i32({each})" if into == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    moved = part(columns)
    blocks = PAIR if pair else 1
    bits = descriptor(ROWS * blocks, columns, of, into, by_m, by_n)
    first = "[{a}]" if there else "{a}"
    text = f"tcgen05.mma.cta_group::{blocks}.kind::{kind} [{{d}}], {first}, {{b}}, {bits:#x}, 1;"
    targets = _TARGETS[:1] if kind == "i8" else _TARGETS  # PTX ISA, "tcgen05.mma": .kind::i8 is not of sm_103a
    shape = f"{'pair_' if pair else ''}m{ROWS}n{columns}k{depth}"
    where = "tensor memory, in each block of a pair" if pair else "tensor memory"
    return Instruction(
        f"tcgen05_{shape}_{into}_{of}{'_at' if there else '_am' if by_m else ''}{'_bn' if by_n else ''}",
        f"d += a · b, of {ROWS} × {depth} and {depth} × {columns} elements, in {where}, later",
        Level.WARP,
        (
            Operand(
                "a", of, (ROWS, depth), fragment=f"tensor ({ROWS},{depth}):(1@0,1@1)" if there else along if by_m else across
            ),
            Operand("b", of, (depth, columns), fragment=halved if pair else across if by_n else along),
            Operand("d", into, (ROWS, columns), True, f"tensor (128,({moved},{columns // moved})):(1@0,(1@1,{moved}@1))"),
        ),
        tuple((target, text) for target in targets),
        f"par {ROWS} |i| {{ par {columns} |j| {{ seq {depth} |k| reduce(d) {{ d[i, j] += {left} * {right} }} }} }}",
        effect=PAIRED if pair else "joins tcgen05 commit",
        source='PTX ISA 9.0, 9.7.16.4 "Matrix and Data Movement Shape", 9.7.16.10.9.1 "tcgen05.mma"; 9.7.16.10.5.1: layout D',
        rounding=_rounding(of, into, depth),
    )


def _moves(of: str, width: int) -> Iterator[Instruction]:
    """Each lane of a warp has a lane of tensor memory, a word of which is a register. Who moves has waited before the next one
    (`tcgen05.wait`)."""
    held, there = f"(32,{width}):(1@0,1@1)", f"tensor (32,{width}):(1@0,1@1)"
    shape = (32, width)
    loops = f"par 32 |i| {{{{ par {width} |j| {{{{ {{}} }}}} }}}}"
    words = width * _BYTES.get(of, WORD) // WORD
    source = 'PTX ISA 9.0, 9.7.16.8 "tcgen05.{}", "tcgen05.wait"; 9.7.16.2.3.1: .32x32b'
    loads = f"tcgen05.ld.sync.aligned.32x32b.x{words}.b32 {{d}}, [{{t}}]; tcgen05.wait::ld.sync.aligned;"
    stores = f"tcgen05.st.sync.aligned.32x32b.x{words}.b32 [{{t}}], {{d}}; tcgen05.wait::st.sync.aligned;"
    yield Instruction(
        f"tcgen05_ld_x{width}_{of}",
        f"{words} columns of tensor memory, each lane's to its registers, and they have come",
        Level.WARP,
        (Operand("t", of, shape, fragment=there), Operand("d", of, shape, True, held)),
        tuple((target, loads) for target in _TARGETS),
        loops.format("d[i, j] = t[i, j]"),
        effect="joins warp",
        source=source.format("ld"),
    )
    yield Instruction(
        f"tcgen05_st_x{width}_{of}",
        f"{words} registers of each lane to its columns of tensor memory, and they have come",
        Level.WARP,
        (Operand("d", of, shape, fragment=held), Operand("t", of, shape, True, there)),
        tuple((target, stores) for target in _TARGETS),
        loops.format("t[i, j] = d[i, j]"),
        effect="joins warp",
        source=source.format("st"),
    )


def _products() -> Iterator[Instruction]:
    for columns in WIDTHS:
        yield from (product(columns, of) for of in ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2"))
        yield from (product(columns, of, "i32") for of in ("i8", "u8"))
        if columns >= 64:  # a swizzle of 128 bytes, along columns
            for of in ("bf16", "f16"):
                yield from (product(columns, of, by_m=m, by_n=n) for m, n in ((False, True), (True, False), (True, True)))
                yield from (product(columns, of, by_n=n, there=True) for n in (False, True))
    for columns in PAIR_WIDTHS:
        yield from (product(columns, of, pair=True) for of in ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2"))
        for of in ("bf16", "f16"):
            yield product(columns, of, by_m=True, pair=True)
            if columns >= PAIR * 64:  # a swizzle of 128 bytes, along the columns of a half
                yield from (product(columns, of, by_m=m, by_n=True, pair=True) for m in (False, True))


INSTRUCTIONS = (
    *(move for of in ("f32", "i32", "bf16", "f16") for width in (PART // 2, PART) for move in _moves(of, width)),
    *_products(),
)
