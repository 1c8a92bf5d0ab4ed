"""Products in tensor memory as CuTe DSL has them, as a file that the tests compare ours with: no GPU is needed.

    .venv-peers/bin/python bench/peers/check_cute_columns.py          writes tests/instr/cute_columns.json

It is of another target than `check_cute.py`, which the DSL takes one of. Both kinds of descriptors are in the PTX of a product:
of the instruction, as bits that are chosen when nothing is negated; and of matrices that lie as `make_smem_layout_atom` says,
as what is put beside the place where one starts. Of the sum the DSL says how addresses in tensor memory belong to rows and
columns.
"""

# The language rewrites functions from their text: no `from __future__ import annotations`.

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

os.environ["CUTE_DSL_ARCH"] = "sm_100a"  # there need not be a device

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import OperandMajorMode, tcgen05
from cutlass.memory import SmemAllocator

FILE = Path(__file__).parents[2] / "tests" / "instr" / "cute_columns.json"
ROWS = 128
COLUMNS = (16, 32, 64, 96, 128, 192, 256)
KINDS = {
    "f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "f8e4m3": cutlass.Float8E4M3FN,
    "f8e5m2": cutlass.Float8E5M2, "i8": cutlass.Int8, "u8": cutlass.Uint8,
}  # fmt: skip
SIZES = {"f16": 2, "bf16": 2, "tf32": 4}
K, MN = OperandMajorMode.K, OperandMajorMode.MN
MAJORS = {"": (K, K), "_am": (MN, K), "_bn": (K, MN), "_am_bn": (MN, MN)}
PAIRS = (64, 128, 256)
FOUND: dict[str, Any] = {
    "version": cutlass.__version__, "instructions": {}, "sums": {}, "pairs": {}, "halves": {}, "descriptors": {},
}  # fmt: skip


def product(name: str, columns: int, a: OperandMajorMode, b: OperandMajorMode, blocks: int) -> tuple[Any, Any]:
    """The operation of a type, by so many blocks together, and the type of its sum."""
    of, whole = KINDS[name], name in ("i8", "u8")
    into = cutlass.Int32 if whole else cutlass.Float32
    shape = (blocks * ROWS, columns, 32 // SIZES.get(name, 1))
    group = tcgen05.CtaGroup.TWO if blocks > 1 else tcgen05.CtaGroup.ONE
    end: Any = (shape, group, tcgen05.OperandSource.SMEM, a, b)
    if whole:
        return tcgen05.MmaI8Op(of, *end), into
    if name == "tf32":
        return tcgen05.MmaTF32Op(*end), into
    if SIZES.get(name) == 2:
        return tcgen05.MmaF16BF16Op(of, into, *end), into
    return tcgen05.MmaF8F6F4Op(of, of, into, *end), into


@cute.kernel
def one(
    mma: cute.TiledMma,
    left: cute.ComposedLayout,
    right: cute.ComposedLayout,
    of: cutlass.Constexpr,
    into: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    rows: cutlass.Constexpr,
):
    """One product of what lies so in shared memory."""
    allocator = SmemAllocator()
    a = allocator.allocate_tensor(of, left.outer, 1024, left.inner)
    b = allocator.allocate_tensor(of, right.outer, 1024, right.inner)
    ours, others = mma.make_fragment_A(a), mma.make_fragment_B(b)
    sums = mma.make_fragment_C(mma.partition_shape_C((rows, columns)))
    place = cute.arch.retrieve_tmem_ptr(into, 16, cute.arch.alloc_smem(cutlass.Int32, 1))
    total = cute.make_tensor(place, sums.layout)
    cute.gemm(mma, total, ours[None, None, 0, 0], others[None, None, 0, 0], total)


@cute.jit
def lying(
    told: cutlass.Constexpr,
    of: cutlass.Constexpr,
    into: cutlass.Constexpr,
    kinds: cutlass.Constexpr,
    op: cutlass.Constexpr,
    columns: cutlass.Constexpr,
    rows: cutlass.Constexpr,
):
    """A product of tiles in atoms of kinds, along the sum as deep as an atom is, or as an instruction."""
    mma = cute.make_tiled_mma(op)
    left, right = (tcgen05.make_smem_layout_atom(kind, of) for kind in kinds)
    deep = max(cute.size(left, mode=[1]), cute.size(right, mode=[1]), op.shape_mnk[2])
    tile_a, tile_b = mma.partition_shape_A((rows, deep)), mma.partition_shape_B((columns, deep))
    a = tcgen05.tile_to_mma_shape(left, cute.append(tile_a, 1), order=(1, 2, 3))
    b = tcgen05.tile_to_mma_shape(right, cute.append(tile_b, 1), order=(1, 2, 3))
    told += [str(a), str(b), str(mma.make_fragment_C(mma.partition_shape_C((rows, columns))).layout)]
    told += [str(each) for each in (mma.tv_layout_A, mma.tv_layout_B, mma.tv_layout_C)]
    one(mma, a, b, of, into, columns, rows).launch(grid=(1, 1, 1), block=(128, 1, 1))


NUMBER = re.compile(r"(or|mov)\.b64 *\t*(%rd\d+), (?:%rd\d+, )?(-?\d+);")
TAKEN = re.compile(r"tcgen05\.mma\.cta_group::(\d)\.kind::(\w+)\S* \[%r\d+\], (%rd\d+), (%rd\d+), (%r\d+),")
CHOSEN = re.compile(r"selp\.b32 *\t*(%r\d+), -?\d+, (-?\d+),")
JOINED = re.compile(r"or\.b32 *\t*(%r\d+), (%r\d+), (%r\d+);")


def ptx(
    name: str, columns: int, kinds: tuple[Any, Any], a: OperandMajorMode, b: OperandMajorMode, blocks: int = 1
) -> tuple[list[str], str]:
    """What CuTe says of the layouts, and the PTX."""
    (op, into), told = product(name, columns, a, b, blocks), list[str]()
    of = cutlass.Float32 if name == "tf32" else KINDS[name]
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        options = f"--gpu-arch sm_100a --keep-ptx --dump-dir {folder}"
        cute.compile(lying, told, of, into, kinds, op, columns, blocks * ROWS, options=options)
        (file,) = Path(folder).glob("*.ptx")
        return told, file.read_text(encoding="utf-8")


def taken(text: str) -> tuple[str, str, str, str, str]:
    """The kind, what is put into both descriptors of matrices, and the instruction's; how many blocks do it."""
    found, chosen, joined = TAKEN.search(text), dict(CHOSEN.findall(text)), {to: each for to, *each in JOINED.findall(text)}
    assert found is not None
    made = {register: int(number) for _, register, number in NUMBER.findall(text)}
    bits, left = 0, [found[5]]
    while left:
        register = left.pop()
        left += joined.get(register, [])
        bits |= int(chosen.get(register, "0")) if register not in joined else 0
    a, b = (f"{made[register] % 2**64:#018x}" for register in (found[3], found[4]))
    return found[2], a, b, f"{bits % 2**32:#010x}", found[1]


def instructions() -> None:
    """The descriptor of each product of ours, and of those along rows and columns that it has for 8 bits."""
    atoms = tcgen05.SmemLayoutAtomKind
    for name in KINDS:
        for end, (a, b) in MAJORS.items() if name != "tf32" else [("", (K, K))]:
            kinds: Any = tuple(atoms.K_SW128 if major is K else atoms.MN_SW32 for major in (a, b))
            for columns in COLUMNS if not end else COLUMNS[2:]:
                (_, _, sums, *_), text = ptx(name, columns, kinds, a, b)
                into, depth = "i32" if name in ("i8", "u8") else "f32", 32 // SIZES.get(name, 1)
                kind, _, _, bits, _ = taken(text)
                FOUND["instructions"][f"tcgen05_m{ROWS}n{columns}k{depth}_{into}_{name}{end}"] = [kind, bits]
                FOUND["sums"][str(columns)] = sums


def pairs() -> None:
    """The same of products of two blocks, by how many they are done, and which block has what of each operand."""
    atoms = tcgen05.SmemLayoutAtomKind
    for name in ("bf16", "f16", "tf32", "f8e4m3", "f8e5m2"):
        for end, (a, b) in MAJORS.items() if SIZES.get(name) == 2 else [("", (K, K))]:
            kinds: Any = tuple(atoms.K_SW128 if major is K else atoms.MN_SW32 for major in (a, b))
            for columns in PAIRS if b is K else PAIRS[1:]:
                (_, _, _, *held), text = ptx(name, columns, kinds, a, b, 2)
                kind, _, _, bits, blocks = taken(text)
                depth = 32 // SIZES.get(name, 1)
                FOUND["pairs"][f"tcgen05_pair_m{ROWS}n{columns}k{depth}_f32_{name}{end}"] = [kind, bits, int(blocks)]
                FOUND["halves"][f"{columns} {depth}"] = held


def descriptors() -> None:
    """What CuTe puts into descriptors of both operands, for every type, major and swizzle but the one that moves 32 bytes."""
    for kind in tcgen05.SmemLayoutAtomKind:
        along = kind.name.startswith("K")
        for name in KINDS if along else KINDS.keys() - {"tf32"}:
            if kind.name.endswith("_32B"):
                continue
            (a, b, *_), text = ptx(name, 256, (kind, kind), *((K, K) if along else (MN, MN)))
            _, left, right, *_ = taken(text)
            FOUND["descriptors"][f"{kind.name} {name}"] = {"a": [a, left], "b": [b, right]}


if __name__ == "__main__":
    instructions()
    pairs()
    descriptors()
    FOUND["descriptors"] = dict(sorted(FOUND["descriptors"].items()))
    FILE.write_text(json.dumps(FOUND, indent=1) + "\n", encoding="utf-8")
    told = ", ".join(f"{len(said)} {what}" for what, said in FOUND.items() if what != "version")
    print(f"{told} of CuTe {FOUND['version']}: {FILE}")
