"""Products in CuTe DSL for sm_100a: one warp brings tiles and starts products, whose sums are in tensor memory; two blocks may
share a tile."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

from typing import Any

import cutlass
from cute_kernels import CUBE, GROUP, array, compiled
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import OperandMajorMode, cpasync, tcgen05
from cutlass.utils import blackwell_helpers as blackwell
from offer import Kernel

COLUMNS = 512
"""Of tensor memory, all of it."""


class Product:
    """C = A · B, B given as columns by depth. `pair`: two blocks multiply one tile."""

    def __init__(self, tile: tuple[int, int, int], stages: int, pair: bool, out: Any) -> None:
        self.tile, self.stages, self.blocks, self.out = tile, stages, 1 + pair, out

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
        rows, columns, _ = self.tile
        self.dtype = a.element_type
        majors = [self.major(each) for each in (a, b)]
        group = tcgen05.CtaGroup.TWO if self.blocks == 2 else tcgen05.CtaGroup.ONE
        mma = blackwell.make_trivial_tiled_mma(a.element_type, b.element_type, *majors, cutlass.Float32, group, (rows, columns))
        layout_a = blackwell.make_smem_layout_a(mma, self.tile, a.element_type, self.stages)
        layout_b = blackwell.make_smem_layout_b(mma, self.tile, b.element_type, self.stages)
        cluster = cute.tiled_divide(cute.make_layout((self.blocks, 1, 1)), (mma.thr_id,))
        load = cpasync.CopyBulkTensorTileG2SOp(group)
        one, other = (cute.select(each, mode=[0, 1, 2]) for each in (layout_a, layout_b))
        copy_a, given_a = cute.nvgpu.make_tiled_tma_atom_A(load, a, one, self.tile, mma, cluster.shape)
        copy_b, given_b = cute.nvgpu.make_tiled_tma_atom_B(load, b, other, self.tile, mma, cluster.shape)

        @cute.struct
        class Storage:
            ring: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            done: cute.struct.MemRange[cutlass.Int64, 2]
            freed: cutlass.Int64
            place: cutlass.Int32

        self.storage = Storage
        grid = (cute.size(c, mode=[0]) // rows * self.blocks, cute.size(c, mode=[1]) // columns, 1)
        self.kernel(mma, copy_a, given_a, copy_b, given_b, c, layout_a, layout_b, cluster).launch(
            grid=grid, block=(GROUP, 1, 1), cluster=(self.blocks, 1, 1)
        )

    def major(self, given: cute.Tensor) -> Any:
        """Along which of its two extents neighbours lie."""
        return OperandMajorMode.MN if given.leading_dim == 0 else OperandMajorMode.K

    @cute.kernel
    def kernel(
        self,
        mma: cute.TiledMma,
        copy_a: cute.CopyAtom,
        a: cute.Tensor,
        copy_b: cute.CopyAtom,
        b: cute.Tensor,
        c: cute.Tensor,
        layout_a: cute.ComposedLayout,
        layout_b: cute.ComposedLayout,
        cluster: cute.Layout,
    ):
        thread, _, _ = cute.arch.thread_idx()
        number = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        x, y, _ = cute.arch.block_idx()
        rank = x % self.blocks
        memory = utils.SmemAllocator()
        storage = memory.allocate(self.storage)
        shared_a = memory.allocate_tensor(self.dtype, layout_a.outer, 128, swizzle=layout_a.inner)
        shared_b = memory.allocate_tensor(self.dtype, layout_b.outer, 128, swizzle=layout_b.inner)
        sizes = [cute.size_in_bytes(self.dtype, cute.select(each, mode=[0, 1, 2])) for each in (layout_a, layout_b)]
        one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
        put, get = pipeline.PipelineTmaUmma.create(
            num_stages=self.stages,
            producer_group=one,
            consumer_group=one,
            tx_count=sum(sizes) * self.blocks,
            barrier_storage=storage.ring.data_ptr(),
            cta_layout_vmnk=cluster,
        ).make_participants()
        sums, finished = pipeline.PipelineUmmaAsync.create(
            num_stages=1,
            producer_group=one,
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, self.blocks * GROUP),
            barrier_storage=storage.done.data_ptr(),
            cta_layout_vmnk=cluster,
        ).make_participants()
        at = (x // self.blocks, y, None)
        mine = mma.get_slice(rank)
        tiles_a = mine.partition_A(cute.local_tile(a, self.tile, at, proj=(1, None, 1)))
        tiles_b = mine.partition_B(cute.local_tile(b, self.tile, at, proj=(None, 1, 1)))
        tile_c = mine.partition_C(cute.local_tile(c, self.tile, at, proj=(1, 1, None)))
        part_a, part_b = mma.make_fragment_A(shared_a), mma.make_fragment_B(shared_b)
        whole = cute.make_layout(1)
        slots_a, slots_b, tiles_a, tiles_b = (cute.group_modes(each, 0, 3) for each in (shared_a, shared_b, tiles_a, tiles_b))
        to_a, from_a = cpasync.tma_partition(copy_a, 0, whole, slots_a, tiles_a)
        to_b, from_b = cpasync.tma_partition(copy_b, 0, whole, slots_b, tiles_b)

        tensor = utils.TmemAllocator(
            storage.place.ptr,
            barrier_for_retrieve=pipeline.NamedBarrier(barrier_id=1, num_threads=GROUP),
            is_two_cta=self.blocks == 2,
            two_cta_tmem_dealloc_mbar_ptr=storage.freed.ptr,
        )
        tensor.allocate(COLUMNS)
        tensor.wait_for_alloc()
        pointer = tensor.retrieve_ptr(cutlass.Float32)
        total = cute.make_tensor(pointer, mma.make_fragment_C(mma.partition_shape_C(self.tile[:2])).layout)

        if number == 0:
            if rank == 0:
                sums.acquire_and_advance()
            for _ in cutlass.range(cute.size(from_a, mode=[1]), prefetch_stages=self.stages - 2):
                empty = put.acquire_and_advance()
                cute.copy(copy_a, from_a[None, empty.count], to_a[None, empty.index], tma_bar_ptr=empty.barrier)
                cute.copy(copy_b, from_b[None, empty.count], to_b[None, empty.index], tma_bar_ptr=empty.barrier)
                if rank == 0:
                    full = get.wait_and_advance()
                    for part in cutlass.range_constexpr(cute.size(part_a, mode=[2])):
                        place = (None, None, part, full.index)
                        cute.gemm(mma, total, part_a[place], part_b[place], total)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
                    full.release()
            if rank == 0:
                sums.commit()
        tensor.relinquish_alloc_permit()
        ready = finished.wait_and_advance()
        self.write(total, tile_c, thread)
        ready.release()
        if number == 0:
            put.tail()
            if rank == 0:
                sums.tail()
        pipeline.sync(barrier_id=1)
        tensor.free(pointer)

    @cute.jit
    def write(self, total, tile_c, thread):
        """The sums, 64 columns at a time, each lane its row."""
        shape = ((cute.size(total, mode=[0, 0]), 64),)
        have, there = cute.zipped_divide(total, shape), cute.zipped_divide(tile_c, shape)
        atom = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cutlass.Float32)
        moved = tcgen05.make_tmem_copy(atom, have[None, 0])
        mine = moved.get_slice(thread)
        source, to = mine.partition_S(have), mine.partition_D(there)
        found = cute.make_rmem_tensor(to[None, None, 0].shape, cutlass.Float32)
        made = cute.make_rmem_tensor(to[None, None, 0].shape, self.out)
        for part in cutlass.range_constexpr(cute.size(source, mode=[2])):
            cute.copy(moved, source[None, None, part], found)
            made.store(found.load().to(self.out))
            cute.autovec_copy(made, to[None, None, part])


def product(dtype: Any, turned: bool, columns: int, stages: int, pair: bool) -> list[Kernel]:
    """4096³ to bf16: B by rows, or by columns if `turned`."""
    rows = 256 if pair else 128
    made = Product((rows, columns, 128 * 8 // dtype.width), stages, pair, cutlass.BFloat16)
    given = [array(dtype, CUBE, CUBE), array(dtype, CUBE, CUBE, first=not turned), array(cutlass.BFloat16, CUBE, CUBE)]
    grid = (CUBE // rows * (1 + pair), CUBE // columns)
    return [compiled(made, given, grid, GROUP, 0.0, 0.0, cluster=(1 + pair, 1, 1))]
