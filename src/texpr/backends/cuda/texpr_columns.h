/* Tensor memory: PTX of sm_100a and sm_103a. The emulator has functions of the same names.

   PTX ISA, "TensorCore 5th Generation Family Instructions". */
#ifndef TEXPR_COLUMNS_H
#define TEXPR_COLUMNS_H

#if defined(__CUDACC__)

/* An array in tensor memory: its first column. PTX ISA, "Tensor Memory Addressing": a lane in the upper 16 bits of an address, a
   column in the lower. */
template <class T, int COUNT = 0> struct tx_columns_of {
    uint32_t first;
};

/* A column as a warp that moves it says it: from the first of the 32 lanes on that it reaches. PTX ISA, "Access restrictions". */
template <class T> TX_FN uint32_t tx_own_column(tx_columns_of<T> const &array, int at) {
    uint32_t const thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return array.first + (uint32_t)(at * (int)sizeof(T) / 4) + ((thread / 32u % 4u) << 21);
}

/* A column as a product says it: from the first lane on. */
template <class T> TX_FN uint32_t tx_column(tx_columns_of<T> const &array, int at) { return array.first + (uint32_t)(at * (int)sizeof(T) / 4); }

/* The same of scales, of which COUNT columns are copied at once: slot s of 4 COUNT is byte s / COUNT of column s % COUNT, and the
   byte is in the two highest bits. */
template <class T, int COUNT> TX_FN uint32_t tx_column(tx_columns_of<T, COUNT> const &array, int at) {
    return (array.first + (uint32_t)(at / (4 * COUNT) * COUNT + at % COUNT)) | (uint32_t)(at / COUNT % 4) << 30;
}

/* The descriptor of a matrix that starts at an element of a shared array, as `tx_described` has it. PTX ISA, "Shared memory
   descriptor": a constant 1 from bit 46 on; a swizzle of 128, 64 or 32 bytes is 2, 4 or 6 from bit 61 on. */
template <class T, int SWIZZLE, int LEADING, int STRIDE>
TX_FN uint64_t tx_described_columns(T const *array, int at, tx_matrix<SWIZZLE, LEADING, STRIDE>) {
    constexpr uint64_t mode = SWIZZLE == 128 ? 2 : SWIZZLE == 64 ? 4 : SWIZZLE == 32 ? 6 : 0;
    constexpr uint64_t bits = (uint64_t)(LEADING / 16) << 16 | (uint64_t)(STRIDE / 16) << 32 | 1ull << 46 | mode << 61;
    uint32_t const chunks = (((uint32_t)__cvta_generic_to_shared(array) & 0x3ffff) >> 4) + (uint32_t)(at * (int)sizeof(T) >> 4);
    return bits >> 32 << 32 | ((uint32_t)bits + chunks);
}

/* A warp takes COUNT columns, and leaves the rest to other blocks; one of each of two BLOCKS, as many in both, together. PTX ISA,
   "tcgen05.alloc", "tcgen05.relinquish_alloc_permit". */
template <int COUNT, int BLOCKS = 1> TX_FN void tx_take_columns(uint64_t *word, long long at) {
    TX_ASM("tcgen05.alloc.cta_group::%2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(tx_shared_address(word, at)), "n"(COUNT), "n"(BLOCKS)
           : "memory");
    TX_ASM("tcgen05.relinquish_alloc_permit.cta_group::%0.sync.aligned;" ::"n"(BLOCKS) : "memory");
}

/* Where they begin. */
TX_FN uint32_t tx_first_column(uint64_t const *word, long long at) { return *reinterpret_cast<uint32_t const volatile *>(word + at); }

/* PTX ISA, "tcgen05.dealloc". */
template <int COUNT, int BLOCKS = 1> TX_FN void tx_free_columns(uint32_t first) {
    TX_ASM("tcgen05.dealloc.cta_group::%2.sync.aligned.b32 %0, %1;" ::"r"(first), "n"(COUNT), "n"(BLOCKS) : "memory");
}

/* PTX ISA, "tcgen05.fence". */
TX_FN void tx_fence_columns_before() { TX_ASM("tcgen05.fence::before_thread_sync;" ::: "memory"); }
TX_FN void tx_fence_columns_after() { TX_ASM("tcgen05.fence::after_thread_sync;" ::: "memory"); }

/* All that this thread started before arrives when it is done. PTX ISA, "tcgen05.commit". */
TX_FN void tx_commit_columns(uint64_t *barriers, long long at) {
    TX_ASM("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(tx_shared_address(barriers, at)) : "memory");
}

/* Whether this block is the first one of a pair, which launches for both. PTX ISA, "CTA Pair": ranks that differ in the last bit. */
TX_FN bool tx_leads_pair() {
    uint32_t rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank % 2 == 0;
}

/* The same of a pair, at the barriers of both blocks: those of a cluster of two. */
TX_FN void tx_commit_columns_of_pair(uint64_t *barriers, long long at) {
    if (tx_leads_pair())
        TX_ASM("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                   tx_shared_address(barriers, at)),
               "h"((uint16_t)3)
               : "memory");
}

#endif

#endif
