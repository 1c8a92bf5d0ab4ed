"""Fragments and layouts of operands as CuTe DSL has them, as a file that the tests compare ours with: no GPU is needed.

    .venv-peers/bin/python bench/peers/check_cute.py          writes tests/instr/cute.json

Fragments are layouts from (lane, register) to the number of an element, rows first: `tv_layout_A` and others of an atom.
Layouts of shared memory are those of `make_smem_layout_atom`, from (row, column) to elements, before what the swizzle moves.
Descriptors are read from the PTX of a product of a tile that lies so: what is put beside the place where a matrix starts. Of
tensor maps CuTe says the box and the type of elements, and its host code encodes all of it (`cute_bits`).
"""

# The language rewrites functions from their text: no `from __future__ import annotations`.

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

os.environ["CUTE_DSL_ARCH"] = "sm_90a"  # there need not be a device

import cutlass
from cute_bits import map_of
from cutlass import cute, utils
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, warp, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_tensor

FILE = Path(__file__).parents[2] / "tests" / "instr" / "cute.json"
COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
KINDS = {
    "f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "f8e4m3": cutlass.Float8E4M3FN,
    "f8e5m2": cutlass.Float8E5M2, "i8": cutlass.Int8, "u8": cutlass.Uint8,
}  # fmt: skip
PARTS = ("fragments", "layouts", "descriptors", "maps", "boxes")
FOUND: dict[str, Any] = {"version": cutlass.__version__, **{part: {} for part in PARTS}}


def of_warps() -> dict[str, Any]:
    """Products of a warp, by the names of our records."""
    found = {}
    for name in ("f16", "bf16"):
        for depth in (8, 16):
            op = warp.MmaF16BF16Op(KINDS[name], cutlass.Float32, (16, 8, depth))
            found[f"mma_m16n8k{depth}_f32_{name}"] = op
    found["mma_m16n8k16_f16_f16"] = warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float16, (16, 8, 16))
    found["mma_m16n8k8_f32_tf32"] = warp.MmaTF32Op((16, 8, 8))
    return found


def of_warpgroups() -> dict[str, Any]:
    """Products of a warpgroup."""
    found, (k, mn) = {}, (OperandMajorMode.K, OperandMajorMode.MN)
    shared, held = warpgroup.OperandSource.SMEM, warpgroup.OperandSource.RMEM
    for columns in COLUMNS:
        for name in ("f16", "bf16"):
            ways = [("", shared, k, k)]
            if columns >= 64:
                ways += [("_am", shared, mn, k), ("_bn", shared, k, mn), ("_am_bn", shared, mn, mn)]
                ways += [("_ar", held, k, k), ("_ar_bn", held, k, mn)]
            for end, source, a, b in ways:
                op = warpgroup.MmaF16BF16Op(KINDS[name], cutlass.Float32, (64, columns, 16), source, a, b)
                found[f"wgmma_m64n{columns}k16_f32_{name}{end}"] = op
        for name in ("f8e4m3", "f8e5m2"):
            op = warpgroup.MmaF8Op(KINDS[name], KINDS[name], cutlass.Float32, (64, columns, 32), shared, k, k)
            found[f"wgmma_m64n{columns}k32_f32_{name}"] = op
        for name in ("i8", "u8"):
            op = warpgroup.MmaI8Op(KINDS[name], KINDS[name], cutlass.Int32, (64, columns, 32), shared, k, k)
            found[f"wgmma_m64n{columns}k32_i32_{name}"] = op
    return found


@cute.jit
def look():
    """Traced, and never run: all of it is known to the compiler."""
    for name, op in {**of_warps(), **of_warpgroups()}.items():
        atom = cute.make_tiled_mma(op)
        FOUND["fragments"][name] = [str(atom.tv_layout_A), str(atom.tv_layout_B), str(atom.tv_layout_C)]
    for kind in warpgroup.SmemLayoutAtomKind:
        for name in ("f16", "bf16", "tf32", "f8e4m3", "f8e5m2", "i8", "u8"):
            of = cutlass.Float32 if name == "tf32" else KINDS[name]
            FOUND["layouts"][f"{kind.name} {name}"] = str(warpgroup.make_smem_layout_atom(kind, of))


@cute.kernel
def one(
    mma: cute.TiledMma, left: cute.ComposedLayout, right: cute.ComposedLayout, of: cutlass.Constexpr, into: cutlass.Constexpr
):
    """One product of what lies so in shared memory; what it gives is used."""
    allocator = utils.SmemAllocator()
    a = allocator.allocate_tensor(of, left.outer, 1024, left.inner)
    b = allocator.allocate_tensor(of, right.outer, 1024, right.inner)
    thread, _, _ = cute.arch.thread_idx()
    mine = mma.get_slice(thread)
    ours, others = mma.make_fragment_A(mine.partition_A(a)), mma.make_fragment_B(mine.partition_B(b))
    total = cute.make_rmem_tensor(mma.partition_shape_C((ROWS, WIDE)), into)
    warpgroup.fence()
    cute.gemm(mma, total, ours[None, None, 0], others[None, None, 0], total)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    cute.printf("{}", total[0])


ROWS, WIDE = 64, 256
SIZES = {"f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1, "i8": 1, "u8": 1}


@cute.jit
def lying(
    name: cutlass.Constexpr, of: cutlass.Constexpr, into: cutlass.Constexpr, kind: cutlass.Constexpr, op: cutlass.Constexpr
):
    """A product of tiles in atoms of a kind, along the sum as deep as an atom is, or as an instruction."""
    mma = cute.make_tiled_mma(op)
    atom = warpgroup.make_smem_layout_atom(kind, of)
    deep = max(cute.size(atom, mode=[1]), 32 // SIZES[name])
    left, right = (cute.tile_to_shape(atom, (rows, deep), (0, 1)) for rows in (ROWS, WIDE))
    FOUND["descriptors"][f"{kind.name} {name}"] = {"a": [str(left)], "b": [str(right)]}
    one(mma, left, right, of, into).launch(grid=(1, 1, 1), block=(128, 1, 1))


MADE = re.compile(r"or\.b64 *\t*(%rd\d+), %rd\d+, (-?\d+);")
TAKEN = re.compile(r"wgmma\.mma_async[^{]*\{[^}]*\}, (%rd\d+), (%rd\d+),")


def descriptors() -> None:
    """What CuTe puts into descriptors of both operands, for every type, major and swizzle that it has."""
    k, mn, shared = OperandMajorMode.K, OperandMajorMode.MN, warpgroup.OperandSource.SMEM
    for kind in warpgroup.SmemLayoutAtomKind:
        for name in SIZES if kind.name.startswith("K") else ("f16", "bf16"):
            of, major = KINDS[name], k if kind.name.startswith("K") else mn
            shape, into = (ROWS, WIDE, 32 // SIZES[name]), cutlass.Int32 if name in ("i8", "u8") else cutlass.Float32
            if SIZES[name] == 2:
                op: Any = warpgroup.MmaF16BF16Op(of, into, shape, shared, major, major)
            elif name in ("i8", "u8"):
                op = warpgroup.MmaI8Op(of, of, into, shape, shared, k, k)
            else:
                op = warpgroup.MmaF8Op(of, of, into, shape, shared, k, k)
            with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
                cute.compile(lying, name, of, into, kind, op, options=f"--gpu-arch sm_90a --keep-ptx --dump-dir {folder}")
                (file,) = Path(folder).glob("*.ptx")
                text = file.read_text(encoding="utf-8")
            made, taken = dict(MADE.findall(text)), TAKEN.search(text)
            assert taken is not None
            for operand, register in zip("ab", taken.groups(), strict=True):
                FOUND["descriptors"][f"{kind.name} {name}"][operand].append(f"{int(made[register]) % 2**64:#018x}")


@cute.kernel
def asking(atom: cute.CopyAtom):
    """Uses a map."""
    cpasync.prefetch_descriptor(atom)


BOX = re.compile(r'tma_gbasis = <"([^"]*)">, tma_format = (\w+)')


@cute.jit
def mapped(name: cutlass.Constexpr, of: cutlass.Constexpr, kind: cutlass.Constexpr, whole: cute.Tensor):
    """A copy of a tile that comes to lie so, of an array whose elements are neighbours as in the tile."""
    atom = warpgroup.make_smem_layout_atom(kind, of)
    tile = (ROWS, max(cute.size(atom, mode=[1]), 32 // max(SIZES.get(name, 4), 1)))
    copy, _ = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), whole, cute.tile_to_shape(atom, tile, (0, 1)), tile
    )
    FOUND["maps"][f"{kind.name} {name}"] = [*BOX.findall(str(copy.type))[0]]
    asking(copy).launch(grid=(1, 1, 1), block=(32, 1, 1))


def maps() -> None:
    """Boxes and types of tensor maps, for every type, major and swizzle."""
    for kind in warpgroup.SmemLayoutAtomKind:
        along = kind.name.startswith("K")
        for name in KINDS if along else ("f16", "bf16"):
            of = cutlass.Float32 if name == "tf32" else KINDS[name]
            whole = make_fake_compact_tensor(of, (1024, 512), stride_order=(1, 0) if along else (0, 1), assumed_align=16)
            made = cute.compile(mapped, name, of, kind, whole, options="--gpu-arch sm_90a")
            FOUND["maps"][f"{kind.name} {name}"].append(map_of(made))


BOXES: dict[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "a row": ((1000,), (1,), (64,)),
    "rows apart": ((1000, 500), (520, 1), (32, 64)),
    "planes": ((4, 96, 64), (96 * 80 + 16, 80, 1), (1, 8, 64)),
    "a box in four": ((6, 5, 96, 64), (5 * 96 * 64, 96 * 64, 64, 1), (3, 2, 8, 32)),
    "far apart": ((2, 2, 2, 2, 64), ((1 << 37) + 4096, (1 << 36) + 512, 1 << 35, 64, 1), (2, 1, 2, 2, 16)),
}
"""By name: the shape of an array of bf16, its strides, and a tile of it."""


@cute.jit
def boxed(whole: cute.Tensor, tile: cutlass.Constexpr):
    """A copy of a tile in the order of its rows."""
    order = tuple(range(len(tile) - 1, -1, -1))
    copy, _ = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), whole, cute.make_ordered_layout(tile, order=order), tile
    )
    asking(copy).launch(grid=(1, 1, 1), block=(32, 1, 1))


def boxes() -> None:
    """Maps of arrays of one to five dimensions."""
    for name, (shape, strides, tile) in BOXES.items():
        whole = make_fake_tensor(cutlass.BFloat16, shape, strides, assumed_align=16)
        said = map_of(cute.compile(boxed, whole, tile, options="--gpu-arch sm_90a"))
        FOUND["boxes"][name] = {"shape": shape, "strides": strides, "tile": tile, "bits": said}


if __name__ == "__main__":
    look()
    descriptors()
    maps()
    boxes()
    FILE.write_text(json.dumps(FOUND, indent=1) + "\n", encoding="utf-8")
    told = ", ".join(f"{len(FOUND[part])} {part}" for part in PARTS)
    print(f"{told} of CuTe {FOUND['version']}: {FILE}")
