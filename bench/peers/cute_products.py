"""Products in CuTe DSL: a group of warps brings tiles, two multiply."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

from dataclasses import replace
from typing import Any

import cutlass
from cute_kernels import CUBE, GROUP, WARP, array, compiled
from cutlass import cute, pipeline, tensor_utils, utils
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
from cutlass.utils import hopper_helpers as hopper
from offer import Kernel, tiles


class Product:
    """C = A · B, B given as columns by depth. One warp group brings tiles, blocks of a cluster share them; two multiply."""

    def __init__(
        self, tile: tuple[int, int, int], stages: int, across: int, total: Any, out: Any, part: tuple[int, int] = (128, 64)
    ) -> None:
        self.tile, self.stages, self.across, self.total, self.out, self.part = tile, stages, across, total, out, part
        self.threads = 3 * GROUP
        self.shared = 0

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, of_rows: cute.Tensor, of_columns: cute.Tensor):
        rows, columns, depth = self.tile
        self.dtype = a.element_type
        kinds = [tensor_utils.LayoutEnum.from_tensor(each) for each in (a, b, c)]
        self.mma = hopper.make_trivial_tiled_mma(
            a.element_type,
            b.element_type,
            kinds[0].sm90_mma_major_mode(),
            kinds[1].sm90_mma_major_mode(),
            self.total,
            (2, 1, 1),
            tiler_mn=(64, columns),
        )
        self.kind_c = kinds[2]
        self.layout_a = hopper.make_smem_layout_a(kinds[0], self.tile, a.element_type, self.stages)
        self.layout_b = hopper.make_smem_layout_b(kinds[1], self.tile, b.element_type, self.stages)
        self.layout_c = hopper.make_smem_layout_epi(self.out, kinds[2], self.part, 2)
        one = cute.slice_(self.layout_a, (None, None, 0))
        other = cute.slice_(self.layout_b, (None, None, 0))
        load = cpasync.CopyBulkTensorTileG2SOp
        shared_b = cpasync.CopyBulkTensorTileG2SMulticastOp if self.across > 1 else load
        copy_a, given_a = cpasync.make_tiled_tma_atom(load(), a, one, (rows, depth))
        copy_b, given_b = cpasync.make_tiled_tma_atom(shared_b(), b, other, (columns, depth), num_multicast=self.across)
        copy_c, given_c = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), c, cute.slice_(self.layout_c, (None, None, 0)), self.part
        )
        self.bytes = cute.size_in_bytes(a.element_type, one) + cute.size_in_bytes(b.element_type, other)

        @cute.struct
        class Storage:
            barriers: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            left: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(self.layout_a)], 1024]
            right: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(self.layout_b)], 1024]
            done: cute.struct.Align[cute.struct.MemRange[self.out, cute.cosize(self.layout_c)], 1024]

        self.storage = Storage
        self.shared = Storage.size_in_bytes()
        grid = (cute.size(c, mode=[0]) // rows, cute.size(c, mode=[1]) // columns, 1)
        self.kernel(
            copy_a,
            given_a,
            copy_b,
            given_b,
            copy_c,
            given_c,
            of_rows,
            of_columns,
            self.mma,
            self.layout_a,
            self.layout_b,
            self.layout_c,
        ).launch(grid=grid, block=(self.threads, 1, 1), cluster=(self.across, 1, 1))

    @cute.kernel
    def kernel(
        self,
        copy_a: cute.CopyAtom,
        a: cute.Tensor,
        copy_b: cute.CopyAtom,
        b: cute.Tensor,
        copy_c: cute.CopyAtom,
        c: cute.Tensor,
        of_rows: cute.Tensor,
        of_columns: cute.Tensor,
        mma: cute.TiledMma,
        layout_a: cute.ComposedLayout,
        layout_b: cute.ComposedLayout,
        layout_c: cute.ComposedLayout,
    ):
        rows, columns, depth = self.tile
        thread, _, _ = cute.arch.thread_idx()
        x, y, _ = cute.arch.block_idx()
        number = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        rank = cute.arch.make_warp_uniform(cute.arch.block_idx_in_cluster())
        storage = utils.SmemAllocator().allocate(self.storage)
        cluster = cute.make_layout((1, self.across, 1, 1))
        ring = pipeline.PipelineTmaAsync.create(
            barrier_storage=storage.barriers.data_ptr(),
            num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2 * GROUP // WARP * self.across),
            tx_count=self.bytes,
            cta_layout_vmnk=cluster,
        )
        shared_a = storage.left.get_tensor(layout_a.outer, swizzle=layout_a.inner)
        shared_b = storage.right.get_tensor(layout_b.outer, swizzle=layout_b.inner)
        shared_c = storage.done.get_tensor(layout_c.outer, swizzle=layout_c.inner)
        tiles_a = cute.local_tile(a, (rows, depth), (x, None))
        tiles_b = cute.local_tile(b, (columns, depth), (y, None))
        tile_c = cute.local_tile(c, (rows, columns), (x, y))
        steps = cute.size(tiles_a, mode=[2])
        to_a, from_a = cpasync.tma_partition(
            copy_a, 0, cute.make_layout(1), cute.group_modes(shared_a, 0, 2), cute.group_modes(tiles_a, 0, 2)
        )
        to_b, from_b = cpasync.tma_partition(
            copy_b, rank, cute.make_layout(self.across), cute.group_modes(shared_b, 0, 2), cute.group_modes(tiles_b, 0, 2)
        )
        everybody = cutlass.Int16((1 << self.across) - 1) if cutlass.const_expr(self.across > 1) else None

        if number < GROUP // WARP:
            cute.arch.setmaxregister_decrease(40)
            if number == 0:
                written = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for step in cutlass.range(steps, unroll=1):
                    ring.producer_acquire(written)
                    full = ring.producer_get_barrier(written)
                    cute.copy(copy_a, from_a[None, step], to_a[None, written.index], tma_bar_ptr=full)
                    cute.copy(copy_b, from_b[None, step], to_b[None, written.index], tma_bar_ptr=full, mcast_mask=everybody)
                    ring.producer_commit(written)
                    written.advance()
                ring.producer_tail(written)
        else:
            cute.arch.setmaxregister_increase(232)
            at = thread - GROUP
            mine = mma.get_slice(at)
            part_a = mma.make_fragment_A(mine.partition_A(shared_a))
            part_b = mma.make_fragment_B(mine.partition_B(shared_b))
            total = cute.make_rmem_tensor(mine.partition_C(tile_c).shape, self.total)
            read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            released = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            mma.set(warpgroup.Field.ACCUMULATE, False)
            for step in cutlass.range(steps, unroll=1):
                ring.consumer_wait(read)
                warpgroup.fence()
                for part in cutlass.range_constexpr(cute.size(part_a, mode=[2])):
                    place = (None, None, part, read.index)
                    cute.gemm(mma, total, part_a[place], part_b[place], total)
                    mma.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(1)
                if step > 0:
                    ring.consumer_release(released)
                    released.advance()
                read.advance()
            warpgroup.wait_group(0)
            ring.consumer_release(released)
            self.write(total, mma, at, shared_c, tile_c, copy_c, x, y, of_rows, of_columns, number)

    @cute.jit
    def write(self, total, mma, at, shared_c, tile_c, copy_c, x, y, of_rows, of_columns, number):
        """The sums, part by part, to shared memory as the matrix unit has them, and on by the engine."""
        rows, columns, _ = self.tile
        store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), self.out)
        atom = cute.make_tiled_copy_C_atom(store, mma)
        moved = cute.make_tiled_copy_S(hopper.get_smem_store_op(self.kind_c, self.out, self.total), atom)
        mine = moved.get_slice(at)
        to = mine.partition_D(shared_c)
        have = moved.retile(total)
        shape = cute.shape(mine.partition_S(shared_c))[:3]
        parts = cute.zipped_divide(tile_c, self.part)
        put, there = cpasync.tma_partition(copy_c, 0, cute.make_layout(1), cute.group_modes(shared_c, 0, 2), parts)
        size = cute.size(shape)
        for part in cutlass.range_constexpr(columns // self.part[1]):
            sums = cute.make_rmem_tensor(shape, self.total)
            for each in cutlass.range_constexpr(size):
                sums[each] = have[part * size + each]
            made = cute.make_rmem_tensor(shape, self.out)
            if cutlass.const_expr(self.total is cutlass.Int32):
                where = mma.get_slice(at).partition_C(cute.make_identity_tensor((rows, columns)))
                floats = cute.make_rmem_tensor(shape, cutlass.Float32)
                for each in cutlass.range_constexpr(size):
                    row, column = where[part * size + each]
                    floats[each] = sums[each].to(cutlass.Float32) * of_rows[x * rows + row] * of_columns[y * columns + column]
                made.store(floats.load().to(self.out))
            else:
                made.store(sums.load().to(self.out))
            cute.copy(moved, made, to[None, None, None, part % 2])
            cute.arch.fence_proxy("async.shared", space="cta")
            cute.arch.barrier(barrier_id=1, number_of_threads=2 * GROUP)
            if number == GROUP // WARP:
                cute.copy(copy_c, put[None, part % 2], there[None, (0, part)])
                cute.arch.cp_async_bulk_commit_group()
                cute.arch.cp_async_bulk_wait_group(1, read=True)
            cute.arch.barrier(barrier_id=1, number_of_threads=2 * GROUP)


def matmul(
    dtype: Any,
    out: Any,
    total: Any,
    tile: tuple[int, int, int],
    stages: int,
    across: int,
    *,
    first: bool = False,
    turned: bool = False,
    cube: int = CUBE,
) -> list[Kernel]:
    """A by columns if `first`, B if `turned`; all extents are `cube`. `across`: blocks of a cluster, which share columns."""
    made = Product(tile, stages, across, total, out)
    given = [array(dtype, cube, cube, first=first), array(dtype, cube, cube, first=not turned), array(out, cube, cube)]
    given += [array(cutlass.Float32, cube), array(cutlass.Float32, cube)]
    rows, columns, _ = tile
    size, wide = dtype.width // 8, out.width // 8
    # What a cluster shares comes once.
    l2 = tiles(cube, cube, cube, (rows, columns), size, wide) - (
        cube // rows * (cube // columns) * columns * cube * size * (1 - 1 / across)
    )
    grid = (cube // rows, cube // columns)
    found = compiled(made, given, grid, made.threads, l2, cube * cube * (2 * size + wide), cluster=(across, 1, 1))
    return [replace(found, shared=made.shared)]
