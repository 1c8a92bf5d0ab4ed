"""Products by the tensor core of a warpgroup, which goes on while its lanes do, of matrices in shared memory; lanes may have
the left one in registers.

An operand in shared memory is made of core matrices: 8 rows of 16 bytes. Its fragment is of one: (row, element in it). Those of
the sum, and of a left operand in registers, are (lane, register) → (row, column): as of a warp's product, 16 rows a warp.
"""

from collections.abc import Iterator

from texpr.isa.engine import CHUNK
from texpr.isa.instruction import Instruction, Operand
from texpr.isa.instructions.mma import FOUND
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

ROWS = 64
"""Rows of the product, 16 for each warp."""

PART = 128
"""Terms of a sum of few bits that the unit may add up by itself, as DeepSeek-V3 has it (arXiv 2412.19437, 3.3.2)."""

_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}
_PTX = {"f8e4m3": "e4m3", "f8e5m2": "e5m2", "i8": "s8", "u8": "u8", "i32": "s32"}

COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
"""Columns of the products of which there are records. A text may have others, multiples of 8 up to 256; of integers, of 16."""

_OWN = {
    2: "((4,8,4),(2,2,2)):((2@1,1@0,16@0),(1@1,8@0,8@1))",
    4: "((4,8,4),(2,2)):((1@1,1@0,16@0),(8@0,4@1))",
    1: "((4,8,4),(4,2,2)):((4@1,1@0,16@0),(1@1,8@0,16@1))",
}
"""Fragments of a left operand in registers, by bytes of an element: where a sum of f32, rounded to 16 bits, has 16 columns."""

_SECTIONS = {
    2: "9.7.15.5.1.1, 9.7.15.5.1.2: m64nNk16",
    4: "9.7.15.5.1.3: m64nNk8",
    1: "9.7.15.5.1.4: m64nNk32",
}

_FP8 = f"{FOUND}; DeepSeek-AI, DeepSeek-V3, arXiv 2412.19437 (2024), 3.3.2: about 14 bits"


def _rounding(of: str, into: str, depth: int) -> Rounding | None:
    """One step an instruction. Of 8-bit floats, sums keep 13 bits behind the leading one, of the 23 that a register has."""
    if into == "i32":
        return None
    return Rounding(depth, 13, 13, source=_FP8) if _BYTES[of] == 1 else Rounding(depth, 25, 23, source=FOUND)


def product(
    columns: int, of: str, into: str = "f32", *, by_m: bool = False, by_n: bool = False, in_registers: bool = False
) -> Instruction:
    """64 rows by `columns`, of one type. `by_m`, `by_n`: whether consecutive elements of a go along rows of the product, and
    of b along its columns, as 16-bit types may; else they go along the sum. `in_registers`: whether lanes hold a.

    PTX ISA, "wgmma.mma_async": scale-d, the signs, then whether a and b are transposed; of a in registers it is not asked. The
    sum is always added to.
    """
    assert not (by_m and in_registers)
    depth = 2 * CHUNK // _BYTES[of]
    names = tuple(_PTX.get(name, name) for name in (into, of, of))
    each = CHUNK // _BYTES[of]
    across, along = f"descriptor (8,{each}):(1@0,1@1)", f"descriptor (8,{each}):(1@1,1@0)"
    turned = "" if _BYTES[of] != 2 else f", {int(by_n)}" if in_registers else f", {int(by_m)}, {int(by_n)}"
    marks = "" if into == "i32" else f", 1, 1{turned}"
    left, right = (f"i32({each})" if into == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    suffix = f"{'_ar' if in_registers else '_am' if by_m else ''}{'_bn' if by_n else ''}"
    held = _OWN[_BYTES[of]] if in_registers else along if by_m else across
    return Instruction(
        f"wgmma_m{ROWS}n{columns}k{depth}_{into}_{of}{suffix}",
        f"d += a · b, of {ROWS} × {depth} and {depth} × {columns} elements, later",
        Level.WARP,
        (
            Operand("a", of, (ROWS, depth), fragment=held),
            Operand("b", of, (depth, columns), fragment=across if by_n else along),
            Operand("d", into, (ROWS, columns), True, f"((4,8,4),(2,2,{columns // 8})):((2@1,1@0,16@0),(1@1,8@0,8@1))"),
        ),
        (
            (
                "sm_90a",
                f"wgmma.mma_async.sync.aligned.m{ROWS}n{columns}k{depth}.{'.'.join(names)} {{d}}, {{a}}, {{b}}, 1{marks};",
            ),
        ),
        f"par {ROWS} |i| {{ par {columns} |j| {{ seq {depth} |k| reduce(d) {{ d[i, j] += {left} * {right} }} }} }}",
        effect="joins wgmma group",
        source=f"PTX ISA 8.5, {_SECTIONS[_BYTES[of]]}; 9.7.15.5.1: fragments, matrix descriptor, core matrices",
        rounding=_rounding(of, into, depth),
    )


def _products() -> Iterator[Instruction]:
    for columns in COLUMNS:
        yield from (product(columns, of) for of in ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2"))
        yield from (product(columns, of, "i32") for of in ("i8", "u8"))
        for of in ("bf16", "f16"):
            wide = columns >= 64  # a swizzle of 128 bytes, along columns
            yield from (product(columns, of, by_m=m, by_n=n) for m, n in ((False, True), (True, False), (True, True)) if wide)
            yield from (product(columns, of, by_n=n, in_registers=True) for n in ((False, True) if wide else (False,)))


INSTRUCTIONS = tuple(_products())
