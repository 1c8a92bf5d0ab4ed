/* Copies of boxes of a tensor by the tensor memory accelerator, and the barriers in shared memory that wait for them: PTX of
   sm_90 and later. The emulator has functions of the same names.

   A place in shared memory is an array and an index; coordinates are signed, the innermost first. */
#ifndef TEXPR_TENSOR_H
#define TEXPR_TENSOR_H

/* What the driver encodes (`CUtensorMap`), and a kernel takes as `const __grid_constant__`. */
struct alignas(64) tx_tensor_map {
    unsigned char bytes[128];
};

#if defined(__CUDACC__)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define TX_ASM(...) asm volatile(__VA_ARGS__)
#else
#define TX_ASM(...) __trap() /* no such kernel is printed for a device without */
#endif

template <class T> TX_FN unsigned tx_shared_address(T const *array, long long index) {
    return (unsigned)__cvta_generic_to_shared(array + index);
}

/* ---- barriers ------------------------------------------------------------------------------------------------------------ */

/* Each phase waits for `count` arrivals. PTX ISA, "mbarrier.init". */
TX_FN void tx_barrier_init(uint64_t *barriers, long long at, unsigned count) {
    TX_ASM("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(tx_shared_address(barriers, at)), "r"(count) : "memory");
}

/* Arrives; the phase waits for `bytes` more. PTX ISA, "mbarrier.arrive", ".expect_tx". */
TX_FN void tx_barrier_expect(uint64_t *barriers, long long at, unsigned bytes) {
    TX_ASM("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(tx_shared_address(barriers, at)), "r"(bytes)
           : "memory");
}

/* PTX ISA, "mbarrier.arrive". */
TX_FN void tx_barrier_arrive(uint64_t *barriers, long long at) {
    TX_ASM("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(tx_shared_address(barriers, at)) : "memory");
}

/* A warp arrives once, after all of its lanes have come. */
TX_FN void tx_barrier_release(uint64_t *barriers, long long at) {
    __syncwarp();
    if (threadIdx.x % 32u == 0) tx_barrier_arrive(barriers, at);
}

/* The same at the barrier of each of the blocks of the cluster, a lane each. Of another block nobody learns what threads did, which
   a wider scope would make known by a fence of the whole device in each turn. PTX ISA, "mapa", "mbarrier.arrive". */
template <int BLOCKS> TX_FN void tx_barrier_release_among(uint64_t *barriers, long long at) {
    __syncwarp();
    unsigned lane = threadIdx.x % 32u;
    if (lane < BLOCKS)
        TX_ASM("{\n\t"
               ".reg .b32 there;\n\t"
               "mapa.shared::cluster.u32 there, %0, %1;\n\t"
               "mbarrier.arrive.release.cta.shared::cluster.b64 _, [there];\n\t"
               "}" ::"r"(tx_shared_address(barriers, at)), "r"(lane)
               : "memory");
}

/* Waits until the phase of this parity has completed. PTX ISA, "mbarrier.try_wait". */
TX_FN void tx_barrier_wait(uint64_t *barriers, long long at, unsigned parity) {
    TX_ASM("{\n\t"
           ".reg .pred done;\n\t"
           "waiting:\n\t"
           "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 done, [%0], %1;\n\t"
           "@done bra ready;\n\t"
           "bra waiting;\n\t"
           "ready:\n\t"
           "}" ::"r"(tx_shared_address(barriers, at)), "r"(parity)
           : "memory");
}

/* What this thread read and wrote of shared memory comes before the copies of tiles that are started after it. PTX ISA, "fence.proxy". */
TX_FN void tx_fence_async() { TX_ASM("fence.proxy.async.shared::cta;" ::: "memory"); }

/* Barriers that this thread made are known to copies. PTX ISA, "fence.mbarrier_init". */
TX_FN void tx_fence_init() { TX_ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/* ---- copies of tiles ----------------------------------------------------------------------------------------------------- */

/* PTX ISA, "prefetch", ".tensormap". */
TX_FN void tx_prefetch(tx_tensor_map const &map) { TX_ASM("prefetch.tensormap [%0];" ::"l"(&map) : "memory"); }

#define TX_TENSOR_1 "{%3}"
#define TX_TENSOR_2 "{%3, %4}"
#define TX_TENSOR_3 "{%3, %4, %5}"
#define TX_TENSOR_4 "{%3, %4, %5, %6}"
#define TX_TENSOR_5 "{%3, %4, %5, %6, %7}"
#define TX_STORED_1 "{%2}"
#define TX_STORED_2 "{%2, %3}"
#define TX_STORED_3 "{%2, %3, %4}"
#define TX_STORED_4 "{%2, %3, %4, %5}"
#define TX_STORED_5 "{%2, %3, %4, %5, %6}"

/* Functions of the coordinates `c0`, …, of each rank. */
#define TX_EACH_RANK(F) \
    F(1, (int c0), "r"(c0)) \
    F(2, (int c0, int c1), "r"(c0), "r"(c1)) \
    F(3, (int c0, int c1, int c2), "r"(c0), "r"(c1), "r"(c2)) \
    F(4, (int c0, int c1, int c2, int c3), "r"(c0), "r"(c1), "r"(c2), "r"(c3)) \
    F(5, (int c0, int c1, int c2, int c3, int c4), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4))
#define TX_UNPACK(...) __VA_ARGS__

/* Starts a copy of a box to a tile, whose bytes arrive at a barrier. PTX ISA, "cp.async.bulk.tensor". */
#define TX_LOAD_TENSOR(RANK, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_load_tensor(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, \
                              TX_UNPACK COORDINATES) { \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " \
               TX_TENSOR_##RANK "], [%2];" ::"r"(tx_shared_address(to, at)), "l"(&map), \
               "r"(tx_shared_address(barriers, barrier)), __VA_ARGS__ \
               : "memory"); \
    }
TX_EACH_RANK(TX_LOAD_TENSOR)

/* The same, whose bytes arrive at the barrier of the first block of a pair (sm_100a, sm_103a). PTX ISA, "cp.async.bulk.tensor",
   ".cta_group::2": the barrier may be in either block of the pair; "mapa". */
#define TX_LOAD_TENSOR_LED(RANK, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_load_tensor_led(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, \
                                  TX_UNPACK COORDINATES) { \
        uint32_t rank, first; \
        asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); \
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(first) : "r"(tx_shared_address(barriers, barrier)), "r"(rank & ~1u)); \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.cta_group::2.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " \
               TX_TENSOR_##RANK "], [%2];" ::"r"(tx_shared_address(to, at)), "l"(&map), "r"(first), __VA_ARGS__ \
               : "memory"); \
    }
TX_EACH_RANK(TX_LOAD_TENSOR_LED)

/* The same for several blocks of the cluster, a bit of `mask` each by its rank: to the same tile of each, and to the same barrier.
   PTX ISA, "cp.async.bulk.tensor", ".multicast::cluster". */
#define TX_MULTICAST_1 "{%4}"
#define TX_MULTICAST_2 "{%4, %5}"
#define TX_MULTICAST_3 "{%4, %5, %6}"
#define TX_MULTICAST_4 "{%4, %5, %6, %7}"
#define TX_MULTICAST_5 "{%4, %5, %6, %7, %8}"
#define TX_LOAD_TENSOR_MULTICAST(RANK, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_load_tensor_multicast(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, \
                                        unsigned mask, TX_UNPACK COORDINATES) { \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], " \
               "[%1, " TX_MULTICAST_##RANK "], [%2], %3;" ::"r"(tx_shared_address(to, at)), "l"(&map), \
               "r"(tx_shared_address(barriers, barrier)), "h"((unsigned short)mask), __VA_ARGS__ \
               : "memory"); \
    }
TX_EACH_RANK(TX_LOAD_TENSOR_MULTICAST)

/* Starts a copy of a column of pixels, each moved by the offsets, W first, to a tile. PTX ISA, "cp.async.bulk.tensor", ".im2col". */
#define TX_LOAD_COLUMNS(RANK, OFFSETS, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_load_columns(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, \
                               TX_UNPACK COORDINATES) { \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " \
               TX_TENSOR_##RANK "], [%2], " OFFSETS ";" ::"r"(tx_shared_address(to, at)), "l"(&map), \
               "r"(tx_shared_address(barriers, barrier)), __VA_ARGS__ \
               : "memory"); \
    }
#define TX_OFFSET(VALUE) "h"((unsigned short)(VALUE))
TX_LOAD_COLUMNS(3, "{%6}", (int c0, int c1, int c2, int o0), "r"(c0), "r"(c1), "r"(c2), TX_OFFSET(o0))
TX_LOAD_COLUMNS(4, "{%7, %8}", (int c0, int c1, int c2, int c3, int o0, int o1), "r"(c0), "r"(c1), "r"(c2), "r"(c3), TX_OFFSET(o0),
                TX_OFFSET(o1))
TX_LOAD_COLUMNS(5, "{%8, %9, %10}", (int c0, int c1, int c2, int c3, int c4, int o0, int o1, int o2), "r"(c0), "r"(c1), "r"(c2),
                "r"(c3), "r"(c4), TX_OFFSET(o0), TX_OFFSET(o1), TX_OFFSET(o2))

/* The same for several blocks of the cluster, as above. */
#define TX_LOAD_COLUMNS_MULTICAST(RANK, OFFSETS, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_load_columns_multicast(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, \
                                         unsigned mask, TX_UNPACK COORDINATES) { \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster [%0], " \
               "[%1, " TX_MULTICAST_##RANK "], [%2], " OFFSETS ", %3;" ::"r"(tx_shared_address(to, at)), "l"(&map), \
               "r"(tx_shared_address(barriers, barrier)), "h"((unsigned short)mask), __VA_ARGS__ \
               : "memory"); \
    }
TX_LOAD_COLUMNS_MULTICAST(3, "{%7}", (int c0, int c1, int c2, int o0), "r"(c0), "r"(c1), "r"(c2), TX_OFFSET(o0))
TX_LOAD_COLUMNS_MULTICAST(4, "{%8, %9}", (int c0, int c1, int c2, int c3, int o0, int o1), "r"(c0), "r"(c1), "r"(c2), "r"(c3),
                          TX_OFFSET(o0), TX_OFFSET(o1))
TX_LOAD_COLUMNS_MULTICAST(5, "{%9, %10, %11}", (int c0, int c1, int c2, int c3, int c4, int o0, int o1, int o2), "r"(c0), "r"(c1),
                          "r"(c2), "r"(c3), "r"(c4), TX_OFFSET(o0), TX_OFFSET(o1), TX_OFFSET(o2))

/* Starts a copy of four rows of a matrix to a tile, one behind the other; sm_100a. PTX ISA, "cp.async.bulk.tensor", ".tile::gather4". */
template <class T>
TX_FN void tx_load_rows(T *to, long long at, tx_tensor_map const &map, uint64_t *barriers, long long barrier, int column, int a, int b,
                        int c, int d) {
    TX_ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [%0], [%1, "
           TX_TENSOR_5 "], [%2];" ::"r"(tx_shared_address(to, at)), "l"(&map), "r"(tx_shared_address(barriers, barrier)), "r"(column),
           "r"(a), "r"(b), "r"(c), "r"(d)
           : "memory");
}

/* Starts a copy of a tile of four rows to rows of a matrix; sm_100a. PTX ISA, "cp.async.bulk.tensor", ".tile::scatter4". */
template <class T>
TX_FN void tx_store_rows(tx_tensor_map const &map, T const *from, long long at, int column, int a, int b, int c, int d) {
    TX_ASM("cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
           "r"(tx_shared_address(from, at)), "r"(column), "r"(a), "r"(b), "r"(c), "r"(d)
           : "memory");
}

/* Starts a copy of a tile to a box. PTX ISA, "cp.async.bulk.tensor". */
#define TX_STORE_TENSOR(RANK, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_store_tensor(tx_tensor_map const &map, T const *from, long long at, TX_UNPACK COORDINATES) { \
        TX_ASM("cp.async.bulk.tensor." #RANK "d.global.shared::cta.tile.bulk_group [%0, " TX_STORED_##RANK "], [%1];" ::"l"(&map), \
               "r"(tx_shared_address(from, at)), __VA_ARGS__ \
               : "memory"); \
    }
TX_EACH_RANK(TX_STORE_TENSOR)

/* The same, combined with what is there. PTX ISA, "cp.reduce.async.bulk.tensor". */
#define TX_REDUCE_TENSOR(OP, RANK, COORDINATES, ...) \
    template <class T> \
    TX_FN void tx_reduce_##OP##_tensor(tx_tensor_map const &map, T const *from, long long at, TX_UNPACK COORDINATES) { \
        TX_ASM("cp.reduce.async.bulk.tensor." #RANK "d.global.shared::cta." #OP ".tile.bulk_group [%0, " TX_STORED_##RANK \
               "], [%1];" ::"l"(&map), \
               "r"(tx_shared_address(from, at)), __VA_ARGS__ \
               : "memory"); \
    }
#define TX_REDUCE_ADD(...) TX_REDUCE_TENSOR(add, __VA_ARGS__)
#define TX_REDUCE_MIN(...) TX_REDUCE_TENSOR(min, __VA_ARGS__)
#define TX_REDUCE_MAX(...) TX_REDUCE_TENSOR(max, __VA_ARGS__)
#define TX_REDUCE_INC(...) TX_REDUCE_TENSOR(inc, __VA_ARGS__)
#define TX_REDUCE_DEC(...) TX_REDUCE_TENSOR(dec, __VA_ARGS__)
#define TX_REDUCE_AND(...) TX_REDUCE_TENSOR(and, __VA_ARGS__)
#define TX_REDUCE_OR(...) TX_REDUCE_TENSOR(or, __VA_ARGS__)
#define TX_REDUCE_XOR(...) TX_REDUCE_TENSOR(xor, __VA_ARGS__)
TX_EACH_RANK(TX_REDUCE_ADD)
TX_EACH_RANK(TX_REDUCE_MIN)
TX_EACH_RANK(TX_REDUCE_MAX)
TX_EACH_RANK(TX_REDUCE_INC)
TX_EACH_RANK(TX_REDUCE_DEC)
TX_EACH_RANK(TX_REDUCE_AND)
TX_EACH_RANK(TX_REDUCE_OR)
TX_EACH_RANK(TX_REDUCE_XOR)

/* ---- copies of one run --------------------------------------------------------------------------------------------------- */

/* `count` elements, 16 bytes or a multiple, to shared memory; their bytes arrive at a barrier. PTX ISA, "cp.async.bulk". */
template <class T>
TX_FN void tx_load_bulk(T *to, long long at, T const *from, long long start, uint64_t *barriers, long long barrier, int count) {
    TX_ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(tx_shared_address(to, at)),
           "l"(from + start), "r"(count * (int)sizeof(T)), "r"(tx_shared_address(barriers, barrier))
           : "memory");
}
template <int N, class T>
TX_FN void tx_load_bulk(T *to, long long at, T const *from, long long start, uint64_t *barriers, long long barrier) {
    tx_load_bulk(to, at, from, start, barriers, barrier, N);
}

/* The same from shared memory. */
template <class T> TX_FN void tx_store_bulk(T *to, long long at, T const *from, long long start, int count) {
    TX_ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + at), "r"(tx_shared_address(from, start)),
           "r"(count * (int)sizeof(T))
           : "memory");
}
template <int N, class T> TX_FN void tx_store_bulk(T *to, long long at, T const *from, long long start) {
    tx_store_bulk(to, at, from, start, N);
}

/* The same, combined with what is there; sums of signed words of 64 bits are those of unsigned ones. PTX ISA, "cp.reduce.async.bulk". */
#define TX_REDUCE_BULK(OP, T, TYPE) \
    TX_FN void tx_reduce_##OP##_bulk(T *to, long long at, T const *from, long long start, int count) { \
        TX_ASM("cp.reduce.async.bulk.global.shared::cta.bulk_group." #OP "." TYPE " [%0], [%1], %2;" ::"l"(to + at), \
               "r"(tx_shared_address(from, start)), "r"(count * (int)sizeof(T)) \
               : "memory"); \
    }
#define TX_REDUCE_BULK_RUN(OP) \
    template <int N, class T> TX_FN void tx_reduce_##OP##_bulk(T *to, long long at, T const *from, long long start) { \
        tx_reduce_##OP##_bulk(to, at, from, start, N); \
    }
#define TX_REDUCE_BULK_ORDERED(OP) \
    TX_REDUCE_BULK(OP, uint32_t, "u32") \
    TX_REDUCE_BULK(OP, int32_t, "s32") \
    TX_REDUCE_BULK(OP, uint64_t, "u64") \
    TX_REDUCE_BULK(OP, int64_t, "s64") \
    TX_REDUCE_BULK(OP, tx_f16, "f16") \
    TX_REDUCE_BULK(OP, tx_bf16, "bf16") \
    TX_REDUCE_BULK_RUN(OP)
#define TX_REDUCE_BULK_BITS(OP) \
    TX_REDUCE_BULK(OP, uint32_t, "b32") \
    TX_REDUCE_BULK(OP, int32_t, "b32") \
    TX_REDUCE_BULK(OP, uint64_t, "b64") \
    TX_REDUCE_BULK(OP, int64_t, "b64") \
    TX_REDUCE_BULK_RUN(OP)
TX_REDUCE_BULK(add, uint32_t, "u32")
TX_REDUCE_BULK(add, int32_t, "s32")
TX_REDUCE_BULK(add, uint64_t, "u64")
TX_REDUCE_BULK(add, int64_t, "u64")
TX_REDUCE_BULK(add, float, "f32")
TX_REDUCE_BULK(add, double, "f64")
TX_REDUCE_BULK(add, tx_f16, "noftz.f16")
TX_REDUCE_BULK(add, tx_bf16, "noftz.bf16")
TX_REDUCE_BULK_RUN(add)
TX_REDUCE_BULK(inc, uint32_t, "u32")
TX_REDUCE_BULK_RUN(inc)
TX_REDUCE_BULK(dec, uint32_t, "u32")
TX_REDUCE_BULK_RUN(dec)
TX_REDUCE_BULK_ORDERED(min)
TX_REDUCE_BULK_ORDERED(max)
TX_REDUCE_BULK_BITS(and)
TX_REDUCE_BULK_BITS(or)
TX_REDUCE_BULK_BITS(xor)

/* The stores that this thread started since its last commit become a group. PTX ISA, "cp.async.bulk.commit_group". */
TX_FN void tx_commit_bulk() { TX_ASM("cp.async.bulk.commit_group;" ::: "memory"); }

/* At most PENDING groups of this thread, the latest, are unfinished, or have yet to read. PTX ISA, "cp.async.bulk.wait_group". */
template <int PENDING> TX_FN void tx_wait_bulk() { TX_ASM("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory"); }
template <int PENDING> TX_FN void tx_wait_bulk_read() { TX_ASM("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory"); }

#endif

#endif
