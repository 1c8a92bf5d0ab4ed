"""What a kernel gives to tensor cores: the instruction, where its operands are and come from, and how tiles lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod

from texpr.affine.atoms import Xor
from texpr.driver import Compiled
from texpr.explain.data import Data
from texpr.explain.planned import tile_at
from texpr.ir import kernel as k
from texpr.ir.instr import Operand
from texpr.ir.instr.registers import columns_of
from texpr.ir.kernel.shared import columns_of_arrays, columns_taken
from texpr.ir.ops.collective import Held
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import F8E8M0
from texpr.isa.levels import Level, Space


def tensor(kernel: k.Kernel, compiled: Compiled) -> Iterator[Data]:
    """Each instruction that sums up products, once for the same arrays.

    `extents`: of the loops of its meaning, by name; `of`: the type of what it multiplies. `tile`: of a block, by the loops of
    the nest, where an automatic schedule chose it; `sums`: elements that a block sums up. `cluster`: blocks of one.
    `operands`: `fragment` (of a core matrix for a `descriptor`), `registers` of a lane, and `source`, the array in shared
    memory that it is read in or loaded from: bytes of a row (`pitch`) and of a turn, `stages` turns that are there at once, the
    span of its `swizzle`; for a descriptor also `leading` and `stride`, in bytes.
    """
    seen: set[tuple[str, ...]] = set()
    for stmt, instr in k.collectives(kernel):
        key = stmt.name, *(held.first.buffer.name for held in stmt.registers)
        if instr.products is None or key in seen:
            continue
        seen.add(key)
        pairs = list(zip(instr.operands, stmt.registers, strict=True))
        threads = kernel.threads // instr.lanes * instr.lanes  # a warp that copies sums up nothing
        sums = sum(threads * _each(held.first.buffer) for operand, held in pairs if operand.is_written)
        yield {
            "instruction": instr.name,
            "lanes": instr.lanes,
            "extents": {turn.sym.base: turn.extent for turn in instr.loops},
            "of": instr.products[0].name,
            "tile": tile_at(compiled, kernel.span.line, instr.name),
            "sums": sums,
            "cluster": [axis.extent.constant for axis in kernel.axes if axis.level is Level.CLUSTER],
            "operands": [_operand(kernel, operand, held, _stages(compiled)) for operand, held in pairs],
        }


def tensor_memory(kernel: k.Kernel) -> Data | None:
    """The columns of tensor memory that a kernel takes, and of each array the first one and how many; None without."""
    arrays = [{"name": buffer.name, "first": at.start, "columns": len(at)} for buffer, at in columns_of_arrays(kernel).items()]
    return {"taken": columns_taken(kernel), "arrays": arrays} if arrays else None


def _each(buffer: Buffer) -> int:
    return prod(extent.constant for extent in buffer.shape)


def _stages(compiled: Compiled) -> Mapping[str, int]:
    made = compiled.laid_out
    return {} if made is None else {staged.name: staged.stages for staged in made.state.staged}


def _operand(kernel: k.Kernel, operand: Operand, held: Held, stages: Mapping[str, int]) -> Data:
    load = held.first if operand.is_described else None if operand.is_written else _source(kernel, held.first.buffer)
    source = None if load is None else _tile(kernel, load, stages.get(load.buffer.name, 1))
    if source is not None and held.how is not None:
        source |= {"swizzle": held.how.swizzle, "leading": held.how.leading, "stride": held.how.stride}
    return {
        "name": operand.name,
        "dtype": operand.dtype.name,
        "shape": [extent.constant for extent in operand.memory.shape],
        "access": operand.access,
        "array": held.first.buffer.name,
        "fragment": operand.fragment.layout,
        "registers": 0 if operand.is_described or operand.columns else operand.fragment.registers,
        "columns": _columns(operand) if operand.columns else 0,
        "source": source,
    }


def _columns(operand: Operand) -> int:
    """The columns of tensor memory of an operand; of scales, those of which it reads a byte each."""
    slots = operand.fragment.registers
    return slots if operand.dtype == F8E8M0 else columns_of(operand.dtype, slots)


def _source(kernel: k.Kernel, registers: Buffer) -> Load | None:
    """An element of shared memory that is loaded to an array in registers; None where another statement makes what is there."""
    shared = {array.buffer for array in kernel.arrays if array.space is Space.SHARED}
    for stmt in k.walk(kernel.body):
        if isinstance(stmt, k.Operation) and any(load.buffer is registers for load in stmt.writes):
            read, _ = k.memory((stmt,))
            for load in read:
                if load.buffer in shared:
                    return load
    return None


def _tile(kernel: k.Kernel, load: Load, stages: int) -> Data:
    buffer = load.buffer
    size, shape = buffer.dtype.bytes, [extent.constant for extent in buffer.shape]
    swizzles = [moved.map for _, moved in k.moves(kernel) if moved.target is buffer and moved.map]
    spans = [kernel.map_of[name].swizzle for name in swizzles] or [max(_spans(load), default=0)]
    return {
        "buffer": buffer.name,
        "pitch": shape[-1] * size if not spans[0] else spans[0],
        "bytes": prod(shape) * size // stages,
        "stages": stages,
        "swizzle": spans[0],
    }


def _spans(load: Load) -> Iterator[int]:
    """Bytes within which subscripts of a place in memory move chunks."""
    inside = load.buffer.dtype.bytes
    for extent, index in zip(reversed(load.buffer.shape), reversed(load.index), strict=True):
        for monomial, coefficient in index.terms:
            yield from (inside * coefficient << atom.bits for atom in monomial if isinstance(atom, Xor))
        inside *= extent.constant
