/* What the tensor core of a warpgroup does by itself: PTX of sm_90a. The emulator has functions of the same names.

   PTX ISA, "Asynchronous warpgroup level matrix instructions". */
#ifndef TEXPR_WARPGROUP_H
#define TEXPR_WARPGROUP_H

/* A descriptor without the place where the matrix starts: distances in bytes. PTX ISA, "Matrix descriptor": chunks of 16 bytes in
   14 bits each, and a swizzle of 128, 64 or 32 bytes as 1, 2 or 3. */
template <int SWIZZLE, int LEADING, int STRIDE> struct tx_matrix {
    static constexpr uint64_t mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
    static constexpr uint64_t bits = (uint64_t)(LEADING / 16) << 16 | (uint64_t)(STRIDE / 16) << 32 | mode << 62;
};

#if defined(__CUDACC__)

/* The descriptor of a matrix that starts at an element of a shared array. An address in a block's shared memory has 18 bits, and
   above them the number of the block in its cluster, which is no part of a descriptor. Both of array and element are multiples of
   16 bytes, and the sum is an address in the block: so chunks are added up, of which those of the array stay the same, in a lower
   half that is added to as a whole. */
template <class T, int SWIZZLE, int LEADING, int STRIDE>
TX_FN uint64_t tx_described(T const *array, int at, tx_matrix<SWIZZLE, LEADING, STRIDE>) {
    constexpr uint64_t bits = tx_matrix<SWIZZLE, LEADING, STRIDE>::bits;
    uint32_t const chunks = (((uint32_t)__cvta_generic_to_shared(array) & 0x3ffff) >> 4) + (uint32_t)(at * (int)sizeof(T) >> 4);
    return bits >> 32 << 32 | ((uint32_t)bits + chunks);
}

/* A whole number that the compiler does not see. */
template <class T> TX_FN T tx_unseen(T value) {
    static_assert(sizeof(T) == 4, "a register");
    asm volatile("" : "+r"(value));
    return value;
}

/* Whatever is done to registers before stays before, and what is done behind it comes behind: the compiler sees them changed here. */
template <int COUNT, class A> TX_FN void tx_hold_registers(A &array, int at) {
    using T = std::remove_reference_t<decltype(array[0])>;
#pragma unroll
    for (int each = 0; each < COUNT; each += sizeof(T) == 2 ? 2 : 1) {
        if constexpr (sizeof(T) == 2) {
            uint32_t word = tx_packed<uint32_t>(array[at + each], array[at + each + 1]);
            asm volatile("" : "+r"(word)::"memory");
            array[at + each] = tx_unpacked<T, 0>(word);
            array[at + each + 1] = tx_unpacked<T, 1>(word);
        } else if constexpr (std::is_same_v<T, float>) {
            asm volatile("" : "+f"(array[at + each])::"memory");
        } else {
            asm volatile("" : "+r"(array[at + each])::"memory");
        }
    }
}
template <int COUNT, class A> TX_FN void tx_give_registers(A &array, int at) { tx_hold_registers<COUNT>(array, at); }
template <int COUNT, class A> TX_FN void tx_take_registers(A &array, int at) { tx_hold_registers<COUNT>(array, at); }

/* What lanes did to registers comes before what is started after it. PTX ISA, "wgmma.fence". */
TX_FN void tx_fence_warpgroup(unsigned) { TX_ASM("wgmma.fence.sync.aligned;" ::: "memory"); }

/* From here on each thread of these warps has COUNT registers; it had HAVE. Who asks for more waits until they are given up. PTX
   ISA, "setmaxnreg". */
template <int COUNT, int HAVE> TX_FN void tx_keep_registers() {
    if constexpr (COUNT < HAVE) TX_ASM("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
    if constexpr (COUNT > HAVE) TX_ASM("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT) : "memory");
}

/* PTX ISA, "wgmma.commit_group". */
TX_FN void tx_commit_warpgroup() { TX_ASM("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* At most PENDING groups, the latest, are unfinished. PTX ISA, "wgmma.wait_group". */
template <int PENDING> TX_FN void tx_wait_warpgroup() { TX_ASM("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory"); }

#endif

#endif
