"""What moves in CuTe DSL: a transpose, rows that a table names, a sum over all."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import operator

import cutlass
from cute_kernels import WARP, array, compiled, over_block
from cutlass import cute, utils
from offer import Kernel


class Turned:
    """A tile of 64 × 64 through shared memory, whose rows are one element apart in banks; 16 bytes of global memory a lane."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        self.kernel(x, y).launch(grid=(8192 // 64, 8192 // 64, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        across, down, _ = cute.arch.block_idx()
        shared = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout((64, 64), stride=(65, 1)))
        have = cute.local_tile(x, (64, 64), (down, across))
        to = cute.local_tile(y, (64, 64), (across, down))
        vector = cute.make_rmem_tensor(4, cutlass.Float32)
        for turn in cutlass.range_constexpr(1024 // self.threads):
            at = turn * self.threads + thread
            row, column = at // 16, at % 16
            cute.autovec_copy(cute.local_tile(have, (1, 4), (row, column))[0, None], vector)
            for each in cutlass.range_constexpr(4):
                shared[row, 4 * column + each] = vector[each]
        cute.arch.sync_threads()
        for turn in cutlass.range_constexpr(1024 // self.threads):
            at = turn * self.threads + thread
            row, column = at // 16, at % 16
            for each in cutlass.range_constexpr(4):
                vector[each] = shared[4 * column + each, row]
            cute.autovec_copy(vector, cute.local_tile(to, (1, 4), (row, column))[0, None])


def transpose(threads: int) -> list[Kernel]:
    """8192² in f32."""
    given = [array(cutlass.Float32, 8192, 8192), array(cutlass.Float32, 8192, 8192)]
    moved = 8 * 8192**2
    return [compiled(Turned(threads), given, (128, 128), threads, moved, moved, shared=64 * 65 * 4)]


class Sum:
    """Blocks add shares of an array, 16 bytes a lane at a time."""

    def __init__(self, many: int, share: int, threads: int) -> None:
        self.many, self.share, self.threads = many, share, threads

    @cute.jit
    def __call__(self, x: cute.Tensor, y: cute.Tensor):
        self.kernel(x, y).launch(grid=(self.many, 1, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, x: cute.Tensor, y: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        block, _, _ = cute.arch.block_idx()
        shared = utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(self.threads // WARP))
        mine = cute.local_tile(x, (self.share,), (block,))
        sums, vector = cute.make_rmem_tensor(4, cutlass.Float32), cute.make_rmem_tensor(4, cutlass.Float32)
        sums.fill(0.0)
        for turn in cutlass.range(self.share // (4 * self.threads), unroll=8):
            cute.autovec_copy(cute.local_tile(mine, (4,), (turn * self.threads + thread,)), vector)
            sums.store(sums.load() + vector.load())
        total = sums.load().reduce(cute.ReductionOp.ADD, 0.0, 0)
        total = over_block(total, operator.add, shared, self.threads // WARP, 0.0)
        if thread == 0:
            y[block] = total


def whole_sum(share: int, threads: int) -> list[Kernel]:
    """2²⁸ of f32: blocks add shares, one more adds what they found."""
    many = (1 << 28) // share
    moved = 4 * ((1 << 28) + many)
    first, last = [array(cutlass.Float32, 1 << 28), array(cutlass.Float32, many)], [array(cutlass.Float32, many)]
    last.append(array(cutlass.Float32, 4))
    held = 4 * threads // WARP
    return [
        compiled(Sum(many, share, threads), first, [many], threads, moved, moved, shared=held),
        compiled(Sum(1, many, threads), last, [1], threads, 4 * many, 4 * many, shared=held),
    ]


class Gather:
    """A block a row, 16 bytes a lane."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    @cute.jit
    def __call__(self, table: cute.Tensor, index: cute.Tensor, y: cute.Tensor):
        self.kernel(table, index, y).launch(grid=(1 << 15, 1, 1), block=(self.threads, 1, 1))

    @cute.kernel
    def kernel(self, table: cute.Tensor, index: cute.Tensor, y: cute.Tensor):
        thread, _, _ = cute.arch.thread_idx()
        row, _, _ = cute.arch.block_idx()
        chosen = index[row]
        vector = cute.make_rmem_tensor(4, cutlass.Float32)
        for turn in cutlass.range_constexpr(1024 // (4 * self.threads)):
            at = turn * self.threads + thread
            cute.autovec_copy(cute.local_tile(table[chosen, None], (4,), (at,)), vector)
            cute.autovec_copy(vector, cute.local_tile(y[row, None], (4,), (at,)))


def gather(threads: int) -> list[Kernel]:
    """32,768 of 50,000 rows of 1024 f32."""
    given = [array(cutlass.Float32, 50_000, 1024), array(cutlass.Int32, 1 << 15), array(cutlass.Float32, 1 << 15, 1024)]
    moved = (1 << 15) * (2 * 1024 * 4 + 4)
    return [compiled(Gather(threads), given, [1 << 15], threads, moved, moved)]
