"""Rows in CuTe DSL, by 16 bytes a lane: norms, scans, a part of a row with its bias."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import operator
from typing import Any

import cutlass
from cute_kernels import COLUMNS, ROWS, WARP, array, compiled, over_block
from cutlass import cute, utils
from offer import Kernel


class Rows:
    """A block for each row, which its threads hold by 16 bytes at a time; what is done of a row is `rule`."""

    def __init__(self, rule: str, dtype: Any, threads: int) -> None:
        self.rule, self.dtype, self.threads, self.warps = rule, dtype, threads, threads // WARP
        self.vector = 128 // dtype.width

    @cute.jit
    def __call__(self, x: cute.Tensor, gain: cute.Tensor, bias: cute.Tensor, eps: cutlass.Float32, y: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.dtype, num_bits_per_copy=128)
        moved = cute.make_tiled_copy_tv(atom, cute.make_layout(self.threads), cute.make_layout(self.vector))
        self.kernel(x, gain, bias, eps, y, moved).launch(grid=(ROWS, 1, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(
        self, x: cute.Tensor, gain: cute.Tensor, bias: cute.Tensor, eps: cutlass.Float32, y: cute.Tensor, moved: cute.TiledCopy
    ):
        thread, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        shared = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(self.warps))
        mine = moved.get_slice(thread)
        have = mine.partition_S(x[row, None])
        to = mine.partition_D(y[row, None])
        held = cute.make_fragment_like(have)
        cute.copy(moved, have, held)
        value = held.load().to(cutlass.Float32)
        if cutlass.const_expr(self.rule == "softmax"):
            found = self.softmax(value, shared)
        else:
            weights = cute.make_fragment_like(have)
            cute.copy(moved, mine.partition_S(gain), weights)
            if cutlass.const_expr(self.rule == "rmsnorm"):
                found = self.scaled(value, eps, shared) * weights.load().to(cutlass.Float32)
            else:
                more = cute.make_fragment_like(have)
                cute.copy(moved, mine.partition_S(bias), more)
                total = value.reduce(cute.ReductionOp.ADD, 0.0, 0)
                off = value - over_block(total, operator.add, shared, self.warps, 0.0) / COLUMNS
                found = self.scaled(off, eps, shared) * weights.load().to(cutlass.Float32) + more.load().to(cutlass.Float32)
        held.store(found.to(self.dtype))
        cute.copy(moved, held, to)

    @cute.jit
    def softmax(self, value, shared):
        """Exponentials over their sum."""
        top = value.reduce(cute.ReductionOp.MAX, float("-inf"), 0)
        top = over_block(top, cute.arch.fmax, shared, self.warps, float("-inf"))
        powers = cute.math.exp2((value - top) * 1.4426950408889634, fastmath=True)
        total = over_block(powers.reduce(cute.ReductionOp.ADD, 0.0, 0), operator.add, shared, self.warps, 0.0)
        return powers * (1.0 / total)

    @cute.jit
    def scaled(self, value, eps, shared):
        """Over the root of the mean of squares."""
        total = (value * value).reduce(cute.ReductionOp.ADD, 0.0, 0)
        total = over_block(total, operator.add, shared, self.warps, 0.0)
        return value * cute.math.rsqrt(total / COLUMNS + eps, fastmath=True)


def by_rows(rule: str, dtype: Any, shared_rows: int, threads: int) -> list[Kernel]:
    """8192 rows of 4096. `shared_rows`: how many rows of factors all share."""
    size = dtype.width // 8
    given = [array(dtype, ROWS, COLUMNS), array(dtype, COLUMNS), array(dtype, COLUMNS)]
    made = Rows(rule, dtype, threads)
    moved, extra = 2 * ROWS * COLUMNS * size, shared_rows * COLUMNS * size
    arguments = [*given, cutlass.Float32(1e-5), array(dtype, ROWS, COLUMNS)]
    return [compiled(made, arguments, [ROWS], threads, moved + ROWS * extra, moved + extra, shared=4 * threads // WARP)]


class Gelu:
    """A part of a row a block, 16 bytes a thread at a time."""

    def __init__(self, threads: int, vectors: int) -> None:
        self.threads, self.block = threads, threads * 8 * vectors

    @cute.jit
    def __call__(self, x: cute.Tensor, bias: cute.Tensor, y: cute.Tensor):
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cutlass.BFloat16, num_bits_per_copy=128)
        moved = cute.make_tiled_copy_tv(atom, cute.make_layout(self.threads), cute.make_layout(8))
        self.kernel(x, bias, y, moved).launch(grid=(COLUMNS // self.block, ROWS, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, bias: cute.Tensor, y: cute.Tensor, moved: cute.TiledCopy):
        thread, _, _ = cute.arch.thread_idx()
        part, row, _ = cute.arch.block_idx()
        mine = moved.get_slice(thread)
        have = mine.partition_S(cute.local_tile(x[row, None], (self.block,), (part,)))
        to = mine.partition_D(cute.local_tile(y[row, None], (self.block,), (part,)))
        held, more = cute.make_fragment_like(have), cute.make_fragment_like(have)
        cute.copy(moved, have, held)
        cute.copy(moved, mine.partition_S(cute.local_tile(bias, (self.block,), (part,))), more)
        value = held.load().to(cutlass.Float32) + more.load().to(cutlass.Float32)
        held.store((0.5 * value * (1.0 + cute.math.erf(value * 0.7071067811865476))).to(cutlass.BFloat16))
        cute.copy(moved, held, to)


def bias_gelu(threads: int, vectors: int) -> list[Kernel]:
    """8192 × 4096 of bf16."""
    made = Gelu(threads, vectors)
    given = [array(cutlass.BFloat16, ROWS, COLUMNS), array(cutlass.BFloat16, COLUMNS), array(cutlass.BFloat16, ROWS, COLUMNS)]
    moved = 4 * ROWS * COLUMNS
    grid = (COLUMNS // made.block, ROWS)
    return [compiled(made, given, grid, threads, moved + 2 * ROWS * COLUMNS, moved + 2 * COLUMNS)]


class Scan:
    """A block a row: running sums of four in a lane, of lanes by shuffles, of warps in shared memory."""

    def __init__(self, threads: int) -> None:
        self.threads, self.warps = threads, threads // WARP

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        self.kernel(x, y).launch(grid=(ROWS, 1, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        lane, number = thread % WARP, thread // WARP
        turns = COLUMNS // (4 * self.threads)
        shared = utils.SmemAllocator().allocate_tensor(
            cutlass.Float32, cute.make_layout((turns, self.warps), stride=(self.warps, 1))
        )
        held = cute.make_rmem_tensor((4, turns), cutlass.Float32)
        have, to = x[row, None], y[row, None]
        for turn in cutlass.range_constexpr(turns):
            cute.autovec_copy(cute.local_tile(have, (4,), (turn * self.threads + thread,)), held[None, turn])
        before = cute.make_rmem_tensor(turns, cutlass.Float32)
        for turn in cutlass.range_constexpr(turns):
            for each in cutlass.range_constexpr(1, 4):
                held[each, turn] = held[each, turn] + held[each - 1, turn]
            total = held[3, turn]
            for reach in cutlass.range_constexpr(5):
                other = cute.arch.shuffle_sync_up(total, offset=1 << reach, mask_and_clamp=0)
                total = total + other if lane >= 1 << reach else total
            if lane == WARP - 1:
                shared[turn, number] = total
            before[turn] = total - held[3, turn]
        cute.arch.sync_threads()
        carry = cutlass.Float32(0.0)
        for turn in cutlass.range_constexpr(turns):
            mine = carry
            for each in cutlass.range_constexpr(self.warps):
                part = shared[turn, each]
                mine = mine + part if each < number else mine
                carry = carry + part
            for each in cutlass.range_constexpr(4):
                held[each, turn] = held[each, turn] + (before[turn] + mine)
            cute.autovec_copy(held[None, turn], cute.local_tile(to, (4,), (turn * self.threads + thread,)))


def scan(threads: int) -> list[Kernel]:
    """8192 rows of 4096."""
    given = [array(cutlass.Float32, ROWS, COLUMNS), array(cutlass.Float32, ROWS, COLUMNS)]
    moved = 8 * ROWS * COLUMNS
    return [compiled(Scan(threads), given, [ROWS], threads, moved, moved, shared=4 * COLUMNS // (4 * WARP))]
