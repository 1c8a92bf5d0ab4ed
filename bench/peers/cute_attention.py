"""Attention in CuTe DSL, on tensor cores, in one sweep over the keys."""

# The language reads annotations and rewrites functions from their text: no `from __future__ import annotations`.

from dataclasses import replace

import cutlass
from cute_kernels import GROUP, HEADS, LENGTH, WARP, array, compiled
from cute_products import Product
from cutlass import cute, pipeline, tensor_utils, utils
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.utils import hopper_helpers as hopper
from offer import Kernel


class Attention(Product):
    """softmax(Q Kᵀ · scale) V of heads in one sweep over the keys: one warp group brings tiles, two have 64 queries
    each, whose weights stay in registers as a factor of the second product. If `causal`, keys are met up to those of the
    block's own rows, which alone are masked."""

    def __init__(self, wide: int, causal: bool, keys: int, stages: int) -> None:
        super().__init__((128, wide, keys), stages, 1, cutlass.Float32, cutlass.BFloat16)
        self.keys, self.causal = keys, causal

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
        first = head * (LENGTH // keys)
        plain, steps = LENGTH // keys, LENGTH // keys
        if cutlass.const_expr(self.causal):
            plain = x * (queries // keys)
            steps = plain + queries // keys
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
            where = scores.get_slice(at).partition_C(cute.make_identity_tensor((queries, keys)))
            for step in cutlass.range(steps, unroll=1):
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
                if cutlass.const_expr(self.causal):  # noqa: SIM102 - one test is of compiling, the other of running
                    if step >= plain:
                        self.mask(score, where, (step - plain) * keys)
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
    def mask(self, score, where, ahead):
        """Leaves out keys behind a query. `ahead`: of the tile's first key, from the first of the block's own rows."""
        for each in cutlass.range_constexpr(cute.size(score)):
            row, key = where[each]
            if key + ahead > row:
                score[each] = -cutlass.Float32.inf

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


def attention(wide: int, causal: bool, keys: int, stages: int) -> list[Kernel]:
    """64 heads of 4096 queries and keys."""
    made = Attention(wide, causal, keys, stages)
    rows = [array(cutlass.BFloat16, HEADS * LENGTH, wide) for _ in "qk"]
    given = [*rows, array(cutlass.BFloat16, wide, HEADS * LENGTH, first=True), rows[0], cutlass.Float32(0.1)]
    blocks = LENGTH // 128
    brought = sum(at + 1 for at in range(blocks)) * 128 if causal else blocks * LENGTH
    l2 = HEADS * (2 * LENGTH + 2 * brought) * wide * 2
    found = compiled(made, given, (blocks, HEADS), made.threads, l2, 4 * HEADS * LENGTH * wide * 2)
    return [replace(found, shared=made.shared)]
