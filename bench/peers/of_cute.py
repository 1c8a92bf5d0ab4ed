"""Problems in CuTe DSL: products by a producer warp and groups of warps that multiply, rows in registers by 16 bytes a lane."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

import operator
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import cutlass
from cutlass import cute, pipeline, tensor_utils, utils
from cutlass.cute.nvgpu import cpasync, warp, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.utils import hopper_helpers as hopper
from offer import Kernel, Made, Peer, tiles

PEER = Peer("cute", version("nvidia-cutlass-dsl"))
CUBE = 4096
ROWS, COLUMNS = 8192, 4096
HEADS, LENGTH, WIDE = 64, 4096, 128
GROUP, WARP = 128, 32


def compiled(
    function: Any,
    arguments: Sequence[Any],
    grid: Sequence[int],
    threads: int,
    l2: float,
    dram: float,
    *,
    shared: int = 0,
    cluster: tuple[int, int, int] = (1, 1, 1),
) -> Kernel:
    """The launch of a function that is one kernel. Its code has one, whose name is not ours."""
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        cute.compile(function, *arguments, options=f"--gpu-arch sm_90a --keep-cubin --dump-dir {folder}")
        (found,) = Path(folder).glob("*.cubin")
        x, y, z = (*grid, 1, 1)[:3]
        return Kernel(found.read_bytes(), "", (x, y, z), threads, (), l2, dram, shared, cluster)


def array(dtype: Any, *shape: int, first: bool = False) -> Any:
    """An array by rows; with `first` the first extent is the one whose elements are neighbours."""
    order = (0, 1) if first else tuple(range(len(shape)))[::-1]
    return make_fake_compact_tensor(dtype, shape, stride_order=order, assumed_align=16)


def configurations(problem: str, make: Callable[..., list[Kernel]], **choices: Sequence[Any]) -> None:
    """All combinations of choices are configurations of a problem, by a name that tells them."""
    found: dict[str, Made] = {}
    for values in product(*choices.values()):
        chosen = dict(zip(choices, values, strict=True))
        found[" ".join(f"{key}={value}" for key, value in chosen.items())] = partial(make, **chosen)
    PEER.problems[problem] = {**PEER.problems.get(problem, {}), **found}


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


def matmul(dtype: Any, turned: bool, total: Any, tile: tuple[int, int, int], stages: int, across: int) -> list[Kernel]:
    """4096³. `across`: blocks of a cluster, which share columns."""
    made = Product(tile, stages, across, total, cutlass.BFloat16)
    given = [array(dtype, CUBE, CUBE), array(dtype, CUBE, CUBE, first=not turned), array(cutlass.BFloat16, CUBE, CUBE)]
    given += [array(cutlass.Float32, CUBE), array(cutlass.Float32, CUBE)]
    rows, columns, _ = tile
    size = dtype.width // 8
    # What a cluster shares comes once.
    l2 = tiles(CUBE, CUBE, CUBE, (rows, columns), size, 2) - (
        CUBE // rows * (CUBE // columns) * columns * CUBE * size * (1 - 1 / across)
    )
    grid = (CUBE // rows, CUBE // columns)
    found = compiled(made, given, grid, made.threads, l2, CUBE * CUBE * (2 * size + 2), cluster=(across, 1, 1))
    return [replace(found, shared=made.shared)]


class Attention(Product):
    """softmax(Q Kᵀ · scale) V of heads in one sweep over the keys: one warp group brings tiles, two have 64 queries
    each, whose weights stay in registers as a factor of the second product."""

    def __init__(self, keys: int, stages: int) -> None:
        super().__init__((128, WIDE, keys), stages, 1, cutlass.Float32, cutlass.BFloat16)
        self.keys = keys

    @cute.jit
    def __call__(self, q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, o: cute.Tensor, scale: cutlass.Float32):
        queries, wide, keys = self.tile
        by_rows, by_columns = tensor_utils.LayoutEnum.from_tensor(q), tensor_utils.LayoutEnum.from_tensor(v)
        major = by_rows.sm90_mma_major_mode()
        made = hopper.make_trivial_tiled_mma
        kind, total = q.element_type, cutlass.Float32
        self.dtype, self.kind_c = kind, by_rows
        scores = made(kind, kind, major, major, total, (2, 1, 1), tiler_mn=(64, keys))
        values = made(
            kind,
            kind,
            major,
            by_columns.sm90_mma_major_mode(),
            total,
            (2, 1, 1),
            tiler_mn=(64, wide),
            a_source=warpgroup.OperandSource.RMEM,
        )
        self.layout_q = hopper.make_smem_layout_a(by_rows, (queries, keys, wide), kind, 1)
        self.layout_k = hopper.make_smem_layout_b(by_rows, (queries, keys, wide), kind, self.stages)
        self.layout_v = hopper.make_smem_layout_b(by_columns, (queries, wide, keys), kind, self.stages)
        self.layout_c = hopper.make_smem_layout_epi(self.out, by_rows, self.part, 2)
        load = cpasync.CopyBulkTensorTileG2SOp()
        one_q, one_k, one_v = (cute.slice_(each, (None, None, 0)) for each in (self.layout_q, self.layout_k, self.layout_v))
        copy_q, given_q = cpasync.make_tiled_tma_atom(load, q, one_q, (queries, wide))
        copy_k, given_k = cpasync.make_tiled_tma_atom(load, k, one_k, (keys, wide))
        copy_v, given_v = cpasync.make_tiled_tma_atom(load, v, one_v, (wide, keys))
        copy_o, given_o = cpasync.make_tiled_tma_atom(
            cpasync.CopyBulkTensorTileS2GOp(), o, cute.slice_(self.layout_c, (None, None, 0)), self.part
        )
        self.bytes = [cute.size_in_bytes(kind, each) for each in (one_q, one_k, one_v)]

        @cute.struct
        class Storage:
            begun: cute.struct.MemRange[cutlass.Int64, 2]
            of_k: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            of_v: cute.struct.MemRange[cutlass.Int64, self.stages * 2]
            query: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(self.layout_q)], 1024]
            key: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(self.layout_k)], 1024]
            value: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(self.layout_v)], 1024]
            done: cute.struct.Align[cute.struct.MemRange[self.out, cute.cosize(self.layout_c)], 1024]

        self.storage = Storage
        self.shared = Storage.size_in_bytes()
        copies = (copy_q, given_q, copy_k, given_k, copy_v, given_v, copy_o, given_o)
        layouts = (self.layout_q, self.layout_k, self.layout_v, self.layout_c)
        self.sweep(*copies, scale, scores, values, *layouts).launch(
            grid=(LENGTH // queries, HEADS, 1), block=(self.threads, 1, 1)
        )

    @cute.kernel
    def sweep(
        self,
        copy_q: cute.CopyAtom,
        q: cute.Tensor,
        copy_k: cute.CopyAtom,
        k: cute.Tensor,
        copy_v: cute.CopyAtom,
        v: cute.Tensor,
        copy_o: cute.CopyAtom,
        o: cute.Tensor,
        scale: cutlass.Float32,
        scores: cute.TiledMma,
        values: cute.TiledMma,
        layout_q: cute.ComposedLayout,
        layout_k: cute.ComposedLayout,
        layout_v: cute.ComposedLayout,
        layout_o: cute.ComposedLayout,
    ):
        queries, wide, keys = self.tile
        thread, _, _ = cute.arch.thread_idx()
        x, head, _ = cute.arch.block_idx()
        number = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        storage = utils.SmemAllocator().allocate(self.storage)

        def ring(barriers, stages, size):
            return pipeline.PipelineTmaAsync.create(
                barrier_storage=barriers.data_ptr(),
                num_stages=stages,
                producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
                consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 2 * GROUP // WARP),
                tx_count=size,
                cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)),
            )

        begun = ring(storage.begun, 1, self.bytes[0])
        ring_k = ring(storage.of_k, self.stages, self.bytes[1])
        ring_v = ring(storage.of_v, self.stages, self.bytes[2])
        shared_q = storage.query.get_tensor(layout_q.outer, swizzle=layout_q.inner)
        shared_k = storage.key.get_tensor(layout_k.outer, swizzle=layout_k.inner)
        shared_v = storage.value.get_tensor(layout_v.outer, swizzle=layout_v.inner)
        shared_o = storage.done.get_tensor(layout_o.outer, swizzle=layout_o.inner)
        row = head * (LENGTH // queries) + x
        first, steps = head * (LENGTH // keys), LENGTH // keys
        tile_o = cute.local_tile(o, (queries, wide), (row, 0))

        if number < GROUP // WARP:
            cute.arch.setmaxregister_decrease(32)
            if number == 0:
                whole = cute.make_layout(1)
                to_q, from_q = cpasync.tma_partition(
                    copy_q,
                    0,
                    whole,
                    cute.group_modes(shared_q, 0, 2),
                    cute.group_modes(cute.local_tile(q, (queries, wide), (None, 0)), 0, 2),
                )
                to_k, from_k = cpasync.tma_partition(
                    copy_k,
                    0,
                    whole,
                    cute.group_modes(shared_k, 0, 2),
                    cute.group_modes(cute.local_tile(k, (keys, wide), (None, 0)), 0, 2),
                )
                to_v, from_v = cpasync.tma_partition(
                    copy_v,
                    0,
                    whole,
                    cute.group_modes(shared_v, 0, 2),
                    cute.group_modes(cute.local_tile(v, (wide, keys), (0, None)), 0, 2),
                )
                start = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, 1)
                begun.producer_acquire(start)
                cute.copy(copy_q, from_q[None, row], to_q[None, 0], tma_bar_ptr=begun.producer_get_barrier(start))
                begun.producer_commit(start)
                put_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                put_v = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for step in cutlass.range(steps, unroll=1):
                    ring_k.producer_acquire(put_k)
                    full_k = ring_k.producer_get_barrier(put_k)
                    cute.copy(copy_k, from_k[None, first + step], to_k[None, put_k.index], tma_bar_ptr=full_k)
                    ring_k.producer_commit(put_k)
                    put_k.advance()
                    ring_v.producer_acquire(put_v)
                    full_v = ring_v.producer_get_barrier(put_v)
                    cute.copy(copy_v, from_v[None, first + step], to_v[None, put_v.index], tma_bar_ptr=full_v)
                    ring_v.producer_commit(put_v)
                    put_v.advance()
                ring_k.producer_tail(put_k)
                ring_v.producer_tail(put_v)
        else:
            cute.arch.setmaxregister_increase(240)
            at = thread - GROUP
            part_q = scores.make_fragment_A(scores.get_slice(at).partition_A(shared_q))
            part_k = scores.make_fragment_B(scores.get_slice(at).partition_B(shared_k))
            part_v = values.make_fragment_B(values.get_slice(at).partition_B(shared_v))
            score = cute.make_rmem_tensor(scores.partition_shape_C((queries, keys)), cutlass.Float32)
            weight = cute.make_rmem_tensor(values.partition_shape_A((queries, keys)), cutlass.BFloat16)
            result = cute.make_rmem_tensor(values.partition_shape_C((queries, wide)), cutlass.Float32)
            top, total = cute.make_rmem_tensor(2, cutlass.Float32), cute.make_rmem_tensor(2, cutlass.Float32)
            top.fill(float("-inf"))
            total.fill(0.0)
            result.fill(0.0)
            begun.consumer_wait(pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, 1))
            get_k = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            get_v = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for _ in cutlass.range(steps, unroll=1):
                ring_k.consumer_wait(get_k)
                warpgroup.fence()
                scores.set(warpgroup.Field.ACCUMULATE, False)
                for part in cutlass.range_constexpr(cute.size(part_q, mode=[2])):
                    cute.gemm(scores, score, part_q[None, None, part, 0], part_k[None, None, part, get_k.index], score)
                    scores.set(warpgroup.Field.ACCUMULATE, True)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                ring_k.consumer_release(get_k)
                get_k.advance()
                self.weigh(score, weight, result, top, total, scale)
                ring_v.consumer_wait(get_v)
                warpgroup.fence()
                values.set(warpgroup.Field.ACCUMULATE, True)
                for part in cutlass.range_constexpr(cute.size(weight, mode=[2])):
                    cute.gemm(values, result, weight[None, None, part], part_v[None, None, part, get_v.index], result)
                warpgroup.commit_group()
                warpgroup.wait_group(0)
                ring_v.consumer_release(get_v)
                get_v.advance()
            for side in cutlass.range_constexpr(2):
                sums = total[side]
                for reach in cutlass.range_constexpr(2):
                    sums = sums + cute.arch.shuffle_sync_bfly(sums, offset=1 << reach)
                total[side] = 1.0 / sums
            for each in cutlass.range_constexpr(cute.size(result)):
                result[each] = result[each] * total[each // 2 % 2]
            self.write(result, values, at, shared_o, tile_o, copy_o, x, head, None, None, number)

    @cute.jit
    def weigh(self, score, weight, result, top, total, scale):
        """Scores to weights; what was found so far is rescaled. A thread has two rows, with three neighbours."""
        for side in cutlass.range_constexpr(2):
            higher = top[side]
            for each in cutlass.range_constexpr(cute.size(score)):
                if cutlass.const_expr(each // 2 % 2 == side):
                    higher = cute.arch.fmax(higher, score[each])
            for reach in cutlass.range_constexpr(2):
                higher = cute.arch.fmax(higher, cute.arch.shuffle_sync_bfly(higher, offset=1 << reach))
            keep = cute.math.exp2((top[side] - higher) * scale, fastmath=True)
            sums = total[side] * keep
            for each in cutlass.range_constexpr(cute.size(score)):
                if cutlass.const_expr(each // 2 % 2 == side):
                    power = cute.math.exp2(score[each] * scale - higher * scale, fastmath=True)
                    sums = sums + power
                    weight[each] = power.to(cutlass.BFloat16)
            for each in cutlass.range_constexpr(cute.size(result)):
                if cutlass.const_expr(each // 2 % 2 == side):
                    result[each] = result[each] * keep
            total[side] = sums
            top[side] = higher


def attention(keys: int, stages: int) -> list[Kernel]:
    """64 heads of 4096 queries and keys of 128 elements."""
    made = Attention(keys, stages)
    rows = [array(cutlass.BFloat16, HEADS * LENGTH, WIDE) for _ in "qk"]
    given = [*rows, array(cutlass.BFloat16, WIDE, HEADS * LENGTH, first=True), rows[0], cutlass.Float32(0.1)]
    l2 = HEADS * (LENGTH // 128) * (2 * 128 + 2 * LENGTH) * WIDE * 2
    found = compiled(made, given, (LENGTH // 128, HEADS), made.threads, l2, 4 * HEADS * LENGTH * WIDE * 2)
    return [replace(found, shared=made.shared)]


@cute.jit
def over_block(
    value: cutlass.Float32, op: cutlass.Constexpr, shared: cute.Tensor, warps: cutlass.Constexpr, none: cutlass.Constexpr
):
    """One value of all threads of a block: over lanes, then over warps."""
    thread, _, _ = cute.arch.thread_idx()
    lane, number = thread % WARP, thread // WARP
    value = cute.arch.warp_reduction(value, op)
    if lane == 0:
        shared[number] = value
    cute.arch.sync_threads()
    part = cutlass.Float32(none)
    if lane < warps:
        part = shared[lane]
    found = cute.arch.warp_reduction(part, op)
    cute.arch.sync_threads()
    return found


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


WORDS = [(128, 256, 64), (128, 128, 64)]
BYTES = [(128, 256, 128), (128, 128, 128)]
configurations("matmul_bf16", partial(matmul, cutlass.BFloat16, False, cutlass.Float32), tile=WORDS, stages=[4], across=[1, 2])
configurations("matmul_f8", partial(matmul, cutlass.Float8E4M3FN, True, cutlass.Float32), tile=BYTES, stages=[4], across=[1, 2])
configurations("matmul_i8", partial(matmul, cutlass.Int8, True, cutlass.Int32), tile=BYTES, stages=[4], across=[1, 2])
configurations("attention", attention, keys=[128, 64], stages=[2])
configurations("softmax", partial(by_rows, "softmax", cutlass.Float32, 0), threads=[128, 256, 512])
configurations("layernorm", partial(by_rows, "layernorm", cutlass.Float32, 2), threads=[128, 256, 512])
configurations("rmsnorm", partial(by_rows, "rmsnorm", cutlass.BFloat16, 1), threads=[128, 256, 512])
configurations("scan", scan, threads=[128, 256])
configurations("bias_gelu", bias_gelu, threads=[128, 256], vectors=[1, 2])
configurations("transpose", transpose, threads=[128, 256])
configurations("sum", whole_sum, share=[1 << 16, 1 << 17], threads=[256, 512])
configurations("gather", gather, threads=[128, 256])

if __name__ == "__main__":
    sys.exit(PEER.main())
