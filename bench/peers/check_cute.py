"""Fragments and layouts of operands as CuTe DSL has them, as a file that the tests compare ours with: no GPU is needed.

    .venv-peers/bin/python bench/peers/check_cute.py          writes tests/instr/cute.json

Fragments are layouts from (lane, register) to the number of an element, rows first: `tv_layout_A` and others of an atom.
Layouts of shared memory are those of `make_smem_layout_atom`, from (row, column) to elements, before what the swizzle moves.
"""

# The language rewrites functions from their text: no `from __future__ import annotations`.

import json
import os
from pathlib import Path
from typing import Any

os.environ["CUTE_DSL_ARCH"] = "sm_90a"  # there need not be a device

import cutlass
from cutlass import cute
from cutlass.cute.nvgpu import OperandMajorMode, warp, warpgroup

FILE = Path(__file__).parents[2] / "tests" / "instr" / "cute.json"
COLUMNS = (8, 16, 32, 64, 96, 128, 192, 256)
KINDS = {
    "f16": cutlass.Float16, "bf16": cutlass.BFloat16, "tf32": cutlass.TFloat32, "f8e4m3": cutlass.Float8E4M3FN,
    "f8e5m2": cutlass.Float8E5M2, "i8": cutlass.Int8, "u8": cutlass.Uint8,
}  # fmt: skip
FOUND: dict[str, Any] = {"version": cutlass.__version__, "fragments": {}, "layouts": {}}


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


if __name__ == "__main__":
    look()
    FILE.write_text(json.dumps(FOUND, indent=1) + "\n", encoding="utf-8")
    print(f"{len(FOUND['fragments'])} fragments, {len(FOUND['layouts'])} layouts of CuTe {FOUND['version']}: {FILE}")
